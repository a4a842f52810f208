// Runs a form of mma on fragments, on the emulated device's core.
#pragma once

#include "product_forms.h"
#include "units/unit_table.h"

namespace kiln::emulator::test {

/// Fills in the fragments' d. `hardware` is that of MatrixProduct.
void run_fragments(const testing_support::mma::Form& form, testing_support::mma::Fragments& fragments,
                   const UnitTable& units, int hardware = 0);

}  // namespace kiln::emulator::test
