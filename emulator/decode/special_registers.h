// The names of PTX's special registers.
#pragma once

#include <optional>
#include <string_view>

#include "kernel/instruction.h"

namespace kiln::emulator {

/// The value that "%tid.x" or the like holds; nullopt for other names.
std::optional<Special> special_named(std::string_view name);

/// %clock, %clock64, %globaltimer and their halves: they change while a kernel runs.
struct Clock {
  bool nanoseconds = false;  ///< %globaltimer
  bool high = false;         ///< the upper 32 bits
};
std::optional<Clock> clock_named(std::string_view name);

}  // namespace kiln::emulator
