#include "kiln/memory.h"

#include <span>

#include "boundary.h"
#include "handles.h"

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_memory_create(kiln_context* context, size_t bytes, kiln_memory** memory) {
  return guarded([&] {
    require(context, "kiln_memory_create", "context");
    require(memory, "kiln_memory_create", "memory");
    *memory = new kiln_memory{kiln::DeviceMemory(*context->context, bytes)};
  });
}

void kiln_memory_destroy(kiln_memory* memory) {
  destroy(memory);
}

void* kiln_memory_data(const kiln_memory* memory) {
  return memory == nullptr ? nullptr : memory->memory.data();
}

kiln_status kiln_memory_upload(kiln_memory* memory, const void* host, size_t bytes) {
  return guarded([&] {
    require(memory, "kiln_memory_upload", "memory");
    if (bytes > 0) require(host, "kiln_memory_upload", "host");
    memory->memory.upload({static_cast<const std::byte*>(host), bytes});
  });
}

kiln_status kiln_memory_download(const kiln_memory* memory, void* host, size_t bytes) {
  return guarded([&] {
    require(memory, "kiln_memory_download", "memory");
    if (bytes > 0) require(host, "kiln_memory_download", "host");
    memory->memory.download({static_cast<std::byte*>(host), bytes});
  });
}
