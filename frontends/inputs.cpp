#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/base/printable.h"
#include "kiln/frontends/onnx_inputs.h"

namespace kiln {
namespace {

using graph::Extents;

std::string text_of(const OnnxExtent& extent) {
  if (extent.fixed) return std::to_string(*extent.fixed);
  return extent.symbol.empty() ? "?" : printable_name(extent.symbol);
}

[[noreturn]] void refuse_extents(const OnnxInput& input, const Extents& given, const std::string& fault) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("input '{}' is given as {}: {}", printable_name(input.name), text_of_extents(given), fault),
              fmt::format("the file declares {}", OnnxInputs::text_of(input)));
}

void check_given(const OnnxInput& input, const Extents& given) {
  if (input.has_rank && given.size() != input.extents.size()) {
    refuse_extents(input, given, fmt::format("it has {} dimensions, expected {}", given.size(), input.extents.size()));
  }
  for (size_t d = 0; d < given.size(); ++d) {
    if (given[d] < 0) refuse_extents(input, given, fmt::format("extent {} is below 0", d));
    const bool is_fixed = input.has_rank && input.extents[d].fixed && !input.extents[d].is_batch;
    if (is_fixed && given[d] != *input.extents[d].fixed) {
      refuse_extents(input, given, fmt::format("extent {} is {}, expected {}", d, given[d], *input.extents[d].fixed));
    }
  }
}

/// Resolution in progress: the batch and the names of open extents, then the inputs one by one.
class Resolution {
 public:
  Resolution(const std::vector<OnnxInput>& inputs, const std::map<std::string, Extents>& shapes)
      : inputs_(inputs), shapes_(shapes) {}

  /// Names keep the one extent that all given shapes have for them.
  void bind_symbols() {
    for_each_given([&](const OnnxExtent& extent, int64_t given) {
      if (extent.fixed || extent.symbol.empty() || ambiguous_.contains(extent.symbol)) return;
      const auto [place, is_new] = result_.symbols.try_emplace(extent.symbol, given);
      if (is_new || place->second == given) return;
      result_.symbols.erase(place);
      ambiguous_.insert(extent.symbol);
    });
  }

  void choose_batch(std::optional<int64_t> wanted, std::optional<int64_t> of_file) {
    std::optional<int64_t> of_shapes;
    for_each_given([&](const OnnxExtent& extent, int64_t given) {
      if (extent.is_batch && !of_shapes) of_shapes = given;
    });
    if (wanted && of_shapes && *wanted != *of_shapes) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the batch is {}, and the given shapes have {}", *wanted, *of_shapes),
                  "give one of both, or the same");
    }
    result_.batch = wanted ? *wanted : of_shapes.value_or(of_file.value_or(1));
    for (const OnnxInput& input : inputs_) {
      for (const OnnxExtent& extent : input.extents) {
        const bool names_batch = extent.is_batch && !extent.symbol.empty() && !ambiguous_.contains(extent.symbol);
        if (names_batch) result_.symbols.try_emplace(extent.symbol, result_.batch);
      }
    }
  }

  void add(const OnnxInput& input) {
    const auto given = shapes_.find(input.name);
    if (given != shapes_.end()) return take(input, given->second);
    Extents extents;
    bool is_known = input.has_rank;
    for (const OnnxExtent& extent : input.extents) {
      const std::optional<int64_t> value = value_of(extent);
      is_known = is_known && value;
      extents.push_back(value.value_or(0));
    }
    if (!is_known) open_.push_back(OnnxInputs::text_of(input));
    result_.extents.push_back(std::move(extents));
  }

  ResolvedInputs take() {
    if (open_.empty()) return std::move(result_);
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the file leaves extents of inputs open: {}", fmt::join(open_, ", ")),
                "give their shapes: --shape NAME=1x3x224x224, ModelOptions::shapes");
  }

 private:
  void for_each_given(const auto& see) const {
    for (const OnnxInput& input : inputs_) {
      const auto given = shapes_.find(input.name);
      if (given == shapes_.end()) continue;
      for (size_t d = 0; d < input.extents.size(); ++d) see(input.extents[d], given->second[d]);
    }
  }

  /// A batch that the file fixes is the same of all inputs.
  void take(const OnnxInput& input, const Extents& given) {
    for (size_t d = 0; d < input.extents.size(); ++d) {
      const OnnxExtent& extent = input.extents[d];
      if (extent.is_batch && extent.fixed && given[d] != result_.batch) {
        refuse_extents(input, given, fmt::format("the batch is {}", result_.batch));
      }
    }
    result_.extents.push_back(given);
  }

  std::optional<int64_t> value_of(const OnnxExtent& extent) const {
    if (extent.fixed && !extent.is_batch) return extent.fixed;
    const auto bound = result_.symbols.find(extent.symbol);
    if (!extent.fixed && bound != result_.symbols.end()) return bound->second;
    return extent.is_batch ? std::optional(result_.batch) : std::nullopt;
  }

  const std::vector<OnnxInput>& inputs_;
  const std::map<std::string, Extents>& shapes_;
  std::set<std::string> ambiguous_;  // names that given shapes have several extents for
  std::vector<std::string> open_;
  ResolvedInputs result_;
};

}  // namespace

