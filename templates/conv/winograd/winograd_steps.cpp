#include "conv/winograd/winograd_steps.h"

#include <utility>

#include "contraction/simt_tiling.h"
#include "conv/winograd/winograd.h"
#include "descriptor/numbers.h"

namespace kiln::descriptor {
namespace winograd_convolution_descriptor {
namespace {

constexpr const char* product_template = "conv/implicit_gemm/conv_1x1.cu";
constexpr int64_t most_workspace = int64_t{1} << 31;  // bytes
constexpr int transform_threads = 128;

int64_t bytes_of(const TensorSpec& spec) {
  return spec.elements() * size_of(spec.dtype);
}

FilterBlock filter_block(const Winograd& winograd) {
  return {winograd.conv().c_per_group(), winograd.conv().k_per_group(), true};
}

// Ranges of the workspace, one behind the other.
struct Workspace {
  WorkspaceArgument filters, inputs, products;

  int64_t bytes() const { return products.offset + products.bytes; }
};

Workspace workspace_of(const Winograd& winograd) {
  const ConvolutionAddresses& products = winograd.products.main().addresses;
  Workspace workspace;
  workspace.filters = {0, filter_block(winograd).bytes(winograd)};
  workspace.inputs = {aligned_bytes(workspace.filters.bytes), bytes_of(products.x)};
  workspace.products = {workspace.inputs.offset + aligned_bytes(workspace.inputs.bytes), bytes_of(products.y)};
  return workspace;
}

std::optional<std::string> refusal(const Winograd& winograd, const Target&) {
  if (winograd.refusal) return winograd.refusal;
  if (workspace_of(winograd).bytes() > most_workspace) return "the transformed operands need more than 2 GiB";
  return std::nullopt;
}

Prelude transforms_prelude(const Winograd& winograd) {
  const ConvolutionAddresses& products = winograd.products.main().addresses;
  Prelude prelude = winograd_prelude(winograd, filter_block(winograd), products.wide_index);
  prelude.constant("THREADS", transform_threads).constant("SLOTS", products.columns.outputs);
  const auto add = [&](const char* of, const char* channels, const TensorSpec& spec) {
    prelude.constant(std::string(of) + "_STRIDE_N", spec.strides[dimension::batch]);
    prelude.constant(std::string(of) + "_STRIDE_" + channels, spec.strides[dimension::channel]);
    prelude.constant(std::string(of) + "_STRIDE_TILE", spec.strides[dimension::column]);
  };
  add("V", "C", products.x);
  add("M", "K", products.y);
  prelude.flag("V_ALONG_C", winograd.conv().channels_inner).flag("M_ALONG_K", winograd.conv().y_along_k);
  return prelude;
}

// Blocks for an item for each slot and channel.
Count transform_blocks(const Winograd& winograd, int64_t channels) {
  const Contraction& products = winograd.products.main();
  return blocks_for(products, products.rows_per_n() * channels, transform_threads);
}

Launch inputs_launch(const std::string& name, const Winograd& winograd, const Workspace& workspace) {
  Launch launch = sums_launch(name + "_inputs", transform_threads, {OperandArgument{"a"}, workspace.inputs});
  launch.grid[0] = transform_blocks(winograd, winograd.conv().c_per_group() * winograd.conv().groups);
  return launch;
}

Launch outputs_launch(const std::string& name, const Winograd& winograd, const Workspace& workspace) {
  Launch launch = contraction_launch(name + "_outputs", transform_threads, {workspace.products, OperandArgument{"c"}});
  launch.grid[0] = transform_blocks(winograd, winograd.conv().k());
  return launch;
}

Launch product_launch(const SimtTiling& tiling, const Winograd& winograd, const Workspace& workspace) {
  const Contraction& products = winograd.products.main();
  Launch launch =
      contraction_launch("conv_1x1", tiling.threads(), {workspace.inputs, workspace.filters, workspace.products});
  launch.source = 1;
  launch.grid[0] = blocks_for(products, products.rows_per_n(), tiling.block_m);
  launch.grid[1] = Count{products.column_tiles(tiling.block_n)};
  launch.dynamic_shared_bytes = shared_bytes(tiling, winograd.products);
  return launch;
}

Program program(const std::string& name, const SimtTiling& tiling, const Winograd& winograd, const Target& target,
                const Emitter& emit) {
  const Workspace workspace = workspace_of(winograd);
  Prelude prelude = contraction_prelude(winograd.products.main());
  add_simt_tiling(prelude, tiling, winograd.products.main(), min_blocks(tiling, winograd.products.main(), target.arch));
  Program own;
  own.sources = {emit.source(transforms_prelude(winograd)), emit.plain_source(product_template, std::move(prelude))};
  own.steps = {filters_launch(name + "_filters", winograd, filter_block(winograd)),
               inputs_launch(name, winograd, workspace), product_launch(tiling, winograd, workspace),
               outputs_launch(name, winograd, workspace)};
  own.preparation = {.steps = 1, .bytes = workspace.inputs.offset};
  return with_names(winograd.operands, std::move(own));
}

Estimate predict(const SimtTiling& tiling, const Winograd& winograd, const Target& target,
                 const DeviceFigures& device) {
  const Contraction& products = winograd.products.main();
  const Workspace workspace = workspace_of(winograd);
  const auto read = static_cast<double>(workspace.bytes());
  const double written = read - (winograd.prepared ? static_cast<double>(workspace.inputs.offset) : 0);
  const double share = workspace_share(read, device);
  GridWork work;
  work.block = simt_block_work(tiling, products, target.arch, static_cast<double>(products.chunks(tiling.block_k)));
  work.blocks = static_cast<double>(tiles_of(tiling.block_m, tiling.block_n, products));
  work.dram_bytes = read * share;
  work.extra_dram_bytes = compulsory_bytes(winograd.contraction) + written * share;
  work.launches = winograd.prepared ? 3 : 4;
  return grid_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace winograd_convolution_descriptor

Algorithm winograd_convolution(const std::string& template_path, const std::string& operation, int tile,
                               ContractionMaker make) {
  using namespace winograd_convolution_descriptor;
  const std::string name = kernel_of(template_path);
  const auto problem = [make, tile](const Request& request) { return Winograd::of(request, make, tile); };
  return add_simt_space(describe<SimtTiling>(name, operation, template_path, problem).applies(refusal))
      .takes_prologue()
      .with_kernels_of(product_template)
      .program([name](const SimtTiling& tiling, const Winograd& winograd, const Target& target, const Emitter& emit) {
        return program(name, tiling, winograd, target, emit);
      })
      .estimate(predict);
}

}  // namespace kiln::descriptor
