// Algorithm: one way to serve requests, declared beside its template with describe<Parameters>().
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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
  /// Digests, sorted and each once, of the files that `stems` ("conv/simple/simple") are written in (.h, .cpp, .json)
  /// and of those of every library file that they include: what descriptors share shapes their kernels as much as they
  /// do themselves.
  std::vector<std::string_view> of_descriptors(const std::vector<std::string>& stems);

 private:
  // The files of one stem.
  struct Unit {
    std::vector<std::string_view> digests;
    std::vector<const Unit*> includes;
  };

  const Unit& unit(const std::string& stem);

  const SourceLibrary& library_;
  std::map<std::string, std::string> known_;
  std::map<std::string, Unit> units_;
};

/// One algorithm's view of one request on one target: whatever it works out of them is worked out when the Binding is
/// made. Immutable; thread-safe. Points and configurations have all parameters of the algorithm's Space.
class Binding {
 public:
  virtual ~Binding() = default;

  /// Why the algorithm cannot serve the request, in words for a user; nothing if it can.
  virtual std::optional<std::string> refusal() const = 0;
  /// The first of the Space's rules that does not hold at `point`.
  virtual std::optional<size_t> broken_rule(Point point, Rules rules) const = 0;
  /// The kernels of a legal configuration. Its workspace_bytes may leave out what its launches say.
  virtual Program program(const SourceLibrary& library, const Config& config, Offsets offsets) const = 0;
  /// Predicts a legal configuration.
  virtual Estimate estimate(const Config& config, const DeviceFigures& device) const = 0;
  /// The order in which a legal configuration adds the terms of one result, in words: where these are equal, for one
  /// operation, results have equal bits. Nothing if it is not known, or depends on the batch.
  virtual std::optional<std::string> order_of_sums(const Config& /*config*/) const { return std::nullopt; }
};

class BoundAlgorithm;

/// Prologues of user code that the kernels of an algorithm pass x through: those whose results are of x's type take no
/// more of registers and tiles than x does.
enum class Prologues { none, rounded, any };

/// One way to serve requests of one operation. Immutable; cheap to copy.
class Algorithm {
 public:
  const std::string& name() const { return definition_->name; }
  const std::string& operation() const { return definition_->operation; }
  const std::string& template_path() const { return definition_->template_path; }
  /// Paths of all templates whose kernels its programs launch, template_path() first.
  std::vector<std::string> templates() const;
  /// Simple enough to be read and believed: the algorithm that the others are checked against. One per operation.
  bool trusted() const { return definition_->trusted; }
  /// Read at run time from a user's folder: nobody has tested it, so nothing runs it before a check has passed.
  bool user_template() const { return definition_->user_template; }
  /// Its kernels take the extents of a request when they are loaded: equal code serves many sizes. For calls that
  /// cannot wait for a compile; no search proposes it.
  bool open() const { return definition_->open; }
  /// The open form of this algorithm, NAME_open, with few shapes; nothing if its kernels have none.
  std::optional<Algorithm> opened() const;
  const Space& space() const { return definition_->space; }

  /// The algorithm for one request on one target: what every question about the two is put to. All points are legal
  /// here whatever their order of sums is: Variants has the one of a request with `batch_invariant`.
  BoundAlgorithm on(const KeyedRequest& request, const Target& target) const;
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
    Prologues prologues = Prologues::none;
    bool prologue_of_images = false;  ///< They tell it the image of an element.
    bool open = false;
    Space space;
    using Bind = std::function<std::unique_ptr<const Binding>(const KeyedRequest&, const Target&)>;
    Bind bind;         ///< For requests of `operation` whose user code is known.
    Bind bind_opened;  ///< The same of the open form, whose last rule is opened_rule; null where there is none.
  };
  const Definition& definition() const { return *definition_; }
  explicit Algorithm(Definition definition) : definition_(std::make_shared<const Definition>(std::move(definition))) {}

 private:
  std::shared_ptr<const Definition> definition_;
};

