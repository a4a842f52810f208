#include "conv/gradients.h"

#include <cmath>

#include "descriptor/epilogue.h"
#include "descriptor/prelude_and_launch.h"

namespace kiln::descriptor {
namespace {

// `filters`: w or dw; `a` and `b`: the other operands.
template <class Gradient, class View>
Gradient with_axes(const Request& request, TensorSpec View::*filters, TensorSpec View::*a, TensorSpec View::*b) {
  Gradient gradient;
  static_cast<View&>(gradient) = View::of(request);
  static_cast<SpatialAxes&>(gradient) = axes_of(static_cast<const View&>(gradient));
  gradient.region_axes = SpatialRegions::of(gradient.regions(), gradient.axes());
  TensorSpec& w = gradient.*filters;
  gradient.region_stride = region_stride(w, gradient.axes(), gradient.k());
  gradient.wide_index = needs_wide_index({&w, &(gradient.*a), &(gradient.*b)}) || !coordinates_fit_int(gradient);
  w = without_regions(w, gradient.axes());
  for (auto operand : {filters, a, b}) gradient.*operand = with_three_axes(gradient.*operand);
  return gradient;
}

template <class Gradient>
void add_problem(Prelude& prelude, const Gradient& gradient, FixedAxes fixed) {
  add_batch(prelude, gradient.n(), gradient.dynamic_batch);
  prelude.extent("C", gradient.c()).extent("K", gradient.k()).extent("GROUPS", gradient.groups);
  prelude.constant("C_PER_GROUP", gradient.c_per_group()).constant("K_PER_GROUP", gradient.k_per_group());
  add_axes(prelude, gradient, fixed);
  if (gradient.region_axes.count() > 1)
    add_regions(prelude, gradient.region_axes);
  else
    add_one_region(prelude, gradient);
  prelude.flag("MIRRORED", gradient.mirrored);
  add_blend(prelude, gradient.blend);
}

}  // namespace

DataGradient DataGradient::of(const Request& request) {
  DataGradient gradient =
      with_axes<DataGradient>(request, &ConvBackwardData::w, &ConvBackwardData::dy, &ConvBackwardData::dx);
  if (gradient.residual) {
    gradient.wide_index = gradient.wide_index || needs_wide_index({&*gradient.residual});
    gradient.residual = with_three_axes(*gradient.residual);
  }
  return gradient;
}

FilterGradient FilterGradient::of(const Request& request) {
  return with_axes<FilterGradient>(request, &ConvBackwardFilter::dw, &ConvBackwardFilter::x, &ConvBackwardFilter::dy);
}

Prelude gradient_prelude(const DataGradient& gradient) {
  Prelude prelude;
  prelude.type("TDY", gradient.dy.dtype).type("TW", gradient.w.dtype).type("TY", gradient.dx.dtype);
  prelude.index_type("Index", gradient.wide_index);
  add_problem(prelude, gradient, FixedAxes::nothing);
  add_strides(prelude, "DY", "NKZPQ", gradient.dy);
  add_strides(prelude, "W", "KCTRS", gradient.w);
  prelude.constant("W_STRIDE_REGION", gradient.region_stride);
  add_strides(prelude, "DX", "NCDHW", gradient.dx);
  add_strides(prelude, "RESIDUAL", "NCDHW", gradient.residual ? *gradient.residual : gradient.dx);
  add_stages(prelude, gradient.epilogue, gradient.bias, gradient.residual);
  return prelude;
}

Prelude gradient_prelude(const FilterGradient& gradient, FixedAxes fixed) {
  Prelude prelude;
  prelude.type("TX", gradient.x.dtype).type("TDY", gradient.dy.dtype).type("TDW", gradient.dw.dtype);
  prelude.index_type("Index", gradient.wide_index);
  add_problem(prelude, gradient, fixed);
  add_strides(prelude, "X", "NCDHW", gradient.x);
  add_strides(prelude, "DY", "NKZPQ", gradient.dy);
  add_strides(prelude, "DW", "KCTRS", gradient.dw);
  prelude.extent("DW_STRIDE_REGION", gradient.region_stride);
  return prelude;
}

Estimate simple_gradient_estimate(int threads, const SimpleWork& thread,
                                  std::initializer_list<const TensorSpec*> operands, const Target& target,
                                  const DeviceFigures& device) {
  const TensorSpec& result = **(operands.end() - 1);
  const double warps = threads / 32.0;
  GridWork work;
  work.blocks = std::ceil(static_cast<double>(result.elements()) / threads);
  work.block.threads = threads;
  work.block.registers = 48;
  work.block.fma = warps * thread.products;
  work.block.instructions = warps * (80 + 10 * thread.tried);
  work.block.code_instructions = 160;
  work.block.global_sectors = warps * thread.products * (thread.first.l1 + thread.second.l1);
  work.block.l2_bytes = warps * thread.products * (thread.first.sectors + thread.second.sectors) * 32 / 8;
  work.block.latency_clocks = 1500 + 90 * thread.products + 250 * thread.rows;  // a load or two in flight
  for (const TensorSpec* spec : operands) {
    work.dram_bytes += static_cast<double>(spec->elements()) * size_of(spec->dtype);
  }
  return grid_estimate(work, target.arch, device);
}

bool simple_gradient_fits(int threads, const TensorSpec& result) {
  return result.elements() / threads < (int64_t{1} << 31) - 1;
}

}  // namespace kiln::descriptor
