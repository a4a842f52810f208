# libkiln_model.so, whole models: the rooms above libkiln.so that read and run them. It is a library of its own because it
# links to ONNX and protobuf.

set(model_include_dirs ${PROJECT_SOURCE_DIR}/models/include)
file(GLOB model_headers CONFIGURE_DEPENDS ${model_include_dirs}/kiln/*.h ${model_include_dirs}/kiln/c/*.h)
set(reached_headers ${model_headers})
kiln_add_included_headers(reached_headers ${model_include_dirs} ${include_dirs})
list(REMOVE_ITEM reached_headers ${model_headers} ${public_headers})
if(reached_headers)
  message(FATAL_ERROR "Public headers of whole models include what libkiln.so does not install: ${reached_headers}")
endif()

add_library(kiln_model SHARED
  $<TARGET_OBJECTS:kiln_graph> $<TARGET_OBJECTS:kiln_frontends> $<TARGET_OBJECTS:kiln_models>
  $<TARGET_OBJECTS:kiln_models_capi>)
add_library(kiln::model ALIAS kiln_model)
# Exports of libkiln.so are taken from there. The other objects that are needed from the rooms below are linked in once
# more: the definitions of operations, the conversions of numbers and the boundary to C, which hold no state.
# kiln_runtime is not among them.
target_link_libraries(kiln_model PUBLIC kiln PRIVATE kiln::capi kiln::generator kiln::reference kiln_onnx)
target_sources(kiln_model PUBLIC FILE_SET HEADERS BASE_DIRS ${model_include_dirs} FILES ${model_headers})
set_target_properties(kiln_models PROPERTIES CXX_VISIBILITY_PRESET default)
kiln_export(kiln_model ${model_headers})
target_link_options(kiln_model PRIVATE LINKER:-z,defs)
# libkiln.so lies beside it, in the build folder, installed, and in a wheel.
set_target_properties(kiln_model PROPERTIES EXPORT_NAME model INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON)
