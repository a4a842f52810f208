# The execution core: parser, instructions, divergence, checks, and kernels compiled by NVRTC.
add_library(kiln_emulator_core_testing STATIC core_evaluate.cpp core_fixture.cpp core_nvrtc.cpp)
target_include_directories(kiln_emulator_core_testing PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(kiln_emulator_core_testing
  PUBLIC kiln_emulator_checks kiln_emulator_machine GTest::gmock GTest::gtest PRIVATE kiln::device)
kiln_test(emulator_core_kernels_test SOURCES core_kernels_test.cpp LINKS kiln_emulator_core_testing LABELS cpu threads)
kiln_test(emulator_core_integer_test SOURCES core_integer_test.cpp core_bits_test.cpp LINKS kiln_emulator_core_testing LABELS cpu threads)
