#include "pack_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "kiln/cache/pack.h"

namespace kiln::cache {
namespace {

void check_bytes(const PackLine& line) {
  if (auto reason = refuse_bytes(line.fields)) throw PackFault{std::move(*reason)};
}

// Nobody asks for what it finds: check() is after the faults.
class Nobody : public FrontVisitor {
 public:
  bool wants(const DeviceEntry&) override { return true; }
  void front(const DeviceEntry&, KeyHash, std::span<const FrontEntry>) override {}
  void barred(const DeviceEntry&, KeyHash, const BarredEntry&) override {}
};

}  // namespace

PackIndex::PackIndex(std::unique_ptr<const PackFile> file, const std::function<bool(const DeviceEntry&)>& wants)
    : file_(std::move(file)) {
  scan(wants);
  index();
}

// --- The pass
// -----------------------------------------------------------------------------------------------------------

void PackIndex::scan(const std::function<bool(const DeviceEntry&)>& wants) {
  PackReader reader(*file_);
  PackLines lines;
  PackLine line;
  std::size_t end = 0;
  for (std::string_view block = reader.next_block(); !block.empty() && !ended_; block = reader.next_block()) {
    lines.feed(block);
    end = reader.block_begin() + block.size();
    while (!ended_ && lines.next(line)) {
      try {
        if (line.number == 1) {
          parse_header(line);
        } else {
          note(line, reader.block_begin() + line.begin, wants);
        }
      } catch (const PackFault& fault) {
        refuse(line.number, fault.reason);
        if (line.number == 1) return;
      }
    }
  }
  if (line.number == 0) {
    refuse(1, "is empty, not a Kiln pack");
  } else if (!ended_) {
    end_piece(end);
    refuse(line.number, "the pack stops here without its end line: it was cut off");
  }
}

void PackIndex::note(const PackLine& line, std::size_t begin, const std::function<bool(const DeviceEntry&)>& wants) {
  switch (line.tag) {
    case PackTag::record:
      if (++records_ > max_pack_records) {
        end_piece(begin);
        ended_ = true;
        throw PackFault{
            fmt::format("the pack has more than {} records: from here on it is not used", max_pack_records)};
      }
      ++piece_records_;
      return;
    case PackTag::request:
      end_piece(begin);
      begin_piece(line, begin);
      return;
    case PackTag::device:
      end_piece(begin);
      device_ = nullptr;
      take_device(line, wants);
      return;
    case PackTag::mark:
      check_bytes(line);
      if (device_ != nullptr) parse_mark(line.fields, *device_);
      return;
    case PackTag::end:
      end_piece(begin);
      ended_ = true;
      return;
    case PackTag::blank:
      return;
    case PackTag::header:
    case PackTag::unknown:
      throw PackFault{"is not a device, request, record or end line"};
  }
}

// Only what must be known to find it again is looked at.
void PackIndex::begin_piece(const PackLine& line, std::size_t begin) {
  if (device_ == nullptr) return;
  if (line.fields.size() > max_pack_line) check_bytes(line);
  piece_ = Piece{hash_key(text(line.fields)),
                 static_cast<std::uint32_t>(begin),
                 0,
                 static_cast<std::uint32_t>(line.number),
                 0,
                 device_,
                 false};
  piece_records_ = 0;
}

void PackIndex::end_piece(std::size_t end) {
  if (!piece_) return;
  piece_->end = static_cast<std::uint32_t>(end);
  if (piece_records_ > 0) pieces_.push_back(*piece_);
  piece_.reset();
}

void PackIndex::take_device(const PackLine& line, const std::function<bool(const DeviceEntry&)>& wants) {
  check_bytes(line);
  if (++device_lines_ > max_pack_devices) {
    throw PackFault{fmt::format("the pack has more than {} devices", max_pack_devices)};
  }
  DeviceEntry device = parse_device(line.fields);
  if (!wants(device)) return;
  const std::string id = device.id;
  device_ = &devices_.try_emplace(id, std::move(device)).first->second;
}

std::uint32_t* PackIndex::slot_of(KeyHash key) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = key.low & mask;
  while (slots_[at] != 0 && pieces_[slots_[at] - 1].key != key) at = (at + 1) & mask;
  return &slots_[at];
}

// Backwards, so that of pieces with one key the first in the file is the first of their chain.
void PackIndex::index() {
  slots_.assign(std::bit_ceil(2 * pieces_.size() + 1), 0);
  for (std::size_t number = pieces_.size(); number > 0; --number) {
    std::uint32_t* const slot = slot_of(pieces_[number - 1].key);
    pieces_[number - 1].next = std::exchange(*slot, static_cast<std::uint32_t>(number));
  }
}

// --- The records of a request
// -------------------------------------------------------------------------------------------

void PackIndex::visit(KeyHash key, FrontVisitor& visitor) {
  std::uint32_t number = *slot_of(key);
  if (number == 0) return;
  read_records_ = 0;
  file_->require_unchanged();
  for (; number != 0; number = pieces_[number - 1].next) read(pieces_[number - 1], visitor);
}

