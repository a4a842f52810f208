// The state behind the driver API: devices, handles, and the current context of each thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "capture.h"
#include "context.h"
#include "driver/failure.h"
#include "driver/settings.h"
#include "graph.h"
#include "handles.h"
#include "machine_clock.h"
#include "module.h"

namespace kiln::emulator {

/// The driver: cuInit creates it, and nothing destroys it. Like a real one, it serves calls until the process is gone.
/// Thread-safe.
class Driver {
 public:
  /// Creates the driver from the environment, if it does not exist. Throws SettingsError.
  static void initialise();
  /// Ends the call with CUDA_ERROR_NOT_INITIALIZED before initialise().
  static Driver& instance();
  /// Null before initialise().
  static Driver* if_initialised();

  const Settings& settings() const { return settings_; }
  /// Ends the call with CUDA_ERROR_INVALID_DEVICE if there is no such device.
  Device& device(int ordinal) const;
  /// Null if no device's time is told by machine code.
  MachineClock* clock() const { return clock_.get(); }
  int device_count() const { return static_cast<int>(devices_.size()); }

  HandleTable<CUcontext, Context> contexts{1};
  HandleTable<CUstream, Stream> streams{2};
  HandleTable<CUevent, Event> events{3};
  HandleTable<CUmodule, Module> modules{4};
  HandleTable<CUfunction, Function> functions{5};
  HandleTable<CUgraph, Graph> graphs{6};
  HandleTable<CUgraphNode, NodeReference> graph_nodes{7};
  HandleTable<CUgraphExec, GraphExec> graph_executables{8};
  Captures captures;
  /// Pinned and registered host memory, valid in every context.
  AddressSpace host_memory;

  /// Creates a context on `device` under `handle`.
  std::shared_ptr<Context> create_context(Device& device, CUcontext handle);
  /// Ends a context and every handle that lives in it. Ends the call with CUDA_ERROR_INVALID_CONTEXT if there is none.
  void destroy_context(CUcontext handle);

  /// Report of the last fault anywhere in the process; empty if there was none.
  std::string last_fault() const;
  /// Breaks `context`, and remembers the report after it is gone.
  void fault(Context& context, CUresult error, const std::string& report);

 private:
  explicit Driver(Settings settings);

  const Settings settings_;
  std::unique_ptr<MachineClock> clock_;
  std::vector<std::unique_ptr<Device>> devices_;
  mutable std::mutex mutex_;  // guards last_fault_
  std::string last_fault_;
};

/// The calling thread's stack of current contexts, as handles: the contexts may be gone.
std::vector<CUcontext>& context_stack();

/// The calling thread's current context. Ends the call with CUDA_ERROR_INVALID_CONTEXT if there is none,
/// CUDA_ERROR_CONTEXT_IS_DESTROYED if it is gone, and the context's own error if a fault broke it.
std::shared_ptr<Context> current_context();
/// The context behind a handle, the current one for none; with the same errors.
std::shared_ptr<Context> context_or_current(CUcontext handle);

/// A stream and the context it belongs to.
struct StreamUse {
  std::shared_ptr<Context> context;
  std::shared_ptr<Stream> stream;
};

/// The stream that a handle stands for: 0 and 1 are the current context's legacy default stream, 2 the calling thread's
/// default stream in it. Ends the call with CUDA_ERROR_INVALID_HANDLE if there is none, or with the context's error.
StreamUse use_stream(CUstream handle);

/// Executes `work` on the stream, or records it if the stream is being captured.
void submit(const StreamUse& use, Work work);

/// The live context that owns an object found in a table. Ends the call with the context's error if it is broken.
template <typename Object>
std::shared_ptr<Context> usable_context_of(const Object& object) {
  std::shared_ptr<Context> context = object.context.lock();
  require(context != nullptr, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  context->require_usable();
  return context;
}

/// The object behind a handle. Ends the call with CUDA_ERROR_INVALID_HANDLE if there is none.
template <typename Handle, typename Object>
std::shared_ptr<Object> lookup(const HandleTable<Handle, Object>& table, Handle handle) {
  std::shared_ptr<Object> object = table.find(handle);
  require(object != nullptr, CUDA_ERROR_INVALID_HANDLE);
  return object;
}

}  // namespace kiln::emulator
