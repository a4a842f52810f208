// The emulator's own environment variables. docs/emulator.md is the user's table of them.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "machine/machine.h"
#include "model/device_table.h"
#include "units/unit_table.h"

namespace kiln::emulator {

/// A setting that is not understood. what() names the variable, its value and what was expected.
class SettingsError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Sources of a launch's time: the machine code beside the PTX, or the executed PTX.
enum class ClockChoice {
  automatic,  ///< Machine code, where nvdisasm is installed.
  machine,
  ptx,
};

/// Arithmetic of matrix products of floating-point numbers.
enum class TensorArithmetic {
  chain,     ///< Fused multiply-adds in the order of k.
  hardware,  ///< As chips of the device's compute capability were found to have it.
};

struct Settings {
  std::vector<const DeviceModel*> devices;      ///< KILN_EMULATOR_DEVICE: names with commas between; ordinal order
  CheckLevel check = CheckLevel::bounds;        ///< KILN_EMULATOR_CHECK: off, bounds or full
  unsigned threads = 1;                         ///< KILN_EMULATOR_THREADS: host threads of one launch
  const UnitTable* units = nullptr;             ///< KILN_EMULATOR_UNITS: avx512, avx2 or baseline; the best by default
  uint64_t instruction_limit = 20'000'000'000;  ///< KILN_EMULATOR_INSTRUCTION_LIMIT: per block; 0 means none
  uint64_t counted_blocks = 64;                 ///< KILN_EMULATOR_COUNTED_BLOCKS: 0 means every block
  ClockChoice clock = ClockChoice::automatic;   ///< KILN_EMULATOR_CLOCK: machine or ptx
  std::string card;  ///< KILN_EMULATOR_CARD: a file like those of timing/cards; the built-in ones by default
  TensorArithmetic tensor = TensorArithmetic::chain;  ///< KILN_EMULATOR_TENSOR: chain or hardware

  using Lookup = std::function<const char*(const char* name)>;

  /// Reads the process environment. Throws SettingsError on a value that a variable does not accept and on an unknown
  /// variable that starts with KILN_EMULATOR_: a misspelt setting must not be silently ignored.
  static Settings read();

  /// As read(), from any source of variables; does not look for unknown names.
  static Settings read(const Lookup& lookup);
};

}  // namespace kiln::emulator
