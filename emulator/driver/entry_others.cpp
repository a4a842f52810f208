// The entry points that are not implemented.
#include "driver/failure.h"
#include "driver/other_entry_points.h"

// Whatever they are called with: the caller takes its arguments back.
#define KILN_EMULATOR_NOT_SUPPORTED(symbol)                                            \
  extern "C" __attribute__((visibility("default"))) kiln::emulator::CUresult symbol(); \
  kiln::emulator::CUresult symbol() {                                                  \
    return kiln::emulator::CUDA_ERROR_NOT_SUPPORTED;                                   \
  }
KILN_EMULATOR_OTHER_ENTRY_POINTS(KILN_EMULATOR_NOT_SUPPORTED)
