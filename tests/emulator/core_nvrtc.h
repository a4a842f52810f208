// CUDA C++ to PTX with the NVRTC of this machine, for tests that run real kernels on the execution core.
#pragma once

#include <string>
#include <vector>

namespace kiln::emulator::test {

/// True if an NVRTC was found: KILN_NVRTC, then libnvrtc.so.13, .12 and libnvrtc.so, then CUDA_PATH and
/// /usr/local/cuda.
bool nvrtc_present();

/// PTX of `source` for "sm_80" and the like. Throws std::runtime_error with NVRTC's log.
std::string compile(const std::string& source, const std::string& arch, const std::vector<std::string>& options = {});

/// The architectures that tests compile for, as far as this NVRTC knows them.
std::vector<std::string> architectures();

}  // namespace kiln::emulator::test
