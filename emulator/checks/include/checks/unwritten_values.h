// Values that nobody has written: from the load that finds them to where they matter.
//
// A value in a register is unwritten if it was loaded from memory that has never been written, or computed from one
// that was. Only stores to global memory, addresses, branches and the like make a fault of it. Stores to local and to
// shared memory leave it there, as unwritten as before.
//
// Nearly no kernel has any, so nothing is followed until a load finds one: then its warp puts the load off, and from
// there on executes each instruction by step(), which does for the lanes of registers what the instruction does for
// their values.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "checks/access.h"
#include "kernel/matrix_product.h"
#include "kernel/value_flow.h"
#include "warp/warp.h"

namespace kiln::emulator {

class UnwrittenValues {
 public:
  /// `block` is as it will be for all blocks but for its number.
  UnwrittenValues(const Block& block, const ValueFlow& flow);
  void begin_block();

  bool is_followed(const Warp& warp) const { return !warps_.empty() && warps_[warp.index].followed; }
  /// Executes `i` as Instruction::execute does, for a warp that is followed.
  const Instruction* step(Warp& warp, const Instruction* i);

  // An access to memory, of a warp that is followed or not:
  /// Whether what the access loads can be followed. It is a fault at once of atomics and copies.
  bool can_follow(const Block& block, const Instruction* i, const AccessRequest& request) const;
  /// Puts the running fragment back in front of `i`, to be executed again by step().
  void begin_following(Warp& warp, const Instruction* i);
  /// Some of what `lanes` load, which are at one address or a single lane, is unwritten: the elements of which
  /// is_unwritten(offset, bytes) is true. `report` makes the block's fault of it, which is kept for later.
  void mark(Warp& warp, const Instruction* i, const AccessRequest& request, Mask lanes,
            const std::function<bool(uint32_t offset, uint32_t bytes)>& is_unwritten,
            const std::function<void()>& report);
  /// Whether unwritten values that the access stores where threads of the block see them can be followed. It is a fault
  /// at once of atomics and of stmatrix.
  bool can_keep(const Block& block, const Instruction* i, const AccessRequest& request) const;
  /// False, and the block's fault, if `lanes` store an unwritten value.
  bool may_store(Warp& warp, const Instruction* i, Mask lanes);
  /// Calls use(offset, bytes) for each element of a store to local or shared memory that is unwritten, and remembers
  /// where it comes from.
  template <class Use>
  void each_unwritten_element(const Warp& warp, const Instruction* i, const AccessRequest& request, uint32_t lane,
                              Use use);

 private:
  using Origin = uint32_t;  // index into origins_; [0] is none
  struct Followed {
    bool followed = false;
    std::vector<Mask> lanes;      // by register: offset / 4
    std::vector<Origin> origins;  // the same: where one of them comes from
  };
  /// Lanes and where one of them comes from.
  struct Unwritten {
    Mask lanes = 0;
    Origin origin = 0;
    void join(const Unwritten& other) {
      if (lanes == 0) origin = other.origin;
      lanes |= other.lanes;
    }
  };

  Unwritten of(const Warp& warp, uint32_t offset) const {
    const Followed& state = warps_[warp.index];
    return {state.lanes[offset / 4], state.origins[offset / 4]};
  }
  void set(const Warp& warp, uint32_t offset, Mask lanes, const Unwritten& value);
  void pass_on(const Warp& warp, std::span<const ValueUse> uses, Mask lanes, Unwritten& last);
  Unwritten exchanged(const Warp& warp, const Instruction* i, ValueRole role, std::span<const ValueUse> uses,
                      Mask lanes) const;
  void multiply(const Warp& warp, const ProductOperands& operands);
  const Instruction* step_of_warp(Warp& warp, const Instruction* i, ValueRole role, std::span<const ValueUse> uses,
                                  Mask lanes);
  Unwritten transposed(const Warp& warp, const Instruction* i) const;
  Origin origin_at(Warp& warp, uint64_t address, const std::function<void()>& report);
  void mark_matrices(Warp& warp, const Instruction* i, uint64_t address, Mask lanes,
                     const std::function<bool(uint32_t offset, uint32_t bytes)>& is_unwritten,
                     const std::function<void()>& report);
  const Instruction* access(Warp& warp, const Instruction* i, std::span<const ValueUse> uses, Mask lanes,
                            Mask addressed);
  void write(const Warp& warp, std::span<const ValueUse> uses, Mask lanes, const Unwritten& value);
  Unwritten selected(const Warp& warp, const Instruction* i) const;
  Unwritten joined(const Warp& warp, const Instruction* i, ValueRole role) const;
  bool report(Warp& warp, const Instruction* i, const Unwritten& value, std::string_view where);
  uint32_t element_bytes(size_t at, const AccessRequest& request, ValueUse::Kind kind) const;

  const ValueFlow& flow_;
  const size_t registers_, warp_count_;
  std::vector<Followed> warps_;  // empty until needed
  std::vector<Fault> origins_;
  Origin of_this_step_ = 0;
  std::unordered_map<uint64_t, Origin> stored_;  // unwritten elements in local and shared memory, by address
};

template <class Use>
void UnwrittenValues::each_unwritten_element(const Warp& warp, const Instruction* i, const AccessRequest& request,
                                             uint32_t lane, Use use) {
  const auto at = static_cast<size_t>(i - warp.block->first);
  const uint32_t bytes = element_bytes(at, request, ValueUse::Kind::read);
  uint32_t offset = 0;
  for (const ValueUse& value : flow_.uses(at)) {
    if (value.kind != ValueUse::Kind::read) continue;
    const Unwritten unwritten = of(warp, value.offset);
    if ((unwritten.lanes >> lane & 1) != 0) {
      stored_[request.address[lane] + offset] = unwritten.origin;
      use(offset, bytes);
    }
    offset += bytes;
  }
}

}  // namespace kiln::emulator
