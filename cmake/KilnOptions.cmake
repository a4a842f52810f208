# Build-wide settings: language level, warnings, sanitizers, where products go.
option(KILN_BUILD_TESTS "Build the tests" ON)
option(KILN_BATCHES "Compile the sources of a library in batches; OFF compiles each alone" ON)
option(KILN_TEST_BATCHES "Compile the sources of a test program in batches; OFF compiles each alone" ON)
option(KILN_PYTHON "Fail where the Python package cannot be built; OFF builds it where it can be" OFF)
set(KILN_PREFIX "" CACHE PATH "Installation of this version to make the Python package of, instead of building all of Kiln")
option(KILN_ASSERTIONS "Keep assert() in optimised builds" OFF)
option(KILN_WARNINGS_AS_ERRORS "Treat compiler warnings as errors" ON)
set(KILN_SANITIZE "" CACHE STRING "Sanitizers to build with, as for -fsanitize=")
set(KILN_EMULATOR_INSTRUCTION_SETS "" CACHE STRING
    "Instruction sets of the host that the emulated device is compiled for: avx512;avx2;baseline, native; empty for all")
set(KILN_TEST_TIMEOUT_SCALE 1 CACHE STRING "Factor on the tests' time limits, for builds that run slower than a release")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)  # the C API's tests and example; everything else is C++
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Nothing here has __TIME__ or __DATE__, nor a macro that a precompiled header depends on and a source changes.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()

add_compile_options(-Wall -Wextra -Wshadow $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> -Wundef)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # GCC 12 and 13 report these inside std::string and std::optional at -O3, where nothing is wrong (GCC bugs 105651, 80635,
  # 105329), the last three where headers are precompiled: it forgets that they are the system's.
  add_compile_options(-Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-stringop-overread
                      -Wno-array-bounds)
endif()
if(KILN_WARNINGS_AS_ERRORS)
  add_compile_options(-Werror)
endif()
if(KILN_ASSERTIONS)
  add_compile_options(-UNDEBUG)
endif()
# Memory faults end the process where they can be noticed, instead of going on: an index outside a standard container,
# a frame or a buffer of libc written past its end. Tables of function pointers are read-only once a program runs.
add_compile_options(-fstack-protector-strong)
add_compile_definitions(_GLIBCXX_ASSERTIONS)
add_link_options(LINKER:-z,relro LINKER:-z,now)
if(NOT KILN_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL Debug)
  # Does nothing at -O0, where the tests are, and hides from the address sanitizer what it checks itself.
  add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()

if(KILN_SANITIZE)
  # Line tables are what a report needs, and checked code takes four times as long to compile with -O2 -g.
  add_compile_options(-fsanitize=${KILN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -O0 -g1 -UNDEBUG)
  add_link_options(-fsanitize=${KILN_SANITIZE})
endif()

# kiln_computes(<target>...): the tests spend their time in these, so that sanitized builds optimise them as well.
function(kiln_computes)
  foreach(target IN LISTS ARGN)
    if(KILN_SANITIZE)
      target_compile_options(${target} PRIVATE -O1)
    endif()
  endforeach()
endfunction()

find_package(Threads REQUIRED)

# Where an installation puts things, and how its programs and libraries find each other.
include(GNUInstallDirs)
file(RELATIVE_PATH KILN_LIBDIR_FROM_BINDIR ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH KILN_BINDIR_FROM_LIBDIR ${CMAKE_INSTALL_FULL_LIBDIR} ${CMAKE_INSTALL_FULL_BINDIR})
