// Tensors of Python's frameworks, as Kiln sees them: nothing is copied.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kiln/epilogue.h"

namespace kiln::python {

namespace nb = nanobind;

// Types of arguments in stubs.
using TensorDict = nb::typed<nb::dict, nb::str, nb::any>;
using NumberDict = nb::typed<nb::dict, nb::str, nb::float_>;
using IntegerDict = nb::typed<nb::dict, nb::str, nb::int_>;

/// Where a framework says that a tensor lies.
struct Place {
  bool host = false;           ///< In ordinary memory of the host.
  std::optional<int> ordinal;  ///< Ordinal of the CUDA device, where the framework says it.
};

struct GivenTensor {
  std::string_view name;
  Tensor tensor;
  Place place;
  /// The stream whose work makes the elements, where the framework says one; what a stream is called in CUDA.
  std::optional<uintptr_t> stream;
  bool writable = true;
  nb::ndarray<nb::ro> held;  ///< Keeps a buffer in place, where the tensor is known by one.
};

/// A tensor of PyTorch, or an object with `__dlpack__`, `__cuda_array_interface__`, the buffer protocol or
/// `__array_interface__`: NumPy, CuPy, JAX. Without dimensions it counts as one element. Throws
/// Error(invalid_argument), naming it as `name`, for what is no tensor, a dtype that Kiln does not have, negative
/// strides.
GivenTensor given_tensor(std::string_view name, nb::handle object);

/// Arguments of a function of PyTorch but for the elements of tensors, as bytes that are equal for arguments that are
/// alike: dtypes, extents, strides and devices of tensors, and all values else. Tensors are of the classes `kinds`,
/// dense, and have elements of f32, f16 or bf16; other arguments are numbers, text, None, and tuples and lists of
/// these. Returns None for anything else. The argument at `waiting`, from 0, is left out; -1: none is.
nb::object likeness(const nb::tuple& arguments, const nb::dict& named, const nb::frozenset& kinds, int waiting);

/// Device memory that an object says by `__cuda_array_interface__`.
struct GivenMemory {
  uintptr_t address = 0;
  int64_t bytes = 0;
  std::optional<uintptr_t> stream;  ///< As GivenTensor::stream.
};

/// Memory for a kernel to write, which errors call `name`. Throws Error(invalid_argument) for what is none, is
/// read-only, or has gaps or a mask.
GivenMemory given_memory(std::string_view name, nb::handle object);

/// given_tensor() of each. The names are views into `tensors`, which has to outlive them.
std::vector<GivenTensor> given_tensors(const nb::dict& tensors);

/// Name of a storage type in Python's frameworks: "float32", "bfloat16", "float8_e4m3fn".
std::string_view framework_name(DType dtype);

}  // namespace kiln::python
