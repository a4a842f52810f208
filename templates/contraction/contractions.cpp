#include "contraction/contractions.h"

#include <algorithm>
#include <array>
#include <utility>

#include "descriptor/numbers.h"
#include "kiln/generator/operation.h"

namespace kiln::descriptor {
namespace {

// Instructions of a prologue for an element. A scale and a shift by channel take 10: two reads, conversions,
// arithmetic. A function takes about as many again: silu 13 on an A100.
double instructions_of_prologue(const Request& request) {
  constexpr double arithmetic = 10, of_function = 10, most_functions = 16;
  if (!has_prologue(request)) return 0;
  const auto functions = static_cast<double>(request.user_code.expression()->prologue().long_calls);
  return arithmetic + of_function * std::min(most_functions, functions);
}

constexpr size_t classes_of_a_launch = 16;  // there is code for each

// Products for each column and n. Counted as floating point: the extents of a hostile request may be anything.
double products(const Contraction& contraction) {
  if (!contraction.multiplies()) return 0;
  return static_cast<double>(contraction.depth()) * static_cast<double>(contraction.rows_per_n());
}

}  // namespace

Contractions finished(Contractions parts, const Request& request) {
  if (request.blend.alpha == Scale::zero) parts.refusal = "alpha is zero: there is nothing to multiply";
  const double prologue = instructions_of_prologue(request);
  for (size_t i = 0; i < parts.list.size(); ++i) {
    if (products(parts.list[i]) > products(parts.main())) parts.main_part = i;
    parts.list[i].prologue_instructions = prologue;
  }
  return parts;
}

std::optional<std::string> no_refusal(const Contraction&) {
  return std::nullopt;
}

std::string kernel_of(const std::string& template_path) {
  const size_t folder = template_path.rfind('/') + 1;
  return template_path.substr(folder, template_path.rfind('.') - folder);
}

std::optional<std::string> refusal_of(const Contractions& parts, ContractionRefusal refusal) {
  return parts.refusal ? parts.refusal : refusal(parts.main());
}

Program with_names(const OperandNames& names, Program program) {
  const auto rename = [&](OperandArgument& operand) {
    if (operand.name == "a") {
      operand.name = names.a;
    } else if (operand.name == "b") {
      operand.name = names.b;
    } else if (operand.name == "c") {
      operand.name = names.c;
    }
  };
  const auto keep = [](WorkspaceArgument&) {};
  const Match of_an_argument{rename,
                             keep,
                             [](Scalar&) {},
                             [](UserArgument&) {},
                             [](OperationScalar&) {},
                             [](OperationInteger&) {},
                             [&](TensorMapArgument& map) {
                               std::visit(Match{rename, keep}, map.memory);
                             }};
  for_each_launch(program.steps, [&](Launch& launch) {
    for (Argument& argument : launch.arguments) std::visit(of_an_argument, argument);
  });
  return program;
}

int64_t launches_of(const Contractions& parts) {
  return ceil_div(static_cast<int64_t>(parts.list.size()), classes_of_a_launch);
}

Program divided(const std::vector<Prelude>& preludes, const std::vector<Launch>& launches, const Emitter& emit) {
  Program program;
  for (size_t first = 0; first < preludes.size(); first += classes_of_a_launch) {
    const size_t count = std::min(classes_of_a_launch, preludes.size() - first);
    const auto begin = preludes.begin() + static_cast<std::ptrdiff_t>(first);
    for (Launch launch : launches) {
      launch.source = program.sources.size();
      launch.grid[1].fixed = launch.grid[1].fixed / static_cast<int64_t>(preludes.size()) * static_cast<int64_t>(count);
      program.steps.emplace_back(std::move(launch));
    }
    program.sources.push_back(
        emit.source(Prelude::of_classes({begin, begin + static_cast<std::ptrdiff_t>(count)}, emit.open())));
  }
  return program;
}

bool is_larger(const Count& a, const Count& b) {
  return (a.fixed + a.per_n) * b.divisor > (b.fixed + b.per_n) * a.divisor;
}

int64_t tiles_of(int block_m, int block_n, const Contraction& contraction) {
  return contraction.column_tiles(block_n) * contraction.row_tiles(block_m) * contraction.products();
}

std::array<Count, 3> tile_grid(int block_m, int block_n, const Contractions& parts) {
  return grid_of(parts, [&](const Contraction& contraction) {
    return std::array{blocks_for(contraction, contraction.division_rows(), block_m),
                      Count{contraction.column_tiles(block_n)},
                      Count{contraction.divisions() * contraction.products()}};
  });
}

bool grid_fits(const std::array<Count, 3>& grid, const Contractions& parts) {
  const int64_t n = parts.main().n();
  return grid[1].at(n) <= most_blocks_in_y && grid[2].at(n) <= most_blocks_in_y &&
         grid[0].at(n) <= most_blocks_in_x / std::max<int64_t>(1, grid[1].at(n));
}

}  // namespace kiln::descriptor
