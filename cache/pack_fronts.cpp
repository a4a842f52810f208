#include "pack_fronts.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <unordered_map>

#include "pack_line.h"
#include "pack_reader.h"

namespace kiln::cache {
namespace {

class PackFronts {
 public:
  explicit PackFronts(FrontVisitor& visitor) : visitor_(visitor) {}

  /// Whole lines, one block after the other.
  void take_block(std::string_view block) {
    lines_.feed(block);
    while (!ended_ && lines_.next(line_)) {
      try {
        if (line_.number == 1) {
          parse_header(line_);
        } else {
          take(line_);
        }
      } catch (const PackFault& fault) {
        refuse(fault.reason);
        ended_ = line_.number == 1;
      }
    }
  }

  std::vector<std::string> finish() {
    flush();
    if (line_.number == 0) {
      line_.number = 1;
      refuse("is empty, not a Kiln pack");
    } else if (!ended_) {
      refuse("the pack stops here without its end line: it was cut off");
    }
    if (refused_ > max_pack_problems) {
      problems_.push_back(fmt::format("and {} more lines", refused_ - max_pack_problems));
    }
    return std::move(problems_);
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
        key_ = hash_key(text(line.fields));
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
    const bool is_bar = bars(head.outcome);
    if (!is_bar && !usable(head.outcome, head.seconds)) return;
    require_kind(head.kind, *device_);
    if (is_bar) {
      for (const char* passed : {"spread", "registers", "spill bytes", "shared bytes"}) {
        if (!fields.next()) throw PackFault{fmt::format("{} is missing", passed)};
      }
      const std::string source(text(fields.next().value_or("")));
      const AlgorithmVersion* algorithm = version(head);
      visitor_.barred(*device_, *key_, {algorithm, text(head.config), head.outcome, source});
      return;
    }
    if (used_ == candidates_.size()) candidates_.emplace_back();
    Candidate& candidate = candidates_[used_];
    candidate.config = text(head.config);
    candidate.entry = {version(head), {}, head.seconds, head.workspace_bytes, head.kind, head.deterministic};
    ++used_;
  }

  void flush() {
    if (used_ == 0) return;
    entries_.clear();
    for (std::size_t i = 0; i < used_; ++i) {
      candidates_[i].entry.config = candidates_[i].config;
      entries_.push_back(candidates_[i].entry);
    }
    if (entries_.size() > 1) reduce_to_front(entries_);
    visitor_.front(*device_, *key_, entries_);
    used_ = 0;
  }

  static void check(const PackLine& line) {
    if (auto reason = refuse_bytes(line.fields)) throw PackFault{std::move(*reason)};
  }

  // The text of a field, valid until the next call.
  std::string_view text(std::string_view field) {
    const auto value = field_text(field, unescaped_);
    if (!value) throw PackFault{"has a broken escape"};
    return *value;
  }

  const AlgorithmVersion* version(const PackHead& head) {
    key_text_.assign(head.algorithm).append(1, '\t').append(head.algorithm_digest);  // neither holds a tab
    const auto [found, fresh] = versions_.try_emplace(key_text_);
    if (fresh) {
      found->second.name = text(head.algorithm);
      found->second.digest = text(head.algorithm_digest);
    }
    return &found->second;
  }

  void refuse(std::string_view reason) {
    if (++refused_ <= max_pack_problems) problems_.push_back(fmt::format("line {}: {}", line_.number, reason));
  }

  struct Candidate {
    FrontEntry entry;
    std::string config;
  };

  FrontVisitor& visitor_;
  PackLines lines_;
  PackLine line_;
  bool ended_ = false;
  std::map<std::string, DeviceEntry> devices_;
  const DeviceEntry* device_ = nullptr;
  std::optional<KeyHash> key_;
  std::unordered_map<std::string, AlgorithmVersion> versions_;  // by name, tab, digest as they stand in the pack
  std::vector<Candidate> candidates_;  // the first used_ are of this request; kept for their memory
  std::size_t used_ = 0;
  std::vector<FrontEntry> entries_;
  std::string unescaped_;
  std::string key_text_;
  std::size_t refused_ = 0;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> visit_pack_fronts(std::string_view text, FrontVisitor& visitor) {
  PackFronts fronts(visitor);
  fronts.take_block(text);
  return fronts.finish();
}

std::vector<std::string> visit_pack_file_fronts(const std::string& path, FrontVisitor& visitor) {
  PackReader reader(path);
  PackFronts fronts(visitor);
  for (std::string_view block = reader.next_block(); !block.empty(); block = reader.next_block()) {
    fronts.take_block(block);
  }
  return fronts.finish();
}

}  // namespace kiln::cache
