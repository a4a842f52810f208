#include "kiln/generator/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/base/nearest.h"
#include "kiln/generator/operation.h"
#include "sum_orders.h"
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

void require_operations(const std::vector<Algorithm>& algorithms) {
  for (const Algorithm& algorithm : algorithms) {
    if (find_operation(algorithm.operation()) != nullptr) continue;
    throw Error(ErrorCode::internal, fmt::format("{} is an algorithm of {}, which is no operation", algorithm.name(),
                                                 algorithm.operation()));
  }
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
    : orders_(std::make_shared<SumOrders>()), library_(std::move(library)), algorithms_(std::move(algorithms)) {
  require_distinct_names(algorithms_);
  require_operations(algorithms_);
  for (const Algorithm& algorithm : algorithms_) {
    if (std::optional<Algorithm> open = algorithm.opened()) open_.push_back(std::move(*open));
  }
  CodeDigests codes(library_);
  for (const std::vector<Algorithm>* const some : {&algorithms_, &open_}) {
    for (const Algorithm& algorithm : *some) digests_.emplace(algorithm.name(), algorithm.digest(codes));
  }
}

const Algorithm* Catalogue::find(std::string_view name) const {
  for (const std::vector<Algorithm>* const some : {&algorithms_, &open_}) {
    const auto found = std::ranges::find(*some, name, &Algorithm::name);
    if (found != some->end()) return &*found;
  }
  return nullptr;
}

const Algorithm& Catalogue::trusted(std::string_view operation) const {
  for (const Algorithm& algorithm : algorithms_) {
    if (algorithm.trusted() && algorithm.operation() == operation) return algorithm;
  }
  throw Error(ErrorCode::internal, fmt::format("{} has no trusted algorithm", operation));
}

std::optional<std::string> Catalogue::digest(std::string_view name) const {
  const auto found = digests_.find(name);
  return found == digests_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> Catalogue::order_of_sums(const Request& request, const Target& target) const {
  return orders_->of(*this, request, target);
}

Variants Catalogue::on(KeyedRequest request, const Target& target) const {
  return {*this, std::move(request), target};
}

std::optional<std::string> Catalogue::refusal(const KeyedRequest& request, const Target& target,
                                              const Choice& choice) const {
  return on(request, target).refusal(choice);
}

Program Catalogue::program(const KeyedRequest& request, const Target& target, const Choice& choice) const {
  return on(request, target).program(choice);
}

Estimate Catalogue::estimate(const KeyedRequest& request, const Target& target, const DeviceFigures& device,
                             const Choice& choice) const {
  return on(request, target).estimate(choice, device);
}

Candidates Catalogue::candidates(const KeyedRequest& request, const Target& target, const DeviceFigures& device) const {
  return on(request, target).candidates(device);
}

Choice Catalogue::heuristic(const KeyedRequest& request, const Target& target, const DeviceFigures& device) const {
  return on(request, target).heuristic(device);
}

// Most requests can keep the order under all rules. Where memory is aligned worse than that of the reference batches,
// what works counts, even if other shapes would pay.
const std::optional<SumsDemand>& Variants::demand() {
  if (demand_) return *demand_;
  demand_.emplace();
  const bool is_empty = result_of(*request_).spec.elements() == 0;  // nothing is added
  if (!request_->batch_invariant || is_empty) return *demand_;
  demand_->emplace(SumsDemand{catalogue_.order_of_sums(*request_, target_), Rules::all});
  const auto is_kept = [&](const Algorithm& algorithm) {
    return algorithm.operation() == request_->operation && on(algorithm).first_legal();
  };
  if (std::ranges::none_of(catalogue_.algorithms(), is_kept)) {
    bound_.clear();  // by other rules
    (*demand_)->rules = Rules::necessary;
  }
  return *demand_;
}

const BoundAlgorithm& Variants::on(const Algorithm& algorithm) {
  const std::optional<SumsDemand>& wanted = demand();  // binds some, too
  const auto known = bound_.find(algorithm.name());
  if (known != bound_.end()) return known->second;
  return bound_.emplace(algorithm.name(), BoundAlgorithm(algorithm, request_, target_, wanted)).first->second;
}

const BoundAlgorithm* Variants::bound(std::string_view name) {
  const Algorithm* algorithm = catalogue_.find(name);
  return algorithm == nullptr ? nullptr : &on(*algorithm);
}

std::optional<std::string> Variants::refusal(const Choice& choice) {
  const BoundAlgorithm* algorithm = bound(choice.algorithm);
  if (algorithm == nullptr) return fmt::format("there is no algorithm {}", choice.algorithm);
  return algorithm->refusal(choice.config);
}

Program Variants::program(const Choice& choice) {
  const BoundAlgorithm* algorithm = bound(choice.algorithm);
  if (algorithm == nullptr) {
    std::vector<std::string_view> known;
    for (const Algorithm& one : catalogue_.algorithms()) {
      if (one.operation() == request_->operation) known.emplace_back(one.name());
    }
    throw Error(ErrorCode::invalid_argument, fmt::format("there is no algorithm {}", choice.algorithm),
                did_you_mean(choice.algorithm, known, "`kiln explain` lists the candidates of a request"));
  }
  return algorithm->program(catalogue_.library(), choice.config);
}

Estimate Variants::estimate(const Choice& choice, const DeviceFigures& device) {
  if (const auto reason = refusal(choice)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("refused: {}: {}", choice.algorithm, *reason));
  }
  return bound(choice.algorithm)->estimate(choice.config, device);
}

Candidates Variants::candidates(const DeviceFigures& device) {
  return candidates_of(catalogue_.algorithms(), device);
}

Candidates Variants::open_candidates(const DeviceFigures& device) {
  return candidates_of(catalogue_.open_algorithms(), device);
}

Candidates Variants::candidates_among(std::span<const Choice> choices, const DeviceFigures& device) {
  Candidates result;
  for (const Choice& choice : choices) {
    const BoundAlgorithm* const here = bound(choice.algorithm);
    if (here == nullptr || !here->is_legal(choice.config)) continue;
    result.ranked.push_back({choice, here->estimate(choice.config, device), here->algorithm().user_template()});
  }
  std::sort(result.ranked.begin(), result.ranked.end(), better);
  return result;
}

Candidates Variants::candidates_of(const std::vector<Algorithm>& algorithms, const DeviceFigures& device) {
  Candidates result;
  for (const Algorithm& algorithm : algorithms) {
    if (algorithm.operation() != request_->operation) continue;
    const BoundAlgorithm& here = on(algorithm);
    if (std::optional<std::string> reason = here.refusal()) {
      result.refused.push_back({algorithm.name(), std::move(*reason)});
      continue;
    }
    const size_t before = result.ranked.size();
    here.for_each_legal([&](const Config& config) {
      result.ranked.push_back({{algorithm.name(), config}, here.estimate(config, device), algorithm.user_template()});
      return true;
    });
    if (result.ranked.size() == before) result.refused.push_back({algorithm.name(), here.why_no_point()});
  }
  std::sort(result.ranked.begin(), result.ranked.end(), better);
  return result;
}

Choice Variants::heuristic(const DeviceFigures& device) {
  const Candidates all = candidates(device);
  if (const Candidate* best = all.best_guess()) return best->choice;
  if (lacks_user_text(*request_)) throw missing_user_text(*request_);
  std::string reasons;
  for (const Refusal& refusal : all.refused) reasons += fmt::format("\n  {}: {}", refusal.algorithm, refusal.reason);
  throw Error(ErrorCode::unsupported, fmt::format("no algorithm serves {}:{}", request_.key(), reasons),
              request_->batch_invariant ? "leave out batch_invariant, or place tensors at multiples of 16 bytes" : "");
}

}  // namespace kiln
