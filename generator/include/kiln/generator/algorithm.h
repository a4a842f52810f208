// Algorithm: one way to serve requests, declared beside its template with describe<Parameters>().
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kiln/generator/arch.h"
#include "kiln/generator/program.h"
#include "kiln/generator/request.h"
#include "kiln/generator/space.h"
#include "kiln/generator/specialise.h"

namespace kiln {

/// Predicted time of a variant, with the terms behind it. Seconds; a guess to rank candidates by, never a result.
struct Estimate {
  double seconds = 0;   ///< the prediction
  double math = 0;      ///< arithmetic at its peak rate, with idle SMs and lanes counted in
  double memory = 0;    ///< device memory traffic at full bandwidth
  double on_chip = 0;   ///< L2 and shared-memory traffic
  double overhead = 0;  ///< launches, prologues, reductions
};

/// Digests of the files of a library, each worked out once: algorithms share most of them.
class CodeDigests {
 public:
  explicit CodeDigests(const SourceLibrary& library) : library_(library) {}

  const SourceLibrary& library() const { return library_; }
  /// Digest of the code (code_of()) of one file, without the lines that include other files by their path. Throws
  /// Error(internal) if there is no such file.
  const std::string& of(const std::string& path);

 private:
  const SourceLibrary& library_;
  std::map<std::string, std::string> known_;
};

/// One way to serve requests of one operation. Immutable; cheap to copy.
class Algorithm {
 public:
  const std::string& name() const { return definition_->name; }
  const std::string& operation() const { return definition_->operation; }
  const std::string& template_path() const { return definition_->template_path; }
  /// Simple enough to be read and believed: the algorithm that the others are checked against. One per operation.
  bool trusted() const { return definition_->trusted; }
  /// Read at run time from a user's folder: nobody has tested it, so nothing runs it before a check has passed.
  bool user_template() const { return definition_->user_template; }
  const Space& space() const { return definition_->space; }

  /// Why this algorithm cannot serve `request` on `target`, in words for a user; nothing if it can.
  std::optional<std::string> refusal(const Request& request, const Target& target) const;
  /// The kernels of one point. `config` must be legal: throws Error(invalid_argument) with the refusal if not.
  /// Depends on nothing but its arguments: equal keys give byte-equal sources. Rules::necessary is for one that is
  /// legal for a larger batch, and checked with this one.
  Program program(const SourceLibrary& library, const Request& request, const Target& target, const Config& config,
                  Rules rules = Rules::all) const;
  /// Predicts legal points of one request: what depends on the request alone is worked out here, once.
  std::function<Estimate(const Config&)> predictor(const Request& request, const Target& target,
                                                   const DeviceFigures& device) const;
  /// Covers the code of the template, of every piece that it includes, of the descriptor (.cpp or .json), and of what
  /// of the generator shapes its sources: a stored time is stale when it changes. Comments, blanks and the folders that
  /// files lie in do not count.
  std::string digest(CodeDigests& codes) const;

  /// Parts of an algorithm. Algorithms of this library are declared with describe(); those that are read at run time
  /// fill it in themselves.
  struct Definition {
    std::string name, operation, template_path;
    std::vector<std::string> further_templates;  ///< Whose kernels its programs launch besides.
    bool trusted = false;
    bool user_template = false;
    bool takes_prologue = false;  ///< Its kernels pass x through the prologue of user code.
    Space space;
    std::function<std::optional<std::string>(const Request&, const Target&)> refusal;
    std::function<Program(const SourceLibrary&, const Request&, const Target&, const Config&)> program;
    std::function<std::function<Estimate(const Config&)>(const Request&, const Target&, const DeviceFigures&)>
        predictor;
  };
  explicit Algorithm(Definition definition) : definition_(std::make_shared<const Definition>(std::move(definition))) {}

