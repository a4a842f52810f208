#include "workspace_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "kiln/base/error.h"
#include "kiln/device/stream.h"

namespace kiln {

struct WorkspacePool::Workspace {
  explicit Workspace(const std::shared_ptr<const device::ContextHandle>& context)
      : done(context, device::Timing::none) {}

  size_t size() const { return buffers.empty() ? 0 : buffers.back().size(); }

  std::mutex running;                   // of the lease; guards what stands below it
  std::vector<device::Buffer> buffers;  // the last is the largest
  device::Event done;                   // the end of the last lease's work

  // Leases, and threads about to have one. Raised under `choosing_`; while it is 0, a holder of that may read all.
  std::atomic<int> users{0};
  Key key;  // of the stream that used it last; guarded by `choosing_`
};

WorkspacePool::WorkspacePool(std::shared_ptr<const device::ContextHandle> context) : context_(std::move(context)) {}
WorkspacePool::~WorkspacePool() = default;

WorkspacePool::Lease::Lease(WorkspacePool& pool, Workspace& workspace, Stream stream, size_t bytes)
    : user_(&workspace, [](Workspace* used) { --used->users; }), running_(workspace.running), stream_(stream) {
  device::wait(*pool.context_, static_cast<cuda_abi::CUstream>(stream), workspace.done);
  // Doubling keeps what is left behind below the size of the last one.
  const size_t size = workspace.size();
  if (size < bytes) workspace.buffers.emplace_back(pool.context_, std::max(bytes, 2 * size));
}

WorkspacePool::Lease::~Lease() {
  try {
    user_->done.record(static_cast<cuda_abi::CUstream>(stream_));
  } catch (const Error&) {
    // There is no such stream, and it took no work either; or the context is lost, and all work with it.
  }
}

void* WorkspacePool::Lease::address() const {
  return reinterpret_cast<void*>(user_->buffers.back().address());
}

WorkspacePool::Key WorkspacePool::key_of(Stream stream) {
  constexpr uintptr_t legacy = 1, per_thread = 2;  // CU_STREAM_LEGACY, CU_STREAM_PER_THREAD
  const auto handle = reinterpret_cast<uintptr_t>(stream);
  if (handle == legacy) return {};
  if (handle == per_thread) return {stream, std::this_thread::get_id()};
  return {stream, {}};
}

WorkspacePool::Lease WorkspacePool::lease(Stream stream, int64_t bytes) {
  if (device::is_capturing(*context_, static_cast<cuda_abi::CUstream>(stream))) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("a call that needs {} bytes of workspace cannot be captured into a graph", bytes),
        "capture Plan::run or call() with a workspace of your own, or set ContextOptions::workspace_allocator, or "
        "ContextOptions::workspace_limit to 0");
  }
  const auto needed = static_cast<size_t>(bytes);
  return {*this, choose(key_of(stream), needed), stream, needed};
}

// The workspace for a stream, with the caller counted among its users.
WorkspacePool::Workspace& WorkspacePool::choose(const Key& key, size_t bytes) {
  const std::lock_guard lock(choosing_);
  const auto found = workspaces_.begin() + static_cast<std::ptrdiff_t>(find(key, bytes));
  std::rotate(found, found + 1, workspaces_.end());
  Workspace& workspace = *workspaces_.back();
  workspace.key = key;
  ++workspace.users;
  return workspace;
}

size_t WorkspacePool::find(const Key& key, size_t bytes) {
  const auto first = [&](const auto& suits) {
    return static_cast<size_t>(std::find_if(workspaces_.begin(), workspaces_.end(), suits) - workspaces_.begin());
  };
  const size_t count = workspaces_.size();
  if (const size_t own = first([&](const auto& workspace) { return workspace->key == key; }); own < count) return own;
  const auto idle = [](const auto& workspace) { return workspace->users == 0 && workspace->done.is_done(); };
  const size_t fits = first([&](const auto& workspace) { return idle(workspace) && workspace->size() >= bytes; });
  if (fits < count) return fits;
  if (const size_t free = first(idle); free < count) return free;
  if (count == max_workspaces) return 0;
  workspaces_.push_back(std::make_unique<Workspace>(context_));
  return count;
}

}  // namespace kiln
