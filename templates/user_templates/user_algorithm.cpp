// From the descriptor of a user template to an Algorithm.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/base/error.h"
#include "kiln/generator/roofline.h"
#include "kiln/templates/user_templates.h"
#include "user_templates/user_constants.h"
#include "user_templates/user_descriptor.h"
#include "user_templates/user_kernel_text.h"

namespace kiln {
namespace {

constexpr int64_t most_workspace = int64_t{1} << 40;

// Names and values of the constants that a kernel and the expressions of its descriptor see.
using Values = std::map<std::string, int64_t, std::less<>>;

IntegerExpression::Lookup lookup_in(const Values& values) {
  return [&values](std::string_view name) -> std::optional<int64_t> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

int64_t evaluate(const DescriptorExpression& at, const Values& values) {
  try {
    return at.expression.evaluate(lookup_in(values));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("field '{}': {}", at.field, error.message()), error.hint());
  }
}

Prelude with_target(Prelude prelude, const Target& target) {
  prelude.constant("ARCH", target.arch.major * 10 + target.arch.minor);
  prelude.constant("MOST_THREADS", target.arch.threads_per_block).constant("MOST_SHARED", target.arch.shared_per_block);
  return prelude;
}

// The constants of a problem on a target, before any choice.
Prelude base_prelude(const Request& request, const Target& target) {
  return with_target(user_constants(request), target);
}

Values values_of(const Prelude& prelude) {
  const auto constants = prelude.constants();
  return {constants.begin(), constants.end()};
}

// One user template, which its Bindings share.
class UserTemplate {
 public:
  class Bound;

  UserTemplate(UserDescriptor descriptor, const UserFiles& files)
      : d_(std::move(descriptor)), file_(files.descriptor_name) {
    check_kernel_text(d_, files, check_names());
  }

  Algorithm::Definition definition(const std::shared_ptr<const UserTemplate>& self) const;

 private:
  [[noreturn]] void fail(const std::string& field, const std::string& what, const std::string& hint) const {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: field '{}': {}", file_, field, what), hint);
  }

  void check_names(const DescriptorExpression& at, const std::set<std::string, std::less<>>& known) const {
    for (const IntegerExpression::Name& used : at.expression.names()) {
      if (known.contains(used.name)) continue;
      fail(at.field, fmt::format("'{}', column {}: there is no {}", at.expression.text(), used.column, used.name),
           "docs/user-code.md lists the constants; parameters and constants of the descriptor may be used after them");
    }
  }

  // The names of all constants that the kernel sees.
  std::set<std::string, std::less<>> check_names() const {
    std::set<std::string, std::less<>> known;
    const Target target{Arch::all().front(), 0, 0};
    const Prelude sample = with_target(user_constants_of_any(operation(d_.operation)), target);
    for (const auto& [name, value] : sample.constants()) known.insert(name);
    const auto declare = [&](const std::string& field, const std::string& name) {
      if (!known.insert(name).second)
        fail(field, fmt::format("there is a constant {} already", name), "choose another name");
    };
    for (const UserDescriptor::Condition& condition : d_.applies) check_names(condition.holds, known);
    for (const UserDescriptor::Parameter& parameter : d_.parameters) declare("parameters", parameter.name);
    for (const UserDescriptor::Constant& constant : d_.constants) {
      check_names(constant.value, known);
      declare("constants", constant.name);
    }
    for (const UserDescriptor::Condition& rule : d_.rules) check_names(rule.holds, known);
    if (d_.workspace) check_names(*d_.workspace, known);
    for (const UserDescriptor::LaunchStep& launch : d_.launches) {
      for (const UserDescriptor::Extent& extent : launch.grid) {
        check_names(extent.blocks, known);
        if (extent.per_block) check_names(*extent.per_block, known);
      }
      for (const DescriptorExpression& extent : launch.block) check_names(extent, known);
      if (launch.dynamic_shared) check_names(*launch.dynamic_shared, known);
      for (const UserDescriptor::LaunchArgument& argument : launch.arguments) {
        if (const auto* offset = std::get_if<DescriptorExpression>(&argument)) check_names(*offset, known);
      }
    }
    return known;
  }

