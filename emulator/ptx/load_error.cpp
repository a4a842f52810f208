#include "ptx/load_error.h"

#include <fmt/format.h>

namespace kiln::emulator {

LoadError::LoadError(uint32_t line, std::string message)
    : line_(line), message_(fmt::format("PTX line {}: {}", line, message)) {}

}  // namespace kiln::emulator
