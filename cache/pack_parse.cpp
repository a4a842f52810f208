// Importing a pack: every field is checked.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "field_text.h"
#include "kiln/base/error.h"
#include "kiln/cache/pack.h"
#include "pack_line.h"

namespace kiln::cache {
namespace {

// Takes the fields of a record line one after the other.
class RecordFields {
 public:
  explicit RecordFields(std::string_view fields) : fields_(fields) {}

  PackHead head() { return parse_head(fields_); }

  std::string_view raw(const char* name) {
    const auto field = fields_.next();
    if (!field) throw PackFault{fmt::format("the field {} is missing", name)};
    return *field;
  }

  std::string text(const char* name) { return unescaped(raw(name), name); }

  static std::string unescaped(std::string_view field, const char* name) {
    std::string storage;
    const auto value = field_text(field, storage);
    if (!value) throw PackFault{fmt::format("{} has a broken escape", name)};
    return std::string(*value);
  }

  double seconds(std::string_view field, const char* name) {
    const auto value = field_number(field);
    if (!value) throw PackFault{fmt::format("{} {} is not a number", name, quoted(field))};
    return *value;
  }

  std::int64_t resource(const char* name) {
    const std::string_view field = raw(name);
    if (field == "-") return -1;
    const auto value = field_integer(field);
    if (!value || *value < 0) throw PackFault{fmt::format("{} {} is not a whole number or '-'", name, quoted(field))};
    return *value;
  }

  std::int64_t created() {
    const std::string_view field = raw("created");
    const auto value = parse_utc(field);
    if (!value) throw PackFault{fmt::format("created {} is not a UTC time", quoted(field))};
    return *value;
  }

  std::vector<double> samples() {
    std::vector<double> result;
    std::string_view rest = raw("samples");
    while (!rest.empty()) {
      if (result.size() == max_samples) throw PackFault{fmt::format("has more than {} samples", max_samples)};
      const std::size_t comma = rest.find(',');
      result.push_back(seconds(rest.substr(0, comma), "sample"));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
      if (rest.empty()) throw PackFault{"samples end with a comma"};
    }
    return result;
  }

  void end() const {
    if (fields_.rest()) throw PackFault{fmt::format("has {} after its last field", quoted(*fields_.rest()))};
  }

 private:
  PackFields fields_;
};

Record parse_record(std::string_view line, const DeviceEntry& device, const std::string& request) {
  RecordFields fields(line);
  Record r;
  r.request = request;
  r.device = device.id;
  const PackHead head = fields.head();
  r.algorithm = RecordFields::unescaped(head.algorithm, "algorithm");
  r.algorithm_digest = RecordFields::unescaped(head.algorithm_digest, "algorithm digest");
  r.config = RecordFields::unescaped(head.config, "config");
  r.outcome = RecordFields::unescaped(head.outcome, "outcome");
  r.kind = head.kind;
  r.seconds = head.seconds;
  r.workspace_bytes = head.workspace_bytes;
  r.deterministic = head.deterministic;
  r.spread = fields.seconds(fields.raw("spread"), "spread");
  r.resources.registers = fields.resource("registers");
  r.resources.spill_bytes = fields.resource("spill bytes");
  r.resources.shared_bytes = fields.resource("shared bytes");
  r.source_digest = fields.text("source digest");
  r.driver_version = fields.text("driver version");
  r.nvrtc_version = fields.text("NVRTC version");
  r.kiln_version = fields.text("Kiln version");
  r.created_ms = fields.created();
  r.check = fields.text("check");
  r.error = fields.text("error");
  r.samples = fields.samples();
  fields.end();
  require_kind(r.kind, device);
  try {
    validate(r);
  } catch (const Error& error) {
    throw PackFault{error.message()};
  }
  return r;
}

class PackParser {
 public:
  PackParser(std::string_view text, const PackValidator& validator) : lines_(text), validator_(validator) {}

