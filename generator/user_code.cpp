#include "user_code.h"

#include <fmt/format.h>

#include <algorithm>

#include "kiln/generator/operation.h"

namespace kiln {
namespace {

const Expression& text_of(const Request& request) {
  if (lacks_user_text(request)) throw missing_user_text(request);
  return *request.user_epilogue.expression();
}

std::vector<const TensorSpec*> user_tensors(const Request& request) {
  std::vector<const TensorSpec*> tensors;
  for (const Operand& operand : request.operands) {
    if (is_user_operand(operand.name)) tensors.push_back(&operand.spec);
  }
  return tensors;
}

// The codes of lib/user_code.cuh.
int64_t dtype_code(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return 0;
    case DType::f16:
      return 1;
    case DType::bf16:
      return 2;
    case DType::i32:
    case DType::i8:
    case DType::u8:
      break;  // refused by finished()
  }
  return 0;
}

void add_tensors(Prelude& prelude, const Request& request) {
  std::vector<int64_t> dtypes, per_channel, alignments, strides;
  const TensorSpec& y = result_of(request).spec;
  const size_t channel = channel_dimension_of(request);
  for (const TensorSpec* tensor : user_tensors(request)) {
    dtypes.push_back(dtype_code(tensor->dtype));
    per_channel.push_back(is_per_channel(request, *tensor) ? 1 : 0);
    alignments.push_back(tensor->alignment);
    // In the dimensions of y: a tensor of channels stays where it is along all others.
    for (size_t i = 0; i < y.extents.size(); ++i) {
      strides.push_back(!is_per_channel(request, *tensor) ? tensor->strides[i] : i == channel ? tensor->strides[0] : 0);
    }
  }
  prelude.constant("USER_TENSORS", static_cast<int64_t>(dtypes.size())).constant("USER_RANK", y.rank());
  prelude.constant("USER_CHANNEL_DIMENSION", static_cast<int64_t>(channel));
  for (auto* values : {&dtypes, &per_channel, &alignments, &strides}) {
    if (values->empty()) values->push_back(0);  // an array has an element
  }
  prelude.array("USER_DTYPES", dtypes).array("USER_PER_CHANNEL", per_channel);
  prelude.array("USER_ALIGNMENTS", alignments).array("USER_STRIDES", strides);
  std::vector<int64_t> extents = y.extents;
  for (int64_t& extent : extents) extent = std::max<int64_t>(extent, 1);  // an empty tensor starts no block
  prelude.array("USER_EXTENTS", extents);
}

// What the prologue reads: one element for each channel of the input.
void add_prologue_tensors(Prelude& prelude, const Request& request) {
  std::vector<int64_t> dtypes, strides;
  for (const Operand& operand : request.operands) {
    if (!is_prologue_operand(operand.name)) continue;
    dtypes.push_back(dtype_code(operand.spec.dtype));
    strides.push_back(operand.spec.strides[0]);
  }
  prelude.constant("USER_PROLOGUE_TENSORS", static_cast<int64_t>(dtypes.size()));
  for (auto* values : {&dtypes, &strides}) {
    if (values->empty()) values->push_back(0);  // an array has an element
  }
  prelude.array("USER_PROLOGUE_DTYPES", dtypes).array("USER_PROLOGUE_STRIDES", strides);
}

// The user's text under its own line numbers.
std::string placed(const Expression::Part& part) {
  return fmt::format("#line {} \"{}\"\n{}", part.line, user_code_file, part.text);
}

std::string function_body(const Expression::Part& part) {
  if (!part.one_expression) return placed(part);
  return fmt::format("  return (\n{}  );\n", placed(part));
}

std::string scalar_names(const Expression& expression) {
  std::string text;
  for (size_t i = 0; i < expression.scalars().size(); ++i) {
    text += fmt::format("  const float {} = scalars[{}];\n", expression.scalars()[i], i);
  }
  return text;
}

// What the names of the values mean, then the user's text.
std::string epilogue_text(const Request& request, const Expression& expression) {
  if (expression.epilogue().empty()) return "  return acc;\n";
  std::string text;
  const std::string_view channel = operation(request.operation).channel_name();
  if (!channel.empty()) text += fmt::format("  const ChannelIndex {}(channel);\n", channel);
  for (size_t i = 0; i < expression.epilogue_tensors(); ++i) {
    const std::string& name = expression.tensors()[i];
    const bool per_channel = is_per_channel(request, request.at(user_operand_name(expression, i)));
    text += fmt::format("  const {} {}{{values.tensors[{}]}};\n", per_channel ? "ChannelValue" : "float", name, i);
  }
  return text + scalar_names(expression) + function_body(expression.epilogue());
}

// The channel is `c` whatever the epilogue calls its own: of a convolution, and a product, it is another one.
std::string prologue_text(const Request& request, const Expression& expression) {
  if (expression.prologue().empty()) return "  return x;\n";
  const bool has_channels = !operation(request.operation).channel_name().empty();
  std::string text = has_channels ? "  const ChannelIndex c(channel);\n" : "";
  for (size_t i = expression.epilogue_tensors(); i < expression.tensors().size(); ++i) {
    text += fmt::format("  const ChannelValue {}{{values.tensors[{}]}};\n", expression.tensors()[i],
                        i - expression.epilogue_tensors());
  }
  return text + scalar_names(expression) + function_body(expression.prologue());
}

}  // namespace

void add_user_code(Prelude& prelude, const Request& request) {
  const bool has_code = static_cast<bool>(request.user_epilogue);
  add_tensors(prelude, request);
  add_prologue_tensors(prelude, request);
  if (!has_code) {
    prelude.flag("USER_EPILOGUE", false).flag("USER_PROLOGUE", false).constant("USER_SCALARS", 0);
    prelude.place("user/functions", "");
    prelude.place("user/prologue", "  return x;\n").place("user/epilogue", "  return acc;\n");
    return;
  }
  const Expression& expression = text_of(request);
  prelude.flag("USER_EPILOGUE", !expression.epilogue().empty()).flag("USER_PROLOGUE", !expression.prologue().empty());
  prelude.constant("USER_SCALARS", static_cast<int64_t>(expression.scalars().size()));
  prelude.place("user/functions", expression.functions().empty() ? std::string() : placed(expression.functions()));
  prelude.place("user/prologue", prologue_text(request, expression));
  prelude.place("user/epilogue", epilogue_text(request, expression));
}

bool has_prologue(const Request& request) {
  return request.user_epilogue && !text_of(request).prologue().empty();
}

}  // namespace kiln
