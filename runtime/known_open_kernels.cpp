#include "known_open_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "kiln/generator/code_text.h"
#include "kiln/generator/operation.h"

namespace kiln {
namespace {

std::string class_of(const Request& request) {
  std::string text = request.operation;
  for (const auto& [name, spec] : request.operands) {
    text += fmt::format(" {}={}:{}:{}@{}", name, to_string(spec.dtype), spec.rank(), spec.order().value_or("strided"),
                        spec.alignment);
  }
  for (const auto& [name, value] : request.attributes) text += fmt::format(" {}={}", name, attribute_text(value));
  const Arithmetic& arithmetic = request.arithmetic;
  text += fmt::format(" {}{}{} {} {}", arithmetic.tf32, arithmetic.fast, arithmetic.deterministic,
                      to_string(request.blend.alpha), to_string(request.blend.beta));
  for (const EpilogueStage stage : request.epilogue) text += fmt::format(" {}", to_string(stage));
  if (request.user_code) text += fmt::format(" {}", request.user_code.digest());
  return text + fmt::format(" {}{}{}", request.dynamic_batch, request.constant_weights, request.batch_invariant);
}

}  // namespace

OpenKernel::OpenKernel(Choice choice_, execution::CompiledProgram compiled)
    : choice(std::move(choice_)), images(std::move(compiled.images)) {
  for (Source& source : compiled.program.sources) {
    codes.push_back(code_of(source.code));
    sources.push_back(std::move(source.code));
  }
}

std::optional<execution::CompiledProgram> OpenKernel::compiled(const Program& program) const {
  if (!std::ranges::equal(program.sources, sources, {}, &Source::code)) return std::nullopt;
  return execution::CompiledProgram{.program = program, .images = images, .log = {}};
}

KnownOpenKernels::Kernels KnownOpenKernels::of(const Request& request) const {
  const std::string key = class_of(request);
  const std::lock_guard lock(mutex_);
  const auto found = classes_.find(key);
  return found == classes_.end() ? Kernels() : found->second;
}

void KnownOpenKernels::add(const Request& request, std::shared_ptr<const OpenKernel> kernel) {
  std::string key = class_of(request);
  const std::lock_guard lock(mutex_);
  Kernels& kernels = classes_[key];
  if (std::ranges::find(kernels, kernel->sources, &OpenKernel::sources) != kernels.end()) return;
  kernels.push_back(kernel);
  order_.push_back({std::move(key), std::move(kernel)});
  if (order_.size() <= most) return;
  const auto oldest = classes_.find(order_.front().of);
  std::erase(oldest->second, order_.front().kernel);
  if (oldest->second.empty()) classes_.erase(oldest);
  order_.pop_front();
}

void KnownOpenKernels::keep(const std::vector<Request>& requests, const std::shared_ptr<const OpenKernel>& kernel) {
  std::set<std::string> keys;
  for (const Request& request : requests) keys.insert(class_of(request));
  const std::lock_guard lock(mutex_);
  for (const std::string& key : keys) {
    Kernels& kernels = classes_[key];
    const auto known = std::ranges::find(kernels, kernel->sources, &OpenKernel::sources);
    if (known == kernels.end())
      kernels.push_back(kernel);
    else  // no longer one of those that are forgotten
      std::erase_if(order_, [&](const Forgettable& one) { return one.of == key && one.kernel == *known; });
  }
}

}  // namespace kiln
