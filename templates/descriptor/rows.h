// How the rows of operands lie in memory: for kernels that work along one axis of tensors, or along several together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/generator/algorithm.h"
#include "kiln/generator/program.h"
#include "kiln/generator/request.h"
#include "kiln/generator/specialise.h"

namespace kiln::descriptor {

/// Operands as rows: a row is what differs in `axes` alone. The first operand has all extents; others have its extents,
/// or 1 where they repeat. A dynamic batch is none of the axes.
struct Rows {
  std::vector<Operand> operands;
  std::vector<int64_t> axes;
  bool dynamic_batch = false;
  bool wide = false;  ///< Whether kernels need offsets of 64 bits for more than these operands.

  const std::vector<int64_t>& extents() const { return operands.front().spec.extents; }
  bool is_axis(size_t dimension) const;
  /// Whether operand `i` repeats nowhere.
  bool is_full(size_t i) const { return operands[i].spec.extents == extents(); }
  /// Result of kernels that read all operands but the last.
  const TensorSpec& result() const { return operands.back().spec; }
  size_t inputs() const { return operands.size() - 1; }
  /// Elements of one row, and of all.
  int64_t length() const;
  int64_t elements() const { return operands.front().spec.elements(); }
  /// Rows, and those of one image.
  int64_t count() const;
  int64_t per_image() const;
  /// Bytes that an element of all inputs has.
  double input_bytes() const;
  /// Bytes of the operands, each moved once.
  double compulsory_bytes() const;
};

/// One dimension, or several that continue each other in all operands. Strides are in elements, one for each operand, 0
/// where it repeats.
struct RowDimension {
  int64_t extent = 1;
  std::vector<int64_t> strides;
};

/// Operands as kernels see them: dimensions of an extent of 1 are left out, others are merged as far as all strides
/// allow.
struct RowLayout {
  std::vector<RowDimension> row;    ///< Dimensions of the axes, innermost first; at least one.
  RowDimension inner;               ///< Dimension whose rows a block takes side by side (across_rows()).
  std::vector<RowDimension> outer;  ///< The others, innermost first. The batch stands last if it is dynamic.
  bool across = false;              ///< Whether neighbouring threads are neighbours along `inner`, not along the axis.

  /// The dimension along which a thread takes several neighbours.
  const RowDimension& neighbours() const { return across ? inner : row.front(); }
  /// Whether those are side by side in all operands.
  bool contiguous() const;
};

/// Dimensions that a kernel counts through: those beside an axis, and axes, at the most.
inline constexpr size_t most_outer = 5, most_axes = 6;

/// Extents of dimensions, and strides of an operand along them, for kernels that count `most`: the others are 1 and 0.
std::vector<int64_t> extents_of(const std::vector<RowDimension>& dimensions, size_t most);
std::vector<int64_t> strides_of(const std::vector<RowDimension>& dimensions, size_t operand, size_t most);

/// For kernels whose neighbouring threads take neighbours of a row.
RowLayout along_rows(const Rows& rows);

/// For kernels whose neighbouring threads take neighbouring rows. `inner` is a single row where there are no neighbours
/// that refuse_across_rows() accepts.
RowLayout across_rows(const Rows& rows);

/// All rows as one dimension, if their elements are side by side in all operands and all rows equally far apart.
std::optional<RowDimension> contiguous_rows(const Rows& rows);

/// Why kernels of along_rows() are not for these: rows are empty, or another dimension than the axis is the innermost
/// of every operand. A dynamic batch does not count as one, because its length is not a constant.
std::optional<std::string> refuse_along_rows(const Rows& rows);

/// Why kernels of across_rows() are not for these: rows are empty, or the axis is the innermost dimension of every
/// operand, or the only one besides a dynamic batch.
std::optional<std::string> refuse_across_rows(const Rows& rows);

/// Whether `vector` divides the neighbours.
bool vector_divides(const RowLayout& layout, int vector);
/// Whether `vector` divides the neighbours, and some operand can be moved in accesses of so many (of 16 bytes).
bool vector_pays(const Rows& rows, const RowLayout& layout, int vector);

/// Words for the order of sums of rows whose elements `threads` share, each of them `vector` neighbours at a time.
std::string order_along_rows(std::string_view algorithm, int threads, int vector);
/// The same of rows that lie across, of which a thread takes one element at a time.
std::string order_across_rows(std::string_view algorithm, int threads);
/// The order of sums of a thread that has a row, or a sum, for itself.
inline constexpr std::string_view in_one_thread = "one thread, one after the other";

/// Bytes of the sectors that lanes touch for an element of all inputs, and for one of the result.
struct ElementBytes {
  double read = 0, written = 0;
};
/// `least`: of one operand, where a block's piece of a line is a sector at least.
ElementBytes element_bytes(const Rows& rows, const RowLayout& layout, int vector, double least = 0);

/// Blocks for `rows_per_block` rows each.
Count blocks_for_rows(const Rows& rows, int64_t rows_per_block);

/// The type of every operand (TX for x), Index, ROWS, ROWS_PER_IMAGE, DYNAMIC_N and ROW.
Prelude rows_prelude(const Rows& rows);

/// The same, with what lib/rows.cuh asks for. The accesses of an operand move as many neighbours as its strides,
/// extents and alignment allow, up to `vector`. With INNER for across_rows() and, for a single axis, the strides along
/// it (X_AXIS_STRIDE).
Prelude rows_prelude(const Rows& rows, const RowLayout& layout, int vector, const Emitter& emit);

/// Adds the dimensions of rows along several axes: ROW_EXTENTS and, for each operand, X_ROW_STRIDES: innermost first.
void add_row_dimensions(Prelude& prelude, const Rows& rows, const RowLayout& layout, const Emitter& emit);

/// RANK, AXES, EXTENTS and, for each operand, X_STRIDES: what lib/simple_rows.cuh asks for.
void add_simple_rows(Prelude& prelude, const Rows& rows);

/// `operand` in capitals: how constants of its name begin.
std::string constant_name(const Operand& operand);

}  // namespace kiln::descriptor
