#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "contraction/simt_tiling.h"
#include "conv/conv_contractions.h"
#include "conv/gradients.h"
#include "descriptor/strided.h"

namespace kiln {
namespace local_conv_backward_data_columns_descriptor {
namespace {

using namespace descriptor;  // NOLINT(google-build-using-namespace): of this library

constexpr int gather_threads = 128;
constexpr int64_t most_workspace = int64_t{1} << 30;

// Where the elements of a filter stand, those of one k: evenly spaced, in some order.
struct FilterRun {
  int64_t step = 1;                  // from one to the next in w
  std::array<int64_t, 5> strides{};  // of each dimension of w but the first, counted in elements of the run
};

// Nothing if they are not evenly spaced. `w` has three spatial dimensions.
std::optional<FilterRun> run_of(const TensorSpec& w) {
  std::vector<size_t> order;
  for (size_t i = 1; i < 5; ++i) {
    if (w.extents[i] > 1) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return w.strides[a] < w.strides[b]; });
  FilterRun run;
  if (!order.empty()) run.step = w.strides[order.front()];
  int64_t next = 1;
  for (const size_t i : order) {
    if (w.strides[i] != next * run.step) return std::nullopt;
    run.strides.at(i) = next;
    next *= w.extents[i];
  }
  return run;
}

// The convolution that makes the columns: with one tap, of dy, with an output channel for each element of a filter.
Contraction columns_of(const DataGradient& gradient, const FilterRun& run) {
  Contraction contraction = without_operands(gradient);
  ConvolutionAddresses& conv = contraction.addresses;
  conv.mirrored = false;
  conv.x = gradient.dy;
  conv.w = gradient.w;
  const int64_t columns = gradient.groups * gradient.c_per_group() * gradient.taps();
  conv.w.extents = {columns, gradient.k_per_group(), 1, 1, 1};
  conv.w.strides = {run.step, gradient.w.strides[0], 0, 0, 0};
  conv.y.dtype = DType::f32;
  const std::vector<int64_t>& outputs = gradient.dy.extents;
  conv.y.extents = {outputs[0], columns, outputs[2], outputs[3], outputs[4]};
  const int64_t row = columns * outputs[4];
  conv.y.strides = {row * outputs[3] * outputs[2], 1, row * outputs[3], row, columns};
  for (WindowAxis SpatialAxes::*axis : {&SpatialAxes::planes, &SpatialAxes::rows, &SpatialAxes::columns}) {
    (conv.*axis).extent = (conv.*axis).outputs = (gradient.*axis).outputs;
  }
  conv.x_group_stride = gradient.k_per_group() * conv.x.strides[dimension::channel];
  conv.w_group_stride = gradient.k_per_group() * gradient.w.strides[0];
  if (conv.groups > 1) begin_at(conv.w_group_stride, conv.w);
  conv.region_axes = gradient.region_axes;
  conv.wide_index = gradient.wide_index || needs_wide_index({&conv.y});
  divide_pixels(conv, gradient.region_stride);
  return contraction;
}

// A request, and the one contraction that makes its columns.
struct Columns {
  static Columns of(const Request& request);

  const Contraction& main() const { return product.main(); }
  int64_t bytes_of() const { return gradient.dy.elements() / gradient.k() * main().addresses.k() * 4; }

