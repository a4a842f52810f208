// KernelSupply: where a Context's compiled programs come from.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "bundles.h"
#include "kiln/base/environment.h"
#include "kiln/context.h"
#include "kiln/device/context.h"
#include "kiln/device/nvrtc.h"
#include "kiln/execution/compile.h"
#include "kiln/generator/arch.h"
#include "kiln/store/file_store.h"

namespace kiln {

/// Bundles, then the store of kernels, then NVRTC. Thread-safe.
class KernelSupply {
 public:
  /// Throws Error(missing_library, unsupported) if NVRTC cannot be used for this device and no bundle was opened.
  KernelSupply(const ContextOptions& options, const Environment& environment, const device::ContextHandle& context,
               const std::function<void(const std::string&)>& announce);

  const Target& target() const { return target_; }
  const Bundles& bundles() const { return bundles_; }

  /// Why nothing can be compiled here; empty if it can.
  const std::string& no_compiler() const { return no_compiler_; }
  /// Why this program cannot be had here, beside no_compiler(); nothing if it can.
  std::optional<std::string> why_missing(const Program& program) const;
  /// "NVRTC 13.0", or that there is none.
  std::string describe_compiler() const;

  /// The program as bundles or the store have it; nothing where it would have to be compiled. Throws as compile().
  std::optional<execution::CompiledProgram> find(const Program& program);
  /// Throws as execution::compile(), and Error(missing_library) if no bundle has the program and nothing can be
  /// compiled. A bundle that is damaged there is announced where the program can be compiled instead.
  execution::CompiledProgram compile(const Program& program);
  /// Compiles that took place here: none for what bundles and the store had.
  device::NvrtcWork work() const { return nvrtc_ ? nvrtc_->work() : device::NvrtcWork(); }

 private:
  std::optional<execution::CompiledProgram> bundled(const Program& program);

  std::function<void(const std::string&)> announce_;
  Bundles bundles_;
  std::shared_ptr<const device::Nvrtc> nvrtc_;  // null if it cannot be used
  std::string no_compiler_;
  Target target_;
  std::optional<store::FileStore> kernels_;
};

}  // namespace kiln
