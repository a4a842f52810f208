#include "kiln/device/event.h"

namespace kiln::device {

using cuda_abi::CUevent;
using cuda_abi::CUresult;

Event::Event(std::shared_ptr<const ContextHandle> context, Timing timing) {
  const unsigned flags = timing == Timing::none ? cuda_abi::CU_EVENT_DISABLE_TIMING : cuda_abi::CU_EVENT_DEFAULT;
  CUevent event = nullptr;
  context->driver().check(context->call(&DriverTable::cuEventCreate, &event, flags), "cuEventCreate", "an event");
  event_ = OwnedHandle<CUevent>(std::move(context), event, &DriverTable::cuEventDestroy_v2, "cuEventDestroy");
}

void Event::record(cuda_abi::CUstream stream) const {
  const ContextHandle& context = *event_.context();
  context.driver().check(context.call(&DriverTable::cuEventRecord, raw(), stream), "cuEventRecord", "an event");
}

void Event::synchronize() const {
  const ContextHandle& context = *event_.context();
  const BesideCaptures beside(context.driver());
  context.driver().check(context.call(&DriverTable::cuEventSynchronize, raw()), "cuEventSynchronize", "an event");
}

bool Event::is_done() const {
  const ContextHandle& context = *event_.context();
  const BesideCaptures beside(context.driver());
  const CUresult result = context.call(&DriverTable::cuEventQuery, raw());
  if (result == cuda_abi::CUDA_ERROR_NOT_READY) return false;
  context.driver().check(result, "cuEventQuery", "an event");
  return true;
}

double Event::elapsed_ms(const Event& start) const {
  const ContextHandle& context = *event_.context();
  float milliseconds = 0;
  const CUresult result = context.call(&DriverTable::cuEventElapsedTime, &milliseconds, start.raw(), raw());
  if (result == cuda_abi::CUDA_ERROR_NOT_SUPPORTED) {
    const Current current(context);
    if (const std::string reason = context.driver().not_timed(); !reason.empty()) {
      throw Error(ErrorCode::unsupported, std::string(not_timed) + reason,
                  "unset KILN_EMULATOR_CLOCK where it is ptx; `pip install nvidia-cuda-nvdisasm` or a CUDA toolkit "
                  "brings nvdisasm");
    }
  }
  context.driver().check(result, "cuEventElapsedTime", "two events");
  return milliseconds;
}

}  // namespace kiln::device