void PackIndex::visit_requests(const std::function<void(std::string_view)>& visit) {
  file_->require_unchanged();
  PackReader reader(*file_);
  PackLines lines;
  PackLine line;
  auto piece = pieces_.begin();  // they are in the file's order
  for (std::string_view block = reader.next_block(); !block.empty(); block = reader.next_block()) {
    lines.feed(block);
    while (piece != pieces_.end() && lines.next(line)) {
      if (reader.block_begin() + line.begin != piece->begin) continue;
      ++piece;
      if (line.tag != PackTag::request || refuse_bytes(line.fields)) continue;
      if (const auto request = field_text(line.fields, unescaped_)) visit(*request);
    }
  }
}

void PackIndex::check() {
  file_->require_unchanged();
  Nobody nobody;
  for (Piece& piece : pieces_) {
    read_records_ = 0;
    if (!piece.read) read(piece, nobody);
  }
}

void PackIndex::read(Piece& piece, FrontVisitor& visitor) {
  PackReader reader(*file_, {piece.begin, piece.end});
  PackLines lines({}, piece.line - 1);
  PackLine line;
  bool refused = false;
  used_ = 0;
  for (std::string_view block = reader.next_block(); !block.empty() && !refused; block = reader.next_block()) {
    lines.feed(block);
    while (!refused && lines.next(line)) {
      try {
        take(line, piece, visitor);
      } catch (const PackFault& fault) {
        if (!piece.read) refuse(line.number, fault.reason);
        refused = line.tag == PackTag::request;  // with what depends on it
      }
    }
  }
  piece.read = true;
  if (used_ == 0) return;
  entries_.clear();
  for (std::size_t i = 0; i < used_; ++i) {
    candidates_[i].entry.config = candidates_[i].config;
    entries_.push_back(candidates_[i].entry);
  }
  if (entries_.size() > 1 && !visitor.wants_all()) reduce_to_front(entries_);
  visitor.front(*piece.device, piece.key, entries_);
}

// Lines of another kind were refused by the pass.
void PackIndex::take(const PackLine& line, const Piece& piece, FrontVisitor& visitor) {
  if (line.tag == PackTag::record) take_record(line, piece, visitor);
  if (line.tag != PackTag::request) return;
  check_bytes(line);
  if (hash_key(text(line.fields)) != piece.key) throw PackFault{"has changed since the pack was opened"};
}

void PackIndex::take_record(const PackLine& line, const Piece& piece, FrontVisitor& visitor) {
  if (++read_records_ > max_request_records) {
    if (read_records_ > max_request_records + 1) return;
    throw PackFault{
        fmt::format("the request has more than {} records: from here on they are not used", max_request_records)};
  }
  check_bytes(line);
  PackFields fields(line.fields);
  const PackHead head = parse_head(fields);
  const bool is_bar = bars(head.outcome);
  if (!is_bar && !usable(head.outcome, head.seconds)) return;
  require_kind(head.kind, *piece.device);
  if (is_bar) {
    for (const char* passed : {"spread", "registers", "spill bytes", "shared bytes"}) {
      if (!fields.next()) throw PackFault{fmt::format("{} is missing", passed)};
    }
    const std::string source(text(fields.next().value_or("")));
    const AlgorithmVersion* algorithm = version(head);
    visitor.barred(*piece.device, piece.key, {algorithm, text(head.config), head.outcome, source});
    return;
  }
  if (used_ == candidates_.size()) candidates_.emplace_back();
  Candidate& candidate = candidates_[used_];
  candidate.config = text(head.config);
  candidate.entry = {version(head), {}, head.seconds, head.workspace_bytes, head.kind, head.deterministic};
  ++used_;
}

// The text of a field, valid until the next call.
std::string_view PackIndex::text(std::string_view field) {
  const auto value = field_text(field, unescaped_);
  if (!value) throw PackFault{"has a broken escape"};
  return *value;
}

const AlgorithmVersion* PackIndex::version(const PackHead& head) {
  key_text_.assign(head.algorithm).append(1, '\t').append(head.algorithm_digest);  // neither holds a tab
  if (const auto known = versions_.find(key_text_); known != versions_.end()) return &known->second;
  AlgorithmVersion version;
  version.name = text(head.algorithm);
  version.digest = text(head.algorithm_digest);
  return &versions_.emplace(key_text_, std::move(version)).first->second;
}

// --- What is wrong
// ------------------------------------------------------------------------------------------------------

void PackIndex::refuse(std::size_t line, std::string_view reason) {
  if (++refused_ <= max_pack_problems) problems_.push_back(fmt::format("line {}: {}", line, reason));
}

std::vector<std::string> PackIndex::take_problems() {
  if (refused_ > max_pack_problems && !std::exchange(told_rest_, true)) {
    problems_.push_back(fmt::format("and {} more lines so far", refused_ - max_pack_problems));
  }
  return std::exchange(problems_, {});
}

}  // namespace kiln::cache
