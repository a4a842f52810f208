#include "kiln/generator/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "kiln/base/error.h"
#include "kiln/generator/operation.h"
#include "user_code.h"

namespace kiln {
namespace {

void require_distinct_names(const std::vector<Algorithm>& algorithms) {
  for (size_t i = 0; i < algorithms.size(); ++i) {
    for (size_t j = i + 1; j < algorithms.size(); ++j) {
      if (algorithms[i].name() == algorithms[j].name()) {
        throw Error(ErrorCode::internal, fmt::format("two algorithms are called {}", algorithms[i].name()));
      }
    }
  }
}

// A kernel of the check that looks at each element of a tensor by itself, whose dimension `channel` counts channels:
// one thread an element.
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
                     fmt::format("{}\n{} {}", request.key(), entry, target.arch.name()));
  Launch launch;
  launch.source = program.sources.size();
  launch.entry = entry;
  launch.grid[0] = Count{(spec.elements() + threads - 1) / threads, 0, 1};
  launch.block[0] = threads;
  launch.arguments = std::move(arguments);
  program.sources.push_back(emit.source(prelude));
  program.steps.emplace_back(std::move(launch));
}

bool better(const Candidate& a, const Candidate& b) {
  return std::tie(a.estimate.seconds, a.choice.algorithm, a.choice.config) <
         std::tie(b.estimate.seconds, b.choice.algorithm, b.choice.config);
}

}  // namespace

const Candidate* Candidates::best_guess() const {
  // A user template's estimate is its author's word.
  const auto own = std::find_if(ranked.begin(), ranked.end(), [](const Candidate& one) { return !one.user_template; });
  return own == ranked.end() ? nullptr : &*own;
}

Catalogue::Catalogue(SourceLibrary library, std::vector<Algorithm> algorithms)
    : library_(std::move(library)), algorithms_(std::move(algorithms)) {
  require_distinct_names(algorithms_);
  CodeDigests codes(library_);
  for (const Algorithm& algorithm : algorithms_) digests_.push_back(algorithm.digest(codes));
}

const Algorithm* Catalogue::find(std::string_view name) const {
  const auto found =
      std::find_if(algorithms_.begin(), algorithms_.end(), [&](const auto& a) { return a.name() == name; });
  return found == algorithms_.end() ? nullptr : &*found;
}

const Algorithm& Catalogue::trusted(std::string_view operation) const {
  for (const Algorithm& algorithm : algorithms_) {
    if (algorithm.trusted() && algorithm.operation() == operation) return algorithm;
  }
  throw Error(ErrorCode::internal, fmt::format("{} has no trusted algorithm", operation));
}

Program Catalogue::trusted_program(const Request& request, const Target& target) const {
  const Algorithm& algorithm = trusted(request.operation);
  const Request plain = request.user_epilogue ? without_user_code(request) : request;
  const std::optional<Config> config = algorithm.space().first_legal(plain, target);
  if (!config) {
    throw Error(ErrorCode::internal, fmt::format("the trusted algorithm {} has no legal configuration for {}",
                                                 algorithm.name(), request.key()));
  }
  Program middle = algorithm.program(library_, plain, target, *config);
  if (!request.user_epilogue) return middle;
  // The sources with the user's text come first: what is wrong with it is said before anything else is compiled.
  Program result;
  if (has_prologue(request)) {
    const std::string input(operation(request.operation).prologue_operand());
    append_elementwise(result, library_, request, target, "user_prologue", request.at(input),
                       prologue_channel_dimension_of(request).value_or(0),
                       {OperandArgument{"input"}, OperandArgument{input}, OperandArgument{"wobble"}, UserArgument{}});
  }
  const auto& [name, spec] = result_of(request);
  append_elementwise(result, library_, request, target, "user_bounds", spec, channel_dimension_of(request),
                     {OperandArgument{name}, OperandArgument{"room"}, OperandArgument{"low"}, OperandArgument{"high"},
                      UserArgument{}});
  for_each_launch(middle.steps, [&](Launch& launch) { launch.source += result.sources.size(); });
  result.sources.insert(result.sources.end(), middle.sources.begin(), middle.sources.end());
  result.steps.insert(result.steps.end() - 1, middle.steps.begin(), middle.steps.end());
  result.workspace_bytes = middle.workspace_bytes;
  return result;
}

std::optional<std::string> Catalogue::digest(std::string_view name) const {
  const Algorithm* algorithm = find(name);
  if (algorithm == nullptr) return std::nullopt;
  return digests_[static_cast<size_t>(algorithm - algorithms_.data())];
}

std::optional<std::string> Catalogue::refusal(const Request& request, const Target& target,
                                              const Choice& choice) const {
  const Algorithm* algorithm = find(choice.algorithm);
  if (algorithm == nullptr) return fmt::format("there is no algorithm {}", choice.algorithm);
  if (auto reason = algorithm->refusal(request, target)) return reason;
  return algorithm->space().refusal(choice.config, request, target);
}

Program Catalogue::program(const Request& request, const Target& target, const Choice& choice) const {
  const Algorithm* algorithm = find(choice.algorithm);
  if (algorithm == nullptr) {
    throw Error(ErrorCode::invalid_argument, fmt::format("there is no algorithm {}", choice.algorithm),
                "`kiln explain` lists the candidates of a request");
  }
  return algorithm->program(library_, request, target, choice.config);
}

Estimate Catalogue::estimate(const Request& request, const Target& target, const DeviceFigures& device,
                             const Choice& choice) const {
  if (const auto reason = refusal(request, target, choice)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("refused: {}: {}", choice.algorithm, *reason));
  }
  return find(choice.algorithm)->predictor(request, target, device)(choice.config);
}

Candidates Catalogue::candidates(const Request& request, const Target& target, const DeviceFigures& device) const {
  Candidates result;
  for (const Algorithm& algorithm : algorithms_) {
    if (algorithm.operation() != request.operation) continue;
    if (auto reason = algorithm.refusal(request, target)) {
      result.refused.push_back({algorithm.name(), *reason});
      continue;
    }
    const size_t before = result.ranked.size();
    const auto predict = algorithm.predictor(request, target, device);
    algorithm.space().for_each_legal(request, target, [&](const Config& config) {
      result.ranked.push_back({{algorithm.name(), config}, predict(config), algorithm.user_template()});
      return true;
    });
    if (result.ranked.size() == before) result.refused.push_back({algorithm.name(), "its rules leave no legal point"});
  }
  std::sort(result.ranked.begin(), result.ranked.end(), better);
  return result;
}

Choice Catalogue::heuristic(const Request& request, const Target& target, const DeviceFigures& device) const {
  const Candidates all = candidates(request, target, device);
  if (const Candidate* best = all.best_guess()) return best->choice;
  if (lacks_user_text(request)) throw missing_user_text(request);
  std::string reasons;
  for (const Refusal& refusal : all.refused) reasons += fmt::format("\n  {}: {}", refusal.algorithm, refusal.reason);
  throw Error(ErrorCode::unsupported, fmt::format("no algorithm serves {}:{}", request.key(), reasons));
}

}  // namespace kiln
