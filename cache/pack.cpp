#include "kiln/cache/pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "field_text.h"
#include "front.h"
#include "kiln/base/error.h"
#include "kiln/cache/machine_clock.h"
#include "pack_line.h"

namespace kiln::cache {
namespace {

// Sorts, and keeps of equal elements (neither before the other) the one that supersedes the others.
template <class T, class Before>
std::vector<T> settled(std::vector<T> values, const Before& before) {
  std::sort(values.begin(), values.end(), [&](const T& a, const T& b) {
    if (before(a, b)) return true;
    return !before(b, a) && supersedes(a, b);
  });
  values.erase(std::unique(values.begin(), values.end(), [&](const T& a, const T& b) { return !before(a, b); }),
               values.end());
  return values;
}

bool device_before(const DeviceEntry& a, const DeviceEntry& b) {
  return a.id < b.id;
}

std::string resource(std::int64_t value) {
  return value < 0 ? std::string("-") : std::to_string(value);
}

void print_record(std::string& out, const Record& r) {
  const auto text = [&](std::string_view value) {
    out += '\t';
    escape_to(out, value);
  };
  out += "record";
  text(r.algorithm);
  text(r.algorithm_digest);
  text(r.config);
  text(r.outcome);
  out += fmt::format("\t{}\t{}\t{}\t{}", to_string(r.kind), r.seconds, r.workspace_bytes,
                     r.deterministic ? "deterministic" : "varies");
  out += fmt::format("\t{}\t{}\t{}\t{}", r.spread, resource(r.resources.registers), resource(r.resources.spill_bytes),
                     resource(r.resources.shared_bytes));
  text(r.source_digest);
  text(r.driver_version);
  text(r.nvrtc_version);
  text(r.kiln_version);
  text(format_utc(r.created_ms));
  text(r.check);
  text(r.error);
  out += fmt::format("\t{}\n", fmt::join(r.samples, ","));
}

// Keeps the records of one request on one device that Winners needs: those that it could choose, and those that bar.
void keep_winners(std::vector<Record>& records) {
  const RecordFront front = front_of(records, {});
  std::vector<Record> kept;
  for (const FrontEntry& entry : front.entries) {
    kept.push_back(records[static_cast<std::size_t>(entry.algorithm->row)]);
  }
  std::copy_if(records.begin(), records.end(), std::back_inserter(kept),
               [](const Record& r) { return bars(r.outcome); });
  records = std::move(kept);
}

void append_device(std::vector<Record>& out, const Database& database, const DeviceEntry& device,
                   const ExportOptions& options) {
  for (const RequestSummary& summary : database.requests(device.id)) {
    std::vector<Record> records = database.records(summary.request, device.id);
    if (options.is_current) {
      std::erase_if(records, [&](const Record& r) { return !options.is_current(r.algorithm, r.algorithm_digest); });
    }
    if (options.winners_only) keep_winners(records);
    for (Record& record : records) {
      if (!options.samples) record.samples.clear();
      out.push_back(std::move(record));
    }
  }
}

}  // namespace

std::string PackRefusal::text() const {
  return fmt::format("line {}: {}", line, reason);
}

Pack make_pack(std::vector<DeviceEntry> devices, std::vector<Record> records) {
  Pack pack;
  for (const DeviceEntry& device : devices) validate(device);
  pack.devices = settled(std::move(devices), device_before);
  for (Record& record : records) {
    record = with_clean_texts(std::move(record));
    record.session.clear();
    validate(record);
    DeviceEntry wanted;
    wanted.id = record.device;
    const auto device = std::lower_bound(pack.devices.begin(), pack.devices.end(), wanted, device_before);
    if (device == pack.devices.end() || device->id != record.device) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("pack: device {} is not listed", cache::quoted(record.device)));
    }
    try {
      require_kind(record.kind, *device);
    } catch (const PackFault& fault) {
      throw Error(ErrorCode::invalid_argument, "pack: a record " + fault.reason);
    }
  }
  pack.records = settled(std::move(records), listed_before);
  return pack;
}

std::string print_pack(const Pack& pack, std::string_view library_version) {
  const bool has_marks = std::any_of(pack.devices.begin(), pack.devices.end(),
                                     [](const DeviceEntry& d) { return machine_clock_of(d).has_value(); });
  std::string out = fmt::format("kiln-pack\t{}\t{}\n", has_marks ? pack_format_version : pack_format_without_marks,
                                escape(library_version));
  auto record = pack.records.begin();
  for (const DeviceEntry& d : pack.devices) {
    out += fmt::format("device\t{}\t{}\t{}.{}\t{}\t{}\n", escape(d.id), escape(d.name), d.cc_major, d.cc_minor, d.sms,
                       d.emulated ? "emulated" : "real");
    if (const auto clock = machine_clock_of(d)) {
      const auto accuracy = pack.accuracies.find(d.id);
      out += fmt::format("predicted\t{}\t{}\n", escape(clock->text),
                         accuracy == pack.accuracies.end() ? "" : escape(accuracy->second));
    }
    const std::string* request = nullptr;
    for (; record != pack.records.end() && record->device == d.id; ++record) {
      if (request == nullptr || *request != record->request) {
        out += fmt::format("request\t{}\n", escape(record->request));
        request = &record->request;
      }
      print_record(out, *record);
    }
  }
  return out + "end\n";
}

Pack require_complete(ParsedPack parsed) {
  if (parsed.refused.empty()) return std::move(parsed.pack);
  const std::size_t others = parsed.refused_lines - 1;
  std::string message = parsed.refused.front().text();
  if (others > 0) message += fmt::format(" (and {} more lines)", others);
  throw Error(ErrorCode::parse_error, std::move(message));
}

Pack merge(const Pack& a, const Pack& b) {
  std::vector<DeviceEntry> devices = a.devices;
  devices.insert(devices.end(), b.devices.begin(), b.devices.end());
  std::vector<Record> records = a.records;
  records.insert(records.end(), b.records.begin(), b.records.end());
  Pack both = make_pack(std::move(devices), std::move(records));
  both.accuracies = a.accuracies;
  for (const auto& [device, accuracy] : b.accuracies) {
    std::string& kept = both.accuracies[device];
    kept = std::max(kept, accuracy);
  }
  return both;
}

const Record* winner_among(std::span<const Record> records, const IsCurrent& is_current) {
  const RecordFront front = front_of(records, is_current);
  for (const bool predicted : {false, true}) {
    std::vector<FrontEntry> eligible;
    for (const FrontEntry& entry : front.entries) {
      if ((entry.kind == TimeKind::predicted) == predicted) eligible.push_back(entry);
    }
    const FrontEntry* best = choose(eligible, Filter{});
    if (best != nullptr) return &records[static_cast<std::size_t>(best->algorithm->row)];
  }
  return nullptr;
}

Pack export_pack(const Database& database, const ExportOptions& options) {
  std::vector<DeviceEntry> devices;
  std::vector<Record> records;
  for (const DeviceEntry& device : database.devices()) {
    const auto& wanted = options.devices;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), device.id) == wanted.end()) continue;
    devices.push_back(device);
    append_device(records, database, device, options);
  }
  return make_pack(std::move(devices), std::move(records));
}

}  // namespace kiln::cache
