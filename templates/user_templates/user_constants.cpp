#include "user_templates/user_constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "conv/conv_contractions.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/strided.h"
#include "pool/pool_problem.h"
#include "softmax/softmax_rows.h"

namespace kiln {
namespace {

// Adds the constants of one operand besides its strides that the descriptor may ask for: its element's bytes, its
// alignment and whether it is packed.
void add_operand(Prelude& prelude, const std::string& name, const TensorSpec& spec) {
  const auto packed = [&](const char* order) { return spec.rank() == 4 && spec.is_packed(order); };
  prelude.constant(name + "_BYTES", size_of(spec.dtype)).constant(name + "_ALIGNMENT", spec.alignment);
  prelude.flag(name + "_NCHW", packed("nchw")).flag(name + "_NHWC", packed("nhwc"));
}

Prelude of_conv(const Request& request) {
  Prelude prelude = descriptor::contraction_prelude(descriptor::convolution(ConvForward::of(request)));
  add_operand(prelude, "X", request.at("x"));
  add_operand(prelude, "W", request.at("w"));
  add_operand(prelude, "Y", request.at("y"));
  prelude.flag("HAS_BIAS", request.find("bias") != nullptr);
  prelude.flag("HAS_RESIDUAL", request.find("residual") != nullptr);
  return prelude;
}

Prelude of_pool(const Request& request) {
  Prelude prelude = descriptor::pool_prelude(descriptor::PoolProblem::of(request));
  add_operand(prelude, "X", request.at("x"));
  add_operand(prelude, "Y", request.at("y"));
  return prelude;
}

Prelude of_softmax(const Request& request) {
  const descriptor::SoftmaxRows softmax = descriptor::SoftmaxRows::of(request);
  Prelude prelude = descriptor::softmax_prelude(softmax);
  const std::optional<descriptor::RowDimension> rows = descriptor::contiguous_rows(softmax);
  prelude.flag("CONTIGUOUS_ROWS", rows.has_value());
  prelude.constant("X_ROW_STRIDE", rows ? rows->strides.front() : 0);
  prelude.constant("Y_ROW_STRIDE", rows ? rows->strides.back() : 0);
  const TensorSpec &x = request.at("x"), &y = request.at("y");
  prelude.constant("X_BYTES", size_of(x.dtype)).constant("X_ALIGNMENT", x.alignment);
  prelude.constant("Y_BYTES", size_of(y.dtype)).constant("Y_ALIGNMENT", y.alignment);
  return prelude;
}

// inv_deviation -> INV_DEVIATION
std::string upper(std::string_view name) {
  std::string text(name);
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

// inv_deviation -> TInvDeviation
std::string type_name(std::string_view operand) {
  std::string name = "T";
  bool starts = true;
  for (const char c : operand) {
    if (c != '_') name += starts ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    starts = c == '_';
  }
  return name;
}

// An operand that a request may lack: extents of 1 and strides of 0 then, as behind its last dimension.
void add_any_operand(Prelude& prelude, const std::string& operand, const TensorSpec* spec) {
  constexpr size_t most_dimensions = 6;  // of normalisations, and filters of regions
  const std::string name = upper(operand);
  const size_t rank = spec == nullptr ? 0 : spec->extents.size();
  prelude.flag("HAS_" + name, spec != nullptr).constant(name + "_RANK", static_cast<int64_t>(rank));
  for (size_t d = 0; d < most_dimensions; ++d) {
    prelude.constant(fmt::format("{}_EXTENT_{}", name, d), d < rank ? spec->extents[d] : 1);
    prelude.constant(fmt::format("{}_STRIDE_{}", name, d), d < rank ? spec->strides[d] : 0);
  }
  prelude.flag(name + "_PACKED", spec != nullptr && spec->is_packed(dimension_letters(static_cast<int>(rank))));
  prelude.constant(name + "_BYTES", spec == nullptr ? 0 : size_of(spec->dtype));
  prelude.constant(name + "_ALIGNMENT", spec == nullptr ? 0 : spec->alignment);
  prelude.type(type_name(operand), spec == nullptr ? DType::f32 : spec->dtype);
}

// Words become flags, lists their numbers and how many there are.
void add_attribute(Prelude& prelude, const AttributeDefinition& definition, const Request* request) {
  constexpr size_t most_numbers = 10;  // pads of five dimensions
  const std::string name = upper(definition.name);
  for (const std::string& word : definition.words) {
    prelude.flag(name + "_" + upper(word), request != nullptr && request->word(definition.name) == word);
  }
  if (!definition.words.empty()) return;
  const std::vector<int64_t> numbers = request == nullptr ? std::vector<int64_t>{} : request->ints(definition.name);
  prelude.constant(name + "_COUNT", static_cast<int64_t>(numbers.size()));
  for (size_t i = 0; i < most_numbers; ++i) {
    prelude.constant(fmt::format("{}_{}", name, i), i < numbers.size() ? numbers[i] : 0);
  }
}

// Constants of requests of every operation; without a request, the names alone.
Prelude constants_of_any_operation(const Operation& operation, const Request* request) {
  Prelude prelude;
  for (const OperandDefinition& operand : operation.operands()) {
    add_any_operand(prelude, operand.name, request == nullptr ? nullptr : request->find(operand.name));
  }
  for (const AttributeDefinition& attribute : operation.attributes()) {
    if (attribute.printing != Printing::never) add_attribute(prelude, attribute, request);
  }
  for (const EpilogueStage stage : all_stages) {
    prelude.flag("EPILOGUE_" + upper(to_string(stage)), request != nullptr && request->has(stage));
  }
  bool wide = false;
  if (request != nullptr) {
    for (const Operand& operand : request->operands) wide = wide || descriptor::needs_wide_index({&operand.spec});
  }
  prelude.index_type("Index", wide);
  descriptor::add_batch(prelude, request == nullptr ? 0 : request->batch(),
                        request != nullptr && request->dynamic_batch);
  descriptor::add_blend(prelude, request == nullptr ? Blend{} : request->blend);
  return prelude;
}

// An operation whose constants have names of their own, and a request to name them from.
struct Own {
  Prelude (*constants)(const Request& request);
  Request sample;
};

const Own* own_of(std::string_view operation) {
  static const std::map<std::string, Own, std::less<>> all = {
      {"conv_forward", {of_conv, Request::parse("conv_forward x=f32:1x1x1x1 w=f32:1x1x1x1")}},
      {"pool_forward", {of_pool, Request::parse("pool_forward x=f32:1x1x1x1 window=1")}},
      {"softmax_forward", {of_softmax, Request::parse("softmax_forward x=f32:1x1")}}};
  const auto found = all.find(operation);
  return found == all.end() ? nullptr : &found->second;
}

}  // namespace

Prelude user_constants(const Request& request) {
  const Own* const own = own_of(request.operation);
  Prelude prelude =
      own != nullptr ? own->constants(request) : constants_of_any_operation(operation(request.operation), &request);
  prelude.flag("USER_CODE", static_cast<bool>(request.user_code));
  return prelude;
}

Prelude user_constants_of_any(const Operation& operation) {
  if (const Own* const own = own_of(operation.name())) return user_constants(own->sample);
  Prelude prelude = constants_of_any_operation(operation, nullptr);
  prelude.flag("USER_CODE", false);
  return prelude;
}

}  // namespace kiln