/// The rule that the open form of an algorithm has behind its others.
inline constexpr std::string_view opened_rule = "open kernels have few shapes";

/// Why an algorithm without a refusal() serves nothing where first_legal() is empty, in words for a user.
inline constexpr std::string_view no_legal_point = "its rules leave no legal point";

/// Demand of a request with `batch_invariant`: the order of sums of all batches, and the rules that hold for it.
struct SumsDemand {
  std::optional<std::string> order;  ///< Nothing where there is none: no point is legal.
  Rules rules = Rules::all;
};

/// An algorithm for one request on one target. Holds what the algorithm works out of the request, once for all
/// questions. Immutable, thread-safe, cheap to copy.
class BoundAlgorithm {
 public:
  /// `demand`: points with another order of sums are not legal.
  BoundAlgorithm(Algorithm algorithm, const KeyedRequest& request, const Target& target,
                 std::optional<SumsDemand> demand = std::nullopt);

  const Algorithm& algorithm() const { return algorithm_; }
  /// Why the algorithm cannot serve the request, in words for a user; nothing if it can.
  std::optional<std::string> refusal() const { return refusal_; }
  /// refusal(), or why `config` is no legal point (Space::refusal()); nothing if it is one. Rules::necessary is for a
  /// configuration that is legal for a larger batch, and checked with this one.
  std::optional<std::string> refusal(const Config& config, Rules rules = Rules::all) const;
  /// Whether there is no refusal(config): without the words for it, which take longer.
  bool is_legal(const Config& config) const;

  /// Calls `visit` for every legal point, as Space::for_each_legal() does; none where there is a refusal().
  void for_each_legal(const std::function<bool(const Config&)>& visit) const;
  std::vector<Config> legal() const;
  /// The first legal point; nothing if there is none.
  std::optional<Config> first_legal() const;

  /// The kernels of one point. `config` must be legal: throws Error(invalid_argument) with the refusal if not,
  /// missing_user_text() where nothing can serve the request. Depends on nothing but the key, the target and these:
  /// equal ones give byte-equal sources.
  Program program(const SourceLibrary& library, const Config& config, Rules rules = Rules::all,
                  Offsets offsets = Offsets::fitting) const;
  /// Predicts a legal point.
  Estimate estimate(const Config& config, const DeviceFigures& device) const;
  /// Why there is no legal point where there is no refusal(), in words for a user.
  std::string why_no_point() const;
  /// Binding::order_of_sums() of a legal point.
  std::optional<std::string> order_of_sums(const Config& config) const { return binding_->order_of_sums(config); }

 private:
  bool keeps_order(const Config& config) const;
  std::string why_not_in_order(const Config& config) const;
  Rules rules_of(Rules asked) const { return demand_ && demand_->rules == Rules::necessary ? demand_->rules : asked; }

  Algorithm algorithm_;
  KeyedRequest request_;
  std::optional<SumsDemand> demand_;
  std::optional<std::string> refusal_;
  std::shared_ptr<const Binding> binding_;  // null where the algorithm was not even asked
};

/// Tools with which a descriptor's program function makes sources.
class Emitter {
 public:
  Emitter(const SourceLibrary& library, const Request& request, std::string template_path, std::string title,
          Offsets offsets, bool open = false)
      : library_(library),
        request_(request),
        template_path_(std::move(template_path)),
        title_(std::move(title)),
        offsets_(offsets),
        open_(open) {}
  /// Whether sources leave their extents open.
  bool open() const { return open_; }
  /// The algorithm's template specialised by `prelude` and the request's user code.
  Source source(Prelude prelude) const;
  /// The algorithm's template, or another that was declared with with_kernels_of(), without the user code: for a step
  /// that neither reads x nor writes the result.
  Source plain_source(const std::string& template_path, Prelude prelude) const;

 private:
  Source source_of(const std::string& template_path, Prelude prelude) const;

  const SourceLibrary& library_;
  const Request& request_;
  std::string template_path_;
  std::string title_;
  Offsets offsets_;
  bool open_;
};

