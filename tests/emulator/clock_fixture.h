// Tests of the clock that reads machine code: kernels that NVRTC compiles, launched as Kiln does.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "driver_fixture.h"
#include "kiln/device/nvrtc.h"

namespace kiln::emulator::testing {

extern const Variables machine_clock;  ///< An A100's.

device::Compiled compile(const std::string& source, const std::string& arch);

/// PTX and machine code, as Kiln loads them.
std::string fat(const device::Compiled& compiled);

/// The kernels of `source`, on a device with `environment`.
class ClockTest : public DriverTest {
 protected:
  explicit ClockTest(const std::string& source, const Variables& environment = machine_clock,
                     const std::string& arch = "sm_80");

  CUmodule load_fat(const std::string& image) const;

  /// Counters of a launch.
  nlohmann::json run(const char* kernel, std::vector<void*> parameters, unsigned blocks = 1, unsigned threads = 32,
                     unsigned shared_bytes = 0, CUstream stream = nullptr);

  /// Memory that holds so many ones.
  CUdeviceptr numbers(size_t count);
  void put(CUdeviceptr there, const std::vector<uint32_t>& words) const;

  device::Compiled compiled_;
  CUmodule module_;
};

}  // namespace kiln::emulator::testing
