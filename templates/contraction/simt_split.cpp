#include "contraction/simt_split.h"

#include <utility>

#include "contraction/simt_tiling.h"
#include "contraction/split_product.h"

namespace kiln::descriptor {
namespace {

struct SimtKind {
  using Tiling = SimtTiling;

  int c_run(const SimtTiling& tiling, const Contraction& contraction) const {
    return simt_access(tiling, contraction).c_run;
  }
  unsigned shared_bytes(const SimtTiling& tiling, const Contractions& parts) const {
    return descriptor::shared_bytes(tiling, parts);
  }
  void add_constants(Prelude& prelude, const SimtTiling& tiling, const Contraction& contraction,
                     const Contractions& parts, const Arch& arch) const {
    add_simt_tiling(prelude, tiling, contraction, min_blocks(tiling, parts, arch));
  }
  BlockWork block_work(const SimtTiling& tiling, const Contraction& contraction, const Arch& arch, const DeviceFigures&,
                       double chunks, double) const {
    return simt_block_work(tiling, contraction, arch, chunks);
  }
  Estimate estimate(const GridWork& work, const Arch& arch, const DeviceFigures& device) const {
    return grid_estimate(work, arch, device);
  }
  DeviceFigures figures(const DeviceFigures& device, const Arch&) const { return device; }
};

}  // namespace

Algorithm split_contraction(const std::string& template_path, const std::string& operation, ContractionMaker make,
                            std::vector<int64_t> splits, ContractionRefusal refusal) {
  const std::string name = kernel_of(template_path);
  return split_product(add_simt_space(describe<SplitTiling<SimtTiling>>(name, operation, template_path, make)
                                          .applies([refusal](const Contractions& parts, const Target&) {
                                            return refusal_of(parts, refusal);
                                          }))
                           .takes_prologue(Prologues::any, true),
                       name, SimtKind{}, std::move(splits));
}

}  // namespace kiln::descriptor
