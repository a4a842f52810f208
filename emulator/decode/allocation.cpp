#include "allocation.h"

#include <algorithm>
#include <array>

namespace kiln::emulator {
namespace {

constexpr uint32_t lanes_bytes = warp_lanes;

/// The slots of one register class.
class Pool {
 public:
  uint32_t take(uint32_t preferred) {
    if (free_.empty()) return size_++;
    const auto wanted = std::find(free_.begin(), free_.end(), preferred);
    const auto at = wanted != free_.end() ? wanted : free_.end() - 1;
    const uint32_t slot = *at;
    free_.erase(at);
    return slot;
  }
  void give_back(uint32_t slot) { free_.push_back(slot); }
  uint32_t fresh() { return size_++; }
  uint32_t size() const { return size_; }

 private:
  std::vector<uint32_t> free_;
  uint32_t size_ = 0;
};

class Scan {
 public:
  Scan(const OperationList& list, const Liveness& liveness) : list_(list), intervals_(liveness.intervals) {
    slot_.resize(list.registers.size(), none);
    pool(RegisterClass::predicate).fresh();  // the predicate that is always true
  }

  Allocation run() {
    std::vector<RegisterId> order;
    for (RegisterId id = 1; id < list_.registers.size(); ++id) {
      if (list_.registers[id].kind != VirtualRegister::Kind::variable) {
        place_fixed(id);
      } else if (intervals_[id].first <= intervals_[id].last) {
        order.push_back(id);
      }
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](RegisterId x, RegisterId y) { return intervals_[x].first < intervals_[y].first; });
    for (const RegisterId id : order) place(id);
    return layout();
  }

 private:
  static constexpr uint32_t none = UINT32_MAX;

  Pool& pool(RegisterClass width) { return pools_[static_cast<size_t>(width)]; }
  static uint32_t words(RegisterClass width) {
    return width == RegisterClass::b64 ? 2 : width == RegisterClass::predicate ? 0 : 1;
  }

  void place_fixed(RegisterId id) {
    const VirtualRegister& r = list_.registers[id];
    const bool always_true =
        r.width == RegisterClass::predicate && r.kind == VirtualRegister::Kind::constant && r.bits != 0;
    slot_[id] = always_true ? 0 : pool(r.width).fresh();
  }

  void place(RegisterId id) {
    const uint32_t now = intervals_[id].first;
    std::erase_if(active_, [&](RegisterId other) {
      if (intervals_[other].last >= now) return false;
      pool(list_.registers[other].width).give_back(slot_[other]);
      live_words_ -= words(list_.registers[other].width);
      return true;
    });
    const RegisterClass width = list_.registers[id].width;
    slot_[id] = pool(width).take(preference(id, now));
    active_.push_back(id);
    live_words_ += words(width);
    peak_words_ = std::max(peak_words_, live_words_);
  }

  // An accumulator stays where it is.
  uint32_t preference(RegisterId id, uint32_t now) const {
    const Operation& operation = list_.operations[now / 2];
    for (const RegisterId source : {operation.c, operation.a}) {
      if (operation.d != id || source == 0 || operation.writes_c) continue;
      const VirtualRegister& r = list_.registers[source];
      if (r.kind == VirtualRegister::Kind::variable && r.width == list_.registers[id].width) return slot_[source];
    }
    return none;
  }

  Allocation layout() {
    Allocation result;
    std::array<uint32_t, 4> begin{};
    uint32_t at = 0;
    for (const RegisterClass width :
         {RegisterClass::predicate, RegisterClass::b32, RegisterClass::b64, RegisterClass::b16}) {
      begin[static_cast<size_t>(width)] = at;
      const uint32_t each = width == RegisterClass::predicate ? 4 : bytes_of(width) * lanes_bytes;
      at = (at + pool(width).size() * each + 63) / 64 * 64;
    }
    result.bytes = at;
    result.peak_words = peak_words_;
    result.offset.resize(list_.registers.size(), 0);
    for (RegisterId id = 1; id < list_.registers.size(); ++id) {
      if (slot_[id] == none) continue;
      const RegisterClass width = list_.registers[id].width;
      const uint32_t each = width == RegisterClass::predicate ? 4 : bytes_of(width) * lanes_bytes;
      result.offset[id] = begin[static_cast<size_t>(width)] + slot_[id] * each;
    }
    return result;
  }

  const OperationList& list_;
  const std::vector<Interval>& intervals_;
  std::vector<uint32_t> slot_;
  std::vector<RegisterId> active_;
  std::array<Pool, 4> pools_;
  uint32_t live_words_ = 0, peak_words_ = 0;
};

}  // namespace

Allocation allocate(const OperationList& list, const Liveness& liveness) {
  return Scan(list, liveness).run();
}

}  // namespace kiln::emulator
