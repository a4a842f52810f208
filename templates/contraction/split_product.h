// Contractions whose depth is divided among blocks: one launch makes parts of the sums, a second one adds them. For any
// tiling.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "contraction/block_estimate.h"
#include "contraction/contractions.h"
#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// Parameters of `Tiling`, and into how many pieces the depth is cut.
template <class Tiling>
struct SplitTiling : Tiling {
  int split_k;
};

/// Threads of a block of a second launch that adds `parts` parts, and the teams that they are divided into: each team
/// has eight parts at the most, or there are `most` teams.
inline constexpr int reduce_threads = 128;
inline int teams_for(double parts) {
  constexpr int most = 8;
  int teams = 1;
  while (teams < most && parts > 8 * teams) teams *= 2;
  return teams;
}
/// Elements that a thread of it adds, where c has runs of so many. Fewer where `elements` of c, of `team` threads a
/// block, would leave most of a device without a block: loads from L2 take longest.
inline int added_run(int c_run, int64_t elements, int team) {
  constexpr int64_t many_blocks = 128;
  int run = std::min(c_run, 4);
  while (run > 1 && elements < many_blocks * team * run) run /= 2;
  return run;
}

/// How long a thread of a second launch takes for its sums: it loads a few of its team's `parts` at a time, from L2 at
/// best, and stores.
inline double added_parts_seconds(double parts, const DeviceFigures& device) {
  constexpr double parts_at_once = 8, load_clocks = 400;
  return (1 + std::ceil(parts / parts_at_once)) * load_clocks / device.clock_hz;
}

/// The program and the costs of the kernels NAME and NAME_reduce (lib/conv_split.cuh), whose blocks have the tiling of
/// `Kind`. It has the type Tiling, and
/// - c_run(tiling, contraction), the elements of c that one access moves;
/// - shared_bytes(tiling, parts) of a block;
/// - add_constants(prelude, tiling, contraction, parts, arch): the tiling's;
/// - figures(device, arch), those that its estimates take;
/// - block_work(tiling, contraction, arch, device, chunks, blocks) of one of so many blocks that multiplies so many
///   chunks, and estimate(work, arch, device) of a launch of them.
template <class Kind>
class SplitProduct {
 public:
  using Tiling = SplitTiling<typename Kind::Tiling>;

  SplitProduct(std::string name, Kind kind) : name_(std::move(name)), kind_(std::move(kind)) {}

  /// Splits that cannot pay: parts that are too short, or a grid that already fills large devices many times.
  static bool is_worthwhile(const Tiling& tiling, const Contraction& contraction, const Target&) {
    constexpr int64_t plenty_of_blocks = 4096;
    return contraction.chunks(tiling.block_k) >= 2 * tiling.split_k && blocks(tiling, contraction) <= plenty_of_blocks;
  }

  /// Rule "the parts fit into a gigabyte and a grid".
  bool parts_fit(const Tiling& tiling, const Contractions& parts) const {
    constexpr int64_t most_workspace = int64_t{1} << 30;
    return !parts.refusal && workspace_bytes(tiling, parts) <= most_workspace &&
           grid_fits(sum_grid(tiling, parts), parts) && grid_fits(reduce_grid(tiling, parts), parts);
  }

  Program program(const Tiling& tiling, const Contractions& parts, const Target& target, const Emitter& emit) const {
    const WorkspaceArgument all_parts{0, workspace_bytes(tiling, parts)};
    Launch sum = sums_launch(name_, tiling.threads(), {OperandArgument{"a"}, OperandArgument{"b"}, all_parts});
    sum.grid = sum_grid(tiling, parts);
    sum.dynamic_shared_bytes = kind_.shared_bytes(tiling, parts);
    Launch reduce = contraction_launch(name_ + "_reduce", reduce_threads, {all_parts, OperandArgument{"c"}});
    reduce.grid = reduce_grid(tiling, parts);

    int64_t first = 0;  // byte of the workspace
    return program_of(parts, emit, {sum, reduce}, [&](const Contraction& contraction) {
      Prelude prelude = contraction_prelude(contraction);
      kind_.add_constants(prelude, tiling, contraction, parts, target.arch);
      prelude.extent("SPLIT_K", pieces(tiling, contraction)).constant("REDUCE_THREADS", reduce_threads);
      prelude.constant("TEAMS", teams(tiling, parts)).constant("ADDED", added(tiling, contraction, parts));
      prelude.extent("PARTS_FIRST", first / 4);
      add_outputs_of_parts(prelude, contraction);
      first += part_bytes(tiling, contraction);
      return prelude;
    });
  }

