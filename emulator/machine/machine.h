// The execution core: runs one kernel launch to completion on host threads. Knows nothing of the driver API.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "memory/region_table.h"

namespace kiln::emulator {

/// A PTX module after parsing: its kernels and global variables. Immutable once loaded; shared by launches.
class Program;

/// One decoded entry point.
class Kernel;

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
  bool operator==(const Dim3&) const = default;
};

enum class CheckLevel {
  off,     ///< Trust the kernel: no address checks.
  bounds,  ///< Bounds and alignment of every global, shared, local, constant and parameter access.
  full,    ///< And races, reads of what was never written, and divergent barriers.
};

/// What one launch executed. Instruction counts are per warp ("issued"), as hardware profilers count them.
struct Counters {
  // Instructions issued by class; `issued` is their sum.
  uint64_t issued = 0;
  uint64_t fma_f32 = 0;  ///< fma/mul/add/sub on f32 (one warp instruction each)
  uint64_t fma_f16 = 0;  ///< f16, f16x2, bf16, bf16x2 arithmetic
  uint64_t fma_f64 = 0;
  uint64_t integer = 0;  ///< integer and logic arithmetic, compares, selects, moves
  uint64_t special = 0;  ///< ex2, lg2, rcp, rsqrt, sqrt, sin, cos, divisions
  uint64_t conversion = 0;
  uint64_t control = 0;        ///< branches, calls, barriers, predicate-only work
  uint64_t warp_exchange = 0;  ///< shfl, vote, match, redux
  uint64_t global_load = 0, global_store = 0, global_atomic = 0;
  uint64_t shared_load = 0, shared_store = 0, shared_atomic = 0;
  uint64_t local_access = 0, constant_access = 0;

  // Memory behaviour. Exact when every block was counted, else scaled up from the sampled blocks.
  uint64_t global_sectors = 0;        ///< 32-byte sectors touched, summed over warp accesses (coalescing)
  uint64_t unique_load_sectors = 0;   ///< distinct 32-byte sectors read by the launch (estimate when sampled)
  uint64_t unique_store_sectors = 0;  ///< distinct 32-byte sectors written by the launch (estimate when sampled)
  uint64_t block_sectors = 0;      ///< distinct 32-byte sectors of each block, summed over blocks: what L1 cannot keep
  uint64_t shared_wavefronts = 0;  ///< shared-memory passes: 1 per access without bank conflict
  uint64_t active_lanes = 0;       ///< lanes active, summed over issued instructions
  uint64_t barriers = 0;

  uint64_t blocks_total = 0;
  uint64_t blocks_counted = 0;  ///< blocks whose memory behaviour was recorded
  Counters& operator+=(const Counters& other);
};

enum class FaultKind {
  illegal_address,
  misaligned_address,
  illegal_instruction,
  deadlock,
  timeout,
  assertion,           ///< trap, assert
  race,                ///< two accesses to shared or global memory that nothing orders
  uninitialised_read,  ///< of shared memory that the block, local memory that the thread, global memory that nobody
                       ///< has written
  divergent_barrier,   ///< a barrier of the whole block, met at different instructions
};

/// Why a launch stopped. `report` is complete and names kernel, block, thread, instruction and PTX line.
struct Fault {
  FaultKind kind = FaultKind::illegal_instruction;
  std::string report;
};

struct LaunchRequest {
  const Kernel* kernel = nullptr;
  Dim3 grid, block;
  uint32_t dynamic_shared_bytes = 0;
  std::span<const std::byte> parameters;      ///< laid out as Kernel::parameters() says
  std::shared_ptr<const RegionTable> memory;  ///< valid global addresses; needed by CheckLevel::bounds
  CheckLevel check = CheckLevel::bounds;
  /// Of full checks: from 1 to most_launches, and another one than any launch had that has left marks in `memory`.
  uint32_t number = 1;
  unsigned host_threads = 1;
  uint64_t counted_blocks = 64;    ///< at most this many blocks, spread over the grid, record memory behaviour; 0: all
  uint64_t instruction_limit = 0;  ///< warp instructions per block before FaultKind::timeout; 0: no limit
  /// All blocks are there at once and progress together, so that they may wait for each other. Each takes the memory of
  /// its registers, shared and local memory until the launch has ended.
  bool cooperative = false;
};

struct LaunchOutcome {
  Counters counters;
  std::optional<Fault> fault;
};

/// Executes every block of the launch. Memory written before a fault stays written, as on hardware.
LaunchOutcome run(const LaunchRequest& request);

struct ParameterSlot {
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

/// Static facts of a kernel.
struct KernelInfo {
  std::string name;
  std::vector<ParameterSlot> parameters;
  uint32_t parameter_bytes = 0;
  uint32_t static_shared_bytes = 0;
  uint32_t local_bytes = 0;            ///< per thread
  uint32_t max_threads = 0;            ///< from .maxntid or .reqntid, 0 if absent
  std::optional<Dim3> required_block;  ///< from .reqntid
  bool needs_cluster = false;          ///< cannot be launched here
  uint32_t registers_estimate = 0;     ///< 32-bit registers live at once, an estimate: PTX has no allocation
};

struct GlobalVariable {
  std::string name;
  uint64_t address = 0;
  uint64_t bytes = 0;
};

/// Parses, checks and decodes PTX text. Throws LoadError with the line on malformed or unknown PTX.
std::shared_ptr<const Program> load_program(std::string_view ptx);

const Kernel* find_kernel(const Program& program, std::string_view name);  ///< null if absent
const KernelInfo& info(const Kernel& kernel);
const std::vector<GlobalVariable>& global_variables(const Program& program);
/// The compute capability that its .target names, 10 x major + minor; 0 for a target that is no sm_NN.
int target_capability(const Program& program);

/// PTX that cannot be executed. what() names the line and the instruction.
class LoadError : public std::exception {
 public:
  LoadError(uint32_t line, std::string message);
  const char* what() const noexcept override { return message_.c_str(); }
  uint32_t line() const { return line_; }

 private:
  uint32_t line_;
  std::string message_;
};

}  // namespace kiln::emulator
