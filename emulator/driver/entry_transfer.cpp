// Copies and fills.
#include <algorithm>
#include <string_view>

#include "driver.h"
#include "driver/exports.h"

namespace kiln::emulator {
namespace {

constexpr CUstream default_stream = nullptr;

CopyWork::Side on_device(uint64_t address) {
  return {.address = address, .device = true};
}

CopyWork::Side on_host(const void* address) {
  return {.address = reinterpret_cast<uintptr_t>(address), .device = false};
}

StreamUse enqueue(const CopyWork& copy, CUstream stream) {
  StreamUse use = use_stream(stream);
  if (copy.bytes == 0) return use;
  require(copy.destination.address != 0 && copy.source.address != 0);
  submit(use, copy);
  return use;
}

// A copy after which the host goes on only when it is done.
void copy_and_wait(const CopyWork& copy) {
  Driver::instance().captures.before_unsafe_call();
  const StreamUse use = enqueue(copy, default_stream);
  Timeline::synchronise(use.context->device().timeline.record(*use.stream->track));
}

// A side of a unified copy: device memory where the address is one, else host memory.
CopyWork::Side side_of(const Context& context, uint64_t address, uint64_t bytes) {
  return {address, context.is_valid(address, std::max<uint64_t>(bytes, 1))};
}

CopyWork unified(std::string_view call, uint64_t destination, uint64_t source, uint64_t bytes, CUstream stream) {
  const Context& context = *use_stream(stream).context;
  CopyWork copy = {call, side_of(context, destination, bytes), side_of(context, source, bytes), bytes};
  if (!copy.destination.device) copy.source.device = true;  // at least one side is the device's
  return copy;
}

void fill(std::string_view call, uint64_t address, unsigned value, uint32_t element_bytes, uint64_t count,
          CUstream stream) {
  const StreamUse use = use_stream(stream);
  if (count == 0) return;
  require(address % element_bytes == 0 && count <= UINT64_MAX / element_bytes);
  submit(use, FillWork{call, address, value, element_bytes, count});
}

}  // namespace

CUresult cuMemcpyHtoD_v2(CUdeviceptr destination, const void* source, size_t bytes) {
  return entry([&] { copy_and_wait({"cuMemcpyHtoD", on_device(destination), on_host(source), bytes}); });
}

CUresult cuMemcpyDtoH_v2(void* destination, CUdeviceptr source, size_t bytes) {
  return entry([&] { copy_and_wait({"cuMemcpyDtoH", on_host(destination), on_device(source), bytes}); });
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr destination, CUdeviceptr source, size_t bytes) {
  return entry([&] { enqueue({"cuMemcpyDtoD", on_device(destination), on_device(source), bytes}, default_stream); });
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr destination, const void* source, size_t bytes, CUstream stream) {
  return entry([&] { enqueue({"cuMemcpyHtoDAsync", on_device(destination), on_host(source), bytes}, stream); });
}

CUresult cuMemcpyDtoHAsync_v2(void* destination, CUdeviceptr source, size_t bytes, CUstream stream) {
  return entry([&] { enqueue({"cuMemcpyDtoHAsync", on_host(destination), on_device(source), bytes}, stream); });
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr destination, CUdeviceptr source, size_t bytes, CUstream stream) {
  return entry([&] { enqueue({"cuMemcpyDtoDAsync", on_device(destination), on_device(source), bytes}, stream); });
}

CUresult cuMemcpy(CUdeviceptr destination, CUdeviceptr source, size_t bytes) {
  return entry([&] { copy_and_wait(unified("cuMemcpy", destination, source, bytes, default_stream)); });
}

CUresult cuMemcpyAsync(CUdeviceptr destination, CUdeviceptr source, size_t bytes, CUstream stream) {
  return entry([&] { enqueue(unified("cuMemcpyAsync", destination, source, bytes, stream), stream); });
}

CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t count, CUstream stream) {
  return entry([&] { fill("cuMemsetD8Async", address, value, 1, count, stream); });
}

CUresult cuMemsetD16Async(CUdeviceptr address, unsigned short value, size_t count, CUstream stream) {
  return entry([&] { fill("cuMemsetD16Async", address, value, 2, count, stream); });
}

CUresult cuMemsetD32Async(CUdeviceptr address, unsigned value, size_t count, CUstream stream) {
  return entry([&] { fill("cuMemsetD32Async", address, value, 4, count, stream); });
}

CUresult cuMemsetD8_v2(CUdeviceptr address, unsigned char value, size_t count) {
  return entry([&] { fill("cuMemsetD8", address, value, 1, count, default_stream); });
}

CUresult cuMemsetD16_v2(CUdeviceptr address, unsigned short value, size_t count) {
  return entry([&] { fill("cuMemsetD16", address, value, 2, count, default_stream); });
}

CUresult cuMemsetD32_v2(CUdeviceptr address, unsigned value, size_t count) {
  return entry([&] { fill("cuMemsetD32", address, value, 4, count, default_stream); });
}

}  // namespace kiln::emulator
