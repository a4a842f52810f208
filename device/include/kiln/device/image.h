// Image of one compile that a driver loads.
#pragma once

#include <string>

#include "kiln/device/driver.h"

namespace kiln::device {

/// Image to load on `driver` from the PTX and the cubin of one compile: the cubin on a real one; on the emulated one,
/// which executes PTX and reads machine code for times, both as a fat binary. The PTX where there is no cubin.
std::string loadable_image(const Driver& driver, const std::string& ptx, const std::string& cubin);

}  // namespace kiln::device
