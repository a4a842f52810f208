// Copies and fills. Each is executed when it is enqueued; what is modelled is when it would have ended.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

#include "driver/driver.h"
#include "driver/exports.h"
#include "model/timing.h"

namespace kiln::emulator {
namespace {

constexpr CUstream default_stream = nullptr;

void* pointer(uint64_t address) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(address));
}
uint64_t address_of(const void* host) {
  return reinterpret_cast<uintptr_t>(host);
}

// Fails the call unless the whole range is valid on the device, and says on stderr what was wrong with it: the result
// code alone has cost people days.
void require_valid(const Context& context, std::string_view call, uint64_t address, uint64_t bytes) {
  if (context.is_valid(address, bytes)) return;
  std::fprintf(stderr, "kiln emulator: %s\n",
               fmt::format("{} of {} bytes at {:#x} leaves valid memory: it begins {}", call, bytes, address,
                           context.regions()->describe(address))
                   .c_str());
  fail(CUDA_ERROR_INVALID_VALUE);
}

struct Side {
  uint64_t address = 0;
  bool device = false;  // must be valid on the device
};

struct Copy {
  std::string_view call;  // for messages
  Side destination, source;
  uint64_t bytes = 0;
};

void place(const StreamUse& use, Engine engine, double seconds) {
  use.context->device().timeline.enqueue(*use.stream->track, engine, to_picoseconds(seconds));
}

void place(const StreamUse& use, const Copy& copy) {
  const DeviceModel& model = *use.context->device().model;
  if (copy.destination.device && copy.source.device) {
    place(use, Engine::compute, model_device_transfer(model, 2 * copy.bytes));
  } else {
    place(use, copy.destination.device ? Engine::copy_to_device : Engine::copy_to_host,
          model_host_transfer(model, copy.bytes));
  }
}

StreamUse enqueue(const Copy& copy, CUstream stream) {
  StreamUse use = use_stream(stream);
  if (copy.bytes == 0) return use;
  require(copy.destination.address != 0 && copy.source.address != 0);
  const std::lock_guard execution(use.context->execution());
  use.context->require_usable();
  for (const Side& side : {copy.destination, copy.source}) {
    if (side.device) require_valid(*use.context, copy.call, side.address, copy.bytes);
  }
  std::memmove(pointer(copy.destination.address), pointer(copy.source.address), copy.bytes);
  place(use, copy);
  return use;
}

void wait(const StreamUse& use) {
  Timeline::synchronise(use.context->device().timeline.record(*use.stream->track));
}

// A side of a unified copy: device memory where the address is one, else host memory.
Side side_of(const Context& context, uint64_t address, uint64_t bytes) {
  return {address, context.is_valid(address, std::max<uint64_t>(bytes, 1))};
}

Copy unified(std::string_view call, uint64_t destination, uint64_t source, uint64_t bytes, CUstream stream) {
  const Context& context = *use_stream(stream).context;
  const Copy copy = {call, side_of(context, destination, bytes), side_of(context, source, bytes), bytes};
  if (!copy.destination.device) require_valid(context, call, source, bytes);  // at least one side is the device's
  return copy;
}

template <typename Element>
StreamUse fill(std::string_view call, uint64_t address, Element value, uint64_t count, CUstream stream) {
  StreamUse use = use_stream(stream);
  if (count == 0) return use;
  require(address % sizeof(Element) == 0 && count <= UINT64_MAX / sizeof(Element));
  const std::lock_guard execution(use.context->execution());
  use.context->require_usable();
  require_valid(*use.context, call, address, count * sizeof(Element));
  std::fill_n(static_cast<Element*>(pointer(address)), count, value);
  place(use, Engine::compute, model_device_transfer(*use.context->device().model, count * sizeof(Element)));
  return use;
}

}  // namespace

CUresult cuMemcpyHtoD_v2(CUdeviceptr destination, const void* source, size_t bytes) {
  return entry([&] {
    wait(enqueue({"cuMemcpyHtoD", {destination, true}, {address_of(source), false}, bytes}, default_stream));
  });
}

CUresult cuMemcpyDtoH_v2(void* destination, CUdeviceptr source, size_t bytes) {
  return entry([&] {
    wait(enqueue({"cuMemcpyDtoH", {address_of(destination), false}, {source, true}, bytes}, default_stream));
  });
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr destination, CUdeviceptr source, size_t bytes) {
  return entry([&] { enqueue({"cuMemcpyDtoD", {destination, true}, {source, true}, bytes}, default_stream); });
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr destination, const void* source, size_t bytes, CUstream stream) {
  return entry([&] {
    enqueue({"cuMemcpyHtoDAsync", {destination, true}, {address_of(source), false}, bytes}, stream);
  });
}

CUresult cuMemcpyDtoHAsync_v2(void* destination, CUdeviceptr source, size_t bytes, CUstream stream) {
  return entry([&] {
    enqueue({"cuMemcpyDtoHAsync", {address_of(destination), false}, {source, true}, bytes}, stream);
  });
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr destination, CUdeviceptr source, size_t bytes, CUstream stream) {
  return entry([&] { enqueue({"cuMemcpyDtoDAsync", {destination, true}, {source, true}, bytes}, stream); });
}

CUresult cuMemcpy(CUdeviceptr destination, CUdeviceptr source, size_t bytes) {
  return entry([&] { wait(enqueue(unified("cuMemcpy", destination, source, bytes, default_stream), default_stream)); });
}

CUresult cuMemcpyAsync(CUdeviceptr destination, CUdeviceptr source, size_t bytes, CUstream stream) {
  return entry([&] { enqueue(unified("cuMemcpyAsync", destination, source, bytes, stream), stream); });
}

CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t count, CUstream stream) {
  return entry([&] { fill("cuMemsetD8Async", address, value, count, stream); });
}

CUresult cuMemsetD16Async(CUdeviceptr address, unsigned short value, size_t count, CUstream stream) {
  return entry([&] { fill("cuMemsetD16Async", address, value, count, stream); });
}

CUresult cuMemsetD32Async(CUdeviceptr address, unsigned value, size_t count, CUstream stream) {
  return entry([&] { fill("cuMemsetD32Async", address, value, count, stream); });
}

CUresult cuMemsetD8_v2(CUdeviceptr address, unsigned char value, size_t count) {
  return entry([&] { fill("cuMemsetD8", address, value, count, default_stream); });
}

CUresult cuMemsetD16_v2(CUdeviceptr address, unsigned short value, size_t count) {
  return entry([&] { fill("cuMemsetD16", address, value, count, default_stream); });
}

CUresult cuMemsetD32_v2(CUdeviceptr address, unsigned value, size_t count) {
  return entry([&] { fill("cuMemsetD32", address, value, count, default_stream); });
}

}  // namespace kiln::emulator
