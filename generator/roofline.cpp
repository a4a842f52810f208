#include "kiln/generator/roofline.h"

#include "kiln/generator/operation.h"
#include "kiln/generator/operations/winograd.h"

namespace kiln {
namespace {

ProductUnit fastest_unit(const Request& request, std::optional<DType> factors, const Arch& arch) {
  const bool ampere = arch.at_least(8, 0);
  if (factors == DType::f16 || (factors == DType::bf16 && ampere)) return ProductUnit::f16_tensor_cores;
  const bool as_tf32 = factors == DType::f32 && request.arithmetic.tf32 && ampere;
  return as_tf32 ? ProductUnit::tf32_tensor_cores : ProductUnit::f32_lanes;
}

// Multiply-adds per clock and SM.
double rate(ProductUnit unit, const Arch& arch) {
  switch (unit) {
    case ProductUnit::f32_lanes:
      return arch.f32_lanes_per_sm;
    case ProductUnit::tf32_tensor_cores:
      return arch.f16_tensor_products_per_sm / 2.0;
    case ProductUnit::f16_tensor_cores:
      return arch.f16_tensor_products_per_sm;
  }
  return arch.f32_lanes_per_sm;
}

}  // namespace

std::string_view to_string(ProductUnit unit) {
  switch (unit) {
    case ProductUnit::f32_lanes:
      return "f32 arithmetic";
    case ProductUnit::tf32_tensor_cores:
      return "tensor cores in tf32";
    case ProductUnit::f16_tensor_cores:
      return "tensor cores in f16 or bf16";
  }
  return "?";
}

Roofline roofline(const Request& request, const Arch& arch, const DeviceFigures& device) {
  const Work work = operation(request.operation).work(request);
  Roofline result;
  result.unit = fastest_unit(request, work.factors, arch);
  const double saved = winograd_refusal(request) ? 1 : 4;
  result.arithmetic = work.flops / saved / (2.0 * rate(result.unit, arch) * device.sms * device.clock_hz);
  result.traffic = (work.read_bytes + work.write_bytes) / device.dram_bytes_per_second;
  return result;
}

double roofline_seconds(const Request& request, const Target& target, const DeviceFigures& device) {
  return roofline(request, target.arch, device).seconds();
}

}  // namespace kiln