  ParsedPack run() {
    PackLine line;
    parse_first(line);
    while (!ended_ && lines_.next(line)) {
      try {
        if (auto reason = refuse_bytes(line.fields)) throw PackFault{std::move(*reason)};
        take(line);
      } catch (PackFault& fault) {
        refuse(line.number, std::move(fault.reason));
      }
    }
    after_end(line);
    Pack pack = make_pack(std::move(devices_), std::move(records_));
    pack.accuracies = std::move(result_.pack.accuracies);
    result_.pack = std::move(pack);
    return std::move(result_);
  }

 private:
  void parse_first(PackLine& line) {
    try {
      if (!lines_.next(line)) throw PackFault{"is empty, not a Kiln pack"};
      if (auto reason = refuse_bytes(line.fields)) throw PackFault{std::move(*reason)};
      result_.library_version = parse_header(line);
    } catch (const PackFault& fault) {
      throw Error(ErrorCode::parse_error, fmt::format("line 1: {}", fault.reason));
    }
  }

  void take(const PackLine& line) {
    switch (line.tag) {
      case PackTag::record:
        take_record(line);
        return;
      case PackTag::request:
        request_.reset();
        request_line_ = line.number;
        take_request(line);
        return;
      case PackTag::device:
        device_.reset();
        request_.reset();
        device_line_ = line.number;
        request_line_ = 0;
        if (devices_.size() == max_pack_devices)
          throw PackFault{fmt::format("the pack has more than {} devices", max_pack_devices)};
        device_ = parse_device(line.fields);
        devices_.push_back(*device_);
        return;
      case PackTag::mark:
        if (!device_) throw PackFault{depends_on(device_line_, "device")};
        result_.pack.accuracies[device_->id] = parse_mark(line.fields, *device_);
        return;
      case PackTag::end:
        ended_ = true;
        return;
      case PackTag::blank:
        return;
      case PackTag::header:
      case PackTag::unknown:
        throw PackFault{fmt::format("is not a device, request, record or end line: {}", quoted(line.fields))};
    }
  }

  void take_request(const PackLine& line) {
    if (!device_) throw PackFault{depends_on(device_line_, "device")};
    std::string request = parse_request(line.fields);
    if (validator_.request) {
      if (auto reason = validator_.request(request)) throw PackFault{std::move(*reason)};
    }
    request_ = std::move(request);
    request_records_ = 0;
  }

  void take_record(const PackLine& line) {
    if (!request_) throw PackFault{depends_on(request_line_, "request")};
    if (records_.size() == max_pack_records)
      throw PackFault{fmt::format("the pack has more than {} records", max_pack_records)};
    if (++request_records_ > max_request_records)
      throw PackFault{fmt::format("the request has more than {} records", max_request_records)};
    Record record = parse_record(line.fields, *device_, *request_);
    if (validator_.record) {
      if (auto reason = validator_.record(*device_, record)) throw PackFault{std::move(*reason)};
    }
    records_.push_back(std::move(record));
  }

  static std::string depends_on(std::size_t line, std::string_view what) {
    if (line == 0) return fmt::format("has no {} line before it", what);
    return fmt::format("its {} line, line {}, was refused", what, line);
  }

  void after_end(PackLine& line) {
    if (!ended_) {
      refuse(line.number, "the pack stops here without its end line: it was cut off");
      return;
    }
    while (lines_.next(line)) {
      if (line.tag != PackTag::blank) {
        refuse(line.number, "stands after the end line");
        return;
      }
    }
  }

  void refuse(std::size_t line, std::string reason) {
    if (++result_.refused_lines <= max_listed_refusals) result_.refused.push_back({line, std::move(reason)});
  }

  PackLines lines_;
  const PackValidator& validator_;
  ParsedPack result_;
  bool ended_ = false;
  std::optional<DeviceEntry> device_;
  std::size_t device_line_ = 0;  // 0: none yet
  std::optional<std::string> request_;
  std::size_t request_line_ = 0;
  std::size_t request_records_ = 0;
  std::vector<DeviceEntry> devices_;
  std::vector<Record> records_;
};

}  // namespace

ParsedPack parse_pack(std::string_view text, const PackValidator& validator) {
  return PackParser(text, validator).run();
}

}  // namespace kiln::cache
