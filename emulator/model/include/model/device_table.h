// The GPUs that the emulator can pretend to be: what the driver reports of them, and what the timing model needs.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace kiln::emulator {

/// Published limits of one GPU, as cuDeviceGetAttribute reports them.
struct DeviceLimits {
  int major = 0, minor = 0;  ///< compute capability
  int multiprocessors = 0;
  int clock_khz = 0;         ///< highest SM clock
  int memory_clock_khz = 0;  ///< half the transfer rate of one pin (double data rate)
  int bus_bits = 0;
  uint64_t memory_bytes = 0;
  uint64_t l2_bytes = 0;
  int shared_per_multiprocessor = 0;  ///< bytes
  int shared_per_block_optin = 0;     ///< bytes, with cuFuncSetAttribute
  int shared_reserved_per_block = 0;  ///< bytes that the system takes from each resident block's share
  int threads_per_multiprocessor = 0;
  int blocks_per_multiprocessor = 0;
};

/// Rates per SM and clock, and the memory system. Sources and standing of each figure: docs/emulator.md.
struct DeviceRates {
  // Lanes per clock per SM, from the CUDA guides' table of native arithmetic throughput.
  int fp32_lanes = 0;
  int fp16_lanes = 0;  ///< counting instructions: an f16x2 operation is one lane
  int fp64_lanes = 0;
  int integer_lanes = 0;
  int special_lanes = 0;
  int conversion_lanes = 0;

  double l1_bytes_per_clock = 0;     ///< per SM, from L1 or shared memory to registers
  double l2_bytes_per_clock = 0;     ///< per SM, sustained
  double dram_bytes_per_second = 0;  ///< achievable by a copy, bytes read plus bytes written
  int shared_latency = 0;            ///< clocks, load to use
  int l2_latency = 0;                ///< clocks, load to use
  int dram_latency = 0;              ///< clocks, load to use
  double launch_seconds = 0;         ///< from the end of one kernel to the start of the next on a stream
  double host_bytes_per_second = 0;  ///< pinned copy over the host link, one direction
};

struct DeviceModel {
  std::string_view key;   ///< what KILN_EMULATOR_DEVICE calls it, e.g. "h200"
  std::string_view name;  ///< e.g. "Kiln emulated NVIDIA H200"
  DeviceLimits limits;
  DeviceRates rates;
};

/// Limits that every supported compute capability shares.
inline constexpr int warp_size = 32;
inline constexpr int max_block_threads = 1024;
inline constexpr int max_block_z = 64;
inline constexpr uint32_t max_grid_x = 2147483647;
inline constexpr uint32_t max_grid_yz = 65535;
inline constexpr int default_shared_per_block = 49152;  ///< bytes, static plus dynamic, without opting in
inline constexpr int registers_per_multiprocessor = 65536;
inline constexpr int max_registers_per_thread = 255;
inline constexpr int constant_bytes = 65536;

/// The compute capability from which devices have tensor maps and the copies that read them.
inline constexpr int first_major_with_tensor_maps = 9;

/// Every device that can be emulated, the default one first.
std::span<const DeviceModel> device_models();

/// The device called `key`, or null.
const DeviceModel* find_device_model(std::string_view key);

}  // namespace kiln::emulator
