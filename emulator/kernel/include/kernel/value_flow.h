// Flow of values through instructions: enough to follow unwritten values from register to register.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kiln::emulator {

enum class ValueRole : uint8_t {
  plain,       ///< what is written depends on all that was read since the last write, lane by lane
  select,      ///< of a where predicate c holds, else of b; the other way round if the immediate is 1
  both,        ///< predicates a and b
  either,      ///< predicates a or b
  shuffle_up,  ///< of other lanes: a by b and c; the last thing read is the member mask
  shuffle_down,
  shuffle_bfly,
  shuffle_idx,
  exchange,          ///< of what any lane has; the last thing read is the member mask
  matrix_product,    ///< see ProductOperands
  matrix_transpose,  ///< d is the 8 x 8 matrix a, transposed
  matrix_access,     ///< see MatrixRows
  access,            ///< of memory: what is read are the values stored, one by one, and what is written those loaded
};

/// A register by its offset in the register file.
struct ValueUse {
  enum class Kind : uint8_t { read, address, write };
  Kind kind = Kind::read;
  uint32_t offset = 0;
};

/// Roles and uses of all instructions of a kernel, by their indices in Code.
class ValueFlow {
 public:
  /// `uses` of the next instruction, those that it reads in front of what depends on them.
  void add(ValueRole role, const std::vector<ValueUse>& uses) {
    uses_.insert(uses_.end(), uses.begin(), uses.end());
    ends_.push_back(static_cast<uint32_t>(uses_.size()));
    roles_.push_back(role);
  }
  ValueRole role(size_t instruction) const { return roles_[instruction]; }
  std::span<const ValueUse> uses(size_t instruction) const {
    const uint32_t begin = instruction == 0 ? 0 : ends_[instruction - 1];
    return {uses_.data() + begin, ends_[instruction] - begin};
  }

 private:
  std::vector<ValueUse> uses_;
  std::vector<uint32_t> ends_;
  std::vector<ValueRole> roles_;
};

}  // namespace kiln::emulator
