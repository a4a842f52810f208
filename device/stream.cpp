#include "kiln/device/stream.h"

#include "kiln/device/event.h"

namespace kiln::device {

using cuda_abi::CUresult;
using cuda_abi::CUstream;

Stream::Stream(std::shared_ptr<const ContextHandle> context) {
  CUstream stream = nullptr;
  context->driver().check(context->call(&DriverTable::cuStreamCreate, &stream, cuda_abi::CU_STREAM_NON_BLOCKING),
                          "cuStreamCreate", "a stream");
  stream_ = OwnedHandle<CUstream>(std::move(context), stream, &DriverTable::cuStreamDestroy_v2, "cuStreamDestroy");
}

void Stream::synchronize() const {
  device::synchronize(*stream_.context(), raw());
}

bool Stream::is_idle() const {
  const ContextHandle& context = *stream_.context();
  const CUresult result = context.call(&DriverTable::cuStreamQuery, raw());
  if (result == cuda_abi::CUDA_ERROR_NOT_READY) return false;
  context.driver().check(result, "cuStreamQuery", "a stream");
  return true;
}

void Stream::wait(const Event& event) const {
  device::wait(*stream_.context(), raw(), event);
}

void wait(const ContextHandle& context, CUstream stream, const Event& event) {
  context.driver().check(context.call(&DriverTable::cuStreamWaitEvent, stream, event.raw(), 0U), "cuStreamWaitEvent",
                         "a stream");
}

void synchronize(const ContextHandle& context, CUstream stream) {
  context.driver().check(context.call(&DriverTable::cuStreamSynchronize, stream), "cuStreamSynchronize", "a stream");
}

bool is_capturing(const ContextHandle& context, CUstream stream) {
  cuda_abi::CUstreamCaptureStatus status = cuda_abi::CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = context.call(&DriverTable::cuStreamIsCapturing, stream, &status);
  if (result == cuda_abi::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) return true;
  context.driver().check(result, "cuStreamIsCapturing", "a stream");
  return status != cuda_abi::CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace kiln::device
