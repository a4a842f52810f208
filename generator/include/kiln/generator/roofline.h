// The time below which nothing can go: what measured times are held against.
#pragma once

#include <optional>

#include "kiln/generator/arch.h"
#include "kiln/generator/dtype.h"
#include "kiln/generator/request.h"

namespace kiln {

/// The fastest class by which `arch` may multiply elements of `factors` (operands of products; nothing: no products)
/// where the request permits `arithmetic`.
MathClass math_class(std::optional<DType> factors, const Arithmetic& arithmetic, const Arch& arch);

/// Lower bounds on the time of a request on a device.
struct Roofline {
  double flops = 0;  ///< Its multiplications and additions.
  double bytes = 0;  ///< Each input element read and each output element written once.
  MathClass math = MathClass::f32_lanes;
  double flops_per_second = 0;  ///< The peak of `math` on the device.
  double bytes_per_second = 0;  ///< Its full memory bandwidth.

  double arithmetic() const { return flops / flops_per_second; }  ///< Seconds
  double traffic() const { return bytes / bytes_per_second; }     ///< Seconds
  double seconds() const { return arithmetic() > traffic() ? arithmetic() : traffic(); }
};

/// The bound that no kernel on `device` can beat: products of f16, bf16 and, where the request permits tf32, f32
/// elements are taken to run on tensor cores, where the architecture has them for that type. Other products of f32
/// count at the rate of the f32 lanes: splitting them into several tf32 products is not considered. Where Winograd's
/// F(4x4,3x3) may be used, a quarter of the products is counted.
Roofline roofline(const Request& request, const Arch& arch, const DeviceFigures& device);

/// roofline().seconds()
double roofline_seconds(const Request& request, const Target& target, const DeviceFigures& device);

}  // namespace kiln
