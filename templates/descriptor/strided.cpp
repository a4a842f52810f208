#include "descriptor/strided.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace kiln::descriptor {
namespace {

// Room for the idle threads of a last block and for a last vector.
constexpr int64_t narrow_limit = (int64_t{1} << 31) - (int64_t{1} << 20);

constexpr int spatial_axes = 3;

// Elements side by side along `dimensions`, innermost first; takes those dimensions off `others`, which has a bit for
// each. 0 if neighbours along the first are not side by side.
int64_t run_length(const TensorSpec& spec, std::initializer_list<int> dimensions, uint32_t& others) {
  int64_t run = 1;
  for (const int dimension : dimensions) {
    const auto i = static_cast<size_t>(dimension);
    if (spec.extents[i] <= 1) continue;
    if (spec.strides[i] != run) return run == 1 ? 0 : run;
    run *= spec.extents[i];
    others &= ~(uint32_t{1} << i);
  }
  return run;
}

constexpr int64_t most_access = 16;  // bytes

/// Neighbours of a tensor that vectors may hold.
struct VectorRoom {
  int64_t run;     // elements side by side; 0 if there are none
  int64_t access;  // bytes, a power of two: accesses of that many are aligned wherever as many elements begin
};

VectorRoom room_for_vectors(const TensorSpec& spec, std::initializer_list<int> dimensions) {
  uint32_t others = ~uint32_t{0};  // no memory of its own
  VectorRoom room{run_length(spec, dimensions, others), most_access};
  const int64_t bytes = size_of(spec.dtype);
  int64_t together = spec.alignment;  // the bits that are zero in all of them are the alignment of all
  for (size_t i = 0; i < spec.strides.size(); ++i) {
    const bool is_other = (others >> i & 1) != 0;
    if (is_other && spec.extents[i] > 1) together |= spec.strides[i] * bytes;
  }
  while (together % room.access != 0) room.access /= 2;
  return room;
}

bool fits(const VectorRoom& room, int64_t elements, int64_t bytes) {
  return elements == 1 ||
         (room.run != 0 && room.run % elements == 0 && room.access >= std::min<int64_t>(most_access, elements * bytes));
}

}  // namespace

TensorSpec with_three_axes(const TensorSpec& spec) {
  TensorSpec result = spec;
  const auto missing = static_cast<size_t>(spatial_axes - (spec.rank() - 2));
  result.extents.insert(result.extents.begin() + dimension::plane, missing, 1);
  result.strides.insert(result.strides.begin() + dimension::plane, missing, 0);
  return result;
}

double bytes_of(const TensorSpec& spec) {
  return static_cast<double>(spec.elements()) * size_of(spec.dtype);
}

Inner inner_of(const TensorSpec& spec) {
  int64_t pixel_stride = std::numeric_limits<int64_t>::max();
  for (const int axis : {dimension::plane, dimension::row, dimension::column}) {
    const auto i = static_cast<size_t>(axis);
    if (spec.extents[i] > 1) pixel_stride = std::min(pixel_stride, spec.strides[i]);
  }
  if (spec.extents[dimension::channel] <= 1 || pixel_stride == std::numeric_limits<int64_t>::max()) {
    return Inner::either;
  }
  return spec.strides[dimension::channel] < pixel_stride ? Inner::channels : Inner::pixels;
}

std::optional<int64_t> run_stride(const TensorSpec& spec, std::initializer_list<int> dimensions) {
  int64_t stride = 0, run = 1;  // elements that are `stride` apart so far
  for (const int dimension : dimensions) {
    const auto i = static_cast<size_t>(dimension);
    if (spec.extents[i] <= 1) continue;
    if (run == 1) stride = spec.strides[i];
    if (spec.strides[i] != stride * run) return std::nullopt;
    run *= spec.extents[i];
  }
  return stride;
}

void add_strides(Prelude& prelude, std::string_view name, std::string_view letters, const TensorSpec& spec) {
  for (size_t i = 0; i < letters.size(); ++i) {
    prelude.extent(fmt::format("{}_STRIDE_{}", name, letters[i]), spec.strides.at(i));
  }
}

bool needs_wide_index(std::initializer_list<const TensorSpec*> specs) {
  return std::any_of(specs.begin(), specs.end(), [](const TensorSpec* spec) {
    return spec->span() >= narrow_limit || spec->elements() >= narrow_limit;
  });
}

int alignment_at(int alignment, int64_t bytes) {
  const int64_t lowest_bit = bytes & -bytes;
  return bytes == 0 ? alignment : static_cast<int>(std::min<int64_t>(alignment, lowest_bit));
}

void begin_at(int64_t elements, TensorSpec& spec) {
  spec.alignment = alignment_at(spec.alignment, elements * size_of(spec.dtype));
}

bool vector_fits(const TensorSpec& spec, std::initializer_list<int> dimensions, int64_t elements) {
  return fits(room_for_vectors(spec, dimensions), elements, size_of(spec.dtype));
}

// Estimates come here for each configuration: the tensor is looked at once for all widths.
int widest_vector(const TensorSpec& spec, std::initializer_list<int> dimensions, int64_t of) {
  const int bytes = size_of(spec.dtype), most = most_access / bytes;
  if (most < 2 || of % 2 != 0) return 1;
  const VectorRoom room = room_for_vectors(spec, dimensions);
  int width = 1;
  while (width * 2 <= most && of % (width * 2) == 0 && fits(room, width * 2, bytes)) width *= 2;
  return width;
}

}  // namespace kiln::descriptor
