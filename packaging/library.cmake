# libkiln.so, what applications link to: the rooms in one library. Functions that the public headers declare are kept
# whole and exported, the rest stays inside.

# The public headers: all of include/, the errors, the refusal of code in requests, the typed views of requests, and what those include from these rooms.
set(include_dirs ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/base/include ${PROJECT_SOURCE_DIR}/generator/include)
file(GLOB public_headers CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/include/kiln/*.h
  ${PROJECT_SOURCE_DIR}/include/kiln/*.hpp
  ${PROJECT_SOURCE_DIR}/base/include/kiln/base/error.h
  ${PROJECT_SOURCE_DIR}/generator/include/kiln/generator/no_code.h
  ${PROJECT_SOURCE_DIR}/generator/include/kiln/generator/operations/*_forward.h)
include(headers.cmake)
kiln_add_included_headers(public_headers ${include_dirs})

add_library(kiln SHARED
  $<TARGET_OBJECTS:kiln_base> $<TARGET_OBJECTS:kiln_generator> $<TARGET_OBJECTS:kiln_runtime>
  $<TARGET_OBJECTS:kiln_runtime_small> $<TARGET_OBJECTS:kiln_capi> $<TARGET_OBJECTS:kiln_capi_small>)
add_library(kiln::kiln ALIAS kiln)
target_link_libraries(kiln PRIVATE kiln::runtime)
target_compile_features(kiln INTERFACE cxx_std_20)  # of the C++ headers; projects in C do not notice
target_sources(kiln PUBLIC FILE_SET HEADERS BASE_DIRS ${include_dirs} FILES ${public_headers})

# These rooms' symbols are visible to the linker; the version script lets out those of the public API.
set_target_properties(kiln_base kiln_generator kiln_runtime kiln_runtime_small PROPERTIES CXX_VISIBILITY_PRESET default)
include(exports.cmake)
kiln_export(kiln ${public_headers})
