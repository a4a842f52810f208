#include "kiln/cache/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>
#include <utility>

#include "field_text.h"
#include "kiln/base/error.h"

namespace kiln::cache {
namespace {

[[noreturn]] void refuse(std::string_view field, const std::string& why) {
  throw Error(ErrorCode::invalid_argument, fmt::format("cache record: {} {}", field, why));
}

void require_text(std::string_view field, std::string_view text) {
  if (text.size() > max_text_bytes)
    refuse(field, fmt::format("has {} bytes, more than {}", text.size(), max_text_bytes));
  if (!valid_utf8(text)) refuse(field, "is not valid UTF-8");
  if (text.find('\0') != std::string_view::npos) refuse(field, "contains a NUL");
}

void require_seconds(std::string_view field, double value) {
  if (!std::isfinite(value) || value < 0) refuse(field, fmt::format("= {} is not a finite, non-negative time", value));
}

void require_at_least(std::string_view field, std::int64_t value, std::int64_t least) {
  if (value < least) refuse(field, fmt::format("= {} is below {}", value, least));
}

// Everything but the identity, for the order that settles merges. Doubles are compared by their bits: -0 and 0 differ,
// so that equal means byte-equal.
auto content(const Record& r) {
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  return std::tuple(std::string_view(r.outcome), bits(r.seconds), bits(r.spread), std::string_view(r.check),
                    r.workspace_bytes, r.deterministic, r.resources.registers, r.resources.spill_bytes,
                    r.resources.shared_bytes, std::string_view(r.driver_version), std::string_view(r.nvrtc_version),
                    std::string_view(r.kiln_version), std::string_view(r.source_digest), std::string_view(r.error),
                    static_cast<int>(r.kind));
}

auto identity(const Record& r) {
  return std::tuple(std::string_view(r.device), std::string_view(r.request), std::string_view(r.algorithm),
                    std::string_view(r.config), std::string_view(r.algorithm_digest));
}

}  // namespace

std::string_view to_string(TimeKind kind) {
  switch (kind) {
    case TimeKind::measured:
      return "measured";
    case TimeKind::modelled:
      return "modelled";
    case TimeKind::predicted:
      return "predicted";
  }
  return "unknown";
}

std::optional<TimeKind> parse_time_kind(std::string_view text) {
  for (const TimeKind kind : {TimeKind::measured, TimeKind::modelled, TimeKind::predicted}) {
    if (text == to_string(kind)) return kind;
  }
  return std::nullopt;
}

void validate(const Record& record) {
  require_line("cache record: request", record.request, max_request_bytes, false);
  require_line("cache record: device", record.device, max_name_bytes, false);
  require_line("cache record: algorithm", record.algorithm, max_name_bytes, false);
  require_line("cache record: algorithm_digest", record.algorithm_digest, max_name_bytes, false);
  require_line("cache record: config", record.config, max_name_bytes, true);
  require_line("cache record: outcome", record.outcome, max_name_bytes, false);
  require_line("cache record: driver_version", record.driver_version, max_name_bytes, true);
  require_line("cache record: nvrtc_version", record.nvrtc_version, max_name_bytes, true);
  require_line("cache record: kiln_version", record.kiln_version, max_name_bytes, true);
  require_line("cache record: source_digest", record.source_digest, max_name_bytes, true);
  require_line("cache record: session", record.session, max_name_bytes, true);
  require_text("check", record.check);
  require_text("error", record.error);
  require_seconds("seconds", record.seconds);
  require_seconds("spread", record.spread);
  if (record.samples.size() > max_samples) {
    refuse("samples", fmt::format("has {} values, more than {}", record.samples.size(), max_samples));
  }
  for (const double sample : record.samples) require_seconds("samples", sample);
  require_at_least("workspace_bytes", record.workspace_bytes, 0);
  require_at_least("registers", record.resources.registers, -1);
  require_at_least("spill_bytes", record.resources.spill_bytes, -1);
  require_at_least("shared_bytes", record.resources.shared_bytes, -1);
  constexpr std::int64_t year_10000 = 253402300800000;  // the last that ISO text of four digits can hold
  if (record.created_ms < 0 || record.created_ms >= year_10000) {
    refuse("created_ms", fmt::format("= {} is not between the years 1970 and 9999", record.created_ms));
  }
}

void validate(const DeviceEntry& device) {
  require_line("cache device: id", device.id, max_name_bytes, false);
  require_line("cache device: name", device.name, max_name_bytes, true);
  require_at_least("cc_major", device.cc_major, 0);
  require_at_least("cc_minor", device.cc_minor, 0);
  require_at_least("sms", device.sms, 0);
}

Record with_clean_texts(Record record) {
  for (std::string* text : {&record.check, &record.error}) {
    if (text->size() > max_text_bytes || !valid_utf8(*text) || text->find('\0') != std::string::npos ||
        has_hidden(*text)) {
      *text = clean_text(*text, max_text_bytes);
    }
  }
  return record;
}

bool usable(const Record& record) {
  return usable(record.outcome, record.seconds);
}

bool usable(std::string_view name, double seconds) {
  return seconds > 0 && (name == outcome::timed || name == outcome::rejected_early || name == outcome::predicted);
}

bool bars(std::string_view name) {
  return name == outcome::wrong_result || name == outcome::timed_out || name == outcome::crashed;
}

bool is_own(const Record& record) {
  return !record.session.empty();
}

bool listed_before(const Record& a, const Record& b) {
  return identity(a) < identity(b);
}

bool same_identity(const Record& a, const Record& b) {
  return identity(a) == identity(b);
}

bool supersedes(const Record& a, const Record& b) {
  const bool a_taken = a.kind != TimeKind::predicted;
  const bool b_taken = b.kind != TimeKind::predicted;
  if (a_taken != b_taken) return a_taken;
  if (bars(a.outcome) != bars(b.outcome)) return bars(a.outcome);
  if (a.created_ms != b.created_ms) return a.created_ms > b.created_ms;
  if (content(a) != content(b)) return content(a) > content(b);
  const auto order = [](double x, double y) {
    return std::bit_cast<std::uint64_t>(x) <=> std::bit_cast<std::uint64_t>(y);
  };
  const auto samples = std::lexicographical_compare_three_way(a.samples.begin(), a.samples.end(), b.samples.begin(),
                                                              b.samples.end(), order);
  if (samples != 0) return samples > 0;
  return a.session > b.session;
}

bool supersedes(const DeviceEntry& a, const DeviceEntry& b) {
  const auto fields = [](const DeviceEntry& d) {
    return std::tuple(std::string_view(d.name), d.cc_major, d.cc_minor, d.sms, d.emulated);
  };
  return fields(a) > fields(b);
}

}  // namespace kiln::cache