  DataGradient gradient;
  FilterRun run;
  Contractions product;
};

const Contractions& contractions_of(const Columns& columns) {
  return columns.product;
}

Columns Columns::of(const Request& request) {
  Columns columns;
  columns.gradient = DataGradient::of(request);
  const std::optional<FilterRun> run = run_of(columns.gradient.w);
  if (run) columns.run = *run;
  Contractions product{{"dy", "w", {}}, {columns_of(columns.gradient, columns.run)}};
  if (!run) product.refusal = "the elements of a filter are not evenly spaced in w";
  columns.product = finished(std::move(product), request);
  return columns;
}

void add_axis(Prelude& prelude, const WindowAxis& axis, const std::string& extent, const std::string& window,
              const std::string& pad) {
  prelude.constant("DX_" + extent, axis.extent).constant("WINDOW_" + window, axis.window);
  prelude.constant("DX_PAD_" + pad, axis.pad_begin).constant("DX_STEP_" + extent, axis.stride);
  prelude.constant("DX_DILATION_" + extent, axis.dilation);
}

// The constants of `columns`, the problem of the first kernel, with what the second stores and how it finishes that.
Prelude columns_prelude(Contraction columns, const DataGradient& gradient) {
  columns.addresses.y.dtype = gradient.dx.dtype;
  columns.addresses.residual = gradient.residual;
  columns.bias = gradient.bias;
  columns.epilogue = gradient.epilogue;
  return contraction_prelude(columns);
}

// Adds the further constants of the second kernel.
void add_gather(Prelude& prelude, const Columns& columns) {
  const DataGradient& gradient = columns.gradient;
  prelude.constant("DX_C", gradient.c()).constant("DX_C_PER_GROUP", gradient.c_per_group());
  add_axis(prelude, gradient.planes, "D", "T", "FRONT");
  add_axis(prelude, gradient.rows, "H", "R", "TOP");
  add_axis(prelude, gradient.columns, "W", "S", "LEFT");
  add_strides(prelude, "DX", "NCDHW", gradient.dx);
  prelude.constant("COLUMN_STRIDE_C", columns.run.strides[1]).constant("COLUMN_STRIDE_T", columns.run.strides[2]);
  prelude.constant("COLUMN_STRIDE_R", columns.run.strides[3]).constant("COLUMN_STRIDE_S", columns.run.strides[4]);
  prelude.flag("DX_MIRRORED", gradient.mirrored);
  prelude.flag("DX_ALONG_C", inner_of(gradient.dx) == Inner::channels);
  prelude.constant("GATHER_THREADS", gather_threads);
}

Program program(const SimtTiling& tiling, const Columns& columns, const Target& target, const Emitter& emit) {
  const Contraction& product = columns.main();
  const DataGradient& gradient = columns.gradient;
  Prelude prelude = columns_prelude(product, gradient);
  add_simt_tiling(prelude, tiling, product, min_blocks(tiling, product, target.arch));
  add_gather(prelude, columns);

  const WorkspaceArgument workspace{0, columns.bytes_of()};
  Launch multiply = sums_launch("local_conv_backward_data_columns", tiling.threads(),
                                {OperandArgument{"dy"}, OperandArgument{"w"}, workspace});
  multiply.grid = tile_grid(tiling.block_m, tiling.block_n, columns.product);
  multiply.dynamic_shared_bytes = shared_bytes(tiling, columns.product);

  Launch gather =
      contraction_launch("local_conv_backward_data_columns_gather", gather_threads, {workspace, OperandArgument{"dx"}});
  gather.grid[0] = blocks_for(
      product, gradient.c() * gradient.planes.extent * gradient.rows.extent * gradient.columns.extent, gather_threads);

  return Program{{emit.source(prelude)}, {multiply, gather}};
}

// Seconds of the second launch, beside the time of its loads from L2: a thread waits for one row of taps after the
// other, and computes where each tap stands.
double gather_seconds(const DataGradient& gradient, const DeviceFigures& device) {
  constexpr double load_clocks = 600, issue_per_clock = 4;
  const auto rows = static_cast<double>(gradient.planes.window * gradient.rows.window);
  const double instructions = 60 + 12 * rows * static_cast<double>(gradient.columns.window);
  const double warps = static_cast<double>(gradient.dx.elements()) / 32;
  const double issue = warps * instructions / (issue_per_clock * std::max(device.sms, 1));
  return std::max(rows * load_clocks, issue) / device.clock_hz;
}

Estimate predict(const SimtTiling& tiling, const Columns& columns, const Target& target, const DeviceFigures& device) {
  const Contraction& product = columns.main();
  GridWork work;
  work.block = simt_block_work(tiling, product, target.arch, static_cast<double>(product.chunks(tiling.block_k)));
  work.blocks = static_cast<double>(tiles_of(tiling.block_m, tiling.block_n, product));
  work.dram_bytes = bytes_of(columns.gradient.dy) + bytes_of(columns.gradient.w);
  // Columns for neighbouring taps are read by different threads, so that most sectors are read more than once.
  constexpr double reads = 3;
  const auto workspace = static_cast<double>(columns.bytes_of());
  work.extra_dram_bytes = workspace * (1 + reads) * workspace_share(workspace, device) + bytes_of(columns.gradient.dx);
  work.launches = 2;
  Estimate estimate = grid_estimate(work, target.arch, device);
  const double gather = gather_seconds(columns.gradient, device);
  estimate.overhead += gather;
  estimate.seconds += gather;
  return estimate;
}

}  // namespace
}  // namespace local_conv_backward_data_columns_descriptor

Algorithm local_conv_backward_data_columns() {
  using namespace local_conv_backward_data_columns_descriptor;
  return add_simt_space(describe<SimtTiling, Columns>("local_conv_backward_data_columns", "local_conv_backward_data",
                                                      "conv/local/local_conv_backward_data_columns.cu")
                            .applies([](const Columns& columns, const Target&) {
                              return refusal_of(columns.product, no_refusal);
                            }))
      .takes_prologue()
      .rule("the columns fit into a gigabyte", [](const SimtTiling&, const Columns& columns,
                                                  const Target&) { return columns.bytes_of() <= most_workspace; })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
