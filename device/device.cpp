#include "kiln/device/device.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

namespace kiln::device {
namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

/// "GPU-01234567-89ab-cdef-0123-456789abcdef", as nvidia-smi prints it.
std::string uuid_text(const cuda_abi::CUuuid& uuid) {
  std::string text = "GPU";
  for (size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid.bytes[i]);
  }
  return text;
}

std::string mig_profile_in(const std::string& name) {
  constexpr std::string_view mark = " MIG ";
  const size_t found = name.find(mark);
  return found == std::string::npos ? std::string() : name.substr(found + mark.size());
}

}  // namespace

std::string DeviceInfo::id() const {
  constexpr size_t gib = size_t{1} << 30;
  return fmt::format("name={} cc={}.{} sms={} memory={}GiB bus={} mig={} clock={}MHz memory_clock={}MHz emulated={}",
                     quoted(name), cc_major, cc_minor, sms, (memory_bytes + gib / 2) / gib, memory_bus_bits,
                     mig_profile.empty() ? "none" : mig_profile, clock_khz / 1000, memory_clock_khz / 1000,
                     emulated ? "yes" : "no");
}

Device::Device(std::shared_ptr<const Driver> driver, int ordinal) : driver_(std::move(driver)), ordinal_(ordinal) {
  const int count = driver_->device_count();
  if (ordinal < 0 || ordinal >= count) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("there is no device {}: there {} {}, of {}", ordinal, count == 1 ? "is" : "are", count,
                            driver_->description()),
                "`kiln devices` lists them, counted from 0");
  }
  driver_->check(driver_->calls().cuDeviceGet(&device_, ordinal), "cuDeviceGet", fmt::format("device {}", ordinal));
  info_ = query();
}

int Device::attribute(cuda_abi::CUdevice_attribute attribute) const {
  int value = 0;
  const cuda_abi::CUresult result = driver_->calls().cuDeviceGetAttribute(&value, attribute, device_);
  if (result != cuda_abi::CUDA_SUCCESS) {
    driver_->fail(result, "cuDeviceGetAttribute",
                  fmt::format("attribute {} of device {}", static_cast<int>(attribute), ordinal_));
  }
  return value;
}

DeviceInfo Device::query() const {
  const DriverTable& calls = driver_->calls();
  const std::string object = fmt::format("device {}", ordinal_);
  DeviceInfo info;
  info.emulated = driver_->is_emulated();
  std::array<char, 256> name = {};
  driver_->check(calls.cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device_), "cuDeviceGetName",
                 object);
  info.name = name.data();
  info.mig_profile = mig_profile_in(info.name);
  driver_->check(calls.cuDeviceTotalMem_v2(&info.memory_bytes, device_), "cuDeviceTotalMem", object);
  cuda_abi::CUuuid uuid = {};
  driver_->check(calls.cuDeviceGetUuid_v2(&uuid, device_), "cuDeviceGetUuid", object);
  info.uuid = uuid_text(uuid);

  using namespace cuda_abi;
  info.cc_major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  info.cc_minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  info.sms = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  info.memory_bus_bits = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  info.memory_clock_khz = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  info.clock_khz = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  info.l2_bytes = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  info.shared_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  info.shared_per_block_optin = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  info.shared_per_sm = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  info.shared_reserved_per_block = attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  info.registers_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  info.registers_per_sm = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  info.threads_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  info.threads_per_sm = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  info.blocks_per_sm = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  info.warp_size = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  info.reaches_host_memory = attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS) != 0;
  return info;
}

}  // namespace kiln::device
