#include "conv/conv_problem.h"

#include <algorithm>
#include <array>
#include <utility>

#include "descriptor/parts.h"

namespace kiln::descriptor {
namespace {

// The codes of lib/epilogue.cuh.
int64_t stage_code(EpilogueStage stage) {
  switch (stage) {
    case EpilogueStage::bias:
      return 1;
    case EpilogueStage::add:
      return 2;
    case EpilogueStage::relu:
      return 3;
    case EpilogueStage::clip:
      return 4;
  }
  return 0;
}

// What lib/gemm_batch.cuh reads.
void add_products(Prelude& prelude, const ProductBatch& batch) {
  const auto add = [&](const std::string& name, const std::array<int64_t, 3>& values) {
    for (size_t i = 0; i < values.size(); ++i) prelude.constant(name + std::to_string(i), values[i]);
  };
  add("BATCH_", batch.extents);
  add("X_BATCH_STRIDE_", batch.x);
  add("W_BATCH_STRIDE_", batch.w);
  add("Y_BATCH_STRIDE_", batch.y);
  add("RESIDUAL_BATCH_STRIDE_", batch.residual);
}

std::array<RegionAxis*, 3> axes_of(SpatialRegions& regions) {
  return {&regions.columns, &regions.rows, &regions.planes};
}

bool needs_64_bits(const ConvProblem& conv) {
  return needs_wide_index({&conv.x, &conv.w, &conv.y}) || (conv.residual && needs_wide_index({&*conv.residual})) ||
         !coordinates_fit_int(conv);
}

// Of the segments along one axis of y, and the end.
std::vector<int64_t> first_pixels(const WindowAxis& axis, const RegionAxis& regions) {
  std::vector<int64_t> firsts{0, axis.outputs};
  for (int64_t region = 0; region <= regions.regions; ++region) {
    for (int64_t tap = 0; tap < axis.window; ++tap) {
      // The first pixel whose tap is in the region, or beyond the last.
      const int64_t first = regions.first(region) + axis.pad_begin - tap * axis.dilation;
      if (first > 0 && first < axis.outputs) firsts.push_back(first);
    }
  }
  std::sort(firsts.begin(), firsts.end());
  firsts.erase(std::unique(firsts.begin(), firsts.end()), firsts.end());
  return firsts;
}

// Multiplies each of `boxes` by each extent that segments along another axis have.
std::vector<Segments::Boxes> extended(const std::vector<Segments::Boxes>& boxes, const std::vector<int64_t>& firsts) {
  std::vector<int64_t> extents;
  for (size_t i = 0; i + 1 < firsts.size(); ++i) extents.push_back(firsts[i + 1] - firsts[i]);
  std::sort(extents.begin(), extents.end());
  std::vector<Segments::Boxes> result;
  for (auto first = extents.begin(); first != extents.end();) {
    const auto end = std::upper_bound(first, extents.end(), *first);
    for (const auto& [pixels, number] : boxes) result.push_back({pixels * *first, number * (end - first)});
    first = end;
  }
  return result;
}

void add_segments(Prelude& prelude, const Segments& segments) {
  const std::array names{"Z", "P", "Q"};
  for (size_t i = 0; i < names.size(); ++i) {
    prelude.constant(std::string("SEGMENTS_") + names[i], segments.along(i));
    prelude.table(std::string("SEGMENT_") + names[i], segments.firsts[i]);
  }
}

bool is_plain(const WindowAxis& axis) {
  return axis.window == 1 && axis.stride == 1 && axis.pad_begin == 0 && axis.extent == axis.outputs;
}

}  // namespace

SpatialRegions SpatialRegions::of(const RegionGrid& grid, int axes) {
  SpatialRegions regions;
  for (int i = 0; i < axes; ++i) *axes_of(regions)[static_cast<size_t>(i)] = grid.axis(axes - 1 - i);
  return regions;
}

Segments Segments::of(const SpatialAxes& axes, const SpatialRegions& regions) {
  Segments segments;
  const std::array of_axes{axes.planes, axes.rows, axes.columns};
  const std::array of_regions{regions.planes, regions.rows, regions.columns};
  for (size_t i = 0; i < of_axes.size(); ++i) segments.firsts[i] = first_pixels(of_axes[i], of_regions[i]);
  segments.sizes = {{1, 1}};
  for (const std::vector<int64_t>& firsts : segments.firsts) segments.sizes = extended(segments.sizes, firsts);
  return segments;
}

int64_t ConvProblem::divisions() const {
  if (divided == Divided::nothing) return 1;
  return divided == Divided::inputs ? segments.count() : region_axes.count();
}

int64_t ConvProblem::division_pixels() const {
  if (divided != Divided::inputs) return pixels_per_image();
  int64_t most = 0;
  for (const Segments::Boxes& boxes : segments.sizes) most = std::max(most, boxes.pixels);
  return most;
}

void add_regions(Prelude& prelude, const SpatialRegions& regions) {
  prelude.constant("GRID_Z", regions.planes.regions).constant("OUTPUTS_Z", regions.planes.outputs);
  prelude.constant("GRID_P", regions.rows.regions).constant("OUTPUTS_P", regions.rows.outputs);
  prelude.constant("GRID_Q", regions.columns.regions).constant("OUTPUTS_Q", regions.columns.outputs);
}

void add_stages(Prelude& prelude, const std::vector<EpilogueStage>& stages, const std::optional<TensorSpec>& bias,
                const std::optional<TensorSpec>& residual) {
  std::vector<int64_t> codes;
  for (const EpilogueStage stage : stages) codes.push_back(stage_code(stage));
  prelude.constant("EPILOGUE_STAGES", static_cast<int64_t>(codes.size()));
  if (codes.empty()) codes.push_back(0);
  prelude.array("EPILOGUE", codes);
  prelude.type("TBias", bias ? bias->dtype : DType::f32);
  prelude.type("TResidual", residual ? residual->dtype : DType::f32);
  prelude.constant("BIAS_STRIDE", bias ? bias->strides.front() : 1);
}

bool dimension_0_is_inner(const TensorSpec& spec, size_t first_other) {
  if (spec.extents[0] <= 1) return false;
  bool others = false;
  for (size_t i = first_other; i < spec.extents.size(); ++i) {
    if (spec.extents[i] <= 1) continue;
    if (spec.strides[i] <= spec.strides[0]) return false;
    others = true;
  }
  return others;
}

ConvProblem ConvProblem::of(const Request& request) {
  ConvProblem problem;
  static_cast<ConvForward&>(problem) = ConvForward::of(request);
  static_cast<SpatialAxes&>(problem) = axes_of(static_cast<const ConvForward&>(problem));
  problem.region_axes = SpatialRegions::of(problem.regions(), problem.axes());
  problem.wide_index = needs_64_bits(problem);
  if (!problem.grid.empty()) problem.w_region_stride = region_stride(problem.w, problem.axes(), problem.k());
  problem.w = without_regions(problem.w, problem.axes());
  for (TensorSpec* spec : {&problem.x, &problem.w, &problem.y}) *spec = with_three_axes(*spec);
  if (problem.residual) problem.residual = with_three_axes(*problem.residual);
  problem.x_group_stride = problem.c_per_group() * problem.x.strides[dimension::channel];
  problem.w_group_stride = problem.k_per_group() * problem.w.strides[0];
  problem.read_layouts();
  return problem;
}

void ConvProblem::read_layouts() {
  const Inner x_inner = inner_of(x), y_inner = inner_of(y);
  channels_inner = x_inner == Inner::channels || (x_inner == Inner::either && c() > 1);
  y_along_k = y_inner == Inner::channels || (y_inner == Inner::either && pixels_per_image() == 1);
  pointwise = is_plain(planes) && is_plain(rows) && is_plain(columns);
  filters_inner = dimension_0_is_inner(w, dimension::channel);
}

Prelude conv_prelude(const ConvProblem& conv) {
  Prelude prelude;
  prelude.type("TX", conv.x.dtype).type("TW", conv.w.dtype).type("TY", conv.y.dtype);
  prelude.index_type("Index", conv.wide_index);
  add_batch(prelude, conv.n(), conv.dynamic_batch);
  prelude.constant("C", conv.c()).constant("K", conv.k()).constant("GROUPS", conv.groups);
  prelude.constant("C_PER_GROUP", conv.c_per_group()).constant("K_PER_GROUP", conv.k_per_group());
  add_axes(prelude, conv);
  add_regions(prelude, conv.region_axes);
  prelude.flag("REGIONS_OF_PIXELS", conv.divided == Divided::pixels);
  prelude.flag("REGIONS_OF_TAPS", conv.divided == Divided::taps);
  prelude.constant("W_STRIDE_REGION", conv.w_region_stride).constant("Y_STRIDE_REGION", conv.y_region_stride);
  add_strides(prelude, "X", "NCDHW", conv.x);
  add_strides(prelude, "W", "KCTRS", conv.w);
  prelude.constant("X_STRIDE_G", conv.x_group_stride).constant("W_STRIDE_G", conv.w_group_stride);
  add_strides(prelude, "Y", "NKZPQ", conv.y);
  add_strides(prelude, "RESIDUAL", "NKZPQ", conv.residual ? *conv.residual : conv.y);
  prelude.constant("W_FIRST", conv.w_first).constant("Y_FIRST", conv.y_first);
  prelude.constant("RESIDUAL_FIRST", conv.residual_first).flag("NO_TAPS", conv.no_taps);
  prelude.flag("CHANNELS_INNER", conv.channels_inner).flag("Y_ALONG_K", conv.y_along_k);
  prelude.flag("IMAGES_INNER", conv.images_inner).flag("W_ALONG_K", conv.filters_inner);
  prelude.flag("IMAGES_ARE_CHANNELS", conv.images_are_channels);
  prelude.flag("MIRRORED", conv.mirrored);
  add_blend(prelude, conv.blend);
  add_stages(prelude, conv.epilogue, conv.bias, conv.residual);
  if (conv.divided == Divided::inputs) add_segments(prelude, conv.segments);
  if (conv.batch) add_products(prelude, *conv.batch);
  return prelude;
}

Launch conv_launch(std::string entry, int threads) {
  Launch launch;
  launch.entry = std::move(entry);
  launch.block[0] = static_cast<unsigned>(threads);
  launch.arguments = {OperandArgument{"x"},
                      OperandArgument{"w"},
                      OperandArgument{"y"},
                      OperandArgument{"bias"},
                      OperandArgument{"residual"},
                      Scalar::alpha,
                      Scalar::beta,
                      Scalar::clip_lo,
                      Scalar::clip_hi,
                      UserArgument{},
                      Scalar::n};
  return launch;
}

Count blocks_for(const ConvProblem& conv, int64_t per_image, int64_t per_block) {
  return blocks_for(per_image, conv.n(), conv.dynamic_batch, per_block);
}

int output_vector_width(const ConvProblem& conv, int64_t of) {
  const auto width = [&](const TensorSpec& spec) {
    if (conv.y_along_k) return widest_vector(spec, {dimension::channel}, of);
    if (conv.images_inner) return 1;  // neighbouring pixels are of different images
    return widest_vector(spec, {dimension::column, dimension::row, dimension::plane}, of);
  };
  return conv.residual ? std::min(width(conv.y), width(*conv.residual)) : width(conv.y);
}

}  // namespace kiln::descriptor
