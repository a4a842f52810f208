// All contractions of a request, as one launch makes them: rules, grids and programs over several.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "contraction/contraction.h"
#include "contraction/packed_operands.h"
#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// Names that a request gives to the operands of its contractions.
struct OperandNames {
  std::string a, b, c;
};

/// The contractions that one request asks for: one, or several with the same operands, each of which makes some of the
/// results. All have the same columns, groups and n.
struct Contractions {
  OperandNames operands;
  std::vector<Contraction> list{};       ///< at least one, unless refused
  std::optional<std::string> refusal{};  ///< why kernels that multiply cannot serve the request
  size_t main_part = 0;
  std::vector<PackedOperand> packed{};  ///< operands that are packed before, if there are any

  /// The part with the most products: what a choice of parameters should suit.
  const Contraction& main() const { return list[main_part]; }
};

/// Makes the contractions of a request of one operation.
using ContractionMaker = Contractions (*)(const Request&);

/// `parts` with main_part, what `request`'s prologue costs them, and refused where its blend leaves nothing to
/// multiply: the end of every maker.
Contractions finished(Contractions parts, const Request& request);

/// The same, of which tensor cores add the products of one step in f16.
template <ContractionMaker make>
Contractions with_f16_sums(const Request& request) {
  Contractions parts = make(request);
  for (Contraction& part : parts.list) part.f16_sums = true;
  return parts;
}

/// Why a kernel cannot make a contraction; nothing if it can.
using ContractionRefusal = std::optional<std::string> (*)(const Contraction&);
/// Refusal of a kernel that makes every contraction: none.
std::optional<std::string> no_refusal(const Contraction& contraction);
/// The refusal of the request, or else that of its main part.
std::optional<std::string> refusal_of(const Contractions& parts, ContractionRefusal refusal);

/// NAME of a template FOLDER/NAME.cu: that of the algorithm, and of its kernel.
std::string kernel_of(const std::string& template_path);

/// Contractions that a rule looks at, in a Problem that has other members too: an overload for each.
inline const Contractions& contractions_of(const Contractions& parts) {
  return parts;
}

/// A rule on one contraction as a rule on the main part, or on all parts.
template <class Holds>
auto for_main(Holds holds) {
  return [holds](const auto& parameters, const auto& problem, const Target& target) {
    const Contractions& parts = contractions_of(problem);
    return !parts.refusal && holds(parameters, parts.main(), target);
  };
}
template <class Holds>
auto for_all(Holds holds) {
  return [holds](const auto& parameters, const auto& problem, const Target& target) {
    const Contractions& parts = contractions_of(problem);
    return !parts.refusal && std::all_of(parts.list.begin(), parts.list.end(),
                                         [&](const Contraction& part) { return holds(parameters, part, target); });
  };
}

/// `program`, whose operands are called a, b and c, with the request's names for them.
Program with_names(const OperandNames& names, Program program);

/// The launches that the parts are divided among.
int64_t launches_of(const Contractions& parts);

/// `launches`, whose grids are grid_of() all parts, as often as these take, each with the source of its part of
/// `preludes`.
Program divided(const std::vector<Prelude>& preludes, const std::vector<Launch>& launches, const Emitter& emit);

/// The program whose launches compute all parts, after those that pack operands, from sources that
/// `make_prelude(contraction)` specialises for each of them.
template <class MakePrelude>
Program program_of(const Contractions& parts, const Emitter& emit, const std::vector<Launch>& launches,
                   MakePrelude make_prelude) {
  std::vector<Prelude> preludes;
  for (const Contraction& part : parts.list) preludes.push_back(make_prelude(part));
  return behind_packing(parts.packed, with_names(parts.operands, divided(preludes, launches, emit)), emit);
}

/// Whether `a` is the larger count at any batch; both depend on it, or neither does.
bool is_larger(const Count& a, const Count& b);

/// The grid of a launch for all parts, where a launch for one of them alone has the grid `make_grid(contraction)`: in y
/// there are as many blocks as all need, else as many as one of them does.
template <class MakeGrid>
std::array<Count, 3> grid_of(const Contractions& parts, MakeGrid make_grid) {
  std::array<Count, 3> grid = make_grid(parts.main());
  for (const Contraction& part : parts.list) {
    const std::array<Count, 3> needed = make_grid(part);
    for (size_t i = 0; i < grid.size(); ++i) {
      if (is_larger(needed[i], grid[i])) grid[i] = needed[i];
    }
  }
  grid[1].fixed *= static_cast<int64_t>(parts.list.size());
  return grid;
}

/// Tiles of block_m rows x block_n columns, over all groups, divisions and products of a batch.
int64_t tiles_of(int block_m, int block_n, const Contraction& contraction);
/// The grid of blocks that make one such tile each, of all parts.
std::array<Count, 3> tile_grid(int block_m, int block_n, const Contractions& parts);

/// Whether a grid has no more blocks than a launch may, counted as lib/class_blocks.cuh counts them.
bool grid_fits(const std::array<Count, 3>& grid, const Contractions& parts);

}  // namespace kiln::descriptor
