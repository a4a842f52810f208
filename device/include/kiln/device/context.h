// The driver context in which Kiln works.
#pragma once

#include <cuda_abi/driver.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "kiln/device/device.h"
#include "kiln/device/range_set.h"

namespace kiln::device {

/// A driver context of one device: the caller's own, or the device's primary one.
///
/// Shared by everything that lives in it (buffers, streams, events, modules). Safe to use from any thread.
class ContextHandle {
 public:
  /// The context that is current on this thread if it belongs to `device`: it stays the caller's, who must keep it
  /// alive. Else the primary context (the one that the CUDA runtime and PyTorch use), retained until the last owner of
  /// this handle is gone.
  static std::shared_ptr<const ContextHandle> acquire(const Device& device);

  ContextHandle(const ContextHandle&) = delete;
  ContextHandle& operator=(const ContextHandle&) = delete;
  ~ContextHandle();

  const Device& device() const { return device_; }
  const Driver& driver() const { return *device_.driver(); }
  cuda_abi::CUcontext raw() const { return context_; }
  bool is_primary() const { return primary_; }

  /// Waits for all work of the context. Throws DriverError, also for a fault of earlier, asynchronous work.
  void synchronize() const;

  /// Calls an entry point with this context current: call(&DriverTable::cuStreamQuery, stream).
  template <typename... Parameters, typename... Arguments>
  cuda_abi::CUresult call(cuda_abi::CUresult (*DriverTable::*entry)(Parameters...), Arguments... arguments) const;

  /// Whether kernels of this context may access `bytes` bytes at `address`: device memory of any kind, managed memory,
  /// host memory that is pinned or registered, and on a device that reaches all host memory, every address. Another
  /// device's memory counts, although it needs peer access. Device memory has to be large enough: short_allocation().
  /// A yes of the driver is remembered until this context frees memory: no lock, no allocation, and no call but the
  /// first time. Yes where the driver cannot be asked: the launch tells.
  bool reaches(cuda_abi::CUdeviceptr address, uint64_t bytes) const {
    return reached_.has(address, bytes) || ask(address, bytes);
  }

  struct Allocation {
    cuda_abi::CUdeviceptr begin = 0;
    uint64_t bytes = 0;
  };
  /// The allocation of device memory that holds `address` and ends before `bytes` bytes from there do. Nothing where
  /// they fit, and where the driver does not tell. Memory that an application maps piece by piece (cuMemMap), or takes
  /// from a pool, may go on in the next piece.
  std::optional<Allocation> short_allocation(cuda_abi::CUdeviceptr address, uint64_t bytes) const;

  /// Memory is about to be freed or unregistered: what stands at its address later is asked about anew.
  void forget_memory() const noexcept { reached_.clear(); }

  struct MemoryUse {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
  };
  MemoryUse memory() const;

 private:
  ContextHandle(const Device& device, cuda_abi::CUcontext context, bool primary);

  bool ask(cuda_abi::CUdeviceptr address, uint64_t bytes) const;
  bool is_piece(cuda_abi::CUdeviceptr address) const;

  Device device_;
  cuda_abi::CUcontext context_;
  bool primary_;
  // Where others free memory, its address may become the host's or that of a smaller allocation unnoticed. A range that
  // is wrong by then is no worse than none: the device reports the access, as it would any other that is wrong.
  mutable RangeSet reached_;
};

/// Makes a context current on this thread for a scope, and puts back what was current before.
///
/// Costs one query if the context is current already. Every operation of this room that needs a current context makes
/// one itself, except launch(), which is left to its caller.
class Current {
 public:
  explicit Current(const ContextHandle& context);
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current();

 private:
  const Driver* driver_;
  bool pushed_ = false;
};

/// For a scope: what is enqueued in `context` is timed and not done (Driver::time_only()). See timed_only().
class TimeOnly {
 public:
  explicit TimeOnly(std::shared_ptr<const ContextHandle> context);
  TimeOnly(const TimeOnly&) = delete;
  TimeOnly& operator=(const TimeOnly&) = delete;
  ~TimeOnly();

  /// False where the device cannot: then everything is done as ever.
  bool holds() const { return holds_; }

 private:
  std::shared_ptr<const ContextHandle> context_;
  bool holds_;
};

/// Returns the result of `measure` where everything that it enqueues in `context` is timed and not run. Nothing where
/// the device cannot do that, and if data decide how long a kernel takes: then it has to be run.
template <class Measure>
auto timed_only(const std::shared_ptr<const ContextHandle>& context, const Measure& measure)
    -> std::optional<decltype(measure())> {
  const TimeOnly only(context);
  if (!only.holds()) return std::nullopt;
  try {
    return measure();
  } catch (const DriverError& error) {
    if (error.result() != cuda_abi::CUDA_ERROR_NOT_SUPPORTED) throw;
    return std::nullopt;
  }
}

/// Permits this thread, for a scope, what the capture of a stream into a graph forbids otherwise (cudaMalloc and the
/// like in the mode `global`): to allocate and free, to load and unload code, to ask about events. None of it goes into
/// a graph or waits for one, so captures that are going on, of this thread and of others, stay intact. Each operation
/// of this room that is forbidden so makes one itself.
class BesideCaptures {
 public:
  explicit BesideCaptures(const Driver& driver);
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;
  ~BesideCaptures();

 private:
  const Driver* driver_;
  cuda_abi::CUstreamCaptureMode before_ = cuda_abi::CU_STREAM_CAPTURE_MODE_RELAXED;
  bool exchanged_ = false;
};

template <typename... Parameters, typename... Arguments>
cuda_abi::CUresult ContextHandle::call(cuda_abi::CUresult (*DriverTable::*entry)(Parameters...),
                                       Arguments... arguments) const {
  const Current current(*this);
  return (driver().calls().*entry)(arguments...);
}

}  // namespace kiln::device
