// Description of one tensor in a request: element type, extents, strides and alignment. No pointer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/generator/dtype.h"

namespace kiln {

/// Pointers are assumed to be aligned to this many bytes unless a TensorSpec says otherwise.
inline constexpr int default_alignment = 16;

/// One tensor of a request. Extents stand in logical order (N C spatial for activations, K C/groups window for
/// filters) whatever the memory order; strides are in elements, in the same order.
///
/// Anybody may fill one. Where it has not one stride an extent, what reads the strides throws Error(invalid_argument).
///
/// Text form: `f16:32x64x56x56:nhwc`, or with strides `f16:32x64x56x56:200704,1,3584,64`; `@4` at the end gives an
/// alignment in bytes other than 16.
struct TensorSpec {
  DType dtype = DType::f32;
  std::vector<int64_t> extents;
  std::vector<int64_t> strides;
  int alignment = default_alignment;

  /// A tensor without gaps. `order` names the memory order, outermost first, with the letters of dimension_letters(),
  /// e.g. "nhwc". Throws Error(invalid_argument) if `order` is not a permutation of those letters.
  static TensorSpec packed(DType dtype, std::vector<int64_t> extents, std::string_view order,
                           int alignment = default_alignment);

  /// Parses the text form. Throws Error(parse_error) naming what was expected.
  static TensorSpec parse(std::string_view text);
  /// The canonical text form; parse(print()) gives back an equal value.
  std::string print() const;

  int rank() const { return static_cast<int>(extents.size()); }
  /// Product of the extents.
  int64_t elements() const;
  /// Elements from the first to one past the last in memory: the least size of an allocation; 0 if empty.
  int64_t span() const;
  /// Whether memory order is `order` without gaps. Strides of extents of at most 1 do not matter.
  bool is_packed(std::string_view order) const;

  /// The memory order by name if the tensor is without gaps in one, the first of nchw, nhwc and the others that fits.
  std::optional<std::string> order() const;

  /// Gives strides that do not matter (of extents of at most 1) their canonical values, so that equal tensors have
  /// equal text. parse() and packed() return canonical values.
  void canonicalise();

  bool operator==(const TensorSpec&) const = default;
};

/// The letters that name the dimensions of a tensor of `rank` dimensions in logical order: "n", "nc", "ncw", "nchw",
/// "ncdhw", and "ngcdhw" where the channels are in groups. Empty for other ranks, which no tensor has. Filters use the
/// same letters (n for K).
std::string_view dimension_letters(int rank);

}  // namespace kiln
