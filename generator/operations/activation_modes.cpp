// Names, numbers and properties of the activation functions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kiln/base/error.h"
#include "operations/activation.h"

namespace kiln {
namespace {

constexpr std::string_view fused = "activation";  // the attribute of operations that take one in

ActivationMode mode_called(std::string_view word) {
  const std::vector<std::string>& words = activation_words();
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) throw Error(ErrorCode::internal, "an activation without a mode");
  return activation_modes()[static_cast<size_t>(found - words.begin())];
}

}  // namespace

const std::vector<ActivationMode>& activation_modes() {
  using enum ActivationMode;
  static const std::vector<ActivationMode> all = {identity,  relu,       clipped_relu, clip,     leaky_relu, sigmoid,
                                                  tanh,      elu,        selu,         softplus, swish,      gelu,
                                                  gelu_tanh, hard_swish, hard_sigmoid, mish};
  return all;
}

std::string_view to_string(ActivationMode mode) {
  switch (mode) {
    case ActivationMode::identity:
      return "identity";
    case ActivationMode::relu:
      return "relu";
    case ActivationMode::clipped_relu:
      return "clipped_relu";
    case ActivationMode::clip:
      return "clip";
    case ActivationMode::leaky_relu:
      return "leaky_relu";
    case ActivationMode::sigmoid:
      return "sigmoid";
    case ActivationMode::tanh:
      return "tanh";
    case ActivationMode::elu:
      return "elu";
    case ActivationMode::selu:
      return "selu";
    case ActivationMode::softplus:
      return "softplus";
    case ActivationMode::swish:
      return "swish";
    case ActivationMode::gelu:
      return "gelu";
    case ActivationMode::gelu_tanh:
      return "gelu_tanh";
    case ActivationMode::hard_swish:
      return "hard_swish";
    case ActivationMode::hard_sigmoid:
      return "hard_sigmoid";
    case ActivationMode::mish:
      return "mish";
  }
  return "?";
}

ActivationNumbers usual_numbers(ActivationMode mode) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  switch (mode) {
    case ActivationMode::leaky_relu:
      return {.slope = 0.01F};
    case ActivationMode::elu:
    case ActivationMode::softplus:
    case ActivationMode::swish:
      return {.slope = 1};
    case ActivationMode::hard_sigmoid:
      return {.slope = 1.0F / 6, .offset = 0.5F};
    case ActivationMode::clipped_relu:
      return {.high = 6};
    case ActivationMode::clip:
      return {.low = -infinity, .high = infinity};
    default:
      return {};
  }
}

bool has_derivative_from_y(ActivationMode mode) {
  using enum ActivationMode;
  switch (mode) {
    case identity:
    case relu:
    case clipped_relu:
    case leaky_relu:
    case sigmoid:
    case tanh:
    case elu:
    case selu:
    case softplus:
      return true;
    default:
      return false;
  }
}

double steepest_slope(ActivationMode mode, float slope) {
  using enum ActivationMode;
  switch (mode) {
    case identity:
    case relu:
    case clipped_relu:
    case clip:
    case tanh:
    case softplus:
      return 1;
    case sigmoid:
      return 0.25;
    case leaky_relu:
    case elu:
      return std::max(1.0, std::fabs(static_cast<double>(slope)));
    case selu:
      return 1.7581;
    case swish:
      return 1.0999;
    case gelu:
    case gelu_tanh:
      return 1.1290;
    case hard_swish:
      return 1.5;
    case hard_sigmoid:
      return std::fabs(slope);
    case mish:
      return 1.0885;
  }
  return std::numeric_limits<double>::infinity();
}

const std::vector<std::string>& activation_words() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> all;
    for (ActivationMode mode : activation_modes()) all.emplace_back(to_string(mode));
    return all;
  }();
  return words;
}

ActivationMode activation_mode_of(const Request& request) {
  return mode_called(request.word("mode"));
}

ActivationMode fused_activation_of(const Request& request) {
  for (const Attribute& attribute : request.attributes) {
    if (attribute.name == fused) return mode_called(std::get<std::string>(attribute.value));
  }
  return ActivationMode::identity;
}

AttributeDefinition fused_activation_attribute() {
  return {std::string(fused), std::string("identity"), Printing::when_set, activation_words(),
          "the function that is applied to the result, after the epilogue; not with relu, nor with user code"};
}

std::vector<ScalarDefinition> with_activation_scalars(std::vector<ScalarDefinition> own) {
  own.insert(own.end(), activation_scalars().begin(), activation_scalars().end());
  return own;
}

std::vector<ScalarRule> with_activation_rules(std::vector<ScalarRule> own, const Request& request) {
  const size_t first = operation(request.operation).scalars().size() - activation_scalars().size();
  for (ScalarRule rule : activation_rules(fused_activation_of(request), false)) {
    rule.scalar += first;
    if (rule.floor) *rule.floor += first;
    own.push_back(rule);
  }
  return own;
}

const std::vector<ScalarDefinition>& activation_scalars() {
  // Values of checks lie where fills of small integers meet every branch, and the kinks of the clipped functions.
  static const std::vector<ScalarDefinition> scalars = {
      {"slope", std::nullopt, 0.375F, "a of leaky_relu, elu, softplus, swish and hard_sigmoid"},
      {"offset", std::nullopt, 0.5F, "b of hard_sigmoid"},
      {"low", std::nullopt, -1.0F, "the least result of clip"},
      {"high", std::nullopt, 1.0F, "the largest result of clip and clipped_relu"},
  };
  return scalars;
}

std::vector<ScalarRule> activation_rules(ActivationMode mode, bool from_y) {
  using Limits = std::numeric_limits<float>;
  constexpr size_t slope = 0, offset = 1, low = 2, high = 3;
  constexpr float infinity = Limits::infinity();
  constexpr std::string_view any = "give a number";
  switch (mode) {
    case ActivationMode::leaky_relu:
    case ActivationMode::elu:
      // A negative slope makes f fall below 0: y does not say on which side x was.
      if (from_y) return {{slope, 0, Limits::max(), "give a slope that is not negative, or take the gradient from x"}};
      return {{slope, -infinity, infinity, any}};
    case ActivationMode::softplus:
      return {{slope, Limits::min(), Limits::max(), "give a normal number above 0"}};
    case ActivationMode::swish:
      return {{slope, -infinity, infinity, any}};
    case ActivationMode::hard_sigmoid:
      return {{slope, -infinity, infinity, any}, {offset, -infinity, infinity, any}};
    case ActivationMode::clipped_relu:
      return {{high, 0, infinity, "give a number that is not negative"}};
    case ActivationMode::clip:
      return {{low, -infinity, infinity, any}, {high, -infinity, infinity, "give low <= high", low}};
    default:
      return {};
  }
}

}  // namespace kiln
