#include "pack_fronts.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>

#include "pack_line.h"

namespace kiln::cache {
namespace {

class PackFronts {
 public:
  PackFronts(std::string_view text, FrontVisitor& visitor) : lines_(text), visitor_(visitor) {}

  std::vector<std::string> run() {
    PackLine line;
    try {
      if (!lines_.next(line)) throw PackFault{"is empty, not a Kiln pack"};
      parse_header(line);
    } catch (const PackFault& fault) {
      refuse(1, fault.reason);
      return finish();
    }
    while (!ended_ && lines_.next(line)) {
      try {
        take(line);
      } catch (const PackFault& fault) {
        refuse(line.number, fault.reason);
      }
    }
    flush();
    if (!ended_) refuse(line.number, "the pack stops here without its end line: it was cut off");
    return finish();
  }

 private:
  void take(const PackLine& line) {
    switch (line.tag) {
      case PackTag::record:
        take_record(line);
        return;
      case PackTag::request:
        flush();
        key_.reset();
        if (!device_) return;
        check(line);
        key_ = hash_key(parse_request(line.fields));
        return;
      case PackTag::device:
        flush();
        key_.reset();
        device_ = nullptr;
        take_device(line);
        return;
      case PackTag::end:
        ended_ = true;
        return;
      case PackTag::blank:
        return;
      case PackTag::header:
      case PackTag::unknown:
        throw PackFault{"is not a device, request, record or end line"};
    }
  }

  void take_device(const PackLine& line) {
    check(line);
    DeviceEntry device = parse_device(line.fields);
    if (!visitor_.wants(device)) return;
    const std::string id = device.id;
    device_ = &devices_.try_emplace(id, std::move(device)).first->second;
  }

  void take_record(const PackLine& line) {
    if (!key_) return;  // of another device, or of a refused line
    check(line);
    PackFields fields(line.fields);
    const PackHead head = parse_head(fields);
    if (!usable(head.outcome, head.seconds)) return;
    require_kind(head.kind, *device_);
    Candidate candidate;
    candidate.config = text(head.config);
    candidate.entry = {version(head), {}, head.seconds, head.workspace_bytes, head.kind, head.deterministic};
    candidates_.push_back(std::move(candidate));
  }

  void flush() {
    if (candidates_.empty()) return;
    entries_.clear();
    for (Candidate& candidate : candidates_) {
      candidate.entry.config = candidate.config;
      entries_.push_back(candidate.entry);
    }
    if (entries_.size() > 1) reduce_to_front(entries_);
    visitor_.front(*device_, *key_, entries_);
    candidates_.clear();
  }

  static void check(const PackLine& line) {
    if (auto reason = refuse_bytes(line.fields)) throw PackFault{std::move(*reason)};
  }

  static std::string text(std::string_view field) {
    std::string storage;
    const auto value = field_text(field, storage);
    if (!value) throw PackFault{"has a broken escape"};
    return std::string(*value);
  }

  const AlgorithmVersion* version(const PackHead& head) {
    const auto found = versions_.find(std::pair(head.algorithm_digest, head.algorithm));
    if (found != versions_.end()) return &found->second;
    AlgorithmVersion fresh = {0, text(head.algorithm), text(head.algorithm_digest)};
    return &versions_.try_emplace({head.algorithm_digest, head.algorithm}, std::move(fresh)).first->second;
  }

  void refuse(std::size_t line, std::string_view reason) {
    if (++refused_ <= max_pack_problems) problems_.push_back(fmt::format("line {}: {}", line, reason));
  }

  std::vector<std::string> finish() {
    if (refused_ > max_pack_problems) {
      problems_.push_back(fmt::format("and {} more lines", refused_ - max_pack_problems));
    }
    return std::move(problems_);
  }

  struct Candidate {
    FrontEntry entry;
    std::string config;
  };

  PackLines lines_;
  FrontVisitor& visitor_;
  bool ended_ = false;
  std::map<std::string, DeviceEntry> devices_;
  const DeviceEntry* device_ = nullptr;
  std::optional<KeyHash> key_;
  std::map<std::pair<std::string_view, std::string_view>, AlgorithmVersion> versions_;  // keys point into the text
  std::vector<Candidate> candidates_;
  std::vector<FrontEntry> entries_;
  std::size_t refused_ = 0;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> visit_pack_fronts(std::string_view text, FrontVisitor& visitor) {
  return PackFronts(text, visitor).run();
}

}  // namespace kiln::cache
