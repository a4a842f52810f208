// Tensors of ONNX's test data on the host.
#pragma once

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>

#include "kiln/models/host_run.h"

namespace kiln::test {

/// Nothing for strings, complex numbers and other elements that Kiln does not have.
std::optional<models::HostArray> read_tensor(const onnx::TensorProto& proto);

/// Difference by the rule of onnx.backend.test: types, extents, and numpy.testing.assert_allclose with the numbers
/// below. Empty if there is none.
std::string difference(const models::HostArray& actual, const models::HostArray& expected);
inline constexpr double relative_tolerance = 1e-3, absolute_tolerance = 1e-7;
inline constexpr double relative_tolerance_of_bfloat16 = 1.0 / 64;  // two of its last places

/// How far the element that is furthest from what is expected is from that, over the largest expected magnitude. Throws
/// std::runtime_error for other types or extents.
double largest_error(const models::HostArray& actual, const models::HostArray& expected);

}  // namespace kiln::test
