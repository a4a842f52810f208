// Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2, 3", 2011).
#pragma once

#include <array>
#include <cstdint>

namespace kiln::reference {

/// The four random words of a counter and a key.
std::array<uint32_t, 4> philox4x32_10(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

}  // namespace kiln::reference
