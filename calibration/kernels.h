// The text of kernels.cu, embedded when Kiln is built.
#pragma once

namespace kiln::calibration {

extern const char* const kernels_source;

}  // namespace kiln::calibration
