// The figures of a GPU that the time model needs, each with its source.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::timing {

/// Cycles are of the SM's clock. docs/time-model.md says what each is for; cards/ holds the values with their sources.
struct Card {
  std::string name;
  uint32_t arch = 0, sms = 0, clock_mhz = 0;
  uint32_t warps = 0, blocks = 0, registers = 0, shared_bytes = 0, shared_reserve = 0, l1_bytes = 0;
  std::vector<uint32_t> carveout_kb;
  uint32_t l2_bytes = 0;
  uint32_t fma_cycles = 0, imad_shares_fma = 0, imad_cycles = 0, alu_cycles = 0, half_cycles = 0, double_cycles = 0,
           special_cycles = 0, convert_cycles = 0, uniform_cycles = 0, branch_cycles = 0;
  /// Multiply-adds of a scheduler's tensor unit in a cycle, by type of operands and sums; of m8n8k4 of doubles, its
  /// cycles.
  uint32_t tensor_half = 0, tensor_float = 0, tensor_tf32 = 0, tensor_byte = 0, tensor_fp8 = 0,
           tensor_double_cycles = 0,
           mma_percent = 0;    ///< The part of these that instructions of a warp reach, not those of a warpgroup.
  uint32_t operand_bytes = 0;  ///< Bytes of shared memory that instructions of a warpgroup read in a cycle.
  /// More than L2's for copies in bulk; from another SM of the cluster; from a complete phase to the warps that wait.
  uint32_t bulk_latency = 0, cluster_latency = 0, phase_latency = 0;
  uint32_t special_latency = 0, constant_latency = 0;
  uint32_t memory_queue = 0, address_cycles = 0, dispatch_latency = 0, lsu_cycles = 0, pass_cycles = 0,
           shared_latency = 0, l1_latency = 0, l2_latency = 0, dram_latency = 0, l2_bytes_per_clock = 0,
           dram_peak_gbs = 0, dram_gbs = 0, partial_sectors = 0;
  uint32_t barrier_latency = 0, block_cycles = 0, launch_ns = 0, event_ns = 0;
  uint32_t l0_bytes = 0, l1i_bytes = 0, l1i_latency = 0, l1i_cycles = 0, l2i_latency = 0, l2i_cycles = 0,
           prefetch_lines = 0;
};

/// Reads a file of cards/. Throws Error(parse_error), with the line, for a name that is unknown or twice, a value that
/// is no whole number in the range that the model computes with, and for names that are missing.
Card parse_card(const std::string& name, std::string_view text);

/// The built-in card of that name, "a100". Throws Error(invalid_argument) that lists the names for any other.
Card find_card(std::string_view name);

/// Its file. Throws as find_card().
std::string_view text_of_card(std::string_view name);

std::vector<std::string> card_names();

/// The built-in card that a device's name holds: "a100" of "NVIDIA A100-SXM4-80GB". Empty if none is.
std::string card_named(std::string_view device_name);

/// Reads a user's card. Throws as parse_card(), and Error(io_error) for a file that cannot be read.
Card read_card(const std::string& path);

/// Digest of all figures, without the name and the file's remarks: equal digests, equal times.
std::string digest_of(const Card& card);

/// The same card with its SMs at another clock. DRAM keeps its own: what its latency has more than L2's is as long in
/// time.
Card at_clock(Card card, uint32_t clock_mhz);

/// Figures that a driver reports of a device. A count of 0 is not known.
struct DeviceFigures {
  std::string name;   ///< "NVIDIA H100 80GB HBM3"
  uint32_t arch = 0;  ///< 90 for sm_90.
  uint32_t sms = 0, clock_mhz = 0, l2_bytes = 0;
  uint32_t dram_peak_gbs = 0;  ///< By clock and width of the bus.
};

/// The built-in card that the device's name holds ("h100"), else the one of the same major compute capability with the
/// highest minor one that is not above the device's, and among these one of its kind, GeForce or not. Throws
/// Error(invalid_argument) for a device that no card is like.
std::string nearest_card(const DeviceFigures& device);

/// The nearest card with the device's counts in place of its own. If the device's name does not hold the card's, the
/// result's name says so, and tensor products in sums of single precision have the rate of the device's kind: half on
/// GeForce cards. Throws as nearest_card().
Card card_for(const DeviceFigures& device);

}  // namespace kiln::timing
