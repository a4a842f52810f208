#include "ports.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "kiln/base/error.h"

namespace kiln::models {
namespace {

bool is_packed(const Tensor& tensor) {
  int64_t stride = 1;
  for (int d = tensor.rank(); d-- > 0;) {
    if (tensor.extent(d) > 1 && tensor.stride(d) != stride) return false;
    stride *= tensor.extent(d);
  }
  return true;
}

/// A tensor without dimensions is given as one of one element.
std::span<const int64_t> called_extents(const ModelTensor& tensor) {
  static constexpr int64_t one = 1;
  return tensor.extents.empty() ? std::span(&one, 1) : std::span(tensor.extents);
}

void check(const ModelTensor& wanted, const Tensor& given, const char* what) {
  const std::span<const int64_t> extents = given.extents(), expected = called_extents(wanted);
  const bool of_same_extents = std::equal(extents.begin(), extents.end(), expected.begin(), expected.end());
  if (given.dtype() != wanted.dtype || !of_same_extents) {
    std::string hint = of_same_extents ? "convert it" : "";
    const bool is_input = std::string_view(what) == "input";
    if (is_input && differ_in_batch_only(extents, expected)) hint = "Model::set_batch() makes it take another batch";
    if (!is_input && !of_same_extents) hint = "the inputs decide: Model::outputs() has them after Model::set_shapes()";
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} '{}' is {} {}, expected {} {}", what, wanted.name, to_string(given.dtype()),
                            fmt::join(extents, "x"), to_string(wanted.dtype), fmt::join(expected, "x")),
                hint);
  }
  if (given.empty()) return;
  std::string fault;
  if (!is_packed(given))
    fault = fmt::format("has the strides {}, expected logical order", fmt::join(given.strides(), "x"));
  if (given.alignment() < default_alignment) fault = fmt::format("is not {}-byte aligned", default_alignment);
  if (given.data() == nullptr) fault = "is null";
  if (!fault.empty()) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} '{}' {}", what, wanted.name, fault),
                "copy it to memory in logical order without gaps");
  }
}

auto find_named(const auto& tensors, std::string_view name) {
  return std::find_if(tensors.begin(), tensors.end(), [&](const auto& tensor) { return tensor.name == name; });
}

// One that is unknown, else one that is given twice, else one that is missing.
[[noreturn]] void refuse_names(const std::vector<ModelTensor>& wanted, std::span<const NamedTensor> given,
                               const char* what) {
  for (const NamedTensor& tensor : given) {
    if (find_named(wanted, tensor.name) != wanted.end()) continue;
    std::vector<std::string> names;
    for (const ModelTensor& each : wanted) names.push_back(each.name);
    throw Error(ErrorCode::invalid_argument, fmt::format("the model has no {} '{}'", what, tensor.name),
                fmt::format("it has {}", fmt::join(names, ", ")));
  }
  for (auto tensor = given.begin(); tensor != given.end(); ++tensor) {
    if (find_named(given, tensor->name) == tensor) continue;
    throw Error(ErrorCode::invalid_argument, fmt::format("{} '{}' is given twice", what, tensor->name));
  }
  const auto missing = std::find_if(wanted.begin(), wanted.end(), [&](const ModelTensor& each) {
    return find_named(given, each.name) == given.end();
  });
  throw Error(ErrorCode::invalid_argument, fmt::format("{} '{}' is not given", what, missing->name));
}

bool overlap(const Tensor& a, const Tensor& b) {
  const auto begin = [](const Tensor& tensor) { return reinterpret_cast<uintptr_t>(tensor.data()); };
  const auto end = [&](const Tensor& tensor) { return begin(tensor) + static_cast<uintptr_t>(tensor.span_bytes()); };
  return !a.empty() && !b.empty() && begin(a) < end(b) && begin(b) < end(a);
}

}  // namespace

bool differ_in_batch_only(std::span<const int64_t> a, std::span<const int64_t> b) {
  return a.size() == b.size() && !a.empty() && a[0] != b[0] && std::equal(a.begin() + 1, a.end(), b.begin() + 1);
}

bool have_extents(const std::vector<ModelTensor>& wanted, std::span<const NamedTensor> given) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const ModelTensor& each) {
    const auto found = find_named(given, each.name);
    if (found == given.end()) return false;
    const std::span<const int64_t> extents = found->tensor.extents(), expected = called_extents(each);
    return std::equal(extents.begin(), extents.end(), expected.begin(), expected.end());
  });
}

InputShapes shapes_of(const std::vector<ModelTensor>& declared, std::span<const NamedTensor> given) {
  if (given.size() > declared.size()) refuse_names(declared, given, "input");
  InputShapes shapes;
  for (const ModelTensor& each : declared) {
    const auto found = find_named(given, each.name);
    if (found == given.end()) refuse_names(declared, given, "input");
    const Tensor& tensor = found->tensor;
    if (tensor.dtype() != each.dtype) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("input '{}' is {}, expected {}", each.name, to_string(tensor.dtype()), to_string(each.dtype)),
          "convert it");
    }
    shapes[each.name].assign(tensor.extents().begin(), tensor.extents().end());
  }
  return shapes;
}

void take(const Context& context, const std::vector<ModelTensor>& wanted, std::span<const NamedTensor> given,
          const char* what, const void** addresses) {
  for (const ModelTensor& each : wanted) {
    const auto found = find_named(given, each.name);
    if (found == given.end()) refuse_names(wanted, given, what);
    const Tensor& tensor = found->tensor;
    check(each, tensor, what);
    if (!tensor.empty()) context.require_memory(what, each.name, tensor.data(), tensor.span_bytes());
    *addresses++ = tensor.data();
  }
  if (given.size() > wanted.size()) refuse_names(wanted, given, what);
}

void check_apart(std::span<const NamedTensor> inputs, std::span<const NamedTensor> outputs) {
  const auto check_pair = [](const NamedTensor& output, const NamedTensor& other, const char* what) {
    if (!overlap(output.tensor, other.tensor)) return;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("output '{}' shares memory with {} '{}'", output.name, what, other.name),
                "give each output memory of its own");
  };
  for (size_t j = 0; j < outputs.size(); ++j) {
    for (const NamedTensor& input : inputs) check_pair(outputs[j], input, "input");
    for (size_t k = 0; k < j; ++k) check_pair(outputs[j], outputs[k], "output");
  }
}

}  // namespace kiln::models
