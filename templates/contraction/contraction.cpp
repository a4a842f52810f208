#include "contraction/contraction.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "descriptor/epilogue.h"
#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/strided.h"

namespace kiln::descriptor {
namespace {

// Constants of lib/gemm_batch.cuh.
void add_products(Prelude& prelude, const ProductBatch& batch) {
  const auto add = [&](const std::string& name, const std::array<int64_t, 3>& values) {
    for (size_t i = 0; i < values.size(); ++i) prelude.extent(name + std::to_string(i), values[i]);
  };
  prelude.flag("BATCHED", batch.products() > 1);
  add("BATCH_", batch.extents);
  add("X_BATCH_STRIDE_", batch.a);
  add("W_BATCH_STRIDE_", batch.b);
  add("Y_BATCH_STRIDE_", batch.c);
  add("RESIDUAL_BATCH_STRIDE_", batch.residual);
}

// Matrices that differ of an operand with `strides` along the dimensions of a batch.
double matrices(const std::optional<ProductBatch>& batch, std::array<int64_t, 3> ProductBatch::*strides) {
  double count = 1;
  for (size_t i = 0; batch && i < batch->extents.size(); ++i) {
    if ((*batch.*strides)[i] != 0) count *= static_cast<double>(batch->extents[i]);
  }
  return count;
}

// Regions whose elements of an operand are not those of another; where inputs are divided, y is whole.
double regions_of_w(const ConvolutionAddresses& conv) {
  return conv.divided == Divided::nothing ? 1 : static_cast<double>(conv.region_axes.count());
}
double regions_of_y(const ConvolutionAddresses& conv) {
  return conv.divided == Divided::inputs ? 1 : regions_of_w(conv);
}

// Whether parts of sums, kept in the order of c, have the rows of all n side by side.
bool parts_by_images(const Contraction& contraction) {
  const ConvolutionAddresses& addresses = contraction.addresses;
  return addresses.images_inner ||
         (contraction.rows_per_n() == 1 && !addresses.y_along_k && !contraction.dynamic_batch());
}

}  // namespace

int64_t Contraction::divisions() const {
  if (addresses.divided == Divided::nothing) return 1;
  return addresses.divided == Divided::inputs ? addresses.segments.count() : addresses.region_axes.count();
}

int64_t Contraction::division_rows() const {
  if (addresses.divided != Divided::inputs) return rows_per_n();
  int64_t most = 0;
  for (const Segments::Boxes& boxes : addresses.segments.sizes) most = std::max(most, boxes.pixels);
  return most;
}

int64_t Contraction::row_tiles(int64_t block) const {
  if (addresses.divided != Divided::inputs) return ceil_div(rows(), block) * divisions();
  int64_t tiles = 0;
  for (const auto& [pixels, number] : addresses.segments.sizes) tiles += ceil_div(n() * pixels, block) * number;
  return tiles;
}

int64_t Contraction::column_tiles(int64_t block) const {
  return groups() * ceil_div(columns(), block);
}

int64_t Contraction::chunks(int64_t block) const {
  if (a_along() == Along::depth) return depth() / period() * ceil_div(period(), block);
  return ceil_div(depth(), block);
}

int Contraction::a_run(int64_t of) const {
  if (a_along() == Along::depth) return widest_vector(addresses.x, {dimension::channel}, std::gcd(period(), of));
  if (a_is_gathered() || addresses.images_inner) return 1;
  return widest_vector(addresses.x, {dimension::column, dimension::row, dimension::plane}, of);
}

int Contraction::a_run_of_images(int64_t of) const {
  return widest_vector(addresses.x, {dimension::batch}, std::gcd(n(), of));
}

int Contraction::b_run(int64_t of) const {
  const Divided divided = addresses.divided;
  if (b_along() == Along::columns) {
    if (divided == Divided::pixels || divided == Divided::taps) return 1;  // regions begin anywhere
    return widest_vector(addresses.w, {dimension::batch}, std::gcd(columns(), of));
  }
  if (a_along() == Along::depth) return widest_vector(addresses.w, {dimension::channel}, std::gcd(period(), of));
  if (divided == Divided::inputs) return 1;  // taps are of different regions
  return widest_vector(addresses.w, {dimension::column, dimension::row, dimension::plane, dimension::channel}, of);
}

int Contraction::c_run(int64_t of) const {
  if (c_along() == Along::columns)
    return output_vector_width(addresses, std::gcd(columns() - addresses.k_filled_up, of));
  if (addresses.divided == Divided::inputs) return 1;  // segments begin anywhere
  if (!addresses.images_inner && addresses.pixels_per_image() > 1) return output_vector_width(addresses, of);
  if (addresses.dynamic_batch) return 1;  // a batch may end within a run of images
  const int64_t most = std::gcd(addresses.y.extents[dimension::batch], of);
  const int width = widest_vector(addresses.y, {dimension::batch}, most);
  return addresses.residual ? std::min(width, widest_vector(*addresses.residual, {dimension::batch}, most)) : width;
}

int64_t Contraction::a_pitch() const {
  const std::vector<int64_t>& strides = addresses.x.strides;
  if (a_along() == Along::depth) return strides[dimension::channel];
  if (addresses.images_inner) return strides[dimension::batch];
  return strides[dimension::column] * addresses.columns.stride;
}

double Contraction::a_bytes() const {
  // The x of a filter's gradient is that of one group.
  const double all_groups =
      static_cast<double>(groups() * addresses.c_per_group()) / static_cast<double>(addresses.c());
  return all_groups * bytes_of(addresses.x) * matrices(batch, &ProductBatch::a);
}

double Contraction::b_bytes() const {
  return bytes_of(addresses.w) * matrices(batch, &ProductBatch::b) * regions_of_w(addresses);
}

double Contraction::c_bytes() const {
  return bytes_of(addresses.y) * matrices(batch, &ProductBatch::c) * regions_of_y(addresses);
}

double Contraction::residual_bytes() const {
  if (!addresses.residual) return 0;
  return bytes_of(*addresses.residual) * matrices(batch, &ProductBatch::residual) * regions_of_y(addresses);
}

std::string order_on_lanes(const DepthOrder& depth) {
  const std::string_view which = depth.backwards && depth.taps > 1 ? ", the last first" : "";
  if (depth.channels == 1 || depth.taps == 1) return fmt::format("f32 lanes, one product after the other{}", which);
  if (depth.channels_inner) {
    return fmt::format("f32 lanes, {} taps after each other{}, {} channels of each", depth.taps, which, depth.channels);
  }
  return fmt::format("f32 lanes, {} channels after each other, {} taps of each{}", depth.channels, depth.taps, which);
}

std::string order_on_lanes(const Contraction& contraction) {
  const ConvolutionAddresses& conv = contraction.addresses;
  // Chunks go along the elements of a filter.
  return order_on_lanes(DepthOrder{conv.c_per_group(), conv.taps(), conv.channels_inner, conv.mirrored});
}

Prelude contraction_prelude(const Contraction& contraction, FixedAxes fixed) {
  const ConvolutionAddresses& addresses = contraction.addresses;
  Prelude prelude = addresses_prelude(addresses, fixed);
  add_blend(prelude, contraction.blend);
  add_stages(prelude, contraction.epilogue, contraction.bias, addresses.residual);
  if (addresses.divided == Divided::inputs) add_segments(prelude, addresses.segments);
  if (contraction.batch) add_products(prelude, *contraction.batch);
  return prelude;
}

void add_outputs_of_parts(Prelude& prelude, const Contraction& contraction) {
  const ConvolutionAddresses& conv = contraction.addresses;
  const int64_t n = conv.y.extents[dimension::batch], k = conv.y.extents[dimension::channel];
  const bool all = n == conv.n() && k == conv.k();
  prelude.flag("PARTS_BY_IMAGES", parts_by_images(contraction));
  prelude.constant("STORED_N", all ? 0 : n).constant("STORED_K", all ? 0 : k);
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

Count blocks_for(const Contraction& contraction, int64_t per_n, int64_t per_block) {
  return blocks_for(per_n, contraction.n(), contraction.dynamic_batch(), per_block);
}

}  // namespace kiln::descriptor
