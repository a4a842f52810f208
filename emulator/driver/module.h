// Modules: PTX text that was accepted for a device, and the functions in it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "context.h"
#include "driver/settings.h"
#include "machine/machine.h"
#include "machine_clock.h"
#include "units/unit_table.h"

namespace kiln::emulator {

/// Why an image cannot be loaded: the driver's code and the text for the caller's error log.
struct ImageRefused {
  CUresult code = CUDA_ERROR_INVALID_IMAGE;
  std::string log;
};

struct LoadedImage {
  std::shared_ptr<const Program> program;
  std::shared_ptr<const MachineCode> code;  ///< null if not asked for, or without one for the device's architecture
};

/// Parses an image for a device: NUL-terminated PTX text, or a fat binary. The text's .target must be one that the
/// device can run. Takes the text of the highest architecture from a fat binary, and if `with_code`, the cubin of the
/// highest architecture that the device could run. `bytes` can be read; SIZE_MAX if the image says how long it is.
/// Matrix products are as the settings say.
///
/// Throws ImageRefused on a cubin (the emulator executes PTX only), on a fat binary without such a text, on a target or
/// PTX version that is too new, on an architecture-specific target (sm_90a) of another compute capability, and on text
/// that is not valid PTX.
LoadedImage load_image(const void* image, size_t bytes, const DeviceModel& model, const Settings& settings,
                       bool with_code);

struct Function {
  std::weak_ptr<Context> context;
  std::shared_ptr<const Program> program;  ///< keeps `kernel` alive
  const Kernel* kernel = nullptr;
  std::shared_ptr<const MachineCode> code;    ///< null where time is not told by it
  std::atomic<int> dynamic_shared_limit = 0;  ///< bytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
};

struct Module {
  std::weak_ptr<Context> context;
  std::shared_ptr<const Program> program;
  std::shared_ptr<const MachineCode> code;
  std::mutex mutex;                                          ///< guards functions
  std::map<std::string, CUfunction, std::less<>> functions;  ///< handles given out, one per kernel
};

/// Registers of a thread: the compiler's where machine code is there, else an estimate.
uint32_t registers_of(const Function& function);

}  // namespace kiln::emulator
