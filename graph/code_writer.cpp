#include "code_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "affine.h"
#include "rewrite.h"

namespace kiln::graph {
namespace {

template <typename Element>
size_t place_in(std::vector<Element>& all, const Element& one) {
  const auto found = std::find(all.begin(), all.end(), one);
  const auto place = static_cast<size_t>(found - all.begin());
  if (found == all.end()) all.push_back(one);
  return place;
}

}  // namespace

std::string CodeWriter::tensor(ValueId value) {
  return fmt::format("{}{}", names_.tensor, place_in(tensors_, value));
}

std::string CodeWriter::number(float value) {
  return fmt::format("{}{}", names_.number, place_in(numbers_, value));
}

void CodeWriter::line(const std::string& name, const std::string& expression) {
  lines_ += fmt::format("const float {} = {};\n", name, expression);
}

std::string CodeWriter::function(const std::string& body, size_t inputs, const Numbers& numbers) {
  std::vector<std::string> parameters;
  for (size_t i = 0; i < inputs; ++i) parameters.push_back(fmt::format("float {}", static_cast<char>('a' + i)));
  for (const auto& [name, number] : numbers) parameters.push_back("float " + name);
  const std::string text = fmt::format("({}) {{\n  {}\n}}\n", fmt::join(parameters, ", "), body);
  const auto [place, is_new] = functions_.try_emplace(text, fmt::format("{}{}", names_.function, functions_.size()));
  if (is_new) definitions_ += fmt::format("__device__ __forceinline__ float {}{}", place->second, text);
  return place->second;
}

bool CodeWriter::fits() const {
  return tensors_.size() <= Expression::max_tensors && numbers_.size() <= Expression::max_scalars;
}

std::vector<std::string> CodeWriter::tensor_names() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < tensors_.size(); ++i) names.push_back(fmt::format("{}{}", names_.tensor, i));
  return names;
}

Numbers CodeWriter::numbers() const {
  Numbers all;
  for (size_t i = 0; i < numbers_.size(); ++i) all.emplace_back(fmt::format("{}{}", names_.number, i), numbers_[i]);
  return all;
}

std::string CodeWriter::statements(const std::string& result) const {
  return fmt::format("{}return {};", lines_, result);
}

void write_stages(const Call& call, CodeWriter& writer) {
  const auto bound = [&](const char* name, float usual) {
    for (const auto& [own, number] : call.numbers) usual = own == name ? number : usual;
    return writer.number(usual);
  };
  constexpr float infinite = std::numeric_limits<float>::infinity();
  std::string value = "acc";
  for (const EpilogueStage stage : call.request.epilogue) {
    const auto operand = [&](const char* name) { return writer.tensor(find(call.inputs, name)->value); };
    if (stage == EpilogueStage::bias) value = fmt::format("({} + {})", value, operand("bias"));
    if (stage == EpilogueStage::add) value = fmt::format("({} + {})", value, operand("residual"));
    if (stage == EpilogueStage::relu) value = fmt::format("relu({})", value);
    if (stage == EpilogueStage::clip) {
      const std::string low = bound("clip_lo", -infinite), high = bound("clip_hi", infinite);
      value = fmt::format("clamp({}, {}, {})", value, low, high);
    }
  }
  writer.line("v", value);
}

void drop_stages(Call& call) {
  std::erase_if(call.inputs, [](const Operand& o) { return o.name == "bias" || o.name == "residual"; });
  std::erase_if(call.numbers, [](const auto& number) { return number.first.starts_with("clip_"); });
  call.request.epilogue.clear();
}

}  // namespace kiln::graph
