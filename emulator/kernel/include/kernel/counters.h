// Counters of a launch, and the classes by which instructions are counted. Both come from one table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace kiln::emulator {

// All counters in order: CLASS(name) counts the instructions of the class of that name, OTHER(name) something else.
//
// Instructions are counted per warp ("issued"), as hardware profilers count them. Memory behaviour is exact when every
// block was counted, else scaled up from the sampled blocks; a sector has 32 bytes.
#define KILN_EMULATOR_COUNTERS(CLASS, OTHER)                                                                         \
  OTHER(issued)  /* the sum of all classes */                                                                        \
  CLASS(fma_f32) /* fma, mul, add, sub on f32: one warp instruction each */                                          \
  CLASS(fma_f16) /* f16, f16x2, bf16, bf16x2 arithmetic */                                                           \
  CLASS(fma_f64)                                                                                                     \
  CLASS(integer) /* integer and logic arithmetic, compares, selects, moves */                                        \
  CLASS(special) /* ex2, lg2, rcp, rsqrt, sqrt, sin, cos, divisions */                                               \
  CLASS(conversion)                                                                                                  \
  CLASS(control)       /* branches, calls, barriers, predicate-only work */                                          \
  CLASS(warp_exchange) /* shfl, vote, match, redux, movmatrix */                                                     \
  CLASS(tensor)        /* mma */                                                                                     \
  CLASS(global_load)                                                                                                 \
  CLASS(global_store)                                                                                                \
  CLASS(global_atomic)                                                                                               \
  CLASS(shared_load)                                                                                                 \
  CLASS(shared_store)                                                                                                \
  CLASS(shared_atomic)                                                                                               \
  CLASS(local_access)                                                                                                \
  CLASS(constant_access)                                                                                             \
  OTHER(global_sectors)       /* sectors touched, summed over warp accesses (coalescing) */                          \
  OTHER(unique_load_sectors)  /* distinct sectors read by the launch; an estimate when sampled */                    \
  OTHER(unique_store_sectors) /* distinct sectors written by the launch; an estimate when sampled */                 \
  OTHER(block_sectors)        /* distinct sectors of each block, summed over blocks: traffic that L1 cannot avoid */ \
  OTHER(shared_wavefronts)    /* shared-memory passes: 1 per access without bank conflict */                         \
  OTHER(active_lanes)         /* lanes active, summed over issued instructions */                                    \
  OTHER(barriers)             /* instructions; they count as control, too */                                         \
  OTHER(tensor_multiply_adds) /* of matrix elements, by the instructions that count as tensor */                     \
  OTHER(matrix_loads)         /* ldmatrix; they count as shared loads, too */                                        \
  OTHER(matrix_stores)        /* stmatrix; they count as shared stores, too */                                       \
  OTHER(blocks_total)                                                                                                \
  OTHER(blocks_counted) /* blocks whose memory behaviour was recorded */

/// The columns of the instruction mix.
// clang-format off
enum class InstructionClass : uint8_t {
#define KILN_CLASS(name) name,
#define KILN_OTHER(name)
  KILN_EMULATOR_COUNTERS(KILN_CLASS, KILN_OTHER)
#undef KILN_CLASS
#undef KILN_OTHER
  barrier,       ///< counts as control, too
  matrix_load,   ///< counts as shared_load, too
  matrix_store,  ///< counts as shared_store, too
  free,     ///< the emulator's own steps: not an instruction of the kernel
};
// clang-format on
inline constexpr size_t instruction_classes = static_cast<size_t>(InstructionClass::free) + 1;

/// Counts of one launch.
struct Counters {
#define KILN_COUNTER(name) uint64_t name = 0;
  KILN_EMULATOR_COUNTERS(KILN_COUNTER, KILN_COUNTER)
#undef KILN_COUNTER
};

/// A counter by its name in the launch's JSON.
struct NamedCounter {
  std::string_view name;
  uint64_t Counters::*count;
};

/// All counters in order.
inline constexpr NamedCounter named_counters[] = {
#define KILN_COUNTER(name) {#name, &Counters::name},
    KILN_EMULATOR_COUNTERS(KILN_COUNTER, KILN_COUNTER)
#undef KILN_COUNTER
};

/// The counters of instruction classes, by InstructionClass.
inline constexpr uint64_t Counters::*class_counters[] = {
#define KILN_CLASS(name) &Counters::name,
#define KILN_OTHER(name)
    KILN_EMULATOR_COUNTERS(KILN_CLASS, KILN_OTHER)
#undef KILN_CLASS
#undef KILN_OTHER
};
static_assert(std::size(class_counters) == static_cast<size_t>(InstructionClass::barrier));

}  // namespace kiln::emulator