 private:
  std::shared_ptr<const Definition> definition_;
};

/// Tools with which a descriptor's program function makes sources.
class Emitter {
 public:
  Emitter(const SourceLibrary& library, const Request& request, std::string template_path, std::string title)
      : library_(library), request_(request), template_path_(std::move(template_path)), title_(std::move(title)) {}
  /// The algorithm's template specialised by `prelude` and the request's user code.
  std::string source(Prelude prelude) const;
  /// The algorithm's template, or another that was declared with with_kernels_of(), without the user code: for a step
  /// that neither reads x nor writes the result.
  std::string plain_source(const std::string& template_path, Prelude prelude) const;

 private:
  const SourceLibrary& library_;
  const Request& request_;
  std::string template_path_;
  std::string title_;
};

/// Problem of the request that an algorithm was last asked about. Rules, refusal, program and prediction of one request
/// are asked for one after the other, and a Problem may be costly to make. Thread-safe.
template <class Problem>
class LatestProblem {
 public:
  explicit LatestProblem(std::function<Problem(const Request&)> make) : make_(std::move(make)) {}

  std::shared_ptr<const Problem> of(const Request& request) {
    if constexpr (std::is_same_v<Problem, Request>) return std::make_shared<const Problem>(request);  // nothing to save
    {
      const std::lock_guard lock(mutex_);
      if (problem_ != nullptr && request_ == request) return problem_;
    }
    auto problem = std::make_shared<const Problem>(make_(request));
    const std::lock_guard lock(mutex_);
    request_ = request;
    problem_ = problem;
    return problem;
  }

 private:
  std::function<Problem(const Request&)> make_;
  std::mutex mutex_;
  Request request_;
  std::shared_ptr<const Problem> problem_;
};

/// The fluent declaration of an Algorithm. Parameters is a plain struct of ints; each member is bound once to a name.
/// Problem is what the functions below see of a request: made by Problem::of(request), or a function given to
/// describe(), once for all of them and all points of the space, so it is the place for whatever is costly to work out.
///
///   Algorithm conv_simple() {
///     return describe<Tiling, ConvForward>("conv_simple", "conv_forward", "conv/simple.cu")
///         .param("THREADS", &Tiling::threads, {128, 64, 256})
///         .rule("block fits", [](const Tiling& t, const ConvForward&, const Target& target) { ... })
///         .applies([](const ConvForward&, const Target&) -> std::optional<std::string> { ... why not ... })
///         .program([](const Tiling& t, const ConvForward& conv, const Target&, const Emitter& emit) { ... })
///         .estimate([](const Tiling& t, const ConvForward&, const Target&, const DeviceFigures&) { ... });
///   }
template <class Parameters, class Problem>
class Describe {
 public:
  using Maker = std::function<Problem(const Request&)>;

  Describe(std::string name, std::string operation, std::string template_path, Maker maker)
      : problems_(std::make_shared<Problems>(std::move(maker))) {
    definition_.name = std::move(name);
    definition_.operation = std::move(operation);
    definition_.template_path = std::move(template_path);
    definition_.refusal = [](const Request&, const Target&) { return std::nullopt; };
  }

  /// Marks the operation's trusted algorithm.
  Describe&& trusted() && {
    definition_.trusted = true;
    return std::move(*this);
  }

  /// Says that the kernels pass every element of x through user_entered() (lib/user_code.cuh).
  Describe&& takes_prologue() && {
    definition_.takes_prologue = true;
    return std::move(*this);
  }

  /// Says that programs launch kernels of `template_path` too (Emitter::plain_source).
  Describe&& with_kernels_of(std::string template_path) && {
    definition_.further_templates.push_back(std::move(template_path));
    return std::move(*this);
  }

  Describe&& param(std::string name, int Parameters::*member, std::vector<int64_t> values) && {
    members_->emplace_back(name, member);
    definition_.space.add(Parameter{std::move(name), std::move(values)});
    return std::move(*this);
  }

