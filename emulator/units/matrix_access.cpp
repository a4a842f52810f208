// ldmatrix, stmatrix and movmatrix: 8 x 8 matrices of 16-bit elements between shared memory and a warp's registers.
#include "addresses.h"
#include "kernel/matrix_rows.h"
#include "lanes.h"
#include "scheduler/divergence.h"
#include "units.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {
namespace {

constexpr uint32_t rows = MatrixRows::rows, row_bytes = MatrixRows::row_bytes;

using RowOfHalves = uint16_t __attribute__((vector_size(row_bytes)));

struct alignas(64) Matrix {
  RowOfHalves row[rows];
};

/// Interleaving the upper with the lower rows turns the bits of an element's place, row and column, by one.
Matrix transposed(const Matrix& matrix) {
  Matrix from = matrix, to;
  for (uint32_t turns = 0; turns < 3; ++turns) {
    for (uint32_t r = 0; r < rows / 2; ++r) {
      const RowOfHalves upper = from.row[r], lower = from.row[r + rows / 2];
      to.row[2 * r] = __builtin_shuffle(upper, lower, RowOfHalves{0, 8, 1, 9, 2, 10, 3, 11});
      to.row[2 * r + 1] = __builtin_shuffle(upper, lower, RowOfHalves{4, 12, 5, 13, 6, 14, 7, 15});
    }
    from = to;
  }
  return to;
}

/// A matrix as a register has it: row after row.
Matrix in_register(const Warp& warp, uint32_t offset) {
  Matrix matrix;
  std::memcpy(&matrix, row<std::byte>(warp, offset), sizeof(matrix));
  return matrix;
}

constexpr Mask lanes_with_rows(uint32_t matrices) {
  return full_mask >> (warp_lanes - matrices * rows);
}

template <class R, uint32_t matrices, bool transposes, bool inspected>
const Instruction* load_matrices(Warp& warp, const Instruction* i) {
  if (const Mask lanes = guarded(warp, i); lanes != full_mask) [[unlikely]] {
    return lanes == 0 ? i + 1 : gather_warp(warp, i, lanes);
  }
  using Space = SharedSpace<R>;
  const MatrixRows operands(warp.lists + i->extra);
  if constexpr (inspected) {
    constexpr Mask with_rows = lanes_with_rows(matrices);
    const Mask others = operands.addressed() & ~with_rows;
    const AccessDetails unread = {.is_part = true, .is_unused = true};
    if (others != 0 && !inspect<Space>(warp, i, others, row_bytes, AccessKind::load, unread)) return nullptr;
    if (!inspect<Space>(warp, i, with_rows, row_bytes, AccessKind::load)) return nullptr;
  }
  Addresses<typename Space::Offset> addresses;
  Space::locate(warp, i, addresses);
  for (uint32_t m = 0; m < matrices; ++m) {
    auto* const to = row<std::byte>(warp, operands.matrix(m));
    for (uint32_t r = 0; r < rows; ++r) {
      std::memcpy(to + size_t{r} * row_bytes, addresses.at(static_cast<int>(m * rows + r)), row_bytes);
    }
    if constexpr (!transposes) continue;
    const Matrix matrix = transposed(in_register(warp, operands.matrix(m)));
    std::memcpy(to, &matrix, sizeof(matrix));
  }
  return i + 1;
}

/// Copies to `to` the row that a lane is about to store, for the checks.
template <bool transposes>
void row_of(const Warp& warp, const Instruction* i, int lane, std::byte* to) {
  const auto index = static_cast<uint32_t>(lane);
  Matrix matrix = in_register(warp, MatrixRows(warp.lists + i->extra).matrix(index / rows));
  if constexpr (transposes) matrix = transposed(matrix);
  std::memcpy(to, &matrix.row[index % rows], row_bytes);
}

template <class R, uint32_t matrices, bool transposes, bool inspected>
const Instruction* store_matrices(Warp& warp, const Instruction* i) {
  if (const Mask lanes = guarded(warp, i); lanes != full_mask) [[unlikely]] {
    return lanes == 0 ? i + 1 : gather_warp(warp, i, lanes);
  }
  using Space = SharedSpace<R>;
  if constexpr (inspected) {
    const AccessDetails details = {.value_of = row_of<transposes>};
    if (!inspect<Space>(warp, i, lanes_with_rows(matrices), row_bytes, AccessKind::store, details)) return nullptr;
  }
  const MatrixRows operands(warp.lists + i->extra);
  Addresses<typename Space::Offset> addresses;
  Space::locate(warp, i, addresses);
  for (uint32_t m = 0; m < matrices; ++m) {
    Matrix matrix = in_register(warp, operands.matrix(m));
    if constexpr (transposes) matrix = transposed(matrix);
    for (uint32_t r = 0; r < rows; ++r) {
      std::memcpy(addresses.at(static_cast<int>(m * rows + r)), &matrix.row[r], row_bytes);
    }
  }
  return i + 1;
}

/// Calls use.template operator()<R, matrices, transposes>().
template <class Use>
HandlerPair with_shape(const MatrixAccess& access, Use use) {
  const auto with_matrices = [&]<class R, bool transposes>() -> HandlerPair {
    switch (access.matrices) {
      case 1:
        return use.template operator()<R, 1, transposes>();
      case 2:
        return use.template operator()<R, 2, transposes>();
      case 4:
        return use.template operator()<R, 4, transposes>();
      default:
        return {};
    }
  };
  if (access.address_bytes == 4) {
    return access.transposed ? with_matrices.template operator()<uint32_t, true>()
                             : with_matrices.template operator()<uint32_t, false>();
  }
  return access.transposed ? with_matrices.template operator()<uint64_t, true>()
                           : with_matrices.template operator()<uint64_t, false>();
}

}  // namespace

HandlerPair matrix_load(const MatrixAccess& access) {
  return with_shape(access, []<class R, uint32_t matrices, bool transposes>() -> HandlerPair {
    return {load_matrices<R, matrices, transposes, false>, load_matrices<R, matrices, transposes, true>};
  });
}

HandlerPair matrix_store(const MatrixAccess& access) {
  return with_shape(access, []<class R, uint32_t matrices, bool transposes>() -> HandlerPair {
    return {store_matrices<R, matrices, transposes, false>, store_matrices<R, matrices, transposes, true>};
  });
}

const Instruction* matrix_transpose(Warp& warp, const Instruction* i) {
  if (const Mask lanes = guarded(warp, i); lanes != full_mask) [[unlikely]] {
    return lanes == 0 ? i + 1 : gather_warp(warp, i, lanes);
  }
  const Matrix matrix = transposed(in_register(warp, i->a));
  std::memcpy(row<std::byte>(warp, i->d), &matrix, sizeof(matrix));
  return i + 1;
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
