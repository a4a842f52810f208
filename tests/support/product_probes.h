// Tiles of floating-point numbers that tell arithmetics of tensor cores apart: what is aligned to what, where bits are
// dropped, how the ends of the range are reached.
#pragma once

#include <vector>

#include "product_forms.h"

namespace kiln::testing_support::mma {

/// The same tiles in every run: digests of their results are kept. None for forms of integers.
std::vector<Tile> probes_of(const Form& form);

}  // namespace kiln::testing_support::mma
