// Initialisation and device queries.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <optional>

#include "driver.h"
#include "driver/exports.h"

namespace kiln::emulator {
namespace {

constexpr int driver_version = 13000;

// Attributes beyond cuda_abi's list that programs commonly ask for, by their numbers in the driver API reference.
enum CommonAttribute : int {
  max_pitch = 11,
  texture_alignment = 14,
  gpu_overlap = 15,
  kernel_exec_timeout = 17,
  integrated = 18,
  can_map_host_memory = 19,
  compute_mode = 20,
  surface_alignment = 30,
  concurrent_kernels = 31,
  pci_bus_id = 33,
  pci_device_id = 34,
  async_engine_count = 40,
  pci_domain_id = 50,
  stream_priorities_supported = 78,
  global_l1_cache_supported = 79,
  local_l1_cache_supported = 80,
  managed_memory = 83,
  concurrent_managed_access = 89,
  host_pointer_for_registered_memory = 91,
  cooperative_launch = 95,
  host_register_supported = 99,
  memory_pools_supported = 115,
  cluster_launch = 120,
  tensor_map_access_supported = 127,
};

struct FixedAttribute {
  int attribute;
  int value;
};

// Attributes that are the same on every device.
constexpr std::array fixed_attributes = {
    FixedAttribute{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, max_block_threads},
    FixedAttribute{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, max_block_threads},
    FixedAttribute{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, max_block_threads},
    FixedAttribute{CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, max_block_z},
    FixedAttribute{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, static_cast<int>(max_grid_x)},
    FixedAttribute{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, static_cast<int>(max_grid_yz)},
    FixedAttribute{CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, static_cast<int>(max_grid_yz)},
    FixedAttribute{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, default_shared_per_block},
    FixedAttribute{CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, constant_bytes},
    FixedAttribute{CU_DEVICE_ATTRIBUTE_WARP_SIZE, warp_size},
    FixedAttribute{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, registers_per_multiprocessor},
    FixedAttribute{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, registers_per_multiprocessor},
    FixedAttribute{CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 0},
    FixedAttribute{CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    FixedAttribute{CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0},  // host memory must be registered to be valid
    FixedAttribute{max_pitch, 2147483647},
    FixedAttribute{texture_alignment, 512},
    FixedAttribute{surface_alignment, 512},
    FixedAttribute{gpu_overlap, 1},
    FixedAttribute{kernel_exec_timeout, 0},
    FixedAttribute{integrated, 0},
    FixedAttribute{can_map_host_memory, 1},
    FixedAttribute{compute_mode, 0},
    FixedAttribute{concurrent_kernels, 1},
    FixedAttribute{pci_device_id, 0},
    FixedAttribute{async_engine_count, 2},
    FixedAttribute{pci_domain_id, 0},
    FixedAttribute{stream_priorities_supported, 0},
    FixedAttribute{global_l1_cache_supported, 1},
    FixedAttribute{local_l1_cache_supported, 1},
    FixedAttribute{managed_memory, 0},
    FixedAttribute{concurrent_managed_access, 0},
    FixedAttribute{host_pointer_for_registered_memory, 1},
    FixedAttribute{cooperative_launch, 1},
    FixedAttribute{host_register_supported, 1},
    FixedAttribute{memory_pools_supported, 0},
    FixedAttribute{cluster_launch, 0},
};

std::optional<int> fixed_attribute(int attribute) {
  const auto found = std::find_if(fixed_attributes.begin(), fixed_attributes.end(),
                                  [&](const FixedAttribute& known) { return known.attribute == attribute; });
  return found == fixed_attributes.end() ? std::nullopt : std::optional(found->value);
}

std::optional<int> model_attribute(int attribute, const DeviceLimits& limits) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return limits.clock_khz;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return limits.multiprocessors;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return limits.memory_clock_khz;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      return limits.bus_bits;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return static_cast<int>(limits.l2_bytes);
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return limits.threads_per_multiprocessor;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return limits.major;
    case tensor_map_access_supported:
      return limits.major >= first_major_with_tensor_maps ? 1 : 0;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return limits.minor;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return limits.shared_per_multiprocessor;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return limits.shared_per_block_optin;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      return limits.blocks_per_multiprocessor;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      return limits.shared_reserved_per_block;
    default:
      return std::nullopt;
  }
}

// Recognisable, stable from run to run, and different for each emulated device of the process.
CUuuid uuid_of(const Device& device) {
  CUuuid uuid = {};
  const std::string text = fmt::format("kiln-{}", device.model.key);
  std::copy_n(text.begin(), std::min<size_t>(text.size(), sizeof uuid.bytes - 1), std::begin(uuid.bytes));
  uuid.bytes[sizeof uuid.bytes - 1] = static_cast<unsigned char>(device.ordinal);
  return uuid;
}

}  // namespace

CUresult cuInit(unsigned flags) {
  return entry([&] {
    require(flags == 0);
    try {
      Driver::initialise();
    } catch (const SettingsError& error) {
      std::fprintf(stderr, "kiln emulator: %s\n", error.what());
      fail(CUDA_ERROR_INVALID_VALUE);
    }
  });
}

CUresult cuDriverGetVersion(int* version) {
  return entry([&] {
    require(version != nullptr);
    *version = driver_version;
  });
}

CUresult cuDeviceGetCount(int* count) {
  return entry([&] {
    const Driver& driver = Driver::instance();
    require(count != nullptr);
    *count = driver.device_count();
  });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return entry([&] {
    const Driver& driver = Driver::instance();
    require(device != nullptr);
    *device = driver.device(ordinal).ordinal;
  });
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  return entry([&] {
    const std::string_view text = Driver::instance().device(device).name;
    require(name != nullptr && length > 0);
    const size_t copied = std::min(text.size(), static_cast<size_t>(length) - 1);
    std::memcpy(name, text.data(), copied);
    name[copied] = '\0';
  });
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return entry([&] {
    const Device& found = Driver::instance().device(device);
    require(uuid != nullptr);
    *uuid = uuid_of(found);
  });
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return cuDeviceGetUuid_v2(uuid, device);
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  return entry([&] {
    const Device& found = Driver::instance().device(device);
    require(bytes != nullptr);
    *bytes = found.model.limits.memory_bytes;
  });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return entry([&] {
    const Device& found = Driver::instance().device(device);
    require(value != nullptr);
    std::optional<int> known = fixed_attribute(attribute);
    if (!known) known = model_attribute(attribute, found.model.limits);
    if (!known && static_cast<int>(attribute) == pci_bus_id) known = found.ordinal + 1;
    require(known.has_value());
    *value = *known;
  });
}

}  // namespace kiln::emulator