  Estimate predict(const Tiling& tiling, const Contractions& parts, const Target& target,
                   const DeviceFigures& given) const {
    const DeviceFigures device = kind_.figures(given, target.arch);
    GridWork work = work_of_parts(parts, [&](const Contraction& contraction) {
      const double chunks =
          static_cast<double>(contraction.chunks(tiling.block_k)) / static_cast<double>(pieces(tiling, contraction));
      GridWork part;
      part.blocks = static_cast<double>(blocks(tiling, contraction));
      part.block = kind_.block_work(tiling, contraction, target.arch, device, std::ceil(chunks), part.blocks);
      part.dram_bytes = compulsory_bytes(contraction);
      return part;
    });
    const auto bytes = static_cast<double>(workspace_bytes(tiling, parts));
    work.dram_bytes += bytes * workspace_share(bytes, device);
    work.extra_dram_bytes += bytes * workspace_share(bytes, device);
    work.launches += static_cast<int>(launches_of(parts));
    Estimate estimate = kind_.estimate(work, target.arch, device);
    const double reduce = reduce_seconds(tiling, parts, device);
    estimate.overhead += reduce;
    estimate.seconds += reduce;
    return estimate;
  }

 private:
  static int64_t elements_per_n(const Contraction& contraction) {
    return contraction.rows_per_n() * contraction.columns() * contraction.groups();
  }
  /// Pieces of one part's depth: every one has a chunk.
  static int64_t pieces(const Tiling& tiling, const Contraction& contraction) {
    return std::min<int64_t>(tiling.split_k, contraction.chunks(tiling.block_k));
  }
  static int teams(const Tiling& tiling, const Contractions& parts) {
    return teams_for(static_cast<double>(pieces(tiling, parts.main())));
  }
  static int64_t part_bytes(const Tiling& tiling, const Contraction& contraction) {
    return pieces(tiling, contraction) * contraction.n() * elements_per_n(contraction) * contraction.products() * 4;
  }
  static int64_t workspace_bytes(const Tiling& tiling, const Contractions& parts) {
    int64_t bytes = 0;
    for (const Contraction& part : parts.list) bytes += part_bytes(tiling, part);
    return bytes;
  }
  static int64_t blocks(const Tiling& tiling, const Contraction& contraction) {
    return tiles_of(tiling.block_m, tiling.block_n, contraction) * pieces(tiling, contraction);
  }
  static std::array<Count, 3> sum_grid(const Tiling& tiling, const Contractions& parts) {
    return grid_of(parts, [&](const Contraction& contraction) {
      return std::array{blocks_for(contraction, contraction.rows_per_n(), tiling.block_m),
                        Count{contraction.column_tiles(tiling.block_n)},
                        Count{pieces(tiling, contraction) * contraction.products()}};
    });
  }
  std::array<Count, 3> reduce_grid(const Tiling& tiling, const Contractions& parts) const {
    return grid_of(parts, [&](const Contraction& contraction) {
      const int64_t elements = reduce_threads / teams(tiling, parts) * added(tiling, contraction, parts);
      return std::array{blocks_for(contraction, elements_per_n(contraction), elements), Count{1},
                        Count{contraction.products()}};
    });
  }

  int added(const Tiling& tiling, const Contraction& contraction, const Contractions& parts) const {
    return added_run(kind_.c_run(tiling, contraction), contraction.n() * elements_per_n(contraction),
                     reduce_threads / teams(tiling, parts));
  }

  static double reduce_seconds(const Tiling& tiling, const Contractions& parts, const DeviceFigures& device) {
    int64_t most = 1;
    for (const Contraction& part : parts.list) most = std::max(most, pieces(tiling, part));
    return added_parts_seconds(static_cast<double>(most) / teams(tiling, parts), device);
  }

  std::string name_;
  Kind kind_;
};

/// Completes `description`, that of a tiling's space, by the parameter SPLIT_K, its rules, program and estimate.
template <class Kind>
Algorithm split_product(Describe<SplitTiling<typename Kind::Tiling>, Contractions>&& description,
                        const std::string& name, Kind kind, std::vector<int64_t> splits) {
  using Product = SplitProduct<Kind>;
  using Tiling = typename Product::Tiling;
  const Product product(name, std::move(kind));
  return std::move(description)
      .param("SPLIT_K", &Tiling::split_k, std::move(splits))
      .pruning("splitting is worthwhile", for_main(Product::is_worthwhile))
      .rule("the parts fit into a gigabyte and a grid",
            [product](const Tiling& tiling, const Contractions& parts, const Target&) {
              return product.parts_fit(tiling, parts);
            })
      .opens(for_main([](const Tiling& tiling, const Contraction& contraction, const Target&) {
        return is_open_tiling(tiling, contraction);
      }))
      .program([product](const Tiling& tiling, const Contractions& parts, const Target& target, const Emitter& emit) {
        return product.program(tiling, parts, target, emit);
      })
      .estimate([product](const Tiling& tiling, const Contractions& parts, const Target& target,
                          const DeviceFigures& device) { return product.predict(tiling, parts, target, device); });
}

}  // namespace kiln::descriptor
