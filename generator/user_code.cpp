#include "user_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "kiln/generator/operation.h"

namespace kiln {
namespace {

const Expression& text_of(const Request& request) {
  if (lacks_user_text(request)) throw missing_user_text(request);
  return *request.user_code.expression();
}

std::vector<const TensorSpec*> user_tensors(const Request& request) {
  std::vector<const TensorSpec*> tensors;
  for (const Operand& operand : request.operands) {
    if (is_epilogue_operand(operand.name)) tensors.push_back(&operand.spec);
  }
  return tensors;
}

// The strides of a user's tensor along the dimensions of y, 0 where it repeats: one of channels does along all others.
std::vector<int64_t> strides_along(const Request& request, const TensorSpec& tensor) {
  const TensorSpec& y = result_of(request).spec;
  std::vector<int64_t> strides(y.extents.size(), 0);
  if (is_per_channel(request, tensor)) {
    strides[channel_dimension_of(request)] = tensor.strides[0];
    return strides;
  }
  for (size_t i = 0; i < strides.size(); ++i) {
    if (tensor.extents[i] > 1) strides[i] = tensor.strides[i];
  }
  return strides;
}

// The digits of an offset in y, for lib/user_code.cuh: the strides of y, largest first, and those of a tensor along
// them.
struct Digits {
  std::vector<int64_t> y_steps, steps;

  Digits(const TensorSpec& y, const std::vector<int64_t>& strides) {
    std::vector<size_t> order;
    for (size_t i = 0; i < y.extents.size(); ++i) {
      if (y.extents[i] > 1) order.push_back(i);
    }
    if (y.elements() == 0) order.clear();  // only strides of elements nest
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return y.strides[a] > y.strides[b]; });
    for (const size_t i : order) {
      if (!steps.empty() && y_steps.back() == y.strides[i] * y.extents[i] &&
          steps.back() == strides[i] * y.extents[i]) {
        y_steps.pop_back();
        steps.pop_back();
      }
      y_steps.push_back(y.strides[i]);
      steps.push_back(strides[i]);
    }
    if (steps == y_steps) y_steps = steps = {};
  }

  // Neighbours of digits with these strides: how many, from a multiple of their number on, differ in the last digit
  // only.
  static int64_t neighbours(const std::vector<int64_t>& along) {
    constexpr int64_t most = 16;  // elements in the largest access
    if (along.empty() || along.back() != 1) return 1;
    int64_t count = most;
    for (size_t i = 0; i + 1 < along.size(); ++i) count = std::gcd(count, along[i]);
    return count;
  }
};

// Lists that describe one tensor after the other.
struct Descriptions {
  std::vector<DType> dtypes;
  std::vector<int64_t> per_channel, alignments, strides, digits, y_steps, steps, rows, widths;

  void add(const Request& request, const TensorSpec& tensor) {
    const TensorSpec& y = result_of(request).spec;
    const std::vector<int64_t> along = strides_along(request, tensor);
    const bool of_channels = is_per_channel(request, tensor);
    const Digits own(y, of_channels ? y.strides : along);
    dtypes.push_back(tensor.dtype);
    per_channel.push_back(of_channels ? 1 : 0);
    alignments.push_back(tensor.alignment);
    strides.insert(strides.end(), along.begin(), along.end());
    digits.push_back(static_cast<int64_t>(own.steps.size()));
    rows.push_back(Digits::neighbours(own.y_steps));
    const int64_t aligned = tensor.alignment >= 16 ? 16 : tensor.alignment / size_of(tensor.dtype);
    widths.push_back(std::min(Digits::neighbours(own.steps), aligned));
    for (auto [all, each] : {std::pair(&y_steps, &own.y_steps), std::pair(&steps, &own.steps)}) {
      all->insert(all->end(), each->begin(), each->end());
      all->resize(strides.size(), 0);
    }
  }

