#include "conv/winograd/winograd.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "kiln/generator/operations/winograd.h"

namespace kiln::descriptor {
namespace {

constexpr int filter_threads = 128;

// `images` x `channels` x `slots` in the workspace. Where the channels stand side by side, so do those of all
// positions.
TensorSpec workspace_tensor(int64_t images, int64_t channels, int64_t slots, bool along_channels) {
  TensorSpec spec{.dtype = DType::f32, .extents = {images, channels, 1, 1, slots}, .strides = {}};
  if (along_channels) {
    spec.strides = {slots * channels, 1, 0, 0, channels};
  } else {
    spec.strides = {slots, images * slots, 0, 0, 1};
  }
  return spec;
}

// The products of all positions.
Contraction products_of(const Winograd& winograd) {
  const ConvolutionAddresses& conv = winograd.conv();
  const int64_t positions = winograd.positions();
  const int64_t c = conv.c_per_group() * conv.groups;
  // Slots of tiles: a fixed batch is one run of them. Accesses along them move up to four.
  const bool one_run = !conv.dynamic_batch && conv.n() > 0;
  const int64_t images = one_run ? 1 : conv.n();
  int64_t slots = winograd.tiles_per_image() * (one_run ? conv.n() : 1);
  if (!conv.channels_inner || !conv.y_along_k) slots = ceil_div(slots, 4) * 4;

  Contraction contraction;
  ConvolutionAddresses& products = contraction.addresses;
  products.groups = positions * conv.groups;
  products.dynamic_batch = conv.dynamic_batch;
  products.x = workspace_tensor(images, positions * c, slots, conv.channels_inner);
  products.y = workspace_tensor(images, positions * conv.k(), slots, conv.y_along_k);
  products.w = {.dtype = DType::f32,
                .extents = {positions * conv.k(), conv.c_per_group(), 1, 1, 1},
                .strides = {conv.c_per_group(), 1, 0, 0, 0}};
  products.x_group_stride = conv.c_per_group() * products.x.strides[dimension::channel];
  products.w_group_stride = conv.k_per_group() * conv.c_per_group();
  products.columns.extent = products.columns.outputs = slots;
  products.wide_index = needs_wide_index({&products.x, &products.w, &products.y});
  products.read_layouts();
  return contraction;
}

// Neighbouring outputs of a tile's row that one store may move.
int row_run(const Winograd& winograd) {
  const ConvolutionAddresses& conv = winograd.conv();
  if (conv.y_along_k) return 1;
  const int64_t of = std::gcd(conv.columns.outputs, int64_t{winograd.tile});
  const int run = widest_vector(conv.y, {dimension::column}, of);
  return conv.residual ? std::min(run, widest_vector(*conv.residual, {dimension::column}, of)) : run;
}

}  // namespace

Winograd Winograd::of(const Request& request, ContractionMaker make, int tile) {
  Winograd result;
  result.tile = tile;
  result.prepared = request.constant_weights;
  result.refusal = winograd_refusal(request);
  if (!result.refusal) {
    Contractions parts = make(request);
    result.refusal = parts.refusal;
    if (!parts.refusal) {
      result.operands = parts.operands;
      result.contraction = std::move(parts.list.front());
      result.products = {{"a", "b", "c"}, {products_of(result)}};
    }
  }
  result.products.refusal = result.refusal;
  return result;
}

int64_t Winograd::tiles_per_image() const {
  return conv().planes.outputs * ceil_div(conv().rows.outputs, tile) * ceil_div(conv().columns.outputs, tile);
}

Prelude winograd_prelude(const Winograd& winograd, const FilterBlock& filters, bool wide_index) {
  Contraction contraction = winograd.contraction;
  contraction.addresses.wide_index = contraction.wide_index() || wide_index;
  Prelude prelude = contraction_prelude(contraction);
  prelude.constant("TILE", winograd.tile).constant("Y_RUN", row_run(winograd));
  prelude.constant("FILTER_C", filters.c).constant("FILTER_K", filters.k).flag("FILTER_C_INNER", filters.c_inner);
  prelude.constant("FILTER_THREADS", filter_threads);
  return prelude;
}

Launch filters_launch(std::string entry, const Winograd& winograd, const FilterBlock& filters) {
  Launch launch;
  launch.entry = std::move(entry);
  launch.grid[0] = Count{ceil_div(winograd.conv().groups * filters.c * filters.k, filter_threads)};
  launch.block[0] = filter_threads;
  launch.arguments = {OperandArgument{"b"}, WorkspaceArgument{0, filters.bytes(winograd)}};
  return launch;
}

}  // namespace kiln::descriptor
