// Elements of a TensorSpec in host memory, by coordinate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kiln/generator/tensor_spec.h"

namespace kiln::reference {

/// Bytes from the first element to one past the last.
int64_t byte_span(const TensorSpec& spec);

/// Elements from the first one in memory to that at `coordinate` (logical order).
int64_t offset_of(const TensorSpec& spec, std::span<const int64_t> coordinate);

/// The coordinate of the `index`-th element in logical order (last dimension fastest).
std::vector<int64_t> coordinate_of(const TensorSpec& spec, int64_t index);

/// The element at `coordinate`; `memory` starts at the tensor's first element.
double read(const TensorSpec& spec, std::span<const std::byte> memory, std::span<const int64_t> coordinate);
void write(const TensorSpec& spec, std::span<std::byte> memory, std::span<const int64_t> coordinate, double value);

/// Calls `visit` for every coordinate in logical order; never for an empty tensor. The span is reused between calls.
void for_each_coordinate(const TensorSpec& spec, const std::function<void(std::span<const int64_t>)>& visit);
/// The same of those from the `begin`-th on, before the `end`-th.
void for_each_coordinate(const TensorSpec& spec, int64_t begin, int64_t end,
                         const std::function<void(std::span<const int64_t>)>& visit);

/// Calls visit(number, coordinate) for every element on all of the machine's threads, in no order. `number` counts in
/// logical order.
void for_each_at_once(const TensorSpec& spec, const std::function<void(size_t, std::span<const int64_t>)>& visit);

/// All elements in logical order. On all of the machine's threads.
std::vector<double> read_all(const TensorSpec& spec, std::span<const std::byte> memory);
/// The same as f32, of a tensor that repeats along what it has one element of, in logical order of `like`. On all of
/// the machine's threads.
std::vector<float> read_floats(const TensorSpec& like, const TensorSpec& spec, std::span<const std::byte> memory);

}  // namespace kiln::reference
