#include "shapes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/base/printable.h"
#include "numbers.h"

namespace kiln::cli {
namespace {

using Extents = std::vector<int64_t>;

[[noreturn]] void refuse(const std::string& whole, const std::string& fault) {
  throw Error(
      ErrorCode::invalid_argument, fmt::format("--shape {}: {}", whole, fault),
      "give [NAME=]1x3x224x224; several with commas between; 224..448/32 is 224, 256, ... 448; 14..56*2 is 14, 28, "
      "56");
}

/// Every shape that the ranges of "1x3x224..448/32x224" give.
void add_shapes(const std::string& whole, std::string_view text, std::vector<Extents>& shapes) {
  std::vector<Extents> made(1);
  while (true) {
    const bool is_last = text.find('x') == std::string_view::npos;
    const Extents numbers = numbers_of(take_part(text, "x"), [&](const std::string& fault) { refuse(whole, fault); });
    std::vector<Extents> longer;
    if (made.size() * numbers.size() > most_sizes) refuse(whole, fmt::format("gives more than {} sizes", most_sizes));
    for (const Extents& shape : made) {
      for (const int64_t number : numbers) {
        longer.push_back(shape);
        longer.back().push_back(number);
      }
    }
    made = std::move(longer);
    if (is_last) break;
  }
  shapes.insert(shapes.end(), made.begin(), made.end());
  if (shapes.size() > most_sizes) refuse(whole, fmt::format("gives more than {} sizes", most_sizes));
}

/// The input that a text is about.
std::string input_of(const std::string& text, std::string_view name, const OnnxInputs& inputs,
                     const std::map<std::string, std::vector<Extents>>& known) {
  std::vector<std::string> names;
  for (const OnnxInput& input : inputs.all()) names.push_back(printable_name(input.name));
  for (const OnnxInput& input : inputs.all()) {
    const bool is_meant = name.empty() ? !known.contains(input.name) : input.name == name;
    if (!is_meant) continue;
    if (known.contains(input.name)) refuse(text, fmt::format("'{}' is given twice", printable_name(input.name)));
    return input.name;
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("--shape {} fits no input of the model", text),
              fmt::format("the model has {} inputs: {}", names.size(), fmt::join(names, ", ")));
}

bool say_the_batch(const InputShapes& shapes, const OnnxInputs& inputs) {
  return std::any_of(inputs.all().begin(), inputs.all().end(), [&](const OnnxInput& input) {
    return shapes.contains(input.name) && std::any_of(input.extents.begin(), input.extents.end(),
                                                      [](const OnnxExtent& extent) { return extent.is_batch; });
  });
}

}  // namespace

void use_shapes(ModelOptions& options, const InputShapes& shapes, const OnnxInputs& inputs) {
  const std::optional<int64_t> most = options.dynamic_batch ? options.batch : std::nullopt;
  const bool is_within = most && say_the_batch(shapes, inputs);
  const ResolvedInputs resolved = inputs.resolve(is_within ? std::nullopt : options.batch, shapes);
  if (is_within && resolved.batch > *most) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("the inputs are a batch of {}, and --batch ?{} is for up to {}", resolved.batch, *most, *most),
        fmt::format("give --batch ?{}, or --batch ? for the batch of the inputs", resolved.batch));
  }
  if (inputs.all().empty()) return;  // nothing has the batch
  options.batch.reset();
  options.shapes.clear();
  for (size_t i = 0; i < inputs.all().size(); ++i) options.shapes[inputs.all()[i].name] = resolved.extents[i];
}

std::vector<InputShapes> parse_shapes(const std::vector<std::string>& given, const OnnxInputs& inputs) {
  std::map<std::string, std::vector<Extents>> lists;
  size_t sizes = 1;
  for (const std::string& text : given) {
    const size_t equals = text.rfind('=');
    const std::string_view name = std::string_view(text).substr(0, equals == std::string::npos ? 0 : equals);
    std::string_view list = std::string_view(text).substr(equals == std::string::npos ? 0 : equals + 1);
    std::vector<Extents>& shapes = lists[input_of(text, name, inputs, lists)];
    while (true) {
      const bool is_last = list.find(',') == std::string_view::npos;
      add_shapes(text, take_part(list, ","), shapes);
      if (is_last) break;
    }
    if (shapes.size() != 1 && sizes != 1 && shapes.size() != sizes) {
      refuse(text, fmt::format("{} shapes, and an input before has {}: give one, or as many", shapes.size(), sizes));
    }
    sizes = std::max(sizes, shapes.size());
  }
  std::vector<InputShapes> result(sizes);
  for (const auto& [name, shapes] : lists) {
    for (size_t i = 0; i < sizes; ++i) result[i][name] = shapes[shapes.size() == 1 ? 0 : i];
  }
  return result;
}

}  // namespace kiln::cli
