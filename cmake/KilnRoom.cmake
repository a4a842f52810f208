# kiln_room(<name> SOURCES <file>... [PUBLIC <target>...] [PRIVATE <target>...] [SMALL] [SMALL_SOURCES <file>...]
#           [UNTYPED_SOURCES <file>...] [ALONE <file>...])
#
# One room of the design: a static library kiln_<name>, alias kiln::<name>, whose headers live in
# <room>/include. PUBLIC targets appear in its headers, PRIVATE ones only in its sources. A room sees the headers
# of the rooms it links to and of no other, so a reversed dependency fails to compile. SMALL: neither a look-up nor a
# call of a layer passes through this code, so a release has it small rather than fast. SMALL_SOURCES: the same for some
# sources of a room; they are the object library kiln_<name>_small too, with the precompiled header of small rooms.
# UNTYPED_SOURCES: small as well, and without type information, of which each lambda in a std::function has some:
# kiln_<name>_untyped. They have no classes with virtual functions, and those that they throw have theirs elsewhere.
# Functions have sections of their own in a release: libkiln.so, which has to fit 5 MB, leaves out what no other
# function needs. ALONE: sources that join no batch (kiln_batches), because they hold state that a process must have
# once (objects of some rooms are in libkiln.so and in libkiln_model.so, which takes whole batches), share names with
# others, or are taken by a program without them.
function(kiln_room name)
  cmake_parse_arguments(ROOM "SMALL" "" "SOURCES;SMALL_SOURCES;UNTYPED_SOURCES;PUBLIC;PRIVATE;ALONE" ${ARGN})
  add_library(kiln_${name} STATIC ${ROOM_SOURCES})
  add_library(kiln::${name} ALIAS kiln_${name})
  target_include_directories(kiln_${name} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/include PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(kiln_${name} PUBLIC ${ROOM_PUBLIC} PRIVATE ${ROOM_PRIVATE})
  set(kind rooms)
  if(ROOM_SMALL)
    set(kind small_rooms)
  endif()
  kiln_room_options(kiln_${name} ${kind})
  set_source_files_properties(${ROOM_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  foreach(part IN ITEMS small untyped)
    string(TOUPPER ${part} sources)
    if(ROOM_${sources}_SOURCES)
      add_library(kiln_${name}_${part} OBJECT ${ROOM_${sources}_SOURCES})
      target_include_directories(kiln_${name}_${part} PRIVATE $<TARGET_PROPERTY:kiln_${name},INCLUDE_DIRECTORIES>)
      target_link_libraries(kiln_${name}_${part} PRIVATE ${ROOM_PUBLIC} ${ROOM_PRIVATE})
      kiln_room_options(kiln_${name}_${part} ${part}_rooms)
      target_sources(kiln_${name} PRIVATE $<TARGET_OBJECTS:kiln_${name}_${part}>)
    endif()
  endforeach()
endfunction()

# kiln_room_options(<target> <kind>): the compiler's options for a room, and the precompiled header for these. Kinds are
# rooms, small_rooms and untyped_rooms.
function(kiln_room_options target kind)
  target_compile_options(${target} PRIVATE "$<$<CONFIG:Release>:-ffunction-sections;-fdata-sections>")
  if(NOT kind STREQUAL rooms)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Os>)
  endif()
  if(kind STREQUAL untyped_rooms)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-fno-rtti>)
  endif()
  kiln_precompile(${kind} ${target})
  kiln_batches(${target})
endfunction()

# kiln_batches(<target>): its sources are compiled eight at a time, as one source that includes them, in half the time:
# most of it goes into headers and into what all of them instantiate. So no two sources of a target have the same name in
# their unnamed namespaces. Sources with options or definitions of their own are compiled alone.
function(kiln_batches target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${KILN_BATCHES} UNITY_BUILD_BATCH_SIZE 8)
  if(KILN_BATCHES AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # A class in a source may have members of unnamed namespaces, but GCC takes an included source for a header.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

# kiln_test_timeout(<test> <seconds>): the time limit that CTest holds the test to, as it is for a release.
function(kiln_test_timeout name seconds)
  math(EXPR limit "${seconds} * ${KILN_TEST_TIMEOUT_SCALE}")
  set_tests_properties(${name} PROPERTIES TIMEOUT ${limit})
endfunction()

# kiln_start_early(<test> <seconds>): has CTest start the test, which takes about so long, before shorter ones. Started
# last it would run alone, while the other cores have nothing to do.
function(kiln_start_early name seconds)
  set_tests_properties(${name} PROPERTIES COST ${seconds})
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
