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

DeviceMemory::Impl& DeviceMemory::present() const {
  if (impl_) return *impl_;
  throw Error(ErrorCode::invalid_argument, "this DeviceMemory was moved from", "use the one that it was moved to");
}

void* DeviceMemory::data() const {
  return reinterpret_cast<void*>(present().buffer.address());
}
size_t DeviceMemory::size() const {
  return present().buffer.size();
}

void DeviceMemory::upload(std::span<const std::byte> bytes) {
  const Impl& memory = present();
  memory.require(bytes.size());
  device::copy_to_device(*memory.device, memory.buffer.address(), bytes.data(), bytes.size());
}

void DeviceMemory::download(std::span<std::byte> bytes) const {
  const Impl& memory = present();
  memory.require(bytes.size());
  device::copy_to_host(*memory.device, bytes.data(), memory.buffer.address(), bytes.size());
}

struct RegisteredMemory::Impl {
  device::RegisteredRange range;
};

RegisteredMemory::RegisteredMemory(Context& context, void* data, size_t bytes) {
  if (data == nullptr || bytes == 0) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} bytes at {} cannot be registered", bytes, data),
                "give memory of the host, and at least a byte of it");
  }
  impl_ = std::make_unique<Impl>(Impl{device::RegisteredRange(context.impl().device(), data, bytes)});
}
RegisteredMemory::~RegisteredMemory() = default;
RegisteredMemory::RegisteredMemory(RegisteredMemory&&) noexcept = default;
RegisteredMemory& RegisteredMemory::operator=(RegisteredMemory&&) noexcept = default;

void RegisteredMemory::release() {
  if (impl_ == nullptr) return;
  const std::unique_ptr<Impl> ended = std::move(impl_);
  ended->range.context().synchronize();
}

}  // namespace kiln
