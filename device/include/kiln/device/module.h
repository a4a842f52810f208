// Loaded code: modules and their kernels.
#pragma once

#include <cuda_abi/driver.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "kiln/device/context.h"
#include "kiln/device/owned_handle.h"

namespace kiln::device {

/// Attributes of a loaded kernel that the driver reports.
struct FunctionAttributes {
  int registers = 0;              ///< Per thread. 0 on the emulated device, which runs PTX.
  int local_bytes = 0;            ///< Per thread; spills and local arrays.
  int static_shared_bytes = 0;    ///< Per block.
  int constant_bytes = 0;         ///< The kernel's own constants.
  int max_threads_per_block = 0;  ///< The most that this kernel can be launched with.
};

/// A kernel of a loaded Module. Copyable and small; valid while its Module lives.
class Function {
 public:
  const std::string& name() const { return name_; }
  cuda_abi::CUfunction raw() const { return function_; }
  const Driver& driver() const { return context_->driver(); }
  const ContextHandle& context() const { return *context_; }

  FunctionAttributes attributes() const;

  /// Permits launches with up to `bytes` of dynamic shared memory; needed above DeviceInfo::shared_per_block.
  /// Applies to the kernel, not to this copy. Throws DriverError if static and dynamic together exceed the device's.
  void set_max_dynamic_shared(int bytes) const;

  /// Blocks of `threads` threads and `dynamic_shared` bytes that fit one SM at the same time; 0 if none does.
  int occupancy(int threads, size_t dynamic_shared) const;

 private:
  friend class Module;
  Function(std::shared_ptr<const ContextHandle> context, cuda_abi::CUfunction function, std::string name);

  std::shared_ptr<const ContextHandle> context_;
  cuda_abi::CUfunction function_;
  std::string name_;
};

/// A global variable of a module.
struct Global {
  cuda_abi::CUdeviceptr address = 0;
  size_t bytes = 0;
};

/// Code loaded into a context; unloaded at the end. Move-only. Loading and look-ups are thread-safe.
class Module {
 public:
  /// Loads PTX or a cubin; `name` stands for it in errors. Throws DriverError with the driver's JIT log, and a hint
  /// where the driver is too old for the image or the image is for another architecture.
  Module(std::shared_ptr<const ContextHandle> context, const std::string& image, std::string name);

  const std::string& name() const { return name_; }

  /// The kernel with that (mangled, unless extern "C") name. Throws DriverError if there is none.
  Function function(const std::string& name) const;
  /// The __device__ or __constant__ variable with that name. Throws DriverError if there is none.
  Global global(const std::string& name) const;
  /// The same; nothing if there is none.
  std::optional<Global> find_global(const std::string& name) const;

 private:
  OwnedHandle<cuda_abi::CUmodule> module_;
  std::string name_;
};

}  // namespace kiln::device