  bool is_named(const std::string& operand) const {
    const auto names = [&](const UserDescriptor::LaunchArgument& argument) {
      const auto* const known = std::get_if<Argument>(&argument);
      const OperandArgument* const named = known == nullptr ? nullptr : operand_of(*known);
      return named != nullptr && named->name == operand;
    };
    return std::ranges::any_of(d_.launches, [&](const UserDescriptor::LaunchStep& launch) {
      return std::ranges::any_of(launch.arguments, names);
    });
  }

  std::optional<std::string> refusal(const Request& request, const Values& values) const {
    for (const Operand& operand : request.operands) {
      if (is_written(request, operand.name) && !is_named(operand.name)) return "it gives no " + operand.name;
    }
    for (const UserDescriptor::Condition& condition : d_.applies) {
      try {
        if (evaluate(condition.holds, values) == 0) return condition.words;
      } catch (const Error& error) {
        return fmt::format("{} ({})", condition.words, error.message());
      }
    }
    return std::nullopt;
  }

  // The values of a point: the problem's, the parameters and what the descriptor makes of them.
  Values values_at(Values values, Point point) const {
    for (size_t i = 0; i < d_.parameters.size(); ++i) values.emplace(d_.parameters[i].name, point[i]);
    for (const UserDescriptor::Constant& constant : d_.constants) {
      values.emplace(constant.name, evaluate(constant.value, values));
    }
    return values;
  }

  // The value of an expression, in a range that a launch can have.
  static int64_t within(const DescriptorExpression& at, const Values& values, int64_t least, int64_t most) {
    const int64_t value = evaluate(at, values);
    if (value >= least && value <= most) return value;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("field '{}' is {}, outside {} to {}", at.field, value, least, most));
  }

  static Count grid_extent(const UserDescriptor::Extent& extent, const Request& request, const Values& values,
                           int64_t most) {
    if (!extent.per_block) return Count{within(extent.blocks, values, 0, most), 0, 1};
    const int64_t items = within(extent.blocks, values, 0, int64_t{1} << 40);
    const int64_t per_block = within(*extent.per_block, values, 1, most_blocks_in_x);
    const Count count = descriptor::blocks_for(items, request.batch(), request.dynamic_batch, per_block);
    if (count.at(request.batch()) > most) {
      throw Error(ErrorCode::invalid_argument, fmt::format("field '{}' gives too large a grid", extent.blocks.field));
    }
    return count;
  }

  std::vector<Step> steps(const Request& request, const Target& target, const Values& values) const {
    std::vector<Step> made;
    const int64_t workspace = workspace_bytes(values);
    for (const UserDescriptor::LaunchStep& step : d_.launches) {
      Launch launch;
      launch.entry = step.kernel;
      for (size_t i = 0; i < step.grid.size(); ++i) {
        launch.grid[i] = grid_extent(step.grid[i], request, values, i == 0 ? most_blocks_in_x : most_blocks_in_y);
      }
      int64_t threads = 1;
      for (size_t i = 0; i < step.block.size(); ++i) {
        const int64_t extent = within(step.block[i], values, 1, i == 2 ? 64 : target.arch.threads_per_block);
        launch.block[i] = static_cast<unsigned>(extent);
        threads *= extent;
      }
      if (threads > target.arch.threads_per_block) {
        throw Error(ErrorCode::invalid_argument, fmt::format("kernel {} has {} threads a block", step.kernel, threads));
      }
      if (step.dynamic_shared) {
        launch.dynamic_shared_bytes =
            static_cast<unsigned>(within(*step.dynamic_shared, values, 0, target.arch.shared_per_block));
      }
      for (const UserDescriptor::LaunchArgument& argument : step.arguments) {
        const auto* offset = std::get_if<DescriptorExpression>(&argument);
        if (offset == nullptr) {
          launch.arguments.push_back(std::get<Argument>(argument));
        } else {
          const int64_t first = within(*offset, values, 0, workspace);
          launch.arguments.emplace_back(WorkspaceArgument{first, workspace - first});
        }
      }
      made.emplace_back(std::move(launch));
    }
    return made;
  }

  int64_t workspace_bytes(const Values& values) const {
    if (!d_.workspace) return 0;
    return descriptor::aligned_bytes(within(*d_.workspace, values, 0, most_workspace));
  }

  UserDescriptor d_;
  std::string file_;
};

// A user template for one request on one target.
class UserTemplate::Bound final : public Binding {
 public:
  Bound(std::shared_ptr<const UserTemplate> shared, KeyedRequest request, const Target& target)
      : shared_(std::move(shared)),
        request_(std::move(request)),
        target_(target),
        constants_(base_prelude(*request_, target)),
        values_(values_of(constants_)) {}

