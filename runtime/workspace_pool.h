// Workspace for operation calls: one buffer per stream.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "kiln/device/memory.h"
#include "kiln/plan.h"

namespace kiln {

/// Calls on one stream run one after the other, so they may share a workspace. A buffer that was outgrown is kept until
/// the end: freeing it would wait for the device. Thread-safe.
class WorkspacePool {
 public:
  explicit WorkspacePool(std::shared_ptr<const device::ContextHandle> context) : context_(std::move(context)) {}

  /// At least `bytes` for work on `stream`; null for 0 bytes. Allocates if this stream had less so far; throws
  /// DriverError(out_of_memory).
  void* get(Stream stream, int64_t bytes);

 private:
  std::shared_ptr<const device::ContextHandle> context_;
  std::mutex mutex_;
  std::map<Stream, std::vector<device::Buffer>> buffers_;  // the last of each is the largest
};

}  // namespace kiln
