// What a driver loads of one compile.
#pragma once

#include <string>

#include "kiln/device/driver.h"

namespace kiln::device {

/// What to load on `driver` of the PTX and the cubin of one compile: the cubin on a real one; on the emulated one,
/// which executes PTX and reads machine code for times, both as a fat binary. The PTX where there is no cubin.
std::string loadable_image(const Driver& driver, const std::string& ptx, const std::string& cubin);

}  // namespace kiln::device
