# kiln_append_names(<names> <text> <declaration> <name>)
#
# Appends to the list the name in each match of <declaration>: what the group in <name> matches.
function(kiln_append_names names text declaration name)
  string(REGEX MATCHALL "${declaration}" found "${text}")
  list(TRANSFORM found REPLACE "${name}" "\\1")
  set(${names} ${${names}} ${found} PARENT_SCOPE)
endfunction()

# kiln_declared_names(<types> <functions> <header>...)
#
# The types and functions that headers declare at namespace scope, friends included. They are found by how all of Kiln
# is formatted: such declarations begin in the first column.
function(kiln_declared_names types functions)
  set(found_types "")
  set(found_functions "")
  foreach(header IN LISTS ARGN)
    file(READ ${header} text)
    kiln_append_names(found_types "${text}" "\n(class|struct) [A-Za-z]+( final)?( :| {)" "\n[a-z]+ ([A-Za-z]+).*")
    kiln_append_names(found_functions "${text}"
      "\n([A-Za-z]|  friend )[^\n(;={}]*[ &*](operator[^ (]+|[a-z_0-9]+)\\("
      "\n.*[ &*](operator[^ (]+|[a-z_0-9]+)\\(")
  endforeach()
  list(REMOVE_DUPLICATES found_types)
  list(REMOVE_DUPLICATES found_functions)
  set(${types} ${found_types} PARENT_SCOPE)
  set(${functions} ${found_functions} PARENT_SCOPE)
endfunction()

# kiln_c_nodes(<nodes> <library> <header>...)
#
# The version nodes of a library's C API: one for each file c_api/<library>-<version>.txt, which lists the functions that
# this version added. A program that needs a later one is refused when it starts, not at the call. So no function joins
# the node of a version that was released: the headers and the lists have to name the same functions.
function(kiln_c_nodes nodes library)
  set(declared "")
  foreach(header IN LISTS ARGN)
    file(READ ${header} text)
    kiln_append_names(declared "${text}" "KILN_API [^;(]*[ *]kiln_[a-z0-9_]+\\(" ".*[ *](kiln_[a-z0-9_]+)\\(")
  endforeach()
  set(lists ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/c_api)
  file(GLOB files ${lists}/${library}-*.txt)
  list(SORT files COMPARE NATURAL)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN} ${files})
  set(written "")
  set(listed "")
  set(before "")
  foreach(file IN LISTS files)
    string(REGEX REPLACE ".*-([0-9.]+)\\.txt$" "KILN_\\1" node "${file}")
    file(STRINGS ${file} names)
    list(APPEND listed ${names})
    list(JOIN names ";\n    " names)
    set(local "")
    if(NOT before)
      set(local "  local:\n    *;\n")
    endif()
    string(APPEND written "${node} {\n  global:\n    ${names};\n${local}}${before};\n\n")
    set(before " ${node}")
  endforeach()
  foreach(name IN LISTS declared)
    if(NOT name IN_LIST listed)
      message(FATAL_ERROR "${name} is declared by a header of the C API, and listed in no ${lists}/${library}-*.txt: add "
        "it to that of the next version")
    endif()
  endforeach()
  foreach(name IN LISTS listed)
    if(NOT name IN_LIST declared)
      message(FATAL_ERROR "${lists} lists ${name} for ${library}, which no header of the C API declares")
    endif()
  endforeach()
  set(${nodes} "${written}" PARENT_SCOPE)
endfunction()

# kiln_write_version_script(<output> <library> <header>...)
#
# Writes the linker's version script of a library: what the C++ headers declare and the functions of the C headers are
# exported, and nothing else.
#
# The C API keeps its version nodes (kiln_c_nodes). The C++ API makes no promise between versions: its node carries the
# version, and a program built against another one is refused by the loader instead of failing later.
function(kiln_write_version_script output library)
  set(c_headers ${ARGN})
  list(FILTER c_headers INCLUDE REGEX "/kiln/c/[a-z0-9_]+\\.h$")
  kiln_c_nodes(c_nodes ${library} ${c_headers})
  list(FILTER ARGN EXCLUDE REGEX "/kiln/(kiln|c/[a-z0-9_]+)\\.h$")
  kiln_declared_names(types functions ${ARGN})
  set(patterns "")
  foreach(name IN LISTS types)
    # All members but those of a nested Impl; what is thrown has its type in the library alone.
    string(APPEND patterns "      kiln::${name}::[!I]*;\n")
    string(APPEND patterns "      \"typeinfo for kiln::${name}\";\n      \"vtable for kiln::${name}\";\n")
  endforeach()
  foreach(name IN LISTS functions)
    # The name, and then what cannot belong to it: the parameters or an [abi:cxx11]. The linker reads no operators.
    string(REGEX REPLACE "[^a-z0-9_]" "?" name "${name}")
    string(APPEND patterns "      kiln::${name}[!a-z0-9_]*;\n")
  endforeach()
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT
"@c_nodes@KILN_CXX_@PROJECT_VERSION_MAJOR@.@PROJECT_VERSION_MINOR@ {
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
  kiln_write_version_script(${version_script} ${library} ${ARGN})
  target_link_options(${library} PRIVATE
    LINKER:--version-script=${version_script} LINKER:--exclude-libs,ALL LINKER:--gc-sections)
  set_target_properties(${library} PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${version_script})
endfunction()
