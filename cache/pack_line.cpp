#include "pack_line.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "field_text.h"
#include "kiln/base/error.h"
#include "kiln/cache/machine_clock.h"
#include "kiln/cache/pack.h"

namespace kiln::cache {
namespace {

PackTag tag_of(std::string_view name) {
  if (name == "record") return PackTag::record;
  if (name == "request") return PackTag::request;
  if (name == "device") return PackTag::device;
  if (name == "predicted") return PackTag::mark;
  if (name == "end") return PackTag::end;
  if (name == "kiln-pack") return PackTag::header;
  return PackTag::unknown;
}

template <class T>
std::optional<T> number(std::string_view field) {
  T value{};
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size()) return std::nullopt;
  return value;
}

std::string_view required(PackFields& fields, const char* name) {
  const auto field = fields.next();
  if (!field) throw PackFault{fmt::format("the field {} is missing", name)};
  return *field;
}

std::string required_text(PackFields& fields, const char* name) {
  std::string storage;
  const auto text = field_text(required(fields, name), storage);
  if (!text) throw PackFault{fmt::format("{} has a broken escape", name)};
  return std::string(*text);
}

void require_end(const PackFields& fields) {
  if (fields.rest()) throw PackFault{fmt::format("has {} after its last field", quoted(*fields.rest()))};
}

int small_number(std::string_view field, const char* name) {
  const auto value = number<int>(field);
  if (!value || *value < 0) throw PackFault{fmt::format("{} {} is not a whole number", name, quoted(field))};
  return *value;
}

}  // namespace

bool PackLines::next(PackLine& line) {
  if (rest_.empty()) return false;
  line.begin = block_.size() - rest_.size();
  const std::size_t end = rest_.find('\n');
  std::string_view text = rest_.substr(0, end);
  rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  line.number = ++number_;
  if (text.empty() || text[0] == '#') {
    line.tag = PackTag::blank;
    line.fields = {};
    return true;
  }
  const std::size_t tab = text.find('\t');
  line.tag = tag_of(text.substr(0, tab));
  line.fields = tab == std::string_view::npos ? std::string_view() : text.substr(tab + 1);
  if (line.tag == PackTag::unknown) line.fields = text;
  return true;
}

std::optional<std::string_view> PackFields::next() {
  if (!rest_) return std::nullopt;
  const std::size_t tab = rest_->find('\t');
  const std::string_view field = rest_->substr(0, tab);
  if (tab == std::string_view::npos) {
    rest_.reset();
  } else {
    rest_->remove_prefix(tab + 1);
  }
  return field;
}

std::optional<std::string> refuse_bytes(std::string_view line) {
  if (line.size() > max_pack_line) return fmt::format("has {} bytes, more than {}", line.size(), max_pack_line);
  if (line.find('\0') != std::string_view::npos) return "contains a NUL";
  if (!valid_utf8(line)) return "is not valid UTF-8";
  return std::nullopt;
}

std::optional<std::string_view> field_text(std::string_view field, std::string& storage) {
  if (field.find('\\') == std::string_view::npos) return field;
  auto text = unescape(field);
  if (!text) return std::nullopt;
  storage = std::move(*text);
  return storage;
}

std::optional<std::int64_t> field_integer(std::string_view field) {
  return number<std::int64_t>(field);
}

std::optional<double> field_number(std::string_view field) {
  return number<double>(field);
}

PackHead parse_head(PackFields& fields) {
  PackHead head;
  head.algorithm = required(fields, "algorithm");
  head.algorithm_digest = required(fields, "algorithm digest");
  head.config = required(fields, "config");
  head.outcome = required(fields, "outcome");
  const std::string_view kind = required(fields, "kind");
  const std::string_view seconds = required(fields, "seconds");
  const std::string_view workspace = required(fields, "workspace");
  const std::string_view determinism = required(fields, "determinism");
  if (head.algorithm.empty()) throw PackFault{"algorithm is empty"};
  if (head.algorithm_digest.empty()) throw PackFault{"algorithm digest is empty"};
  if (head.config.size() > max_name_bytes) throw PackFault{"config is too long"};
  const auto parsed_kind = parse_time_kind(kind);
  if (!parsed_kind) throw PackFault{fmt::format("kind {} is not measured, modelled or predicted", quoted(kind))};
  head.kind = *parsed_kind;
  const auto parsed_seconds = field_number(seconds);
  if (!parsed_seconds || !std::isfinite(*parsed_seconds) || *parsed_seconds < 0) {
    throw PackFault{fmt::format("seconds {} is not a finite, non-negative number", quoted(seconds))};
  }
  head.seconds = *parsed_seconds;
  require_possible(head.kind, head.outcome, head.seconds);
  const auto parsed_workspace = field_integer(workspace);
  if (!parsed_workspace || *parsed_workspace < 0) {
    throw PackFault{fmt::format("workspace {} is not a number of bytes", quoted(workspace))};
  }
  head.workspace_bytes = *parsed_workspace;
  head.deterministic = determinism == "deterministic";
  if (!head.deterministic && determinism != "varies") {
    throw PackFault{fmt::format("determinism {} is not deterministic or varies", quoted(determinism))};
  }
  return head;
}

