#include "arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/string_view.h>

#include <functional>
#include <map>
#include <string>
#include <utility>

namespace kiln::python {
namespace {

Expressions& known_code() {
  static Expressions code;  // by digest
  return code;
}

// Code of that text, which reads tensors and numbers of these names. Chains of layers give theirs in each call, and
// parsing and digesting it takes longer than the rest of the call.
const Expression& code_of(std::string_view text, std::span<const NamedTensor> tensors,
                          std::span<const NamedScalar> numbers) {
  static std::map<std::string, Expression, std::less<>> known;  // with the GIL
  std::vector<std::string> tensor_names, number_names;
  for (const NamedTensor& tensor : tensors) tensor_names.emplace_back(tensor.name);
  for (const NamedScalar& number : numbers) number_names.emplace_back(number.name);
  const std::string key = fmt::format("{};{};{}", fmt::join(tensor_names, ","), fmt::join(number_names, ","), text);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  const Expression code(text, std::move(tensor_names), std::move(number_names));
  learn_code(code);
  return known.emplace(key, code).first->second;
}

std::vector<NamedTensor> named_tensors(std::span<const GivenTensor> tensors) {
  std::vector<NamedTensor> named;
  named.reserve(tensors.size());
  for (const GivenTensor& given : tensors) named.push_back({given.name, given.tensor});
  return named;
}

std::vector<NamedScalar> named_numbers(const nb::dict& numbers) {
  std::vector<NamedScalar> named;
  for (const auto& [name, value] : numbers) {
    named.push_back({nb::cast<const char*>(name), static_cast<float>(nb::cast<double>(value))});
  }
  return named;
}

}  // namespace

void learn_code(const Expression& code) {
  known_code().try_emplace(code.digest(), code);
}

Expressions known_code_in(std::string_view text) {
  Expressions found;
  if (text.find("user:") == std::string_view::npos) return found;
  for (const auto& [digest, code] : known_code()) {
    if (text.find(digest) != std::string_view::npos) found.emplace(digest, code);
  }
  return found;
}

PythonEpilogue::PythonEpilogue(std::string_view text, nb::dict tensors, const nb::dict& numbers)
    : held_(std::move(tensors)), tensors_(given_tensors(held_)) {
  const std::vector<NamedTensor> named = named_tensors(tensors_);
  const std::vector<NamedScalar> scalars = named_numbers(numbers);
  epilogue_ = expression(code_of(text, named, scalars), named, scalars);
}

Arguments::Arguments(TensorDict tensors, NumberDict numbers, IntegerDict integers, const PythonEpilogue* epilogue)
    : held_(std::move(tensors)),
      numbers_held_(std::move(numbers)),
      integers_held_(std::move(integers)),
      tensors_(given_tensors(held_)),
      named_(named_tensors(tensors_)),
      numbers_(named_numbers(numbers_held_)),
      epilogue_(epilogue) {
  for (const auto& [name, value] : integers_held_) {
    integers_.push_back({nb::cast<const char*>(name), nb::cast<uint64_t>(value)});
  }
  if (epilogue == nullptr) return;
  tensors_.insert(tensors_.end(), epilogue->tensors().begin(), epilogue->tensors().end());
}

CallOptions Arguments::options() const {
  CallOptions options;
  options.numbers = numbers_;
  options.integers = integers_;
  if (epilogue_ != nullptr) options.epilogue = epilogue_->get();
  return options;
}

const Tensor* Arguments::find(std::string_view name) const {
  for (const NamedTensor& named : named_) {
    if (named.name == name) return &named.tensor;
  }
  return nullptr;
}

void bind_arguments(nb::module_& module) {
  nb::class_<PythonEpilogue>(module, "Expression",
                             "User code on each result, with what it reads: expression() makes it.")
      .def(nb::init<std::string_view, TensorDict, const NumberDict&>(), nb::arg("text"), nb::arg("tensors"),
           nb::arg("numbers"));
  nb::class_<Arguments>(module, "Arguments")
      .def(nb::init<TensorDict, NumberDict, IntegerDict, const PythonEpilogue*>(), nb::arg("tensors"),
           nb::arg("numbers"), nb::arg("integers"), nb::arg("epilogue").none() = nb::none(), nb::keep_alive<1, 5>());
}

}  // namespace kiln::python
