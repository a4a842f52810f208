// Executing copies and fills, and their modelled time.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "device_work.h"
#include "model/timing.h"

namespace kiln::emulator {
namespace {

void* pointer(uint64_t address) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(address));
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

void place(const Context& context, Track& track, HardwareEngine engine, double seconds) {
  context.device().timeline.enqueue(track, engine, to_picoseconds(seconds));
}

void move_bytes(Context& context, const CopyWork& copy) {
  if (copy.bytes != 0) std::memmove(pointer(copy.destination.address), pointer(copy.source.address), copy.bytes);
  if (copy.destination.device) {
    context.memory().mark_copied(copy.destination.address, copy.source.address, copy.bytes);
  }
}

template <typename Element>
void fill_with(const FillWork& fill) {
  std::fill_n(static_cast<Element*>(pointer(fill.address)), fill.count, static_cast<Element>(fill.value));
}

void fill_bytes(Context& context, const FillWork& fill) {
  if (fill.element_bytes == 1) fill_with<uint8_t>(fill);
  if (fill.element_bytes == 2) fill_with<uint16_t>(fill);
  if (fill.element_bytes == 4) fill_with<uint32_t>(fill);
  context.memory().mark_written(fill.address, fill.count * fill.element_bytes);
}

}  // namespace

void execute_copy(Context& context, Track& track, const CopyWork& copy) {
  for (const CopyWork::Side& side : {copy.destination, copy.source}) {
    if (side.device) require_valid(context, copy.call, side.address, copy.bytes);
  }
  if (!context.is_time_only()) move_bytes(context, copy);
  track.in_l2.clear();
  const DeviceModel& model = context.device().model;
  if (copy.destination.device && copy.source.device) {
    place(context, track, HardwareEngine::compute, model_device_transfer(model, 2 * copy.bytes));
  } else {
    place(context, track, copy.destination.device ? HardwareEngine::copy_to_device : HardwareEngine::copy_to_host,
          model_host_transfer(model, copy.bytes));
  }
}

void execute_fill(Context& context, Track& track, const FillWork& fill) {
  const uint64_t bytes = fill.count * fill.element_bytes;
  require_valid(context, fill.call, fill.address, bytes);
  if (!context.is_time_only()) fill_bytes(context, fill);
  track.in_l2.clear();
  place(context, track, HardwareEngine::compute, model_device_transfer(context.device().model, bytes));
}

}  // namespace kiln::emulator
