#include "kiln/memory.h"

#include <fmt/format.h>

#include "context_impl.h"
#include "kiln/base/error.h"
#include "kiln/device/memory.h"

namespace kiln {

struct DeviceMemory::Impl {
  std::shared_ptr<const device::ContextHandle> device;
  device::Buffer buffer;

  void require(size_t bytes) const {
    if (bytes <= buffer.size()) return;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} bytes do not fit device memory of {} bytes", bytes, buffer.size()),
                "allocate more or copy less");
  }
};

DeviceMemory::DeviceMemory(Context& context, size_t bytes)
    : impl_(new Impl{context.impl().device(), device::Buffer(context.impl().device(), bytes)}) {}
DeviceMemory::~DeviceMemory() = default;
DeviceMemory::DeviceMemory(DeviceMemory&&) noexcept = default;
DeviceMemory& DeviceMemory::operator=(DeviceMemory&&) noexcept = default;

void* DeviceMemory::data() const {
  return reinterpret_cast<void*>(impl_->buffer.address());
}
size_t DeviceMemory::size() const {
  return impl_->buffer.size();
}

void DeviceMemory::upload(std::span<const std::byte> bytes) {
  impl_->require(bytes.size());
  device::copy_to_device(*impl_->device, impl_->buffer.address(), bytes.data(), bytes.size());
}

void DeviceMemory::download(std::span<std::byte> bytes) const {
  impl_->require(bytes.size());
  device::copy_to_host(*impl_->device, bytes.data(), impl_->buffer.address(), bytes.size());
}

}  // namespace kiln
