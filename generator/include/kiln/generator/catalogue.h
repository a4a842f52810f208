// Catalogue: the algorithms at hand with the texts they are made from; what everything above generates through.
#pragma once

#include <optional>
#include <string>
#include <string_view>
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
  std::vector<Candidate> ranked;  ///< Best prediction first; ties by algorithm, then config text.
  std::vector<Refusal> refused;   ///< Algorithms of the operation that cannot serve the request.

  /// Candidate for a request without measurements: the best prediction among Kiln's own algorithms. Null if there is
  /// none.
  const Candidate* best_guess() const;
};

/// An immutable set of algorithms and their sources. Thread-safe.
class Catalogue {
 public:
  /// Throws Error(internal) if two algorithms share a name.
  Catalogue(SourceLibrary library, std::vector<Algorithm> algorithms);

  const std::vector<Algorithm>& algorithms() const { return algorithms_; }
  /// The algorithm of that name, or null.
  const Algorithm* find(std::string_view name) const;
  /// The trusted algorithm of an operation. Throws Error(internal) if there is none.
  const Algorithm& trusted(std::string_view operation) const;
  /// Digest of an algorithm as this library has it; nothing for an unknown name.
  std::optional<std::string> digest(std::string_view algorithm) const;

  /// Why `choice` cannot serve `request`: unknown algorithm, refusal, illegal point; nothing if it can.
  std::optional<std::string> refusal(const Request& request, const Target& target, const Choice& choice) const;
  /// Algorithm::program(). Throws Error(invalid_argument) with the refusal if `choice` cannot serve `request`;
  /// missing_user_text() if nothing can.
  Program program(const Request& request, const Target& target, const Choice& choice, Rules rules = Rules::all) const;
  Estimate estimate(const Request& request, const Target& target, const DeviceFigures& device,
                    const Choice& choice) const;
  /// Every legal candidate of every algorithm, ranked by estimate().
  Candidates candidates(const Request& request, const Target& target, const DeviceFigures& device) const;
  /// Candidates::best_guess(). Throws Error(unsupported) listing the refusals if none of them can serve the request,
  /// missing_user_text() where that is the only reason.
  Choice heuristic(const Request& request, const Target& target, const DeviceFigures& device) const;

  const SourceLibrary& library() const { return library_; }

 private:
  SourceLibrary library_;
  std::vector<Algorithm> algorithms_;
  std::vector<std::string> digests_;  // parallel to algorithms_
};

}  // namespace kiln
