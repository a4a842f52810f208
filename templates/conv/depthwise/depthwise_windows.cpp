#include "conv/depthwise/depthwise_windows.h"

#include <algorithm>
#include <numeric>

#include "contraction/block_estimate.h"
#include "conv/depthwise/depthwise.h"
#include "descriptor/numbers.h"

namespace kiln::descriptor {
namespace windows_descriptor {
namespace {

constexpr int64_t run = 4;  // RUN

struct WindowTile {
  int lanes_q, lanes_p, tile_p;

  int threads() const { return lanes_q * lanes_p; }
  int64_t columns() const { return lanes_q * run; }
  int64_t rows() const { return int64_t{lanes_p} * tile_p; }
};

int64_t tap_pitch(const ConvolutionAddresses& conv) {
  return ceil_div(conv.columns.window, run) * run;
}

int64_t patch_elements(const WindowTile& tile, const ConvolutionAddresses& conv) {
  return input_positions(conv.rows, tile.rows()) * (tile.columns() + tap_pitch(conv));
}

int64_t shared_bytes(const WindowTile& tile, const ConvolutionAddresses& conv) {
  return (patch_elements(tile, conv) + conv.rows.window * tap_pitch(conv)) * 4;
}

int64_t blocks_per_image(const WindowTile& tile, const ConvolutionAddresses& conv) {
  return conv.k() * conv.planes.outputs * ceil_div(conv.rows.outputs, tile.rows()) *
         ceil_div(conv.columns.outputs, tile.columns());
}

int y_run(const ConvolutionAddresses& conv) {
  return conv.y_along_k ? 1 : output_vector_width(conv, std::gcd(conv.columns.outputs, run));
}

std::optional<std::string> refusal(const Contraction& contraction) {
  constexpr int64_t fewest_taps = 32, most_channels = 16, most_taps_of_a_row = 4096;
  const ConvolutionAddresses& conv = contraction.addresses;
  if (conv.divided != Divided::nothing) return "filters differ between regions";
  if (conv.taps() < fewest_taps) return "a window has fewer than 32 taps";
  const int64_t channels = conv.images_are_channels ? conv.n() : conv.c_per_group();
  if (channels > most_channels) return "a group has more than 16 channels of x";
  if (conv.columns.stride != 1) return "the stride keeps neighbouring outputs apart, or filters are met backwards";
  if (conv.columns.dilation != 1 && conv.columns.window != 1) return "dilation keeps the taps of a row apart";
  if (conv.columns.window > most_taps_of_a_row) return "a row has more than 4096 taps";
  return std::nullopt;
}

std::optional<std::string> refusal_of_parts(const Contractions& parts, const Target&) {
  if (auto why = refusal_of(parts, refusal)) return why;
  if (parts.list.size() > 1) return "the strides make several classes of taps";
  return std::nullopt;
}

// Blocks that are mostly empty; those of a warp are never refused.
bool tile_suits(const WindowTile& tile, const Contraction& part, const Target&) {
  const ConvolutionAddresses& conv = part.addresses;
  if (tile.threads() == 32 && tile.tile_p == 1) return true;
  return tile.columns() < 2 * conv.columns.outputs && tile.rows() < 2 * conv.rows.outputs;
}

Program program(const std::string& name, const WindowTile& tile, const Contractions& parts, const Emitter& emit) {
  const Contraction& part = parts.main();
  Launch launch = contraction_launch(name, tile.threads());
  launch.grid = {blocks_for(part, blocks_per_image(tile, part.addresses), 1), Count{1}, Count{1}};
  launch.dynamic_shared_bytes = static_cast<unsigned>(shared_bytes(tile, part.addresses));
  return program_of(parts, emit, {launch}, [&](const Contraction& contraction) {
    Prelude prelude = contraction_prelude(contraction);
    prelude.constant("LANES_Q", tile.lanes_q).constant("LANES_P", tile.lanes_p).constant("TILE_P", tile.tile_p);
    prelude.constant("THREADS", tile.threads()).constant("Y_RUN", y_run(contraction.addresses));
    return prelude;
  });
}

Estimate predict(const WindowTile& tile, const Contractions& parts, const Target& target, const DeviceFigures& device) {
  const Contraction& part = parts.main();
  const ConvolutionAddresses& conv = part.addresses;
  const double warps = tile.threads() / 32.0, outputs = static_cast<double>(tile.tile_p * run);  // of a thread
  const double planes = static_cast<double>(conv.c_per_group() * conv.planes.window);
  const double taps = static_cast<double>(conv.rows.window * conv.columns.window);
  const double steps = static_cast<double>(conv.rows.window) * static_cast<double>(ceil_div(conv.columns.window, run));
  const double staged = static_cast<double>(shared_bytes(tile, conv)) / 4;  // elements
  const int64_t element = size_of(conv.x.dtype);
  const Access x = access_at_pitch(conv.x.strides[dimension::column] * element, element);
  const Access y = access_at_pitch(conv.y.strides[dimension::column] * size_of(conv.y.dtype) * run,
                                   size_of(conv.y.dtype) * y_run(conv));

  GridWork work;
  BlockWork& block = work.block;
  work.blocks = static_cast<double>(blocks_per_image(tile, conv) * conv.n());
  block.threads = tile.threads();
  block.registers = 40 + 3 * outputs;
  block.shared_bytes = static_cast<double>(shared_bytes(tile, conv));
  block.fma = planes * warps * taps * outputs;
  block.instructions =
      block.fma +
      planes * (warps * (steps * (tile.tile_p + 2) + 40) + staged / 32 * (18 + part.prologue_instructions)) +
      warps * outputs * 8;
  block.shared_wavefronts = planes * (warps * steps * (4 * tile.tile_p + 1) + staged / 32);
  block.global_sectors = planes * staged / 32 * x.l1 + warps * outputs / y_run(conv) * y.l1;
  block.l2_bytes = planes * staged / 32 * x.sectors * 32 + warps * outputs / y_run(conv) * y.sectors * 32;
  block.stall_clocks = planes * (900 + staged / tile.threads() * 12);
  block.latency_clocks = 1200 + block.stall_clocks + planes * (taps * outputs * 2.2 + steps * 8);
  block.code_instructions = 600 + 4 * run * outputs;
  work.dram_bytes = compulsory_bytes(part);
  return grid_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace windows_descriptor

Algorithm windows_convolution(const std::string& template_path, const std::string& operation, ContractionMaker make) {
  using namespace windows_descriptor;
  const std::string name = kernel_of(template_path);
  return describe<WindowTile>(name, operation, template_path, make)
      .takes_prologue()
      .applies(refusal_of_parts)
      .param("LANES_Q", &WindowTile::lanes_q, {16, 8, 4, 32, 128})
      .param("LANES_P", &WindowTile::lanes_p, {8, 4, 16, 1, 32})
      .param("TILE_P", &WindowTile::tile_p, {4, 2, 1})
      .rule("whole warps make a block", [](const WindowTile& tile, const Contractions&,
                                           const Target&) { return tile.threads() % 32 == 0 && tile.threads() <= 256; })
      .pruning("the tile suits the outputs", for_main(tile_suits))
      .rule("the patch fits into shared memory",
            for_main([](const WindowTile& tile, const Contraction& part, const Target& target) {
              return shared_bytes(tile, part.addresses) <= target.arch.shared_per_block;
            }))
      .rule("the grid fits", for_main([](const WindowTile& tile, const Contraction& part, const Target&) {
              const int64_t n = std::max<int64_t>(part.n(), 1);
              return blocks_per_image(tile, part.addresses) <= most_blocks_in_x / n;
            }))
      .program([name](const WindowTile& tile, const Contractions& parts, const Target&, const Emitter& emit) {
        return program(name, tile, parts, emit);
      })
      .estimate(predict);
}

}  // namespace kiln::descriptor