std::string text_of_extents(const Extents& extents) {
  return extents.empty() ? "one element without dimensions" : fmt::format("{}", fmt::join(extents, "x"));
}

bool OnnxInputs::has_open_batch() const {
  return !batch_ && std::any_of(inputs_.begin(), inputs_.end(), [](const OnnxInput& input) {
    return !input.extents.empty() && input.extents[0].is_batch;
  });
}

bool OnnxInputs::has_open_extents() const {
  return std::any_of(inputs_.begin(), inputs_.end(), [](const OnnxInput& input) {
    return !input.has_rank || std::any_of(input.extents.begin(), input.extents.end(),
                                          [](const OnnxExtent& extent) { return !extent.fixed && !extent.is_batch; });
  });
}

const OnnxInput& OnnxInputs::input(const std::string& name) const {
  const auto found =
      std::find_if(inputs_.begin(), inputs_.end(), [&](const OnnxInput& input) { return input.name == name; });
  if (found != inputs_.end()) return *found;
  std::vector<std::string> names;
  for (const OnnxInput& input : inputs_) names.push_back(printable_name(input.name));
  throw Error(ErrorCode::invalid_argument, fmt::format("the model has no input '{}'", printable_name(name)),
              names.empty() ? "it has none" : fmt::format("it has {}", fmt::join(names, ", ")));
}

ResolvedInputs OnnxInputs::resolve(std::optional<int64_t> batch, const std::map<std::string, Extents>& shapes) const {
  if (batch && *batch < 1) {
    throw Error(ErrorCode::invalid_argument, fmt::format("the batch is {}, expected 1 or more", *batch));
  }
  for (const auto& [name, given] : shapes) check_given(input(name), given);
  Resolution resolution(inputs_, shapes);
  resolution.bind_symbols();
  resolution.choose_batch(batch, batch_);
  for (const OnnxInput& input : inputs_) resolution.add(input);
  return resolution.take();
}

std::map<std::string, Extents> OnnxInputs::with_batch(const std::vector<Extents>& extents, int64_t batch) const {
  std::map<std::string, Extents> shapes;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    Extents& shape = shapes[inputs_[i].name] = extents[i];
    for (size_t d = 0; d < inputs_[i].extents.size(); ++d) {
      if (inputs_[i].extents[d].is_batch) shape[d] = batch;
    }
  }
  return shapes;
}

std::string OnnxInputs::text_of(const OnnxInput& input) {
  if (!input.has_rank) return fmt::format("'{}' of any rank", printable_name(input.name));
  std::vector<std::string> extents;
  for (const OnnxExtent& extent : input.extents) extents.push_back(kiln::text_of(extent));
  return fmt::format("'{}' [{}]", printable_name(input.name), fmt::join(extents, ", "));
}

}  // namespace kiln
