// Workspace that the caller's allocator lends to one operation call.
#pragma once

#include <cstddef>

#include "kiln/context.h"

namespace kiln {

/// Asks `allocator` for memory, and gives it back at the end, when the call's work is enqueued.
class LentWorkspace {
 public:
  /// Throws Error(out_of_memory) if there is none.
  LentWorkspace(const WorkspaceAllocator& allocator, size_t bytes, Stream stream);
  ~LentWorkspace();
  LentWorkspace(const LentWorkspace&) = delete;
  LentWorkspace& operator=(const LentWorkspace&) = delete;

  void* address() const { return memory_; }

 private:
  const WorkspaceAllocator& allocator_;
  size_t bytes_;
  Stream stream_;
  void* memory_;
};

}  // namespace kiln
