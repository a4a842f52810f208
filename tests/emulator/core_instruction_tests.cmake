# Hand-written PTX against host arithmetic, and planted faults against their reports.
kiln_test(emulator_core_instructions_test
  SOURCES core_instructions_test.cpp core_faults_test.cpp core_spaces_test.cpp core_convert_test.cpp core_exchange_test.cpp
  LINKS kiln_emulator_core_testing LABELS cpu threads)
kiln_test(emulator_core_arithmetic_test
  SOURCES core_half_test.cpp core_half_convert_test.cpp core_approximate_test.cpp LINKS kiln_emulator_core_testing LABELS cpu threads)
kiln_test(emulator_core_behaviour_test
  SOURCES core_copies_test.cpp core_calls_test.cpp core_counters_test.cpp core_malformed_test.cpp core_waiting_test.cpp
  LINKS kiln_emulator_core_testing LABELS cpu threads)
# Mbarriers and copies in bulk.
kiln_test(emulator_core_bulk_test
  SOURCES core_bulk_copies_test.cpp core_mbarrier_test.cpp core_tensor_copies_test.cpp
  LINKS kiln_emulator_core_testing LABELS cpu threads)
# Full checks: planted bugs and near misses.
kiln_test(emulator_core_strict_test
  SOURCES core_strict_fixture.cpp core_strict_faults_test.cpp core_strict_global_test.cpp core_strict_races_test.cpp
          core_strict_silent_test.cpp core_strict_values_test.cpp
  LINKS kiln_emulator_core_testing LABELS cpu threads)
# Matrices of a warp.
kiln_test(emulator_core_matrix_test
  SOURCES core_strict_fixture.cpp core_run_fragments.cpp core_hardware_product_test.cpp core_matrix_access_test.cpp core_matrix_bugs_test.cpp
          core_matrix_kernels_test.cpp core_matrix_product_test.cpp core_product_runs_test.cpp
  LINKS kiln_emulator_core_testing kiln_product_forms LABELS cpu threads)
target_compile_definitions(emulator_core_matrix_test PRIVATE KILN_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
# Errors of long sums, against the bounds of the reference.
kiln_test(emulator_core_error_test
  SOURCES core_run_fragments.cpp core_tensor_error_test.cpp LINKS kiln_emulator_core_testing kiln_product_forms kiln::reference
  LABELS cpu threads)
