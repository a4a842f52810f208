#include "lent_workspace.h"

#include <fmt/format.h>

#include "kiln/base/error.h"

namespace kiln {

LentWorkspace::LentWorkspace(const WorkspaceAllocator& allocator, size_t bytes, Stream stream)
    : allocator_(allocator), bytes_(bytes), stream_(stream), memory_(allocator.allocate(bytes, stream)) {
  if (memory_ != nullptr) return;
  throw Error(ErrorCode::out_of_memory, fmt::format("the workspace allocator has no {} bytes", bytes),
              "free memory, or set ContextOptions::workspace_limit");
}

LentWorkspace::~LentWorkspace() {
  allocator_.release(memory_, bytes_, stream_);
}

}  // namespace kiln
