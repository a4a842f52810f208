// Algorithm: one way to serve requests, declared beside its template with describe<Parameters>().
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
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

/// One way to serve requests of one operation. Immutable; cheap to copy.
class Algorithm {
 public:
  const std::string& name() const { return definition_->name; }
  const std::string& operation() const { return definition_->operation; }
  const std::string& template_path() const { return definition_->template_path; }
  /// Simple enough to be read and believed: the algorithm that the others are checked against. One per operation.
  bool trusted() const { return definition_->trusted; }
  const Space& space() const { return definition_->space; }

  /// Why this algorithm cannot serve `request` on `target`, in words for a user; nothing if it can.
  std::optional<std::string> refusal(const Request& request, const Target& target) const;
  /// The kernels of one point. `config` must be legal: throws Error(invalid_argument) with the refusal if not.
  /// Depends on nothing but its arguments: equal keys give byte-equal sources.
  Program program(const SourceLibrary& library, const Request& request, const Target& target,
                  const Config& config) const;
  Estimate estimate(const Request& request, const Target& target, const DeviceFigures& device,
                    const Config& config) const;
  /// Covers the template, every piece it includes, and the descriptor: a stored time is stale when it changes.
  std::string digest(const SourceLibrary& library) const;

 private:
  template <class Parameters>
  friend class Describe;

  struct Definition {
    std::string name, operation, template_path;
    bool trusted = false;
    Space space;
    std::function<std::optional<std::string>(const Request&, const Target&)> refusal;
    std::function<Program(const SourceLibrary&, const Request&, const Target&, const Config&)> program;
    std::function<Estimate(const Request&, const Target&, const DeviceFigures&, const Config&)> estimate;
  };
  explicit Algorithm(std::shared_ptr<const Definition> definition) : definition_(std::move(definition)) {}

  std::shared_ptr<const Definition> definition_;
};

/// What a descriptor's program function gets to make sources with.
class Emitter {
 public:
  Emitter(const SourceLibrary& library, std::string template_path, std::string title)
      : library_(library), template_path_(std::move(template_path)), title_(std::move(title)) {}
  /// The algorithm's template specialised by `prelude`.
  std::string source(const Prelude& prelude) const { return specialise(library_, template_path_, prelude, title_); }

 private:
  const SourceLibrary& library_;
  std::string template_path_;
  std::string title_;
};

/// The fluent declaration of an Algorithm. Parameters is a plain struct of ints; each member is bound once to a name.
///
///   Algorithm conv_simple() {
///     return describe<Tiling>("conv_simple", "conv_forward", "conv/simple.cu")
///         .param("THREADS", &Tiling::threads, {128, 64, 256})
///         .rule("block fits", [](const Tiling& t, const Request&, const Target& target) { ... })
///         .applies([](const Request&, const Target&) -> std::optional<std::string> { ... why not ... })
///         .program([](const Tiling& t, const Request& request, const Target&, const Emitter& emit) { ... })
///         .estimate([](const Tiling& t, const Request&, const Target&, const DeviceFigures&) { ... });
///   }
template <class Parameters>
class Describe {
 public:
  Describe(std::string name, std::string operation, std::string template_path) {
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

  Describe&& param(std::string name, int Parameters::*member, std::vector<int64_t> values) && {
    members_->emplace_back(name, member);
    definition_.space.add(Parameter{std::move(name), std::move(values)});
    return std::move(*this);
  }

  /// `holds(parameters, request, target)`.
  template <class Holds>
  Describe&& rule(std::string name, Holds holds) && {
    definition_.space.add(Rule{
        std::move(name), [holds, bind = binder()](const Config& config, const Request& request, const Target& target) {
          return holds(bind(config), request, target);
        }});
    return std::move(*this);
  }

  /// `why_not(request, target)` -> std::optional<std::string>.
  template <class WhyNot>
  Describe&& applies(WhyNot why_not) && {
    definition_.refusal = why_not;
    return std::move(*this);
  }

  /// `make(parameters, request, target, emitter)` -> Program.
  template <class Make>
  Describe&& program(Make make) && {
    definition_.program = [make, bind = binder(), name = definition_.name, path = definition_.template_path](
                              const SourceLibrary& library, const Request& request, const Target& target,
                              const Config& config) {
      const Emitter emit(library, path, request.key() + "\n" + name + " " + config.print() + " " + target.arch.name());
      return make(bind(config), request, target, emit);
    };
    return std::move(*this);
  }

  /// `predict(parameters, request, target, device)` -> Estimate. Completes the declaration.
  template <class Predict>
  Algorithm estimate(Predict predict) && {
    definition_.estimate = [predict, bind = binder()](const Request& request, const Target& target,
                                                      const DeviceFigures& device, const Config& config) {
      return predict(bind(config), request, target, device);
    };
    return Algorithm(std::make_shared<const typename Algorithm::Definition>(std::move(definition_)));
  }

 private:
  using Members = std::vector<std::pair<std::string, int Parameters::*>>;

  // From a Config to the typed struct. Every parameter is there: Space::refusal() has seen the config before.
  auto binder() const {
    return [members = members_](const Config& config) {
      Parameters parameters{};
      for (const auto& [name, member] : *members) parameters.*member = static_cast<int>(config.find(name).value());
      return parameters;
    };
  }

  typename Algorithm::Definition definition_;
  std::shared_ptr<Members> members_ = std::make_shared<Members>();
};

template <class Parameters>
Describe<Parameters> describe(std::string name, std::string operation, std::string template_path) {
  return Describe<Parameters>(std::move(name), std::move(operation), std::move(template_path));
}

}  // namespace kiln
