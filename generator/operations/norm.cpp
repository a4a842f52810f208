#include "operations/norm.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "operations/activation.h"
#include "operations/axes.h"
#include "operations/short_form.h"
#include "operations/spatial.h"

namespace kiln {

std::string_view to_string(NormMode mode) {
  switch (mode) {
    case NormMode::standard:
      return "standard";
    case NormMode::rms:
      return "rms";
  }
  return "?";
}

AttributeDefinition norm_mode_attribute() {
  return {"mode",
          std::string("standard"),
          Printing::always,
          {"standard", "rms"},
          "rms: the mean counts as 0, and there is no mean and no running statistic"};
}

ScalarDefinition epsilon_scalar() {
  return {"epsilon", 1e-5F, 1e-5F, "added to the variance; finite and not negative"};
}

OperandDefinition norm_parameter(OperandDefinition operand) {
  operand.batched = false;
  operand.printing = Printing::when_set;
  return operand;
}

OperandDefinition norm_w() {
  return norm_parameter({.name = "w",
                         .role = Role::input,
                         .extents = "in each dimension x's or 1",
                         .left_out = "it is 1",
                         .summary = "what the normalised elements are multiplied by"});
}

OperandDefinition norm_b() {
  return norm_parameter({.name = "b",
                         .role = Role::input,
                         .extents = "in each dimension x's or 1",
                         .left_out = "it is 0",
                         .summary = "added after that"});
}

std::vector<EpilogueStage> norm_stages() {
  return {EpilogueStage::add, EpilogueStage::relu};
}

NormMode norm_mode_of(const Request& request) {
  return request.word("mode") == "rms" ? NormMode::rms : NormMode::standard;
}

std::string_view norm_mode_words(const Request& request) {
  return norm_mode_of(request) == NormMode::rms ? "rms " : "";
}

std::string norm_words(const Request& request, std::string_view input) {
  return fmt::format("normalisation {}{}, axes {}", extents_words(request.at(input)), operand_words(request, input),
                     axes_words(request));
}

std::string norm_epilogue_words(const Request& request) {
  const std::string& activation = request.word("activation");
  return stages_words(request) + (activation == "identity" ? "" : ", " + activation);
}

ScalarRule epsilon_rule() {
  return {0, 0, std::numeric_limits<float>::max(), "give a finite number that is not negative"};
}

std::vector<ScalarRule> norm_rules(const Request& request, bool has_momentum) {
  std::vector<ScalarRule> rules = {epsilon_rule()};
  if (has_momentum) rules.push_back({1, 0, 1, "give 0 to 1"});
  return with_activation_rules(std::move(rules), request);
}

std::optional<TensorSpec> implied_statistics(const Request& request, std::string_view x) {
  const TensorSpec* spec = request.find(x);
  if (spec == nullptr) return std::nullopt;
  return TensorSpec::packed(DType::f32, reduced_extents(request, spec->extents), dimension_letters(spec->rank()));
}

void check_statistics(const Request& request, std::string_view x, std::string_view name) {
  const TensorSpec* spec = request.find(name);
  if (spec == nullptr) return;
  const std::string reason = fmt::format("those of {}, and 1 along the axes", x);
  require_extents(request, name, *spec, reduced_extents(request, request.at(x).extents), reason);
}

void check_parameter(const Request& request, std::string_view x, std::string_view name) {
  const TensorSpec* spec = request.find(name);
  if (spec == nullptr) return;
  const std::vector<int64_t>& extents = request.at(x).extents;
  bool fits = spec->extents.size() == extents.size();
  for (size_t d = 0; fits && d < extents.size(); ++d) {
    fits = spec->extents[d] == extents[d] || spec->extents[d] == 1;
  }
  const std::string reason = fmt::format("those of {}, or 1 where it repeats", x);
  if (!fits) require_extents(request, name, *spec, extents, reason);
  if (request.dynamic_batch && spec->extents.front() != 1) {
    refuse(request, fmt::format("{} has a batch, which is dynamic", name),
           "let it repeat along the batch, or fix that");
  }
}

void check_norm_epilogue(const Request& request) {
  using enum EpilogueStage;
  const std::vector<EpilogueStage>& stages = request.epilogue;
  const bool known =
      stages.empty() || stages == std::vector{add} || stages == std::vector{relu} || stages == std::vector{add, relu};
  if (!known) refuse(request, "its epilogue is add, relu or add+relu", "b is its bias");
  if (request.has(relu) && fused_activation_of(request) != ActivationMode::identity) {
    refuse(request, "its epilogue ends in relu, and it has an activation besides", "leave one of them out");
  }
  if (request.user_code && fused_activation_of(request) != ActivationMode::identity) {
    refuse(request, "it has user code and an activation besides", "write the activation into the expression");
  }
  const TensorSpec* residual = request.find("residual");
  if (residual == nullptr) return;
  if (!request.has(add)) {
    refuse(request, "there is an operand residual but no epilogue stage add", "add epilogue=add or leave out residual");
  }
  require_extents(request, "residual", *residual, request.at("y").extents, "from the extents of y");
}

Work norm_work(const Request& request, double flops) {
  Work work;
  for (const Operand& operand : request.operands) {
    if (is_written(request, operand.name)) work.write_bytes += bytes_of(operand.spec);
    if (is_read(request, operand.name)) work.read_bytes += bytes_of(operand.spec);
  }
  work.flops = flops * static_cast<double>(request.operands.front().spec.elements());
  return work;
}

}  // namespace kiln
