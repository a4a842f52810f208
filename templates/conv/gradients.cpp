#include "conv/gradients.h"

#include <cmath>
#include <type_traits>

#include "conv/conv_estimate.h"
#include "descriptor/parts.h"

namespace kiln::descriptor {
namespace {

template <class Gradient>
Gradient with_axes(const Request& request) {
  Gradient gradient;
  using View = std::conditional_t<std::is_same_v<Gradient, DataGradient>, ConvBackwardData, ConvBackwardFilter>;
  static_cast<View&>(gradient) = View::of(request);
  static_cast<SpatialAxes&>(gradient) = axes_of(static_cast<const View&>(gradient));
  gradient.region_axes = SpatialRegions::of(gradient.regions(), gradient.axes());
  return gradient;
}

template <class Gradient>
void add_problem(Prelude& prelude, const Gradient& gradient) {
  add_batch(prelude, gradient.n(), gradient.dynamic_batch);
  prelude.constant("C", gradient.c()).constant("K", gradient.k()).constant("GROUPS", gradient.groups);
  prelude.constant("C_PER_GROUP", gradient.c_per_group()).constant("K_PER_GROUP", gradient.k_per_group());
  add_axes(prelude, gradient);
  add_regions(prelude, gradient.region_axes);
  prelude.flag("MIRRORED", gradient.mirrored);
  add_blend(prelude, gradient.blend);
}

}  // namespace

DataGradient DataGradient::of(const Request& request) {
  auto gradient = with_axes<DataGradient>(request);
  for (TensorSpec* spec : {&gradient.dy, &gradient.w, &gradient.dx}) *spec = with_three_axes(*spec);
  return gradient;
}

FilterGradient FilterGradient::of(const Request& request) {
  auto gradient = with_axes<FilterGradient>(request);
  for (TensorSpec* spec : {&gradient.x, &gradient.dy, &gradient.dw}) *spec = with_three_axes(*spec);
  return gradient;
}

Prelude gradient_prelude(const DataGradient& gradient) {
  Prelude prelude;
  prelude.type("TDY", gradient.dy.dtype).type("TW", gradient.w.dtype).type("TDX", gradient.dx.dtype);
  prelude.index_type("Index",
                     needs_wide_index({&gradient.dy, &gradient.w, &gradient.dx}) || !coordinates_fit_int(gradient));
  add_problem(prelude, gradient);
  add_strides(prelude, "DY", "NKZPQ", gradient.dy);
  add_strides(prelude, "W", "KCTRS", gradient.w);
  add_strides(prelude, "DX", "NCDHW", gradient.dx);
  return prelude;
}

Prelude gradient_prelude(const FilterGradient& gradient) {
  Prelude prelude;
  prelude.type("TX", gradient.x.dtype).type("TDY", gradient.dy.dtype).type("TDW", gradient.dw.dtype);
  prelude.index_type("Index",
                     needs_wide_index({&gradient.x, &gradient.dy, &gradient.dw}) || !coordinates_fit_int(gradient));
  add_problem(prelude, gradient);
  add_strides(prelude, "X", "NCDHW", gradient.x);
  add_strides(prelude, "DY", "NKZPQ", gradient.dy);
  add_strides(prelude, "DW", "KCTRS", gradient.dw);
  return prelude;
}

Estimate simple_gradient_estimate(int threads, double products, std::initializer_list<const TensorSpec*> operands,
                                  const Target& target, const DeviceFigures& device) {
  const TensorSpec& result = **(operands.end() - 1);
  const double warps = threads / 32.0;
  GridWork work;
  work.blocks = std::ceil(static_cast<double>(result.elements()) / threads);
  work.block.threads = threads;
  work.block.registers = 48;
  work.block.fma = warps * products;
  work.block.instructions = warps * (80 + 30 * products);
  work.block.global_sectors = warps * products * 10;
  work.block.l2_bytes = work.block.global_sectors * 32 / 8;
  work.block.latency_clocks = 1500 + 90 * products;  // a load or two in flight
  for (const TensorSpec* spec : operands) {
    work.dram_bytes += static_cast<double>(spec->elements()) * size_of(spec->dtype);
  }
  return grid_estimate(work, target.arch, device);
}

bool simple_gradient_fits(int threads, const TensorSpec& result) {
  return result.elements() / threads < (int64_t{1} << 31) - 1;
}

}  // namespace kiln::descriptor