/// Functions that describe() collects: those of an algorithm that has the Parameters, for its Problem.
template <class Parameters, class Problem>
struct Declaration {
  struct Condition {
    std::function<bool(const Parameters&, const Problem&, const Target&)> holds;
    bool prunes;
    bool prunes_open;  ///< A rule that prunes open forms too.
  };

  std::string name, template_path;
  std::vector<std::pair<std::string, int Parameters::*>> members;  ///< In the order of the Space's parameters.
  std::vector<Condition> rules;                                    ///< In the order of the Space's rules.
  std::function<Problem(const Request&)> make_problem;
  std::function<std::optional<std::string>(const Problem&, const Target&)> why_not;
  std::function<Program(const Parameters&, const Problem&, const Target&, const Emitter&)> program;
  std::function<Estimate(const Parameters&, const Problem&, const Target&, const DeviceFigures&)> estimate;
  std::function<bool(const Parameters&, const Problem&, const Target&)> has_open_kernel;  ///< Null without open form.
  /// Null where the order is not known.
  std::function<std::optional<std::string>(const Parameters&, const Problem&, const Target&)> order_of_sums;
};

/// The part of a declared Binding that all of them share: code that is compiled once.
class DeclaredBindingBase : public Binding {
 protected:
  DeclaredBindingBase(KeyedRequest request, const Target& target, bool open)
      : request_(std::move(request)), target_(target), open_(open) {}

  Emitter emitter(const SourceLibrary& library, const std::string& name, const std::string& template_path,
                  const Config& config, Offsets offsets) const;

  const KeyedRequest request_;
  const Target target_;
  const bool open_;
};

/// The Binding of an algorithm that is declared by describe().
template <class Parameters, class Problem>
class DeclaredBinding final : public DeclaredBindingBase {
 public:
  using Functions = Declaration<Parameters, Problem>;

  DeclaredBinding(std::shared_ptr<const Functions> functions, KeyedRequest request, const Target& target, bool open)
      : DeclaredBindingBase(std::move(request), target, open),
        functions_(std::move(functions)),
        problem_(functions_->make_problem(*request_)) {}

  std::optional<std::string> refusal() const override {
    return functions_->why_not ? functions_->why_not(problem_, target_) : std::nullopt;
  }

  std::optional<size_t> broken_rule(Point point, Rules rules) const override {
    Parameters parameters{};
    for (size_t i = 0; i < functions_->members.size(); ++i) {
      parameters.*functions_->members[i].second = static_cast<int>(point[i]);
    }
    for (size_t i = 0; i < functions_->rules.size(); ++i) {
      const auto& rule = functions_->rules[i];
      const bool few_are_for_all_sizes = open_ && !rule.prunes_open;
      if (rule.prunes && (rules == Rules::necessary || few_are_for_all_sizes)) continue;
      if (!rule.holds(parameters, problem_, target_)) return i;
    }
    if (open_ && !functions_->has_open_kernel(parameters, problem_, target_)) return functions_->rules.size();
    return std::nullopt;
  }

  Program program(const SourceLibrary& library, const Config& config, Offsets offsets) const override {
    return functions_->program(parameters_at(config), problem_, target_,
                               emitter(library, functions_->name, functions_->template_path, config, offsets));
  }

  Estimate estimate(const Config& config, const DeviceFigures& device) const override {
    return functions_->estimate(parameters_at(config), problem_, target_, device);
  }

  std::optional<std::string> order_of_sums(const Config& config) const override {
    if (!functions_->order_of_sums) return std::nullopt;
    return functions_->order_of_sums(parameters_at(config), problem_, target_);
  }

 private:
  Parameters parameters_at(const Config& config) const {
    Parameters parameters{};
    for (const auto& [name, member] : functions_->members) {
      parameters.*member = static_cast<int>(config.find(name).value());  // Space::refusal() has seen the config
    }
    return parameters;
  }

  const std::shared_ptr<const Functions> functions_;
  const Problem problem_;
};