  /// `holds(parameters, problem, target)`.
  template <class Holds>
  Describe&& rule(std::string name, Holds holds) && {
    return std::move(*this).add_rule(std::move(name), false, std::move(holds));
  }

  /// A rule that keeps out what works and cannot pay. It has to hold in the search, and not where a choice is checked
  /// with a smaller batch or image.
  template <class Holds>
  Describe&& pruning(std::string name, Holds holds) && {
    return std::move(*this).add_rule(std::move(name), true, std::move(holds));
  }

  /// `why_not(problem, target)` -> std::optional<std::string>.
  template <class WhyNot>
  Describe&& applies(WhyNot why_not) && {
    definition_.refusal = [why_not, problems = problems_](const Request& request, const Target& target) {
      return why_not(*problems->of(request), target);
    };
    return std::move(*this);
  }

  /// `make(parameters, problem, target, emitter)` -> Program.
  template <class Make>
  Describe&& program(Make make) && {
    definition_.program = [make, members = members_, problems = problems_, name = definition_.name,
                           path = definition_.template_path](const SourceLibrary& library, const Request& request,
                                                             const Target& target, const Config& config) {
      const Emitter emit(library, request, path,
                         request.key() + "\n" + name + " " + config.print() + " " + target.arch.name());
      return make(parameters_at(*members, config), *problems->of(request), target, emit);
    };
    return std::move(*this);
  }

  /// `predict(parameters, problem, target, device)` -> Estimate. Completes the declaration.
  template <class Predict>
  Algorithm estimate(Predict predict) && {
    definition_.predictor = [predict, members = members_, problems = problems_](
                                const Request& request, const Target& target, const DeviceFigures& device) {
      return [predict, members, target, device, problem = problems->of(request)](const Config& config) {
        return predict(parameters_at(*members, config), *problem, target, device);
      };
    };
    return Algorithm(std::move(definition_));
  }

 private:
  using Members = std::vector<std::pair<std::string, int Parameters::*>>;  // in the order of the space
  using Problems = LatestProblem<Problem>;

  template <class Holds>
  Describe&& add_rule(std::string name, bool prunes, Holds holds) && {
    definition_.space.add(
        Rule{std::move(name),
             [holds, members = members_, problems = problems_](const Request& request, const Target& target) {
               return [holds, members, target, problem = problems->of(request)](Point point) {
                 return holds(parameters_at(*members, point), *problem, target);
               };
             },
             prunes});
    return std::move(*this);
  }

  static Parameters parameters_at(const Members& members, Point point) {
    Parameters parameters{};
    for (size_t i = 0; i < members.size(); ++i) parameters.*members[i].second = static_cast<int>(point[i]);
    return parameters;
  }

  // Every parameter is there: Space::refusal() has seen the config before.
  static Parameters parameters_at(const Members& members, const Config& config) {
    Parameters parameters{};
    for (const auto& [name, member] : members) parameters.*member = static_cast<int>(config.find(name).value());
    return parameters;
  }

  Algorithm::Definition definition_;
  std::shared_ptr<Members> members_ = std::make_shared<Members>();
  std::shared_ptr<Problems> problems_;
};

/// The Problem is Problem::of(request), or the request itself.
template <class Parameters, class Problem = Request>
Describe<Parameters, Problem> describe(std::string name, std::string operation, std::string template_path) {
  const auto make = [](const Request& request) {
    if constexpr (std::is_same_v<Problem, Request>) {
      return request;
    } else {
      return Problem::of(request);
    }
  };
  return {std::move(name), std::move(operation), std::move(template_path), make};
}

/// The Problem is `make(request)`.
template <class Parameters, class Make>
auto describe(std::string name, std::string operation, std::string template_path, Make make) {
  using Problem = std::invoke_result_t<Make, const Request&>;
  return Describe<Parameters, Problem>(std::move(name), std::move(operation), std::move(template_path),
                                       std::move(make));
}

}  // namespace kiln
