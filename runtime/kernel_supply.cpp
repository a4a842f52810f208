#include "kernel_supply.h"

#include <fmt/format.h>

#include <utility>

#include "kiln/base/error.h"
#include "kiln/execution/target.h"
#include "kiln/runtime/settings.h"

namespace kiln {

KernelSupply::KernelSupply(const ContextOptions& options, const Environment& environment,
                           const device::ContextHandle& context,
                           const std::function<void(const std::string&)>& announce)
    : announce_(announce), bundles_(bundle_paths(options.bundles, environment), context.device().info(), announce) {
  const device::DeviceInfo& info = context.device().info();
  try {
    std::shared_ptr<const device::Nvrtc> nvrtc = device::Nvrtc::open({environment.nvrtc});
    device::require_driver_for(*nvrtc, context.driver());
    target_ = execution::target_for(info.cc_major, info.cc_minor, *nvrtc);
    nvrtc_ = std::move(nvrtc);
  } catch (const Error& error) {
    if (bundles_.empty()) throw;
    no_compiler_ = error.message();
    target_.arch = Arch::of(info.cc_major, info.cc_minor);
  }
  if (const auto store = kernel_store(options.kernel_store, environment)) {
    kernels_.emplace(*store, [this](std::string_view message) { announce_(std::string(message)); });
  }
}

std::string KernelSupply::describe_compiler() const {
  if (!nvrtc_) return "no NVRTC: kernels of bundles only";
  return fmt::format("NVRTC {}.{}", target_.nvrtc_major, target_.nvrtc_minor);
}

std::optional<std::string> KernelSupply::why_missing(const Program& program) const {
  if (nvrtc_ || bundles_.has(program)) return std::nullopt;
  return "it is in no bundle, and nothing can be compiled here";
}

// Nothing where no bundle has it, or where one is damaged there and the program can be compiled instead.
std::optional<execution::CompiledProgram> KernelSupply::bundled(const Program& program) {
  try {
    return bundles_.load(program);
  } catch (const Error& error) {
    if (!nvrtc_) throw;
    announce_(error.what());
    return std::nullopt;
  }
}

std::optional<execution::CompiledProgram> KernelSupply::find(const Program& program) {
  if (std::optional<execution::CompiledProgram> there = bundled(program)) return there;
  return nvrtc_ && kernels_ ? execution::find_compiled(*nvrtc_, program, target_, *kernels_) : std::nullopt;
}

execution::CompiledProgram KernelSupply::compile(const Program& program) {
  if (std::optional<execution::CompiledProgram> there = bundled(program)) return std::move(*there);
  if (nvrtc_) return execution::compile(*nvrtc_, program, target_, kernels_ ? &*kernels_ : nullptr);
  throw Error(ErrorCode::missing_library,
              fmt::format("the variant cannot be loaded: {}: {}", *why_missing(program), no_compiler_),
              "bundle it, or install NVRTC");
}

}  // namespace kiln