  void add_to(Prelude& prelude) const {
    prelude.types("USER_DTYPES", dtypes);
    prelude.array("USER_PER_CHANNEL", per_channel).array("USER_ALIGNMENTS", alignments);
    prelude.extents("USER_STRIDES", strides).array("USER_DIGITS", digits);
    prelude.extents("USER_Y_STEPS", y_steps).extents("USER_STEPS", steps);
    prelude.array("USER_ROWS", rows).array("USER_WIDTHS", widths);
  }
};

void add_tensors(Prelude& prelude, const Request& request) {
  const TensorSpec& y = result_of(request).spec;
  const std::vector<const TensorSpec*> tensors = user_tensors(request);
  Descriptions descriptions;
  for (const TensorSpec* tensor : tensors) descriptions.add(request, *tensor);
  std::vector<int64_t> extents = y.extents;
  for (int64_t& extent : extents) extent = std::max<int64_t>(extent, 1);  // an empty tensor starts no block
  // Where there are none, results of any rank have equal sources.
  if (tensors.empty()) extents = {1};
  prelude.constant("USER_TENSORS", static_cast<int64_t>(tensors.size()));
  prelude.constant("USER_RANK", static_cast<int64_t>(extents.size()));
  prelude.constant("USER_CHANNEL_DIMENSION", tensors.empty() ? 0 : static_cast<int64_t>(channel_dimension_of(request)));
  descriptions.add_to(prelude);
  prelude.extents("USER_EXTENTS", extents);
}

// Adds what results of a prologue are rounded to, if they are; without that, types of inputs need not be told apart.
void add_rounding(Prelude& prelude, const Request& request) {
  const bool rounds = has_rounded_prologue(request);
  const std::string_view input = operation(request.operation).prologue_operand();
  prelude.flag("USER_ROUNDS", rounds).type("UserInput", rounds ? request.at(input).dtype : DType::f32);
}

// Adds the tensors that the prologue reads: one element for each channel of the input, or for each image and channel.
void add_prologue_tensors(Prelude& prelude, const Request& request) {
  std::vector<DType> dtypes;
  std::vector<int64_t> alignments, strides, image_strides;
  for (const Operand& operand : request.operands) {
    if (!is_prologue_operand(operand.name)) continue;
    dtypes.push_back(operand.spec.dtype);
    alignments.push_back(operand.spec.alignment);
    strides.push_back(operand.spec.strides.back());
    const bool repeats = operand.spec.rank() == 1 || operand.spec.extents[0] <= 1;
    image_strides.push_back(repeats ? 0 : operand.spec.strides[0]);
  }
  prelude.constant("USER_PROLOGUE_TENSORS", static_cast<int64_t>(dtypes.size()));
  prelude.types("USER_PROLOGUE_DTYPES", dtypes);
  prelude.array("USER_PROLOGUE_ALIGNMENTS", alignments).array("USER_PROLOGUE_STRIDES", strides);
  prelude.flag("USER_OF_IMAGES", has_prologue_of_images(request)).array("USER_PROLOGUE_IMAGE_STRIDES", image_strides);
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

// Declares the names of the values, then gives the user's text.
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

// The channel is `c` whatever the epilogue calls its own, if it knows any: of a convolution, and a product, it is
// another one.
std::string prologue_text(const Request& request, const Expression& expression) {
  if (expression.prologue().empty()) return "  return x;\n";
  std::string text = prologue_channel_dimension_of(request) ? "  const ChannelIndex c(channel);\n" : "";
  for (size_t i = expression.epilogue_tensors(); i < expression.tensors().size(); ++i) {
    text += fmt::format("  const ChannelValue {}{{values.tensors[{}]}};\n", expression.tensors()[i],
                        i - expression.epilogue_tensors());
  }
  return text + scalar_names(expression) + function_body(expression.prologue());
}

}  // namespace

void add_user_code(Prelude& prelude, const Request& request) {
  const bool has_code = static_cast<bool>(request.user_code);
  add_tensors(prelude, request);
  add_prologue_tensors(prelude, request);
  add_rounding(prelude, request);
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

}  // namespace kiln
