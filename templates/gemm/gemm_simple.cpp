#include <algorithm>
#include <cmath>

#include "contraction/block_estimate.h"
#include "contraction/contraction.h"
#include "descriptor/epilogue.h"
#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "gemm/gemm_contraction.h"
#include "kiln/generator/algorithm.h"

namespace kiln {
namespace gemm_simple_descriptor {
namespace {

struct Shape {
  int threads;
};

void add_matrix(Prelude& prelude, const std::string& name, const char* letters, const TensorSpec& spec) {
  const size_t last = spec.extents.size() - 1;
  prelude.constant(name + "_STRIDE_" + letters[0], spec.strides[last - 1]);
  prelude.constant(name + "_STRIDE_" + letters[1], spec.strides[last]);
  const std::array<int64_t, 3> strides = descriptor::batch_strides(spec);
  for (size_t i = 0; i < strides.size(); ++i) {
    prelude.constant(name + "_BATCH_STRIDE_" + std::to_string(i), strides[i]);
  }
}

Program program(const Shape& shape, const Gemm& gemm, const Target&, const Emitter& emit) {
  Prelude prelude;
  prelude.type("TA", gemm.a.dtype).type("TB", gemm.b.dtype).type("TY", gemm.c.dtype);
  prelude.index_type("Index", descriptor::needs_wide_index({&gemm.a, &gemm.b, &gemm.c}) ||
                                  (gemm.residual && descriptor::needs_wide_index({&*gemm.residual})));
  // An empty c starts no block: its coordinates only have to compile.
  const auto divisor = [](int64_t extent) { return std::max<int64_t>(extent, 1); };
  prelude.constant("M", divisor(gemm.m())).constant("N", divisor(gemm.n())).constant("K", gemm.k());
  prelude.flag("DYNAMIC_M", gemm.dynamic_batch);
  const std::array<int64_t, 3> batch = descriptor::batch_extents(gemm.c);
  for (size_t i = 0; i < batch.size(); ++i) prelude.constant("BATCH_" + std::to_string(i), divisor(batch[i]));
  add_matrix(prelude, "A", "MK", gemm.a);
  add_matrix(prelude, "B", "KN", gemm.b);
  add_matrix(prelude, "C", "MN", gemm.c);
  add_matrix(prelude, "RESIDUAL", "MN", gemm.residual.value_or(gemm.c));
  descriptor::add_blend(prelude, gemm.blend);
  descriptor::add_stages(prelude, gemm.epilogue, gemm.bias, gemm.residual);
  prelude.constant("THREADS", shape.threads);

  Launch launch = descriptor::contraction_launch("gemm_simple", shape.threads);
  launch.grid[0] = gemm.dynamic_batch ? Count{0, gemm.n(), shape.threads}
                                      : Count{descriptor::ceil_div(gemm.c.elements(), shape.threads)};
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const Gemm& gemm, const Target& target, const DeviceFigures& device) {
  const double products = gemm.blend.alpha == Scale::zero ? 0 : static_cast<double>(gemm.k());
  const double warps = shape.threads / 32.0;
  // Lanes are neighbours in n: one access where those are neighbours in b, a sector each where not.
  const int64_t element = size_of(gemm.b.dtype);
  const descriptor::Access b = descriptor::access_at_pitch(gemm.b.strides.back() * element, element);
  descriptor::GridWork work;
  work.blocks = std::ceil(static_cast<double>(gemm.c.elements()) / shape.threads);
  work.block.threads = shape.threads;
  work.block.registers = 40;
  work.block.fma = warps * products;
  work.block.instructions = warps * (80 + 8 * products);
  work.block.code_instructions = 140;
  work.block.global_sectors = warps * products * (1 + b.l1);
  work.block.l2_bytes = warps * products * (1 + b.sectors) * 32 / 8;
  work.block.latency_clocks = 1500 + 90 * products;  // a load or two in flight
  for (const TensorSpec* spec : {&gemm.a, &gemm.b, &gemm.c}) {
    work.dram_bytes += static_cast<double>(spec->elements()) * size_of(spec->dtype);
  }
  return descriptor::grid_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace gemm_simple_descriptor

Algorithm gemm_simple() {
  using namespace gemm_simple_descriptor;
  return describe<Shape, Gemm>("gemm_simple", "gemm", "gemm/gemm_simple.cu")
      .trusted()
      .takes_prologue()
      .param("THREADS", &Shape::threads, {128, 256, 64})
      .rule("grid fits", [](const Shape& shape, const Gemm& gemm,
                            const Target&) { return gemm.c.elements() / shape.threads < (int64_t{1} << 31) - 1; })
      .adds([](const Shape&, const Gemm& gemm, const Target&) {
        return descriptor::order_on_lanes(descriptor::DepthOrder{gemm.k(), 1});
      })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
