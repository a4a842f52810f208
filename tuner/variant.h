// Programs that are compiled, sent and loaded as one specimen.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kiln/execution/compile.h"

namespace kiln::tuner {

/// A program, and the same choice for the smaller request whose results are checked in its stead
/// (Laboratory::stand_in()), if it has one.
struct Variant {
  execution::CompiledProgram program;
  std::optional<execution::CompiledProgram> stand_in;
};

/// Bytes that variant_from() turns back into an equal value.
std::string serialise(const Variant& variant);
/// Throws Error(parse_error), as execution::deserialise() does.
Variant variant_from(std::string_view bytes);

}  // namespace kiln::tuner
