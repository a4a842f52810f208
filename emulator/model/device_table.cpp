#include "model/device_table.h"

#include <algorithm>
#include <array>

namespace kiln::emulator {
namespace {

constexpr uint64_t mib = uint64_t{1} << 20;
constexpr int kib = 1024;

// Limits: data sheets, and the compute-capability tables of the CUDA C++ Programming Guide.
// Lanes: "Throughput of Native Arithmetic Instructions", CUDA C++ Best Practices Guide 13.
// Latencies: rounded from published micro-benchmarks (arXiv 1903.07486, 2402.13499, 2507.10789).
// L2 and DRAM rates: measured copies where the docs name one, else 0.9 of the data sheet's figure.
constexpr DeviceModel h200 = {.key = "h200",
                              .name = "Kiln emulated NVIDIA H200",
                              .limits = {.major = 9,
                                         .minor = 0,
                                         .multiprocessors = 132,
                                         .clock_khz = 1980000,
                                         .memory_clock_khz = 3201000,
                                         .bus_bits = 6144,
                                         .memory_bytes = 143771 * mib,
                                         .l2_bytes = 60 * mib,
                                         .shared_per_multiprocessor = 228 * kib,
                                         .shared_per_block_optin = 227 * kib,
                                         .shared_reserved_per_block = kib,
                                         .threads_per_multiprocessor = 2048,
                                         .blocks_per_multiprocessor = 32},
                              .rates = {.fp32_lanes = 128,
                                        .fp16_lanes = 128,
                                        .fp64_lanes = 64,
                                        .integer_lanes = 64,
                                        .special_lanes = 16,
                                        .conversion_lanes = 64,
                                        .l1_bytes_per_clock = 128,
                                        .l2_bytes_per_clock = 46,
                                        .dram_bytes_per_second = 4.3e12,
                                        .shared_latency = 29,
                                        .l2_latency = 262,
                                        .dram_latency = 620,
                                        .launch_seconds = 2.0e-6,
                                        .host_bytes_per_second = 5.0e10}};

// The same chip and SMs as the H200, with less and slower memory.
constexpr DeviceModel h100_of(DeviceModel model) {
  model.key = "h100";
  model.name = "Kiln emulated NVIDIA H100";
  model.limits.memory_clock_khz = 2619000;
  model.limits.bus_bits = 5120;
  model.limits.memory_bytes = 81559 * mib;
  model.limits.l2_bytes = 50 * mib;
  model.rates.dram_bytes_per_second = 3.0e12;
  return model;
}

constexpr DeviceModel t4 = {.key = "t4",
                            .name = "Kiln emulated NVIDIA T4",
                            .limits = {.major = 7,
                                       .minor = 5,
                                       .multiprocessors = 40,
                                       .clock_khz = 1590000,
                                       .memory_clock_khz = 5001000,
                                       .bus_bits = 256,
                                       .memory_bytes = 15109 * mib,
                                       .l2_bytes = 4 * mib,
                                       .shared_per_multiprocessor = 64 * kib,
                                       .shared_per_block_optin = 64 * kib,
                                       .shared_reserved_per_block = 0,
                                       .threads_per_multiprocessor = 1024,
                                       .blocks_per_multiprocessor = 16},
                            .rates = {.fp32_lanes = 64,
                                      .fp16_lanes = 64,
                                      .fp64_lanes = 2,
                                      .integer_lanes = 64,
                                      .special_lanes = 16,
                                      .conversion_lanes = 16,
                                      .l1_bytes_per_clock = 64,
                                      .l2_bytes_per_clock = 20,
                                      .dram_bytes_per_second = 2.4e11,
                                      .shared_latency = 19,
                                      .l2_latency = 188,
                                      .dram_latency = 434,
                                      .launch_seconds = 2.5e-6,
                                      .host_bytes_per_second = 1.2e10}};

constexpr DeviceModel a100 = {.key = "a100",
                              .name = "Kiln emulated NVIDIA A100",
                              .limits = {.major = 8,
                                         .minor = 0,
                                         .multiprocessors = 108,
                                         .clock_khz = 1410000,
                                         .memory_clock_khz = 1593000,
                                         .bus_bits = 5120,
                                         .memory_bytes = 81920 * mib,
                                         .l2_bytes = 40 * mib,
                                         .shared_per_multiprocessor = 164 * kib,
                                         .shared_per_block_optin = 163 * kib,
                                         .shared_reserved_per_block = kib,
                                         .threads_per_multiprocessor = 2048,
                                         .blocks_per_multiprocessor = 32},
                              .rates = {.fp32_lanes = 64,
                                        .fp16_lanes = 128,
                                        .fp64_lanes = 32,
                                        .integer_lanes = 64,
                                        .special_lanes = 16,
                                        .conversion_lanes = 16,
                                        .l1_bytes_per_clock = 128,
                                        .l2_bytes_per_clock = 40,
                                        .dram_bytes_per_second = 1.75e12,
                                        .shared_latency = 29,
                                        .l2_latency = 262,
                                        .dram_latency = 466,
                                        .launch_seconds = 2.2e-6,
                                        .host_bytes_per_second = 2.4e10}};

constexpr DeviceModel a10 = {.key = "a10",
                             .name = "Kiln emulated NVIDIA A10",
                             .limits = {.major = 8,
                                        .minor = 6,
                                        .multiprocessors = 72,
                                        .clock_khz = 1695000,
                                        .memory_clock_khz = 6251000,
                                        .bus_bits = 384,
                                        .memory_bytes = 22731 * mib,
                                        .l2_bytes = 6 * mib,
                                        .shared_per_multiprocessor = 100 * kib,
                                        .shared_per_block_optin = 99 * kib,
                                        .shared_reserved_per_block = kib,
                                        .threads_per_multiprocessor = 1536,
                                        .blocks_per_multiprocessor = 16},
                             .rates = {.fp32_lanes = 128,
                                       .fp16_lanes = 64,
                                       .fp64_lanes = 2,
                                       .integer_lanes = 64,
                                       .special_lanes = 16,
                                       .conversion_lanes = 16,
                                       .l1_bytes_per_clock = 128,
                                       .l2_bytes_per_clock = 18,
                                       .dram_bytes_per_second = 5.0e11,
                                       .shared_latency = 29,
                                       .l2_latency = 262,
                                       .dram_latency = 500,
                                       .launch_seconds = 2.2e-6,
                                       .host_bytes_per_second = 2.4e10}};

constexpr DeviceModel l40s = {.key = "l40s",
                              .name = "Kiln emulated NVIDIA L40S",
                              .limits = {.major = 8,
                                         .minor = 9,
                                         .multiprocessors = 142,
                                         .clock_khz = 2520000,
                                         .memory_clock_khz = 9001000,
                                         .bus_bits = 384,
                                         .memory_bytes = 45589 * mib,
                                         .l2_bytes = 96 * mib,
                                         .shared_per_multiprocessor = 100 * kib,
                                         .shared_per_block_optin = 99 * kib,
                                         .shared_reserved_per_block = kib,
                                         .threads_per_multiprocessor = 1536,
                                         .blocks_per_multiprocessor = 24},
                              .rates = {.fp32_lanes = 128,
                                        .fp16_lanes = 64,
                                        .fp64_lanes = 2,
                                        .integer_lanes = 64,
                                        .special_lanes = 16,
                                        .conversion_lanes = 64,
                                        .l1_bytes_per_clock = 128,
                                        .l2_bytes_per_clock = 15,
                                        .dram_bytes_per_second = 7.6e11,
                                        .shared_latency = 29,
                                        .l2_latency = 273,
                                        .dram_latency = 541,
                                        .launch_seconds = 2.2e-6,
                                        .host_bytes_per_second = 2.4e10}};

constexpr DeviceModel b200 = {.key = "b200",
                              .name = "Kiln emulated NVIDIA B200",
                              .limits = {.major = 10,
                                         .minor = 0,
                                         .multiprocessors = 148,
                                         .clock_khz = 1965000,
                                         .memory_clock_khz = 3996000,
                                         .bus_bits = 7680,
                                         .memory_bytes = 182633 * mib,
                                         .l2_bytes = 126 * mib + 512 * kib,
                                         .shared_per_multiprocessor = 228 * kib,
                                         .shared_per_block_optin = 227 * kib,
                                         .shared_reserved_per_block = kib,
                                         .threads_per_multiprocessor = 2048,
                                         .blocks_per_multiprocessor = 32},
                              .rates = {.fp32_lanes = 128,
                                        .fp16_lanes = 128,
                                        .fp64_lanes = 64,
                                        .integer_lanes = 64,
                                        .special_lanes = 16,
                                        .conversion_lanes = 64,
                                        .l1_bytes_per_clock = 128,
                                        .l2_bytes_per_clock = 46,
                                        .dram_bytes_per_second = 6.9e12,
                                        .shared_latency = 29,
                                        .l2_latency = 300,
                                        .dram_latency = 700,
                                        .launch_seconds = 2.0e-6,
                                        .host_bytes_per_second = 5.0e10}};

constexpr DeviceModel rtx5090 = {.key = "rtx5090",
                                 .name = "Kiln emulated NVIDIA GeForce RTX 5090",
                                 .limits = {.major = 12,
                                            .minor = 0,
                                            .multiprocessors = 170,
                                            .clock_khz = 2407000,
                                            .memory_clock_khz = 14001000,
                                            .bus_bits = 512,
                                            .memory_bytes = 32607 * mib,
                                            .l2_bytes = 96 * mib,
                                            .shared_per_multiprocessor = 100 * kib,
                                            .shared_per_block_optin = 99 * kib,
                                            .shared_reserved_per_block = kib,
                                            .threads_per_multiprocessor = 1536,
                                            .blocks_per_multiprocessor = 24},
                                 .rates = {.fp32_lanes = 128,
                                           .fp16_lanes = 64,
                                           .fp64_lanes = 2,
                                           .integer_lanes = 128,
                                           .special_lanes = 16,
                                           .conversion_lanes = 64,
                                           .l1_bytes_per_clock = 128,
                                           .l2_bytes_per_clock = 15,
                                           .dram_bytes_per_second = 1.6e12,
                                           .shared_latency = 30,
                                           .l2_latency = 320,
                                           .dram_latency = 800,
                                           .launch_seconds = 2.0e-6,
                                           .host_bytes_per_second = 5.0e10}};

constexpr DeviceModel rtx3070 = {.key = "rtx3070",
                                 .name = "Kiln emulated NVIDIA GeForce RTX 3070",
                                 .limits = {.major = 8,
                                            .minor = 6,
                                            .multiprocessors = 46,
                                            .clock_khz = 1725000,
                                            .memory_clock_khz = 7001000,
                                            .bus_bits = 256,
                                            .memory_bytes = 7982 * mib,
                                            .l2_bytes = 4 * mib,
                                            .shared_per_multiprocessor = 100 * kib,
                                            .shared_per_block_optin = 99 * kib,
                                            .shared_reserved_per_block = kib,
                                            .threads_per_multiprocessor = 1536,
                                            .blocks_per_multiprocessor = 16},
                                 .rates = {.fp32_lanes = 128,
                                           .fp16_lanes = 64,
                                           .fp64_lanes = 2,
                                           .integer_lanes = 64,
                                           .special_lanes = 16,
                                           .conversion_lanes = 16,
                                           .l1_bytes_per_clock = 128,
                                           .l2_bytes_per_clock = 18,
                                           .dram_bytes_per_second = 4.0e11,
                                           .shared_latency = 29,
                                           .l2_latency = 262,
                                           .dram_latency = 500,
                                           .launch_seconds = 2.2e-6,
                                           .host_bytes_per_second = 2.4e10}};

// Chips of the L40S's kind: the same SMs, other numbers of them, and other memory.
constexpr DeviceModel rtx4090_of(DeviceModel model) {
  model.key = "rtx4090";
  model.name = "Kiln emulated NVIDIA GeForce RTX 4090";
  model.limits.multiprocessors = 128;
  model.limits.memory_clock_khz = 10501000;
  model.limits.memory_bytes = 24564 * mib;
  model.limits.l2_bytes = 72 * mib;
  model.rates.dram_bytes_per_second = 9.3e11;
  return model;
}

constexpr DeviceModel rtx4000ada_of(DeviceModel model) {
  model.key = "rtx4000ada";
  model.name = "Kiln emulated NVIDIA RTX 4000 Ada Generation";
  model.limits.multiprocessors = 48;
  model.limits.clock_khz = 2175000;
  model.limits.memory_clock_khz = 9001000;
  model.limits.bus_bits = 160;
  model.limits.memory_bytes = 20475 * mib;
  model.limits.l2_bytes = 48 * mib;
  model.rates.dram_bytes_per_second = 3.3e11;
  return model;
}

constexpr std::array models = {
    h200, h100_of(h200), b200, a100, a10, l40s, rtx3070, rtx4090_of(l40s), rtx4000ada_of(l40s), rtx5090, t4};

}  // namespace

std::span<const DeviceModel> device_models() {
  return models;
}

const DeviceModel* find_device_model(std::string_view key) {
  const auto found = std::find_if(models.begin(), models.end(), [&](const DeviceModel& m) { return m.key == key; });
  return found == models.end() ? nullptr : &*found;
}

}  // namespace kiln::emulator
