# kiln_emulator_core: parser, decoder, execution units and scheduler. The units are compiled once per instruction set
# from the same sources, each in a namespace of its own, and chosen at run time.
add_library(kiln_emulator_core STATIC
  checks/access.cpp checks/block_order.cpp checks/fault.cpp checks/global_checks.cpp checks/global_shadow.cpp
  checks/memory_recorder.cpp checks/shared_shadow.cpp checks/strict.cpp checks/thread_clocks.cpp
  checks/unwritten_values.cpp
  decode/allocation.cpp decode/assembler.cpp decode/context.cpp decode/decode_atomic.cpp decode/decode_bits.cpp
  decode/decode_bulk.cpp decode/decode_compare.cpp decode/decode_control.cpp decode/decode_convert.cpp decode/decode_exchange.cpp
  decode/decode_float.cpp decode/decode_hints.cpp decode/decode_integer.cpp decode/decode_mbarrier.cpp decode/decode_memory.cpp decode/decode_move.cpp
  decode/decoders.cpp decode/fusion.cpp decode/generic_address.cpp decode/liveness.cpp decode/lowering.cpp decode/modifiers.cpp decode/scope.cpp
  decode/special_registers.cpp
  machine/counting.cpp machine/load.cpp machine/run.cpp machine/variables.cpp
  memory/region_table.cpp
  ptx/instruction_parser.cpp ptx/lexer.cpp ptx/parser.cpp ptx/token_stream.cpp ptx/type.cpp
  scheduler/async_copies.cpp scheduler/barriers.cpp scheduler/block_runner.cpp scheduler/bulk_copies.cpp
  scheduler/bulk_instructions.cpp scheduler/control_flow.cpp scheduler/fragments.cpp scheduler/mbarrier_instructions.cpp
  scheduler/mbarriers.cpp scheduler/register_values.cpp scheduler/tensor_boxes.cpp
  units/unit_table.cpp)
target_include_directories(kiln_emulator_core PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
kiln_computes(kiln_emulator_core)
target_link_libraries(kiln_emulator_core PUBLIC Threads::Threads PRIVATE fmt::fmt)
kiln_precompile(emulator kiln_emulator_core)

# Loops vectorised as -O3 does it: what that adds besides takes half as long again to compile and runs no faster.
set(KILN_EMULATOR_OPTIMISATION -O2 -ftree-vectorize -fvect-cost-model=dynamic)
if(KILN_SANITIZE)  # which keep loops from vectorising in any case
  set(KILN_EMULATOR_OPTIMISATION -O1)
endif()

set(KILN_EMULATOR_UNITS atomics carry compare convert convert_float exchange floating fma_run half integer memory pack
    table)
list(TRANSFORM KILN_EMULATOR_UNITS PREPEND units/)
list(TRANSFORM KILN_EMULATOR_UNITS APPEND .cpp)

# Lane loops have to vectorise whatever the build type; registers are read as several types; and an optimiser that
# contracts a * b + c or assumes finite numbers would change results.
# GCC 12 takes the deliberately undefined sources inside its own AVX-512 intrinsics for mistakes.
set(KILN_EMULATOR_UNIT_OPTIONS ${KILN_EMULATOR_OPTIMISATION} -fno-strict-aliasing -ffp-contract=off -fno-math-errno -fno-trapping-math
    -Wno-uninitialized -Wno-maybe-uninitialized)
set(KILN_EMULATOR_ISA_avx512 -march=x86-64-v4 -mprefer-vector-width=512)
set(KILN_EMULATOR_ISA_avx2 -march=x86-64-v3)
set(KILN_EMULATOR_ISA_baseline -march=x86-64)
foreach(isa IN ITEMS avx512 avx2 baseline)
  add_library(kiln_emulator_units_${isa} OBJECT ${KILN_EMULATOR_UNITS})
  target_include_directories(kiln_emulator_units_${isa} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_definitions(kiln_emulator_units_${isa} PRIVATE KILN_EMULATOR_ISA=${isa})
  target_compile_options(kiln_emulator_units_${isa} PRIVATE ${KILN_EMULATOR_UNIT_OPTIONS} ${KILN_EMULATOR_ISA_${isa}})
  target_sources(kiln_emulator_core PRIVATE $<TARGET_OBJECTS:kiln_emulator_units_${isa}>)
endforeach()
set_source_files_properties(
  checks/access.cpp checks/global_checks.cpp checks/global_shadow.cpp checks/memory_recorder.cpp checks/shared_shadow.cpp
  checks/strict.cpp scheduler/control_flow.cpp scheduler/fragments.cpp
  PROPERTIES COMPILE_OPTIONS "${KILN_EMULATOR_OPTIMISATION}")
