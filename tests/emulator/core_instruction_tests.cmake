# Hand-written PTX against host arithmetic, and planted faults against their reports.
kiln_test(emulator_core_instructions_test
  SOURCES core_instructions_test.cpp core_faults_test.cpp core_convert_test.cpp core_exchange_test.cpp
  LINKS kiln_emulator_core_testing)