DeviceEntry parse_device(std::string_view line) {
  PackFields fields(line);
  DeviceEntry device;
  device.id = required_text(fields, "device id");
  device.name = required_text(fields, "device name");
  const std::string_view capability = required(fields, "compute capability");
  const std::size_t dot = capability.find('.');
  if (dot == std::string_view::npos) {
    throw PackFault{fmt::format("compute capability {} is not MAJOR.MINOR", quoted(capability))};
  }
  device.cc_major = small_number(capability.substr(0, dot), "compute capability");
  device.cc_minor = small_number(capability.substr(dot + 1), "compute capability");
  device.sms = small_number(required(fields, "multiprocessors"), "multiprocessors");
  const std::string_view reality = required(fields, "real or emulated");
  device.emulated = reality == "emulated";
  if (!device.emulated && reality != "real")
    throw PackFault{fmt::format("{} is not real or emulated", quoted(reality))};
  require_end(fields);
  try {
    validate(device);
  } catch (const Error& error) {
    throw PackFault{error.message()};
  }
  return device;
}

std::string parse_mark(std::string_view line, const DeviceEntry& device) {
  PackFields fields(line);
  const std::string text = required_text(fields, "clock");
  std::string accuracy = required_text(fields, "accuracy");
  require_end(fields);
  const std::optional<MachineClock> clock = machine_clock_of(device);
  if (!clock || clock->text != text) {
    throw PackFault{
        fmt::format("the clock {} is not that of the device {}", cache::quoted(text), cache::quoted(device.name))};
  }
  if (accuracy.size() > max_name_bytes) throw PackFault{"accuracy is too long"};
  if (has_control(accuracy)) throw PackFault{"accuracy contains a control or hidden character"};
  return accuracy;
}

std::string parse_request(std::string_view line) {
  PackFields fields(line);
  std::string request = required_text(fields, "request");
  require_end(fields);
  if (request.empty()) throw PackFault{"request is empty"};
  if (request.size() > max_request_bytes) throw PackFault{"request is too long"};
  if (has_control(request)) throw PackFault{"request contains a control or hidden character"};
  return request;
}

std::string parse_header(const PackLine& line) {
  if (line.tag != PackTag::header) throw PackFault{"is not a Kiln pack: the first line must start with 'kiln-pack'"};
  PackFields fields(line.fields);
  const std::string_view version = required(fields, "format version");
  const auto parsed = field_integer(version);
  if (!parsed || *parsed < 1) throw PackFault{fmt::format("format version {} is not a number", quoted(version))};
  if (*parsed > pack_format_version) {
    throw PackFault{
        fmt::format("is a pack of format {}; this library reads up to {}: update Kiln", *parsed, pack_format_version)};
  }
  std::string library = required_text(fields, "library version");
  require_end(fields);
  return library;
}

void require_possible(TimeKind kind, std::string_view outcome, double seconds) {
  if (kind == TimeKind::predicted || !usable(outcome, seconds) || seconds >= least_pack_seconds) return;
  throw PackFault{
      fmt::format("seconds '{}' is impossible: nothing is launched and done within {} s", seconds, least_pack_seconds)};
}

void require_kind(TimeKind kind, const DeviceEntry& device) {
  if (kind == TimeKind::predicted || (kind == TimeKind::modelled) == device.emulated) return;
  throw PackFault{fmt::format("has a {} time on the {} device {}", to_string(kind),
                              device.emulated ? "emulated" : "real", cache::quoted(device.id))};
}

}  // namespace kiln::cache
