// Inference from arrays of the host: for the command line, bindings and tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kiln/model.h"

namespace kiln::models {

/// Elements on the host in logical order, of the type that an ONNX model has for them ("float", "int64", "bool", ...).
struct HostArray {
  std::string type;
  std::vector<int64_t> extents;
  std::vector<std::byte> bytes;
};

/// Bytes of an element of that type; 0 for one that Kiln does not have.
size_t size_of_type(const std::string& type);

/// `array` with elements of `type`; those of int64 beyond 2^53 are rounded, if it is another.
HostArray converted(const HostArray& array, const std::string& type);

/// Runs `model` on the default stream and waits. `inputs`: one for each of model.inputs(), in their order; numbers are
/// converted to the type that the model has. Returns the outputs in the types of the model. Throws
/// Error(invalid_argument) for other extents, a number that the device's type does not hold, or a type that cannot be
/// converted.
std::vector<HostArray> run_on_host(Context& context, Model& model, std::span<const HostArray> inputs);

}  // namespace kiln::models
