#include "operations/blends.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "operations/spatial.h"

namespace kiln {
namespace {

// A class that is no class was refused as an unknown word.
Scale scale_of(const Request& request, const std::string& attribute) {
  return scale_called(request.word(attribute)).value();
}

Blend classes_of(const Request& request, std::string_view name) {
  return {scale_of(request, fmt::format("{}_alpha", name)), scale_of(request, fmt::format("{}_beta", name))};
}

}  // namespace

std::vector<AttributeDefinition> with_classes(std::vector<AttributeDefinition> definitions,
                                              const std::vector<FurtherBlend>& blends) {
  std::vector<std::string> words;
  for (const Scale scale : all_scales) words.emplace_back(to_string(scale));
  for (const FurtherBlend& blend : blends) {
    const std::string outputs = fmt::format("{}", fmt::join(blend.outputs, " and "));
    const auto append = [&](std::string_view which, Scale fallback, const std::string& summary) {
      definitions.push_back({fmt::format("{}_{}", blend.name, which), std::string(to_string(fallback)),
                             Printing::when_set, words, summary});
    };
    append("alpha", Blend{}.alpha, fmt::format("the class of the scale of {}", outputs));
    append("beta", Blend{}.beta, fmt::format("the class of the scale of what {} held before", outputs));
  }
  return definitions;
}

std::vector<ScalarDefinition> with_values(std::vector<ScalarDefinition> definitions,
                                          const std::vector<FurtherBlend>& blends) {
  for (const FurtherBlend& blend : blends) {
    const std::string outputs = fmt::format("{}", fmt::join(blend.outputs, " and "));
    definitions.push_back({fmt::format("{}_alpha", blend.name), 1, 0.625F,
                           fmt::format("the scale of {}, read if its class is any", outputs)});
    definitions.push_back({fmt::format("{}_beta", blend.name), 0, -0.75F,
                           fmt::format("the scale of what {} held before, read if its class is any", outputs)});
  }
  return definitions;
}

void append_classes(std::string_view name, const Blend& blend, std::vector<Attribute>& attributes) {
  attributes.push_back({fmt::format("{}_alpha", name), std::string(to_string(blend.alpha))});
  attributes.push_back({fmt::format("{}_beta", name), std::string(to_string(blend.beta))});
}

void check_further_blends(const Request& request) {
  for (const FurtherBlend& blend : operation(request.operation).further_blends()) {
    const auto is_there = [&](std::string_view output) { return request.find(output) != nullptr; };
    if (std::any_of(blend.outputs.begin(), blend.outputs.end(), is_there)) continue;
    if (classes_of(request, blend.name) == Blend{}) continue;
    refuse(request, fmt::format("{0}_alpha and {0}_beta concern no output that there is", blend.name),
           fmt::format("leave them out, or ask for {}", fmt::join(blend.outputs, " or ")));
  }
}

const FurtherBlend* further_blend_of(const Request& request, std::string_view output) {
  for (const FurtherBlend& blend : operation(request.operation).further_blends()) {
    if (std::find(blend.outputs.begin(), blend.outputs.end(), output) != blend.outputs.end()) return &blend;
  }
  return nullptr;
}

Blend blend_of(const Request& request, std::string_view output) {
  if (result_of(request).name == output) return request.blend;
  const FurtherBlend* further = further_blend_of(request, output);
  return further == nullptr ? Blend{} : classes_of(request, further->name);
}

}  // namespace kiln
