#include "kiln/checking/trusted_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "kernels.h"
#include "kiln/base/error.h"
#include "kiln/generator/operation.h"

namespace kiln::checking {
namespace {

// The catalogue's pieces of kernels, and the check's kernels.
SourceLibrary library_of(const Catalogue& catalogue) {
  std::map<std::string, std::string> files = {{"check/user_bounds.cu", std::string(user_bounds_kernel)},
                                              {"check/user_prologue.cu", std::string(user_prologue_kernel)}};
  for (const auto& [path, text] : catalogue.library().files()) {
    if (path.starts_with("lib/")) files.emplace(path, text);
  }
  return SourceLibrary(std::move(files));
}

// A kernel that looks at each element of a tensor by itself, whose dimension `channel` counts channels: one thread an
// element.
void append_elementwise(Program& program, const SourceLibrary& library, const Request& request, const Target& target,
                        const std::string& entry, const TensorSpec& spec, size_t channel,
                        std::vector<Argument> arguments) {
  constexpr unsigned threads = 128;
  int64_t inner = 1;
  for (size_t i = channel + 1; i < spec.extents.size(); ++i) inner *= spec.extents[i];
  Prelude prelude;
  prelude.constant("THREADS", threads).constant("ELEMENTS", spec.elements());
  prelude.constant("INNER", std::max<int64_t>(inner, 1));
  prelude.constant("CHANNELS", spec.extents.size() > channel ? std::max<int64_t>(spec.extents[channel], 1) : 1);
  const Emitter emit(library, request, fmt::format("check/{}.cu", entry),
                     fmt::format("{}\n{} {}", request.key(), entry, target.arch.name()), Offsets::fitting);
  Launch launch;
  launch.source = program.sources.size();
  launch.entry = entry;
  launch.grid[0] = Count{(spec.elements() + threads - 1) / threads, 0, 1};
  launch.block[0] = threads;
  launch.arguments = std::move(arguments);
  program.sources.push_back(emit.source(prelude));
  program.steps.emplace_back(std::move(launch));
}

Program plain_program(const Catalogue& catalogue, const Request& plain, const Target& target) {
  const BoundAlgorithm trusted = catalogue.trusted(plain.operation).on(plain, target);
  const std::optional<Config> config = trusted.first_legal();
  if (!config && !trusted.refusal()) {
    throw Error(ErrorCode::internal, fmt::format("the trusted algorithm {} has no legal configuration for {}",
                                                 trusted.algorithm().name(), plain.key()));
  }
  return trusted.program(catalogue.library(), config.value_or(Config()));  // throws the refusal, if there is one
}

}  // namespace

Program trusted_program(const Catalogue& catalogue, const Request& request, const Target& target) {
  if (!request.user_code) return plain_program(catalogue, request, target);
  Program middle = plain_program(catalogue, without_user_code(request), target);
  // The sources with the user's text come first: what is wrong with it is said before anything else is compiled.
  const SourceLibrary library = library_of(catalogue);
  Program result;
  if (has_prologue(request)) {
    const std::string input(operation(request.operation).prologue_operand());
    append_elementwise(
        result, library, request, target, "user_prologue", request.at(input),
        prologue_channel_dimension_of(request).value_or(0),
        {OperandArgument{"input"}, OperandArgument{input}, OperandArgument{"perturbation"}, UserArgument{}});
  }
  const auto& [name, spec] = result_of(request);
  append_elementwise(result, library, request, target, "user_bounds", spec, channel_dimension_of(request),
                     {OperandArgument{name}, OperandArgument{"margin"}, OperandArgument{"low"}, OperandArgument{"high"},
                      UserArgument{}});
  for_each_launch(middle.steps, [&](Launch& launch) { launch.source += result.sources.size(); });
  result.sources.insert(result.sources.end(), middle.sources.begin(), middle.sources.end());
  result.steps.insert(result.steps.end() - 1, middle.steps.begin(), middle.steps.end());
  result.workspace_bytes = middle.workspace_bytes;
  return result;
}

std::vector<std::string> trusted_operand_names(const Request& request) {
  std::vector<std::string> names;
  for (const Operand& operand : request.operands) names.push_back(operand.name);
  if (!request.user_code) return names;
  names.insert(names.end(), {"margin", "low", "high"});
  // Whether the code has a prologue is not known where its text is not: in a worker.
  if (!operation(request.operation).prologue_operand().empty()) names.insert(names.end(), {"input", "perturbation"});
  return names;
}

}  // namespace kiln::checking
