#include "kiln/generator/roofline.h"

#include "kiln/generator/operation.h"
#include "kiln/generator/operations/winograd.h"

namespace kiln {
MathClass math_class(std::optional<DType> factors, const Arithmetic& arithmetic, const Arch& arch) {
  if (!factors) return MathClass::f32_lanes;
  switch (*factors) {
    case DType::f32:
      return arithmetic.tf32 && arch.products_per_clock(MathClass::tensor_tf32) > 0 ? MathClass::tensor_tf32
                                                                                    : MathClass::f32_lanes;
    case DType::f16:
      return MathClass::tensor_f16;
    case DType::bf16:
      return arch.at_least(8, 0) ? MathClass::tensor_f16 : MathClass::f32_lanes;
    case DType::f8e4m3:
    case DType::f8e5m2:  // f16 holds the values of both
      return arch.products_per_clock(MathClass::tensor_fp8) > 0 ? MathClass::tensor_fp8 : MathClass::tensor_f16;
    case DType::i8:
    case DType::u8:
      return MathClass::tensor_int8;
    case DType::i32:
      return MathClass::f32_lanes;
  }
  return MathClass::f32_lanes;
}

Roofline roofline(const Request& request, const Arch& arch, const DeviceFigures& device) {
  const Work work = operation(request.operation).work(request);
  Roofline result;
  result.math = math_class(work.factors, request.arithmetic, arch);
  const double saved = winograd_refusal(request) ? 1 : 4;
  result.flops = work.flops / saved;
  result.bytes = work.read_bytes + work.write_bytes;
  result.flops_per_second = 2.0 * arch.products_per_clock(result.math) * device.sms * device.clock_hz;
  result.bytes_per_second = device.dram_bytes_per_second;
  return result;
}

double roofline_seconds(const Request& request, const Target& target, const DeviceFigures& device) {
  return roofline(request, target.arch, device).seconds();
}

}  // namespace kiln
