#include "contraction/tensor_product.h"

#include <utility>

#include "contraction/split_product.h"
#include "contraction/tensor_estimate.h"

namespace kiln::descriptor {
namespace {

struct TensorKind {
  using Tiling = TensorTiling;

  Bring bring;

  int c_run(const TensorTiling&, const Contraction& contraction) const {
    return tensor_access(contraction, bring).c_run;
  }
  unsigned shared_bytes(const TensorTiling& tiling, const Contractions& parts) const {
    return static_cast<unsigned>(tiling.shared_bytes(tensor_element_bytes(parts.main())));
  }
  void add_constants(Prelude& prelude, const TensorTiling& tiling, const Contraction& contraction,
                     const Contractions& parts, const Arch& arch) const {
    add_tensor_tiling(prelude, tiling, contraction, bring, tensor_min_blocks(tiling, parts, bring, arch));
  }
  BlockWork block_work(const TensorTiling& tiling, const Contraction& contraction, const Arch& arch,
                       const DeviceFigures& device, double chunks, double blocks) const {
    return tensor_block_work(tiling, contraction, bring, arch, device, chunks, blocks, Results::parts);
  }
  Estimate estimate(const GridWork& work, const Arch& arch, const DeviceFigures& device) const {
    return tensor_estimate(work, arch, device);
  }
  DeviceFigures figures(const DeviceFigures& device, const Arch& arch) const { return with_rate_of_l2(device, arch); }
};

auto applies_if_brought(Bring bring, ContractionRefusal refusal) {
  return [bring, refusal](const Contractions& parts, const Target& target) {
    return tensor_refusal(parts, bring, target, refusal);
  };
}

}  // namespace

Algorithm tensor_contraction(const std::string& template_path, const std::string& operation, ContractionMaker make,
                             Bring bring, ContractionRefusal refusal) {
  const std::string name = kernel_of(template_path);
  const auto program = [name, bring](const TensorTiling& tiling, const Contractions& parts, const Target& target,
                                     const Emitter& emit) {
    Launch launch = contraction_launch(name, tiling.threads());
    launch.grid = tile_grid(tiling.block_m, tiling.block_n, parts);
    launch.dynamic_shared_bytes = static_cast<unsigned>(tiling.shared_bytes(tensor_element_bytes(parts.main())));
    const int blocks = tensor_min_blocks(tiling, parts, bring, target.arch);
    return program_of(parts, emit, {launch}, [&](const Contraction& contraction) {
      Prelude prelude = contraction_prelude(contraction);
      add_tensor_tiling(prelude, tiling, contraction, bring, blocks);
      return prelude;
    });
  };
  const auto predict = [bring](const TensorTiling& tiling, const Contractions& parts, const Target& target,
                               const DeviceFigures& device) {
    const GridWork work = work_of_parts(parts, [&](const Contraction& contraction) {
      GridWork part;
      part.blocks = static_cast<double>(tiles_of(tiling.block_m, tiling.block_n, contraction));
      part.block =
          tensor_block_work(tiling, contraction, bring, target.arch, device,
                            static_cast<double>(contraction.chunks(tiling.block_k)), part.blocks, Results::finished);
      part.dram_bytes = compulsory_bytes(contraction);
      return part;
    });
    return tensor_estimate(work, target.arch, device);
  };
  return add_tensor_space(
             describe<TensorTiling>(name, operation, template_path, make).applies(applies_if_brought(bring, refusal)),
             bring)
      .program(program)
      .estimate(predict);
}

Algorithm split_tensor_contraction(const std::string& template_path, const std::string& operation,
                                   ContractionMaker make, Bring bring, std::vector<int64_t> splits,
                                   ContractionRefusal refusal) {
  const std::string name = kernel_of(template_path);
  return split_product(add_tensor_space(describe<SplitTiling<TensorTiling>>(name, operation, template_path, make)
                                            .applies(applies_if_brought(bring, refusal)),
                                        bring),
                       name, TensorKind{bring}, std::move(splits));
}

}  // namespace kiln::descriptor
