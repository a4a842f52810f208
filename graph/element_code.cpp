#include "element_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "kiln/generator/operations/activation.h"
#include "rewrite.h"

namespace kiln::graph {
namespace {

/// Code of tensor_op's functions of a, b and c; NaN is treated as tensor_op does.
const std::map<std::string, std::string>& tensor_ops() {
  static const std::map<std::string, std::string> all = {
      {"add", "return a + b;"},
      {"sub", "return a - b;"},
      {"mul", "return a * b;"},
      {"div", "return a / b;"},
      {"min", "return a < b || a != a ? a : b;"},
      {"max", "return a > b || a != a ? a : b;"},
      {"pow", "return b == 2.0f ? a * a : powf(a, b);"},
      {"eq", "return a == b ? 1.0f : 0.0f;"},
      {"ne", "return a != b ? 1.0f : 0.0f;"},
      {"lt", "return a < b ? 1.0f : 0.0f;"},
      {"le", "return a <= b ? 1.0f : 0.0f;"},
      {"gt", "return a > b ? 1.0f : 0.0f;"},
      {"ge", "return a >= b ? 1.0f : 0.0f;"},
      {"sqrt", "return sqrtf(a);"},
      {"exp", "return expf(a);"},
      {"log", "return logf(a);"},
      {"abs", "return fabsf(a);"},
      {"neg", "return -a;"},
      {"not", "return a == 0.0f ? 1.0f : 0.0f;"},
      {"select", "return a != 0.0f ? b : c;"},
  };
  return all;
}

/// Activations of a with their limits at infinities: where a gate is 0, so is the product.
const std::map<std::string, std::string>& activations() {
  static const std::map<std::string, std::string> all = {
      {"identity", "return a;"},
      {"relu", "return relu(a);"},
      {"clipped_relu", "return clamp(a, 0.0f, high);"},
      {"clip", "return clamp(a, low, high);"},
      {"leaky_relu", "return leaky_relu(a, slope);"},
      {"sigmoid", "return sigmoid(a);"},
      {"tanh", "return tanhf(a);"},
      {"elu", "return elu(a, slope);"},
      {"selu", "return a < 0.0f ? 1.7580993408473766f * expm1f(a) : 1.0507009873554805f * a;"},
      {"softplus", "return softplus(slope * a) / slope;"},
      {"swish", "const float gate = sigmoid(slope * a);\n  return gate == 0.0f ? 0.0f : a * gate;"},
      {"gelu", "const float gate = 1.0f + erff(0.70710678f * a);\n  return gate == 0.0f ? 0.0f : 0.5f * a * gate;"},
      {"gelu_tanh",
       "const float gate = sigmoid(1.5957691216f * (a + 0.044715f * a * a * a));\n"
       "  return gate == 0.0f ? 0.0f : a * gate;"},
      {"hard_swish",
       "const float gate = clamp(a + 3.0f, 0.0f, 6.0f);\n  return gate == 0.0f ? 0.0f : a * gate / 6.0f;"},
      {"hard_sigmoid", "return clamp(slope * a + offset, 0.0f, 1.0f);"},
      {"mish", "const float gate = tanhf(softplus(a));\n  return gate == 0.0f ? 0.0f : a * gate;"},
  };
  return all;
}

std::optional<float> number_called(const Call& call, const std::string& name) {
  for (const auto& [own, number] : call.numbers) {
    if (own == name) return number;
  }
  return std::nullopt;
}

bool uses(const std::string& body, const std::string& name) {
  size_t at = 0;
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  while ((at = body.find(name, at)) != std::string::npos) {
    const bool starts = at == 0 || !is_letter(body[at - 1]);
    at += name.size();
    if (starts && (at == body.size() || !is_letter(body[at]))) return true;
  }
  return false;
}

/// The call's own user code: `acc` is the input, tensors and scalars have their names.
ElementCode own_code(const Call& call) {
  const Expression& code = *call.request.user_code.expression();
  ElementCode result;
  std::string aliases;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    result.inputs.push_back(call.inputs[i].value);
    const std::string name = i == 0 ? "acc" : call.inputs[i].name.substr(user_epilogue_prefix.size());
    aliases += fmt::format("const float {} = {};\n  ", name, static_cast<char>('a' + i));
  }
  result.numbers = call.numbers;
  const Expression::Part& text = code.epilogue();
  result.body = aliases + (text.one_expression ? fmt::format("return {};", text.text) : text.text);
  return result;
}

}  // namespace

std::optional<ElementCode> code_of(const Call& call) {
  const Request& request = call.request;
  const bool is_plain = request.epilogue.empty() && request.blend.beta == Scale::zero && call.outputs.size() == 1;
  if (!is_plain || (request.operation != "tensor_op" && request.operation != "activation_forward")) return std::nullopt;
  const std::string* mode = word_of(call, "mode");
  if (mode == nullptr) return std::nullopt;
  if (request.user_code) {
    const Expression* code = request.user_code.expression();
    const bool simple = code != nullptr && code->prologue().empty() && code->functions().empty();
    if (*mode != "identity" || !simple || request.blend.alpha != Scale::one) return std::nullopt;
    return own_code(call);
  }
  const auto& bodies = request.operation == "tensor_op" ? tensor_ops() : activations();
  const auto found = bodies.find(*mode);
  if (found == bodies.end()) return std::nullopt;
  ElementCode code{found->second, {}, {}};
  for (const Operand& input : call.inputs) code.inputs.push_back(input.value);
  if (request.operation == "activation_forward") {
    const auto is_called = [&](ActivationMode each) { return to_string(each) == *mode; };
    const ActivationNumbers usual =
        usual_numbers(*std::find_if(activation_modes().begin(), activation_modes().end(), is_called));
    const std::pair<const char*, float> all[] = {
        {"slope", usual.slope}, {"offset", usual.offset}, {"low", usual.low}, {"high", usual.high}};
    for (const auto& [name, fallback] : all) {
      if (uses(code.body, name)) code.numbers.emplace_back(name, number_called(call, name).value_or(fallback));
    }
  }
  if (request.blend.alpha == Scale::any) {
    const size_t at = code.body.find("return ");
    const size_t end = code.body.rfind(';');
    code.body = fmt::format("{}return alpha * ({});", code.body.substr(0, at), code.body.substr(at + 7, end - at - 7));
    code.numbers.emplace_back("alpha", number_called(call, "alpha").value_or(1));
  }
  return request.blend.alpha == Scale::zero ? std::nullopt : std::optional(std::move(code));
}

}  // namespace kiln::graph
