#include "contraction/simt_product.h"

namespace kiln::descriptor {

Algorithm tiled_contraction(const std::string& template_path, const std::string& operation, ContractionMaker make,
                            ContractionRefusal refusal) {
  const std::string name = kernel_of(template_path);
  const auto program = [name](const SimtTiling& tiling, const Contractions& parts, const Target& target,
                              const Emitter& emit) {
    Launch launch = contraction_launch(name, tiling.threads());
    launch.grid = tile_grid(tiling.block_m, tiling.block_n, parts);
    launch.dynamic_shared_bytes = shared_bytes(tiling, parts);
    return program_of(parts, emit, {launch}, [&](const Contraction& contraction) {
      Prelude prelude = contraction_prelude(contraction);
      add_simt_tiling(prelude, tiling, contraction, min_blocks(tiling, parts, target.arch));
      return prelude;
    });
  };
  const auto predict = [](const SimtTiling& tiling, const Contractions& parts, const Target& target,
                          const DeviceFigures& device) {
    const GridWork work = work_of_parts(parts, [&](const Contraction& contraction) {
      GridWork part;
      part.block =
          simt_block_work(tiling, contraction, target.arch, static_cast<double>(contraction.chunks(tiling.block_k)));
      part.blocks = static_cast<double>(tiles_of(tiling.block_m, tiling.block_n, contraction));
      part.dram_bytes = compulsory_bytes(contraction) + reread_bytes(contraction, device);
      return part;
    });
    return grid_estimate(work, target.arch, device);
  };
  return add_simt_space(
             describe<SimtTiling>(name, operation, template_path, make)
                 .applies([refusal](const Contractions& parts, const Target&) { return refusal_of(parts, refusal); }))
      .takes_prologue(Prologues::any, true)
      .opens(for_main([](const SimtTiling& tiling, const Contraction& contraction, const Target&) {
        return is_open_tiling(tiling, contraction);
      }))
      .adds([](const SimtTiling& tiling, const Contractions& parts, const Target&) {
        return tiling.slices > 1 ? std::nullopt : std::optional(order_on_lanes(parts.main()));  // slices: for few tiles
      })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln::descriptor
