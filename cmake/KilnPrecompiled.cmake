# kiln_precompile(<kind> <target> [<header>...])
#
# Has what most sources include of other libraries, and <header>s besides, compiled once for all targets of the same
# kind instead of once for each source: a third of the time that a build takes. Targets of a kind share their options.
# A source still includes what it uses: clang-tidy and the tests of headers read everything without this.
#
# Left out with sanitizers, where options differ from room to room.
function(kiln_precompile kind target)
  if(KILN_SANITIZE)
    return()
  endif()
  get_property(first GLOBAL PROPERTY KILN_PRECOMPILED_${kind})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
    return()
  endif()
  set_property(GLOBAL PROPERTY KILN_PRECOMPILED_${kind} ${target})
  target_precompile_headers(${target} PRIVATE
    <algorithm> <array> <charconv> <cmath> <functional> <map> <memory> <mutex> <optional> <set>
    <span> <string> <string_view> <utility> <variant> <vector> <fmt/format.h> ${ARGN})
endfunction()
