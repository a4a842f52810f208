#include "kiln/reference/tensor_memory.h"

#include "kiln/base/parallel.h"
#include "kiln/reference/convert.h"
#include "operations/slack_rows.h"

namespace kiln::reference {

int64_t byte_span(const TensorSpec& spec) {
  return spec.span() * size_of(spec.dtype);
}

int64_t offset_of(const TensorSpec& spec, std::span<const int64_t> coordinate) {
  int64_t offset = 0;
  for (size_t d = 0; d < coordinate.size(); ++d) {
    offset += coordinate[d] * spec.strides[d];
  }
  return offset;
}

std::vector<int64_t> coordinate_of(const TensorSpec& spec, int64_t index) {
  std::vector<int64_t> coordinate(spec.extents.size());
  for (size_t d = coordinate.size(); d-- > 0;) {
    coordinate[d] = index % spec.extents[d];
    index /= spec.extents[d];
  }
  return coordinate;
}

double read(const TensorSpec& spec, std::span<const std::byte> memory, std::span<const int64_t> coordinate) {
  return load(spec.dtype, memory.data() + offset_of(spec, coordinate) * size_of(spec.dtype));
}

void write(const TensorSpec& spec, std::span<std::byte> memory, std::span<const int64_t> coordinate, double value) {
  store(spec.dtype, memory.data() + offset_of(spec, coordinate) * size_of(spec.dtype), value);
}

void for_each_coordinate(const TensorSpec& spec, int64_t begin, int64_t end,
                         const std::function<void(std::span<const int64_t>)>& visit) {
  if (begin >= end) return;
  std::vector<int64_t> coordinate = coordinate_of(spec, begin);
  for (int64_t i = begin; i < end; ++i) {
    visit(coordinate);
    size_t d = coordinate.size();
    while (d > 0 && ++coordinate[d - 1] == spec.extents[d - 1]) coordinate[--d] = 0;
  }
}

void for_each_coordinate(const TensorSpec& spec, const std::function<void(std::span<const int64_t>)>& visit) {
  for_each_coordinate(spec, 0, spec.elements(), visit);
}

void for_each_at_once(const TensorSpec& spec, const std::function<void(size_t, std::span<const int64_t>)>& visit) {
  for_each_part(static_cast<size_t>(spec.elements()), 4096, [&](size_t begin, size_t end) {
    size_t number = begin;
    for_each_coordinate(spec, static_cast<int64_t>(begin), static_cast<int64_t>(end),
                        [&](std::span<const int64_t> coordinate) { visit(number++, coordinate); });
  });
}

std::vector<double> read_all(const TensorSpec& spec, std::span<const std::byte> memory) {
  std::vector<double> values(static_cast<size_t>(spec.elements()));
  for_each_at_once(spec, [&](size_t number, std::span<const int64_t> coordinate) {
    values[number] = read(spec, memory, coordinate);
  });
  return values;
}

std::vector<float> read_floats(const TensorSpec& like, const TensorSpec& spec, std::span<const std::byte> memory) {
  std::vector<float> values(static_cast<size_t>(like.elements()));
  slack::Rows(like, {}).for_each(
      [&](size_t element, size_t, double value) { values[element] = static_cast<float>(value); },
      slack::Repeating(spec, memory));
  return values;
}

}  // namespace kiln::reference
