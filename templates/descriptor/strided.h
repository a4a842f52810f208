// How a tensor's strides, extents and alignment shape the kernels that move it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "kiln/generator/specialise.h"
#include "kiln/generator/tensor_spec.h"

namespace kiln::descriptor {

/// Dimensions of a tensor with three spatial axes.
namespace dimension {
constexpr int batch = 0, channel = 1, plane = 2, row = 3, column = 4;
}

/// `spec` (N, C and one to three spatial dimensions) as N, C, D, H, W. Dimensions that it lacks have the extent 1 and
/// the stride 0.
TensorSpec with_three_axes(const TensorSpec& spec);

/// Bytes of a tensor's elements.
double bytes_of(const TensorSpec& spec);

/// Axis whose elements stand closer together in a tensor of with_three_axes().
enum class Inner {
  channels,
  pixels,
  either,  ///< there is one channel, or one pixel
};
Inner inner_of(const TensorSpec& spec);

/// The distance of a tensor's elements along `dimensions`, innermost first, where they are evenly spaced; 0 for one
/// element.
std::optional<int64_t> run_stride(const TensorSpec& spec, std::initializer_list<int> dimensions);

/// NAME_STRIDE_N, NAME_STRIDE_C and so on, extents of the prelude: the strides of `spec` in elements, one letter of
/// `letters` a dimension.
void add_strides(Prelude& prelude, std::string_view name, std::string_view letters, const TensorSpec& spec);

/// Whether offsets into one of `specs`, or an index a little beyond its elements (a grid's last block), need 64 bits.
bool needs_wide_index(std::initializer_list<const TensorSpec*> specs);

/// Alignment of a pointer `bytes` behind one that is aligned to `alignment` bytes.
int alignment_at(int alignment, int64_t bytes);
/// Lowers the alignment of `spec` to that of what begins `elements` behind its first, or at any multiple of that.
void begin_at(int64_t elements, TensorSpec& spec);

/// Whether `elements` (a power of two) neighbours can move as one Vector of lib/vector.cuh wherever a multiple of
/// `elements` starts. Neighbours along `dimensions`, innermost first: those behind the first count as far as each
/// continues the one before without a gap (the rows of an image behind its columns). Their stride is 1, their length a
/// multiple of `elements`, and the pointer and the other strides keep every access (of up to 16 bytes) aligned.
bool vector_fits(const TensorSpec& spec, std::initializer_list<int> dimensions, int64_t elements);

/// The largest power of two that divides `of`, is no longer than one access of 16 bytes, and for which vector_fits().
int widest_vector(const TensorSpec& spec, std::initializer_list<int> dimensions, int64_t of);

}  // namespace kiln::descriptor