  std::optional<std::string> refusal() const override { return shared_->refusal(*request_, values_); }

  std::optional<size_t> broken_rule(Point point, Rules) const override {
    const std::vector<UserDescriptor::Condition>& rules = shared_->d_.rules;
    for (size_t i = 0; i < rules.size(); ++i) {
      if (!holds([&] { return evaluate(rules[i].holds, shared_->values_at(values_, point)) != 0; })) return i;
    }
    const bool fits = holds([&] {
      (void)shared_->steps(*request_, target_, shared_->values_at(values_, point));
      return true;
    });
    return fits ? std::nullopt : std::optional(rules.size());
  }

  Program program(const SourceLibrary& library, const Config& config, Offsets offsets) const override {
    const UserDescriptor& d = shared_->d_;
    std::vector<int64_t> point;
    for (const UserDescriptor::Parameter& parameter : d.parameters) {
      point.push_back(config.find(parameter.name).value());  // Space::refusal() has seen the config before
    }
    Prelude constants = constants_;
    const Values values = shared_->values_at(values_, point);
    for (const UserDescriptor::Parameter& each : d.parameters) constants.constant(each.name, values.at(each.name));
    for (const UserDescriptor::Constant& each : d.constants) constants.constant(each.name, values.at(each.name));
    const Emitter emit(library, *request_, fmt::format("user/{}.cu", d.name),
                       fmt::format("{}\n{} {} {}", request_.key(), d.name, config.print(), target_.arch.name()),
                       offsets);
    Program made;
    made.sources = {emit.source(constants)};
    made.steps = shared_->steps(*request_, target_, values);
    made.workspace_bytes = shared_->workspace_bytes(values);
    made.deterministic = d.deterministic;
    return made;
  }

  Estimate estimate(const Config&, const DeviceFigures& device) const override {
    const UserDescriptor& d = shared_->d_;
    Estimate estimate;
    estimate.memory = roofline_seconds(*request_, target_, device) * 100 / static_cast<double>(d.efficiency);
    estimate.overhead = descriptor::launch_seconds(static_cast<double>(d.launches.size()), device);
    estimate.seconds = estimate.memory + estimate.overhead;
    return estimate;
  }

 private:
  // A rule whose expression has no value, a division by zero for instance, does not hold.
  template <class Evaluate>
  static bool holds(const Evaluate& evaluate_rule) {
    try {
      return evaluate_rule();
    } catch (const Error&) {
      return false;
    }
  }

  const std::shared_ptr<const UserTemplate> shared_;
  const KeyedRequest request_;
  const Target target_;
  const Prelude constants_;
  const Values values_;
};

Algorithm::Definition UserTemplate::definition(const std::shared_ptr<const UserTemplate>& self) const {
  Algorithm::Definition made;
  made.name = d_.name;
  made.operation = d_.operation;
  made.user_template = true;
  made.prologues = d_.prologue ? Prologues::any : Prologues::none;
  made.template_path = fmt::format("user/{}.cu", d_.name);
  for (const UserDescriptor::Parameter& parameter : d_.parameters) {
    made.space.add(Parameter{parameter.name, parameter.values});
  }
  for (const UserDescriptor::Condition& rule : d_.rules) made.space.add(Rule{rule.words});
  made.space.add(Rule{"its launches fit the device"});
  made.bind = [self](const KeyedRequest& request, const Target& target) -> std::unique_ptr<const Binding> {
    return std::make_unique<Bound>(self, request, target);
  };
  return made;
}

}  // namespace

std::vector<Algorithm> user_algorithms(const SourceLibrary& user) {
  std::vector<Algorithm> algorithms;
  for (const auto& [path, text] : user.files()) {
    constexpr std::string_view folder = "user/", extension = ".json";
    if (!path.ends_with(extension)) continue;
    const std::string name = path.substr(folder.size(), path.size() - folder.size() - extension.size());
    const std::string descriptor = name + ".json", kernel = name + ".cu";
    const UserFiles files{kernel, user.text(fmt::format("user/{}", kernel)), descriptor, text};
    const auto made = std::make_shared<const UserTemplate>(parse_user_descriptor(name, descriptor, text), files);
    algorithms.emplace_back(made->definition(made));
  }
  return algorithms;
}

}  // namespace kiln
