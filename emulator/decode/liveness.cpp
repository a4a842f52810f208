#include "liveness.h"

#include <algorithm>
#include <bit>

namespace kiln::emulator {
namespace {

class Bits {
 public:
  explicit Bits(size_t size) : words_((size + 63) / 64) {}
  void set(size_t k) { words_[k / 64] |= uint64_t{1} << (k % 64); }
  void clear(size_t k) { words_[k / 64] &= ~(uint64_t{1} << (k % 64)); }
  bool test(size_t k) const { return (words_[k / 64] >> (k % 64) & 1) != 0; }
  /// this |= other
  void join(const Bits& other) {
    for (size_t k = 0; k < words_.size(); ++k) words_[k] |= other.words_[k];
  }
  /// this |= from & ~without; true if that changed anything
  bool join_difference(const Bits& from, const Bits& without) {
    bool changed = false;
    for (size_t k = 0; k < words_.size(); ++k) {
      const uint64_t joined = words_[k] | (from.words_[k] & ~without.words_[k]);
      changed |= joined != words_[k];
      words_[k] = joined;
    }
    return changed;
  }
  template <class Visit>
  void each(Visit visit) const {
    for (size_t w = 0; w < words_.size(); ++w) {
      for (uint64_t rest = words_[w]; rest != 0; rest &= rest - 1) {
        visit(static_cast<RegisterId>(64 * w + static_cast<size_t>(std::countr_zero(rest))));
      }
    }
  }

 private:
  std::vector<uint64_t> words_;
};

struct Span {
  uint32_t begin = 0, end = 0;  // operations
  std::vector<uint32_t> successors;
};

class Analysis {
 public:
  Analysis(const OperationList& list, const std::vector<uint32_t>& target) : list_(list) { split(target); }

  Liveness run() {
    for (const Span& span : spans_) scan(span);
    // Backwards over the text most blocks settle in the first pass.
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t k = spans_.size(); k-- > 0;) {
        for (const uint32_t next : spans_[k].successors) out_[k].join(in_[next]);
        changed |= in_[k].join_difference(out_[k], written_[k]);
      }
    }
    Liveness result;
    result.intervals.resize(list_.registers.size());
    for (size_t k = 0; k < spans_.size(); ++k) extend(spans_[k], in_[k], out_[k], result.intervals);
    in_.front().each([&](RegisterId id) { result.at_entry.push_back(id); });
    return result;
  }

 private:
  bool tracked(RegisterId id) const { return list_.registers[id].kind == VirtualRegister::Kind::variable; }

  void split(const std::vector<uint32_t>& target) {
    const auto& operations = list_.operations;
    std::vector<uint32_t> block_at(operations.size(), 0);
    for (uint32_t k = 0; k < operations.size(); ++k) {
      if (operations[k].flow == Operation::Flow::label) spans_.push_back({k, k, {}});
      block_at[k] = static_cast<uint32_t>(spans_.size() - 1);
      spans_.back().end = k + 1;
    }
    for (size_t k = 0; k < spans_.size(); ++k) {
      const Operation& last = operations[spans_[k].end - 1];
      const bool goes_on =
          last.guard != 0 || (last.flow != Operation::Flow::branch && last.flow != Operation::Flow::exit &&
                              last.flow != Operation::Flow::indexed);
      if (goes_on && k + 1 < spans_.size()) spans_[k].successors.push_back(static_cast<uint32_t>(k + 1));
      if (last.flow == Operation::Flow::branch) spans_[k].successors.push_back(block_at[target[last.label]]);
      if (last.flow == Operation::Flow::indexed) {
        for (const ListEntry& entry : last.list) spans_[k].successors.push_back(block_at[target[entry.value]]);
      }
    }
  }

  void scan(const Span& span) {
    Bits read(list_.registers.size()), written(list_.registers.size());
    for (uint32_t k = span.begin; k < span.end; ++k) {
      visit_registers(list_.operations[k], [&](RegisterId id, bool is_write) {
        if (!tracked(id)) return;
        if (is_write) {
          written.set(id);
        } else if (!written.test(id)) {
          read.set(id);
        }
      });
    }
    in_.push_back(std::move(read));
    written_.push_back(std::move(written));
    out_.emplace_back(list_.registers.size());
  }

  void extend(const Span& span, const Bits& in, const Bits& out, std::vector<Interval>& intervals) const {
    const auto cover = [&](RegisterId id, uint32_t position) {
      intervals[id].first = std::min(intervals[id].first, position);
      intervals[id].last = std::max(intervals[id].last, position);
    };
    in.each([&](RegisterId id) { cover(id, 2 * span.begin); });
    out.each([&](RegisterId id) { cover(id, 2 * span.end - 1); });
    for (uint32_t k = span.begin; k < span.end; ++k) {
      visit_registers(list_.operations[k], [&](RegisterId id, bool is_write) {
        if (tracked(id)) cover(id, 2 * k + (is_write ? 1 : 0));
      });
    }
  }

  const OperationList& list_;
  std::vector<Span> spans_;
  std::vector<Bits> in_, out_, written_;
};

}  // namespace

Liveness analyse(const OperationList& list, const std::vector<uint32_t>& target) {
  return Analysis(list, target).run();
}

}  // namespace kiln::emulator
