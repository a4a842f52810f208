// Streams and events.
#include <algorithm>
#include <memory>

#include "driver.h"
#include "driver/exports.h"

namespace kiln::emulator {
namespace {

// Waits for what other threads are executing in the context, then fails if that broke it.
void drain(Context& context) {
  { const std::lock_guard idle(context.execution()); }
  context.require_usable();
}

void synchronise(CUstream handle) {
  const StreamUse use = use_stream(handle);
  Driver::instance().captures.before_synchronising(use);
  drain(*use.context);
  Timeline::synchronise(use.context->device().timeline.record(*use.stream->track));
}

std::shared_ptr<Event> usable_event(CUevent handle) {
  std::shared_ptr<Event> event = lookup(Driver::instance().events, handle);
  usable_context_of(*event);
  return event;
}

// An event whose time may be asked for.
std::shared_ptr<Event> finished_event(CUevent handle) {
  std::shared_ptr<Event> event = usable_event(handle);
  Driver::instance().captures.before_synchronising(*event);
  return event;
}

// An event that the host may wait for or ask about. Whatever event it is, a capture in progress may forbid that.
std::shared_ptr<Event> awaited_event(CUevent handle) {
  std::shared_ptr<Event> event = finished_event(handle);
  Driver::instance().captures.before_unsafe_call();
  return event;
}

struct RecordedTime {
  Picoseconds time;
  uint64_t untimed;
};

// The recorded time of an event that keeps time.
RecordedTime time_of(const std::shared_ptr<Event>& event) {
  require((event->flags & CU_EVENT_DISABLE_TIMING) == 0, CUDA_ERROR_INVALID_HANDLE);
  const std::lock_guard lock(event->mutex);
  require(event->time.has_value(), CUDA_ERROR_INVALID_HANDLE);
  return {*event->time, event->untimed};
}

void record(CUevent handle, CUstream stream) {
  const std::shared_ptr<Event> event = usable_event(handle);
  const StreamUse use = use_stream(stream);
  require(event->context.lock() == use.context, CUDA_ERROR_INVALID_HANDLE);
  if (Driver::instance().captures.record(use, *event)) return;
  const std::lock_guard execution(use.context->execution());
  const std::lock_guard lock(event->mutex);
  Device& device = use.context->device();
  Timeline& timeline = device.timeline;
  event->time = timeline.record(*use.stream->track);
  if (device.card && (event->flags & CU_EVENT_DISABLE_TIMING) == 0)
    timeline.wait(*use.stream->track, *event->time + to_picoseconds(device.card->event_ns * 1e-9));
  event->untimed = timeline.untimed();
}

}  // namespace

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return entry([&] {
    const std::shared_ptr<Context> context = current_context();
    require(stream != nullptr && flags <= CU_STREAM_NON_BLOCKING);
    *stream = Driver::instance().streams.add(context->make_stream(context, flags));
  });
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) {
  return cuStreamCreate(stream, flags);
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  return entry([&] {
    const std::shared_ptr<Stream> removed = Driver::instance().streams.remove(stream);
    require(removed != nullptr, CUDA_ERROR_INVALID_HANDLE);
    Driver::instance().captures.forget(*removed);
    usable_context_of(*removed);
  });
}

CUresult cuStreamSynchronize(CUstream stream) {
  return entry([&] { synchronise(stream); });
}

CUresult cuStreamQuery(CUstream stream) {
  return entry([&] {
    const StreamUse use = use_stream(stream);
    Driver::instance().captures.before_synchronising(use);
    use.context->require_usable();
  });
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  return entry([&] {
    const StreamUse use = use_stream(stream);
    const std::shared_ptr<Event> awaited = usable_event(event);
    if (Driver::instance().captures.wait(use, *awaited)) return;
    const std::lock_guard lock(awaited->mutex);
    if (awaited->time) use.context->device().timeline.wait(*use.stream->track, *awaited->time);
  });
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  return entry([&] {
    const StreamUse use = use_stream(stream);
    require(context != nullptr);
    *context = use.context->handle();
  });
}

CUresult cuStreamGetFlags(CUstream stream, unsigned* flags) {
  return entry([&] {
    const StreamUse use = use_stream(stream);
    require(flags != nullptr);
    *flags = use.stream->flags;
  });
}

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  return entry([&] {
    const std::shared_ptr<Context> context = current_context();
    require(event != nullptr);
    auto created = std::make_shared<Event>();
    created->context = context;
    created->flags = flags;
    *event = Driver::instance().events.add(std::move(created));
  });
}

CUresult cuEventDestroy_v2(CUevent event) {
  return entry([&] {
    const std::shared_ptr<Event> removed = Driver::instance().events.remove(event);
    require(removed != nullptr, CUDA_ERROR_INVALID_HANDLE);
    usable_context_of(*removed);
  });
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return entry([&] { record(event, stream); });
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned) {
  return cuEventRecord(event, stream);
}

CUresult cuEventQuery(CUevent event) {
  return entry([&] { awaited_event(event); });  // whatever was recorded has been executed
}

CUresult cuEventSynchronize(CUevent event) {
  return entry([&] {
    const std::shared_ptr<Event> awaited = awaited_event(event);
    const std::lock_guard lock(awaited->mutex);
    if (awaited->time) Timeline::synchronise(*awaited->time);
  });
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return entry([&] {
    require(milliseconds != nullptr);
    const RecordedTime from = time_of(finished_event(start)), to = time_of(finished_event(end));
    require(from.untimed == to.untimed, CUDA_ERROR_NOT_SUPPORTED);
    const auto picoseconds = static_cast<int64_t>(to.time) - static_cast<int64_t>(from.time);
    *milliseconds = static_cast<float>(static_cast<double>(picoseconds) * 1e-9);
  });
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return cuEventElapsedTime(milliseconds, start, end);
}

}  // namespace kiln::emulator
