#include "workspace_pool.h"

#include <algorithm>

namespace kiln {

void* WorkspacePool::get(Stream stream, int64_t bytes) {
  if (bytes == 0) return nullptr;
  const auto needed = static_cast<size_t>(bytes);
  const std::lock_guard lock(mutex_);
  std::vector<device::Buffer>& buffers = buffers_[stream];
  if (buffers.empty() || buffers.back().size() < needed) {
    // Doubling keeps what is left behind below the size of the last one.
    const size_t size = buffers.empty() ? needed : std::max(needed, 2 * buffers.back().size());
    buffers.emplace_back(context_, size);
  }
  return reinterpret_cast<void*>(buffers.back().address());
}

}  // namespace kiln
