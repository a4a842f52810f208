# kiln_room(<name> SOURCES <file>... [PUBLIC <target>...] [PRIVATE <target>...] [SMALL])
#
# One room of the design: a static library kiln_<name>, alias kiln::<name>, whose headers live in
# <room>/include. PUBLIC targets appear in its headers, PRIVATE ones only in its sources. A room sees the headers
# of the rooms it links to and of no other, so a reversed dependency fails to compile. SMALL: neither a look-up nor a
# call of a layer passes through this code, so a release has it small rather than fast. Functions have sections of their own in a
# release: libkiln.so, which has to fit 5 MB, leaves out what no other function needs.
function(kiln_room name)
  cmake_parse_arguments(ROOM "SMALL" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(kiln_${name} STATIC ${ROOM_SOURCES})
  add_library(kiln::${name} ALIAS kiln_${name})
  target_include_directories(kiln_${name} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/include PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(kiln_${name} PUBLIC ${ROOM_PUBLIC} PRIVATE ${ROOM_PRIVATE})
  target_compile_options(kiln_${name} PRIVATE "$<$<CONFIG:Release>:-ffunction-sections;-fdata-sections>")
  set(kind rooms)
  if(ROOM_SMALL)
    target_compile_options(kiln_${name} PRIVATE $<$<CONFIG:Release>:-Os>)
    string(PREPEND kind small_)
  endif()
  kiln_precompile(${kind} kiln_${name})
endfunction()

# kiln_small_sources(<file>...): the same for single sources of a room that is not SMALL. They do without the room's
# precompiled header, which has other options.
function(kiln_small_sources)
  set_source_files_properties(${ARGN} PROPERTIES
    COMPILE_OPTIONS $<$<CONFIG:Release>:-Os> SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# kiln_test_timeout(<test> <seconds>): the time limit that CTest holds the test to, as it is for a release.
function(kiln_test_timeout name seconds)
  math(EXPR limit "${seconds} * ${KILN_TEST_TIMEOUT_SCALE}")
  set_tests_properties(${name} PROPERTIES TIMEOUT ${limit})
endfunction()

# kiln_test(<name> SOURCES <file>... [LINKS <target>...] [LABELS <label>...] [TIMEOUT <seconds>])
#
# One GoogleTest program, one CTest entry; label "cpu" (no device), "emulator" (loads the emulated device) or "gpu".
# Label "threads" as well: code that many threads use, which the preset tsan builds and runs.
function(kiln_test name)
  cmake_parse_arguments(TEST "" "TIMEOUT" "SOURCES;LINKS;LABELS" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE ${TEST_LINKS} kiln_test_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  # A test's own code is compiled once and run once: of a release, only what it links to is worth optimising.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)  # as kiln_test_main, whose headers it uses
  kiln_precompile(tests ${name})
  # Its sources are compiled in batches, as one source that includes them: what they instantiate of the libraries costs
  # more than what they say. So each has a namespace of its own (docs/testing.md).
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${KILN_TEST_BATCHES} UNITY_BUILD_BATCH_SIZE 8)
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 300)
  endif()
  if(NOT TEST_LABELS)
    set(TEST_LABELS cpu)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${TEST_LABELS}")
  kiln_test_timeout(${name} ${TEST_TIMEOUT})
  if("emulator" IN_LIST TEST_LABELS AND TARGET kiln_emulator)
    add_dependencies(${name} kiln_emulator)
  endif()
  if("threads" IN_LIST TEST_LABELS)
    add_dependencies(kiln_thread_tests ${name})
  endif()
endfunction()
