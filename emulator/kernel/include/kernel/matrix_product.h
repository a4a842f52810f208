// Operands of a warp's matrix product D = A B + C: which registers they are in, and what part of a matrix each holds.
#pragma once

#include <cstdint>

namespace kiln::emulator {

/// Where a run of products keeps a factor in an unpacked form, for those that follow.
struct FactorSlot {
  static constexpr uint32_t of_a = 4, of_b = 8;  ///< slots for each

  uint32_t index = 0;
  bool holds = false;  ///< the factor already: an earlier product of the run has unpacked it

  static FactorSlot from(uint32_t number) { return {number / 2, number % 2 != 0}; }
  uint32_t number() const { return 2 * index + (holds ? 1 : 0); }
};

/// The operands of a product in Code::lists: the numbers of tiles, groups and parts, then the registers of A, B, C, D,
/// then the slots of A and B. Those of the next product of the run, of the same size, follow.
///
/// A, C and D have `tiles` of 8 rows; B, C and D have 8 columns. The rows of A and the columns of B have `groups` of
/// 16 bytes along k. Lane l has, of a register of A, bytes 4 (l % 4) to 4 (l % 4) + 3 of a group of row l / 4 of a
/// tile, and of a register of B the same of column l / 4. Of row l / 4 of a tile of C or D, it has columns 2 (l % 4)
/// and the next: as halves of one register, or in one of two `parts` each.
class ProductOperands {
 public:
  static constexpr uint32_t numbers = 3;

  explicit ProductOperands(const uint32_t* list) : list_(list) {}

  uint32_t tiles() const { return list_[0]; }
  uint32_t groups() const { return list_[1]; }
  uint32_t parts() const { return list_[2]; }
  uint32_t a(uint32_t tile, uint32_t group) const { return list_[numbers + group * tiles() + tile]; }
  uint32_t b(uint32_t group) const { return list_[numbers + groups() * tiles() + group]; }
  uint32_t c(uint32_t tile, uint32_t part) const { return list_[sums() + tile * parts() + part]; }
  uint32_t d(uint32_t tile, uint32_t part) const { return list_[sums() + (tiles() + tile) * parts() + part]; }
  /// Where the slots are in the list.
  uint32_t slots() const { return sums() + 2 * tiles() * parts(); }
  FactorSlot a_slot() const { return FactorSlot::from(list_[slots()]); }
  FactorSlot b_slot() const { return FactorSlot::from(list_[slots() + 1]); }
  ProductOperands next() const { return ProductOperands(list_ + slots() + 2); }

 private:
  uint32_t sums() const { return numbers + groups() * (tiles() + 1); }

  const uint32_t* list_;
};

}  // namespace kiln::emulator
