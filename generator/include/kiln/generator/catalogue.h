// Catalogue: the algorithms at hand with the texts they are made from; what everything above generates through.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/generator/algorithm.h"

namespace kiln {

/// One algorithm at one point.
struct Choice {
  std::string algorithm;
  Config config;
  bool operator==(const Choice&) const = default;
};

/// A legal candidate with its prediction.
struct Candidate {
  Choice choice;
  Estimate estimate;
  bool user_template = false;  ///< Its prediction is what the template's author says of it, not a model's.
};

/// Why an algorithm is not among the candidates of a request.
struct Refusal {
  std::string algorithm;
  std::string reason;
};

struct Candidates {
  std::vector<Candidate> ranked;   ///< Best prediction first; ties by algorithm, then config text.
  std::vector<Refusal> refused;    ///< Algorithms of the operation that cannot serve the request.
  std::string basis = "estimate";  ///< Words for what ranks them.

  /// Candidate for a request without measurements: the best prediction among Kiln's own algorithms. Null if there is
  /// none.
  const Candidate* best_guess() const;
};

class Variants;
class SumOrders;

/// An immutable set of algorithms and their sources. Thread-safe.
class Catalogue {
 public:
  /// Throws Error(internal) if two algorithms share a name.
  Catalogue(SourceLibrary library, std::vector<Algorithm> algorithms);

  /// Without open forms.
  const std::vector<Algorithm>& algorithms() const { return algorithms_; }
  const std::vector<Algorithm>& open_algorithms() const { return open_; }
  /// The algorithm of that name, or null.
  const Algorithm* find(std::string_view name) const;
  /// The trusted algorithm of an operation. Throws Error(internal) if there is none.
  const Algorithm& trusted(std::string_view operation) const;
  /// Digest of an algorithm as this library has it; nothing for an unknown name.
  std::optional<std::string> digest(std::string_view algorithm) const;

  /// The variants of a request on a target: for whoever has several questions about them.
  Variants on(KeyedRequest request, const Target& target) const;
  /// The functions of Variants of the same names, for a single question.
  std::optional<std::string> refusal(const KeyedRequest& request, const Target& target, const Choice& choice) const;
  Program program(const KeyedRequest& request, const Target& target, const Choice& choice) const;
  Estimate estimate(const KeyedRequest& request, const Target& target, const DeviceFigures& device,
                    const Choice& choice) const;
  Candidates candidates(const KeyedRequest& request, const Target& target, const DeviceFigures& device) const;
  Choice heuristic(const KeyedRequest& request, const Target& target, const DeviceFigures& device) const;

  const SourceLibrary& library() const { return library_; }
  /// The order of sums of requests with `batch_invariant`: of all that differ from this one in batch alone. Nothing
  /// where no order can be kept.
  std::optional<std::string> order_of_sums(const Request& request, const Target& target) const;

 private:
  std::shared_ptr<SumOrders> orders_;  // those that were asked for
  SourceLibrary library_;
  std::vector<Algorithm> algorithms_, open_;
  std::map<std::string, std::string, std::less<>> digests_;  // by the algorithm's name
};

/// The variants that a Catalogue has for one request on one target. Binds each algorithm once, however many questions
/// are asked. Not thread-safe; the Catalogue must outlive it.
class Variants {
 public:
  Variants(const Catalogue& catalogue, KeyedRequest request, const Target& target)
      : catalogue_(catalogue), request_(std::move(request)), target_(target) {}

  const Catalogue& catalogue() const { return catalogue_; }
  const KeyedRequest& request() const { return request_; }
  const Target& target() const { return target_; }
  /// The algorithm for the request; with `batch_invariant` its points in the order of sums of all batches alone.
  const BoundAlgorithm& on(const Algorithm& algorithm);

  /// Why `choice` cannot serve the request: unknown algorithm, refusal, illegal point; nothing if it can.
  std::optional<std::string> refusal(const Choice& choice);
  /// BoundAlgorithm::program(). Throws Error(invalid_argument) with the refusal if `choice` cannot serve the request;
  /// missing_user_text() if nothing can.
  Program program(const Choice& choice);
  /// Throws Error(invalid_argument) with the refusal if `choice` cannot serve the request.
  Estimate estimate(const Choice& choice, const DeviceFigures& device);
  /// Every legal candidate of every algorithm, ranked by estimate().
  Candidates candidates(const DeviceFigures& device);
  /// The same of open forms.
  Candidates open_candidates(const DeviceFigures& device);
  /// The same of those of `choices` that are legal.
  Candidates candidates_among(std::span<const Choice> choices, const DeviceFigures& device);
  /// Candidates::best_guess(). Throws Error(unsupported) listing the refusals if none of them can serve the request,
  /// missing_user_text() where that is the only reason.
  Choice heuristic(const DeviceFigures& device);

 private:
  /// Null where there is no such algorithm.
  const BoundAlgorithm* bound(std::string_view algorithm);
  const std::optional<SumsDemand>& demand();
  Candidates candidates_of(const std::vector<Algorithm>& algorithms, const DeviceFigures& device);

  const Catalogue& catalogue_;
  KeyedRequest request_;
  Target target_;
  std::map<std::string, BoundAlgorithm, std::less<>> bound_;  // by the algorithm's name
  std::optional<std::optional<SumsDemand>> demand_;           // once it was asked for
};

/// The Program of one choice, made when it is first asked for. The Variants must outlive it.
class LazyProgram {
 public:
  LazyProgram(Variants& variants, const Choice& choice) : variants_(variants), choice_(choice) {}

  /// Never null. Throws as Variants::program().
  const std::shared_ptr<const Program>& get() {
    if (program_ == nullptr) program_ = std::make_shared<const Program>(variants_.program(choice_));
    return program_;
  }

 private:
  Variants& variants_;
  const Choice choice_;
  std::shared_ptr<const Program> program_;
};

}  // namespace kiln
