# kiln_declared_names(<types> <functions> <header>...)
#
# The types and functions that headers declare at namespace scope, friends included. They are found by how all of Kiln
# is formatted: such declarations begin in the first column.
function(kiln_declared_names types functions)
  set(found_types "")
  set(found_functions "")
  foreach(header IN LISTS ARGN)
    file(READ ${header} text)
    string(REGEX MATCHALL "\n(class|struct) [A-Za-z]+( final)?( :| {)" declarations "${text}")
    list(TRANSFORM declarations REPLACE "\n[a-z]+ ([A-Za-z]+).*" "\\1")
    list(APPEND found_types ${declarations})
    string(REGEX MATCHALL "\n([A-Za-z]|  friend )[^\n(;={}]*[ &*](operator[^ (]+|[a-z_0-9]+)\\(" declarations "${text}")
    list(TRANSFORM declarations REPLACE "\n.*[ &*](operator[^ (]+|[a-z_0-9]+)\\(" "\\1")
    list(APPEND found_functions ${declarations})
  endforeach()
  list(REMOVE_DUPLICATES found_types)
  list(REMOVE_DUPLICATES found_functions)
  set(${types} ${found_types} PARENT_SCOPE)
  set(${functions} ${found_functions} PARENT_SCOPE)
endfunction()

# kiln_write_version_script(<output> <header>...)
#
# Writes the linker's version script of a library: what the C++ headers declare and the functions of the C headers are
# exported, and nothing else.
#
# The C API keeps its version node: what a later version adds gets a node of its own, so that a program that needs it
# says so when it starts. The C++ API makes no promise between versions: its node carries the version, and a program
# built against another one is refused by the loader instead of failing later.
function(kiln_write_version_script output)
  list(FILTER ARGN EXCLUDE REGEX "/kiln/(kiln|c/[a-z_]+)\\.h$")
  kiln_declared_names(types functions ${ARGN})
  set(patterns "")
  foreach(name IN LISTS types)
    # All members but those of a nested Impl.
    string(APPEND patterns "      kiln::${name}::[!I]*;\n")
  endforeach()
  foreach(name IN LISTS functions)
    # The name, and then what cannot belong to it: the parameters or an [abi:cxx11]. The linker reads no operators.
    string(REGEX REPLACE "[^a-z0-9_]" "?" name "${name}")
    string(APPEND patterns "      kiln::${name}[!a-z0-9_]*;\n")
  endforeach()
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
"KILN_0.1 {
  global:
    kiln_*;
  local:
    *;
};

KILN_CXX_@PROJECT_VERSION_MAJOR@.@PROJECT_VERSION_MINOR@ {
  global:
    extern \"C++\" {
@patterns@    };
};
")
endfunction()

# kiln_export(<library> <header>...)
#
# The shared library exports what its public headers declare, and carries Kiln's version.
function(kiln_export library)
  set(version_script ${CMAKE_CURRENT_BINARY_DIR}/lib${library}.map)
  kiln_write_version_script(${version_script} ${ARGN})
  target_link_options(${library} PRIVATE
    LINKER:--version-script=${version_script} LINKER:--exclude-libs,ALL LINKER:--gc-sections)
  set_target_properties(${library} PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${version_script})
endfunction()
