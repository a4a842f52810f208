#include "kiln/stream.h"

#include "context_impl.h"
#include "kiln/device/event.h"
#include "kiln/device/stream.h"

namespace kiln {
namespace {

// The default stream has two names.
Stream by_one_name(Stream stream) {
  constexpr uintptr_t legacy = 1;  // CU_STREAM_LEGACY
  return reinterpret_cast<uintptr_t>(stream) == legacy ? nullptr : stream;
}

}  // namespace

void order(Context& context, Stream earlier, Stream later) {
  if (by_one_name(earlier) == by_one_name(later)) return;
  const std::shared_ptr<const device::ContextHandle>& device = context.impl().device();
  const device::Event done(device, device::Timing::none);
  done.record(static_cast<cuda_abi::CUstream>(earlier));
  device::wait(*device, static_cast<cuda_abi::CUstream>(later), done);
}

}  // namespace kiln
