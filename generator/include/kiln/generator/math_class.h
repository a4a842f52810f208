// MathClass: what multiplies and adds.
#pragma once

#include <string_view>

namespace kiln {

/// Arithmetic that SMs have units for.
enum class MathClass {
  f32_lanes,        ///< One multiply-add a lane and clock.
  tensor_tf32,      ///< Tensor cores with f32 factors, of which 11 bits count.
  tensor_f16,       ///< With f16 or bf16 factors, and sums in f32.
  tensor_f16_sums,  ///< With f16 factors, and sums in f16: on GeForce cards twice as fast.
  tensor_fp8,       ///< With floating-point factors of 8 bits, and sums in f32.
  tensor_int8,      ///< With integer factors of 8 bits, and sums in i32.
};

/// "f32 arithmetic", "tensor cores in tf32", ...
std::string_view to_string(MathClass math);

}  // namespace kiln
