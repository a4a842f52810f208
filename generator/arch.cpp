#include "kiln/generator/arch.h"

#include <fmt/format.h>

#include "kiln/base/error.h"

namespace kiln {
namespace {

Arch limits(int major, int minor, int threads, int blocks, int shared_block_kib, int shared_sm_kib, int f32_lanes,
            int f16_tensor_products) {
  Arch arch;
  arch.major = major;
  arch.minor = minor;
  arch.threads_per_sm = threads;
  arch.blocks_per_sm = blocks;
  arch.shared_per_block = shared_block_kib * 1024;
  arch.shared_per_sm = shared_sm_kib * 1024;
  arch.f32_lanes_per_sm = f32_lanes;
  arch.f16_tensor_products_per_sm = f16_tensor_products;
  return arch;
}

}  // namespace

const std::vector<Arch>& Arch::all() {
  // CUDA C++ Programming Guide, "Technical Specifications per Compute Capability" and "Arithmetic Instructions". Tensor
  // cores: the dense f16 rates of T4, A100, A10, L40S, H100, B200 and RTX PRO 6000 Blackwell by their data sheets, over
  // 2 x SMs x boost clock.
  static const std::vector<Arch> table = {
      limits(7, 5, 1024, 16, 64, 64, 64, 512),     limits(8, 0, 2048, 32, 163, 164, 64, 1024),
      limits(8, 6, 1536, 16, 99, 100, 128, 512),   limits(8, 9, 1536, 24, 99, 100, 128, 512),
      limits(9, 0, 2048, 32, 227, 228, 128, 2048), limits(10, 0, 2048, 32, 227, 228, 128, 4096),
      limits(12, 0, 1536, 24, 99, 100, 128, 512),
  };
  return table;
}

Arch Arch::of(int major, int minor) {
  const Arch* best = nullptr;
  for (const Arch& arch : all()) {
    if (arch.major == major && arch.minor <= minor) best = &arch;
  }
  if (best == nullptr) {
    throw Error(ErrorCode::unsupported, fmt::format("compute capability {}.{} is not supported", major, minor),
                "Kiln generates for 7.5, 8.x, 9.0, 10.x and 12.x");
  }
  Arch result = *best;
  result.minor = minor;  // compiled for exactly what it is
  return result;
}

int Arch::products_per_clock(MathClass math) const {
  // By the data sheets of those devices; what has fewer bits is twice as fast.
  switch (math) {
    case MathClass::f32_lanes:
      return f32_lanes_per_sm;
    case MathClass::tensor_tf32:
      return at_least(8, 0) ? f16_tensor_products_per_sm / 2 : 0;
    case MathClass::tensor_f16:
    case MathClass::tensor_f16_sums:
      return f16_tensor_products_per_sm;
    case MathClass::tensor_fp8:
      return at_least(8, 9) ? f16_tensor_products_per_sm * 2 : 0;
    case MathClass::tensor_int8:
      return f16_tensor_products_per_sm * 2;
  }
  return 0;
}

std::string_view to_string(MathClass math) {
  switch (math) {
    case MathClass::f32_lanes:
      return "f32 arithmetic";
    case MathClass::tensor_tf32:
      return "tensor cores in tf32";
    case MathClass::tensor_f16:
      return "tensor cores in f16 or bf16";
    case MathClass::tensor_f16_sums:
      return "tensor cores in f16 with sums in f16";
    case MathClass::tensor_fp8:
      return "tensor cores in fp8";
    case MathClass::tensor_int8:
      return "tensor cores in int8";
  }
  return "?";
}

std::string Arch::name() const {
  return fmt::format("sm_{}{}", major, minor);
}

}  // namespace kiln