/// The part of a declaration that all of them share: code that is compiled once.
class DescribeBase {
 protected:
  DescribeBase(std::string name, std::string operation, std::string template_path);
  void add_parameter(std::string name, std::vector<int64_t> values);
  void add(std::string rule, bool prunes);

  Algorithm::Definition definition_;
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
class Describe : private DescribeBase {
 public:
  using Maker = std::function<Problem(const Request&)>;

  Describe(std::string name, std::string operation, std::string template_path, Maker make_problem)
      : DescribeBase(std::move(name), std::move(operation), std::move(template_path)) {
    functions_->name = definition_.name;
    functions_->template_path = definition_.template_path;
    functions_->make_problem = std::move(make_problem);
  }

  /// Marks the operation's trusted algorithm.
  Describe&& trusted() && {
    definition_.trusted = true;
    return std::move(*this);
  }

  /// Says that the kernels pass every element of x through user_entered() (lib/user_code.cuh).
  /// `of_images`: they tell it the image, too.
  Describe&& takes_prologue(Prologues prologues = Prologues::any, bool of_images = false) && {
    definition_.prologues = prologues;
    definition_.prologue_of_images = of_images;
    return std::move(*this);
  }

  /// Says that programs launch kernels of `template_path` too (Emitter::plain_source).
  Describe&& with_kernels_of(std::string template_path) && {
    definition_.further_templates.push_back(std::move(template_path));
    return std::move(*this);
  }

  Describe&& param(std::string name, int Parameters::*member, std::vector<int64_t> values) && {
    functions_->members.emplace_back(name, member);
    add_parameter(std::move(name), std::move(values));
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

  /// The same of a rule that open forms keep as well.
  template <class Holds>
  Describe&& pruning_open_too(std::string name, Holds holds) && {
    return std::move(*this).add_rule(std::move(name), true, std::move(holds), true);
  }

  /// `why_not(problem, target)` -> std::optional<std::string>.
  template <class WhyNot>
  Describe&& applies(WhyNot why_not) && {
    functions_->why_not = std::move(why_not);
    return std::move(*this);
  }

  /// Says that the kernels of these shapes, `has(parameters, problem, target)`, may leave their extents open: nothing
  /// in the template asks for a constant that the prelude calls an extent.
  template <class Has>
  Describe&& opens(Has has) && {
    functions_->has_open_kernel = std::move(has);
    return std::move(*this);
  }

  /// `order(parameters, problem, target)` -> std::optional<std::string>: Binding::order_of_sums().
  template <class Order>
  Describe&& adds(Order order) && {
    functions_->order_of_sums = std::move(order);
    return std::move(*this);
  }

  /// `make(parameters, problem, target, emitter)` -> Program.
  template <class Make>
  Describe&& program(Make make) && {
    functions_->program = std::move(make);
    return std::move(*this);
  }

  /// `predict(parameters, problem, target, device)` -> Estimate. Completes the declaration.
  template <class Predict>
  Algorithm estimate(Predict predict) && {
    functions_->estimate = std::move(predict);
    definition_.bind = binder(false);
    if (functions_->has_open_kernel) definition_.bind_opened = binder(true);
    return Algorithm(std::move(definition_));
  }

 private:
  using Functions = Declaration<Parameters, Problem>;

  Algorithm::Definition::Bind binder(bool open) const {
    return [functions = std::shared_ptr<const Functions>(functions_), open](
               const KeyedRequest& request, const Target& target) -> std::unique_ptr<const Binding> {
      return std::make_unique<DeclaredBinding<Parameters, Problem>>(functions, request, target, open);
    };
  }

  Describe&& add_rule(std::string name, bool prunes,
                      std::function<bool(const Parameters&, const Problem&, const Target&)> holds,
                      bool prunes_open = false) && {
    functions_->rules.push_back({std::move(holds), prunes, prunes_open});
    add(std::move(name), prunes);
    return std::move(*this);
  }

  std::shared_ptr<Functions> functions_ = std::make_shared<Functions>();
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
