#include "contraction/contraction.h"

#include <algorithm>
#include <array>
#include <utility>

#include "descriptor/epilogue.h"
#include "descriptor/prelude_and_launch.h"

namespace kiln::descriptor {
namespace {

// Constants of lib/gemm_batch.cuh.
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

bool is_plain(const WindowAxis& axis) {
  return axis.window == 1 && axis.stride == 1 && axis.pad_begin == 0 && axis.extent == axis.outputs;
}

std::array<RegionAxis, 3> in_order(const SpatialRegions& regions) {
  return {regions.planes, regions.rows, regions.columns};
}

}  // namespace

int64_t Contraction::divisions() const {
  if (divided == Divided::nothing) return 1;
  return divided == Divided::inputs ? segments.count() : region_axes.count();
}

int64_t Contraction::division_pixels() const {
  if (divided != Divided::inputs) return pixels_per_image();
  int64_t most = 0;
  for (const Segments::Boxes& boxes : segments.sizes) most = std::max(most, boxes.pixels);
  return most;
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

void Contraction::read_layouts() {
  const Inner x_inner = inner_of(x), y_inner = inner_of(y);
  channels_inner = x_inner == Inner::channels || (x_inner == Inner::either && c() > 1);
  y_along_k = y_inner == Inner::channels || (y_inner == Inner::either && pixels_per_image() == 1);
  pointwise = is_plain(planes) && is_plain(rows) && is_plain(columns);
  filters_inner = dimension_0_is_inner(w, dimension::channel);
}

void divide_pixels(Contraction& contraction, int64_t region_stride) {
  contraction.divided = Divided::pixels;
  contraction.w_region_stride = region_stride;
  begin_at(region_stride, contraction.w);
  WindowAxis* const axes[] = {&contraction.planes, &contraction.rows, &contraction.columns};
  for (size_t i = 0; i < 3; ++i) axes[i]->outputs = in_order(contraction.region_axes)[i].longest();
  for (TensorSpec* spec : {&contraction.y, contraction.residual ? &*contraction.residual : &contraction.y}) {
    for (size_t i = 0; i < 3; ++i) spec->extents[dimension::plane + i] = axes[i]->outputs;
  }
  contraction.read_layouts();
  // Rows of a region end anywhere.
  if (!contraction.region_axes.even() && !contraction.y_along_k) contraction.y.alignment = size_of(contraction.y.dtype);
  contraction.pointwise = false;  // whose pixels are all of x
}

void divide_taps(Contraction& contraction, const SpatialRegions& regions, int64_t region_stride) {
  contraction.region_axes = regions;
  contraction.divided = Divided::taps;
  WindowAxis* const axes[] = {&contraction.planes, &contraction.rows, &contraction.columns};
  for (size_t i = 0; i < 3; ++i) {
    axes[i]->window = in_order(regions)[i].longest();
    contraction.w.extents[dimension::plane + i] = axes[i]->window;
  }
  contraction.w.alignment = size_of(contraction.w.dtype);  // regions begin anywhere
  contraction.y_region_stride = region_stride;
  begin_at(region_stride, contraction.y);
}

void divide_inputs(Contraction& contraction, const SpatialRegions& regions, int64_t region_stride) {
  contraction.region_axes = regions;
  contraction.divided = Divided::inputs;
  contraction.segments = Segments::of(contraction, regions);
  contraction.w_region_stride = region_stride;
  begin_at(region_stride, contraction.w);
  contraction.pointwise = false;  // whose pixels are those of x in one row
}

Prelude contraction_prelude(const Contraction& contraction) {
  Prelude prelude;
  prelude.type("TX", contraction.x.dtype).type("TW", contraction.w.dtype).type("TY", contraction.y.dtype);
  prelude.index_type("Index", contraction.wide_index);
  add_batch(prelude, contraction.n(), contraction.dynamic_batch);
  prelude.constant("C", contraction.c()).constant("K", contraction.k()).constant("GROUPS", contraction.groups);
  prelude.constant("C_PER_GROUP", contraction.c_per_group()).constant("K_PER_GROUP", contraction.k_per_group());
  add_axes(prelude, contraction);
  add_regions(prelude, contraction.region_axes);
  prelude.flag("REGIONS_OF_PIXELS", contraction.divided == Divided::pixels);
  prelude.flag("REGIONS_OF_TAPS", contraction.divided == Divided::taps);
  prelude.constant("W_STRIDE_REGION", contraction.w_region_stride)
      .constant("Y_STRIDE_REGION", contraction.y_region_stride);
  add_strides(prelude, "X", "NCDHW", contraction.x);
  add_strides(prelude, "W", "KCTRS", contraction.w);
  prelude.constant("X_STRIDE_G", contraction.x_group_stride).constant("W_STRIDE_G", contraction.w_group_stride);
  add_strides(prelude, "Y", "NKZPQ", contraction.y);
  add_strides(prelude, "RESIDUAL", "NKZPQ", contraction.residual ? *contraction.residual : contraction.y);
  prelude.constant("W_FIRST", contraction.w_first).constant("Y_FIRST", contraction.y_first);
  prelude.constant("RESIDUAL_FIRST", contraction.residual_first).flag("NO_TAPS", contraction.no_taps);
  prelude.flag("CHANNELS_INNER", contraction.channels_inner).flag("Y_ALONG_K", contraction.y_along_k);
  prelude.flag("IMAGES_INNER", contraction.images_inner).flag("W_ALONG_K", contraction.filters_inner);
  prelude.flag("IMAGES_ARE_CHANNELS", contraction.images_are_channels);
  prelude.flag("MIRRORED", contraction.mirrored);
  add_blend(prelude, contraction.blend);
  add_stages(prelude, contraction.epilogue, contraction.bias, contraction.residual);
  if (contraction.divided == Divided::inputs) add_segments(prelude, contraction.segments);
  if (contraction.batch) add_products(prelude, *contraction.batch);
  return prelude;
}

Launch contraction_launch(std::string entry, int threads, std::vector<Argument> memory) {
  Launch launch = launch_of(std::move(entry), threads, std::move(memory));
  append(launch, {OperandArgument{"bias"}, OperandArgument{"residual"}, Scalar::alpha, Scalar::beta, Scalar::clip_lo,
                  Scalar::clip_hi, UserArgument{}, Scalar::n});
  return launch;
}

Launch sums_launch(std::string entry, int threads, std::vector<Argument> memory) {
  Launch launch = launch_of(std::move(entry), threads, std::move(memory));
  append(launch, {UserArgument{}, Scalar::n});
  return launch;
}

Count blocks_for(const Contraction& contraction, int64_t per_image, int64_t per_block) {
  return blocks_for(per_image, contraction.n(), contraction.dynamic_batch, per_block);
}

int output_vector_width(const Contraction& contraction, int64_t of) {
  const auto width = [&](const TensorSpec& spec) {
    if (contraction.y_along_k) return widest_vector(spec, {dimension::channel}, of);
    if (contraction.images_inner) return 1;  // neighbouring pixels are of different images
    return widest_vector(spec, {dimension::column, dimension::row, dimension::plane}, of);
  };
  return contraction.residual ? std::min(width(contraction.y), width(*contraction.residual)) : width(contraction.y);
}

}  // namespace kiln::descriptor
