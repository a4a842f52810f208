// Workspace for operation calls: lent for one call, shared by all streams.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kiln/device/event.h"
#include "kiln/device/memory.h"
#include "kiln/plan.h"

namespace kiln {

/// Device memory that is lent to one operation call at a time, however many threads and streams call.
///
/// A lease is exclusive on the host until it ends, so the launches of two calls never mix; and it makes its stream wait
/// for an event behind the work of the lease before, so they never mix on the device. Neither depends on the streams: a
/// workspace may pass from one stream to another, and a stream's handle may be destroyed, reused or mean another stream
/// on each thread. No host thread waits for the device.
///
/// A stream gets the workspace that it used last, so streams that are busy at the same time run beside each other. One
/// that has none gets, in this order, a workspace whose work is over, a new one, or, with max_workspaces of them, the
/// one that was used least recently, whose work it then waits for on the device. So there are as many workspaces as
/// streams were ever busy at a time, however many come and go.
///
/// A buffer that was outgrown is kept until the end, because freeing it would wait for the device; sizes double, so all
/// of a workspace's buffers together are less than twice the last one. Thread-safe.
class WorkspacePool {
  struct Workspace;

 public:
  static constexpr size_t max_workspaces = 16;

  /// The right to enqueue work that uses a workspace, on one stream; by the end of the object all of it is enqueued.
  class Lease {
   public:
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease();

    void* address() const;

   private:
    friend class WorkspacePool;
    Lease(WorkspacePool& pool, Workspace& workspace, Stream stream, size_t bytes);

    std::unique_ptr<Workspace, void (*)(Workspace*)> user_;  // gives it up at the end
    std::unique_lock<std::mutex> running_;
    Stream stream_;
  };

  explicit WorkspacePool(std::shared_ptr<const device::ContextHandle> context);
  ~WorkspacePool();

  /// At least `bytes` (more than 0), 256-byte aligned, for work on `stream`. Allocates if the workspace that it gets is
  /// smaller. Throws DriverError(out_of_memory), and Error(unsupported) while `stream` is captured into a graph: the
  /// graph would use the workspace later, when it is lent to others.
  Lease lease(Stream stream, int64_t bytes);

 private:
  // Which stream a handle means: the default one has two names, and the per-thread one is another on each thread.
  struct Key {
    Stream stream = nullptr;
    std::thread::id thread;
    bool operator==(const Key&) const = default;
  };
  static Key key_of(Stream stream);

  Workspace& choose(const Key& key, size_t bytes);
  size_t find(const Key& key, size_t bytes);

  std::shared_ptr<const device::ContextHandle> context_;
  std::mutex choosing_;
  std::vector<std::unique_ptr<Workspace>> workspaces_;  // the least recently used first
};

}  // namespace kiln
