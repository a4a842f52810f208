// Figures of well-known cards, for estimates where no device is at hand.
#pragma once

#include "kiln/generator/arch.h"

namespace kiln {

/// Figures of a common card of the architecture: SMs, SM clock, memory bandwidth and L2 of T4, A100, A10, L40S, H200,
/// B200 and RTX 5090, from their data sheets.
DeviceFigures common_figures(const Arch& arch);

}  // namespace kiln
