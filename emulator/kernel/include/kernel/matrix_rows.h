// Operands of ldmatrix and stmatrix: 8 x 8 matrices of 16-bit elements, whose rows are 16 bytes of shared memory each.
#pragma once

#include <cstdint>

#include "kernel/instruction.h"

namespace kiln::emulator {

/// The operands in Code::lists: a mask of lanes, 1 if transposed, and the matrices' registers.
///
/// Lane 8 m + r has the address of row r of matrix m. In the registers, lane l has elements 2 (l % 4) and the next of
/// row l / 4; of a transposed matrix, of column l / 4.
class MatrixRows {
 public:
  static constexpr uint32_t numbers = 2;
  static constexpr uint32_t rows = 8, row_bytes = 16;

  explicit MatrixRows(const uint32_t* list) : list_(list) {}

  /// The lanes whose addresses must be valid, also if there is no row for them.
  Mask addressed() const { return list_[0]; }
  bool is_transposed() const { return list_[1] != 0; }
  uint32_t matrix(uint32_t index) const { return list_[numbers + index]; }

  /// The lanes that have an element of row r in their registers.
  Mask lanes_of_row(uint32_t r) const { return is_transposed() ? 0x11111111u << (r / 2) : 0xFu << (4 * r); }

 private:
  const uint32_t* list_;
};

}  // namespace kiln::emulator
