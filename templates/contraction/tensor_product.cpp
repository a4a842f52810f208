#include "contraction/tensor_product.h"

#include <utility>

#include "contraction/split_product.h"
#include "contraction/tensor_estimate.h"
#include "contraction/tensor_stream.h"

namespace kiln::descriptor {
namespace {

struct TensorKind {
  using Tiling = TensorTiling;

  Bring bring;

  int c_run(const TensorTiling&, const Contraction& contraction) const {
    return tensor_access(contraction, bring).c_run;
  }
  unsigned shared_bytes(const TensorTiling& tiling, const Contractions& parts) const {
    return descriptor::shared_bytes(tiling, parts);
  }
  void add_constants(Prelude& prelude, const TensorTiling& tiling, const Contraction& contraction,
                     const Contractions& parts, const Arch& arch) const {
    add_tensor_tiling(prelude, tiling, contraction, bring, tensor_min_blocks(tiling, parts, bring, arch));
    prelude.constant("BLOCKS", 0);
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

// The algorithm of a kernel, NAME`suffix`.
template <class Tiling>
Describe<Tiling, Contractions> describe_kernel(const std::string& template_path, const std::string& suffix,
                                               const std::string& operation, ContractionMaker make) {
  Describe<Tiling, Contractions> description(kernel_of(template_path) + suffix, operation, template_path, make);
  if (suffix != packed_suffix) return description;
  return std::move(description).with_kernels_of(packing_template);
}

auto applies_if_brought(Bring bring, ContractionRefusal refusal) {
  return [bring, refusal](const Contractions& parts, const Target& target) {
    return tensor_refusal(parts, bring, target, refusal);
  };
}

// Copies take elements as they are stored. Channels that packing fills up are none of a prologue's.
Prologues prologues_of(Bring bring, const std::string& suffix) {
  return bring == Bring::staged && suffix != packed_suffix ? Prologues::rounded : Prologues::none;
}

// One launch of the kernel of a template, whose blocks each multiply all chunks of `tiling.tiles` tiles.
Algorithm with_one_launch(Describe<TensorTiling, Contractions>&& description, const std::string& kernel, Bring bring) {
  const auto program = [kernel, bring](const TensorTiling& tiling, const Contractions& parts, const Target& target,
                                       const Emitter& emit) {
    Launch launch = contraction_launch(kernel, tiling.threads());
    launch.grid = tile_grid(tiling.rows(), tiling.block_n, parts);
    launch.dynamic_shared_bytes = shared_bytes(tiling, parts);
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
      part.blocks = static_cast<double>(tiles_of(tiling.rows(), tiling.block_n, contraction));
      part.block =
          tensor_block_work(tiling, contraction, bring, target.arch, device,
                            static_cast<double>(contraction.chunks(tiling.block_k)), part.blocks, Results::finished);
      part.dram_bytes = compulsory_bytes(contraction);
      return part;
    });
    return tensor_estimate(work, target.arch, device);
  };
  return std::move(description)
      .adds([bring](const TensorTiling& tiling, const Contractions& parts, const Target&) {
        // Packing takes memory for each image: the order would not serve every batch, nor every limit of workspace.
        return parts.packed.empty() ? std::optional(order_on_tensor_cores(tiling, parts.main(), bring)) : std::nullopt;
      })
      .program(program)
      .estimate(predict);
}

auto has_open_kernel(Bring bring) {
  return for_main([bring](const TensorTiling& tiling, const Contraction& contraction, const Target&) {
    return is_open_tiling(tiling, contraction, bring);
  });
}

}  // namespace

Algorithm tensor_contraction(const std::string& template_path, const std::string& operation, ContractionMaker make,
                             Bring bring, ContractionRefusal refusal, const std::string& suffix) {
  const std::string kernel = kernel_of(template_path);
  auto description = add_tensor_space(describe_kernel<TensorTiling>(template_path, suffix, operation, make)
                                          .applies(applies_if_brought(bring, refusal))
                                          .takes_prologue(prologues_of(bring, suffix), true),
                                      bring);
  if (!suffix.empty()) return with_one_launch(std::move(description), kernel, bring);
  return with_one_launch(std::move(description).opens(has_open_kernel(bring)), kernel, bring);
}

Algorithm persistent_tensor_contraction(const std::string& template_path, const std::string& operation,
                                        ContractionMaker make, ContractionRefusal refusal) {
  const std::string name = kernel_of(template_path);
  return with_one_launch(
      add_tensor_space(describe<TensorTiling>(name, operation, template_path, make)
                           .applies(applies_if_brought(Bring::copied, refusal))
                           .param("TILES", &TensorTiling::tiles, {4, 2, 8, 16})
                           .pruning("the depth has few chunks and the rows many tiles",  // first: it is cheap
                                    for_main([](const TensorTiling& tiling, const Contraction& contraction,
                                                const Target&) { return tensor_tiles_follow(tiling, contraction); })),
                       Bring::copied),
      name, Bring::copied);
}

Algorithm split_tensor_contraction(const std::string& template_path, const std::string& operation,
                                   ContractionMaker make, Bring bring, std::vector<int64_t> splits,
                                   ContractionRefusal refusal, const std::string& suffix) {
  const std::string kernel = kernel_of(template_path);
  const SplitProduct<TensorKind> split(kernel, TensorKind{bring});
  const TensorStream stream(kernel, bring);
  splits.push_back(1);
  std::vector<int64_t> blocks = TensorStream::numbers_of_blocks();
  blocks.insert(blocks.begin(), 0);
  return add_tensor_space(describe_kernel<SharedTiling>(template_path, suffix, operation, make)
                              .applies(applies_if_brought(bring, refusal))
                              .takes_prologue(prologues_of(bring, suffix), true)
                              .rule("either BLOCKS or SPLIT_K shares the depth",  // first: it is cheap
                                    [](const SharedTiling& tiling, const Contractions&, const Target&) {
                                      return (tiling.blocks > 0) == (tiling.split_k == 1);
                                    }),
                          bring)
      .param("SPLIT_K", &SharedTiling::split_k, std::move(splits))
      .param("BLOCKS", &SharedTiling::blocks, std::move(blocks))
      .pruning("splitting is worthwhile",
               [](const SharedTiling& tiling, const Contractions& parts, const Target& target) {
                 return tiling.blocks > 0 ? TensorStream::is_worthwhile(tiling, parts)
                                          : for_main(SplitProduct<TensorKind>::is_worthwhile)(tiling, parts, target);
               })
      .rule("the parts fit into a gigabyte and a grid",
            [split, stream](const SharedTiling& tiling, const Contractions& parts, const Target&) {
              return tiling.blocks > 0 ? stream.parts_fit(tiling, parts) : split.parts_fit(tiling, parts);
            })
      .opens(
          [has = has_open_kernel(bring)](const SharedTiling& tiling, const Contractions& parts, const Target& target) {
            return tiling.blocks == 0 && parts.packed.empty() && has(tiling, parts, target);
          })
      .program([split, stream](const SharedTiling& tiling, const Contractions& parts, const Target& target,
                               const Emitter& emit) {
        return tiling.blocks > 0 ? stream.program(tiling, parts, target, emit)
                                 : split.program(tiling, parts, target, emit);
      })
      .estimate([split, stream](const SharedTiling& tiling, const Contractions& parts, const Target& target,
                                const DeviceFigures& device) {
        return tiling.blocks > 0 ? stream.predict(tiling, parts, target, device)
                                 : split.predict(tiling, parts, target, device);
      });
}

}  // namespace kiln::descriptor
