// CUDA C++ to PTX, for tests that run real kernels on the execution core.
#pragma once

#include <string>
#include <vector>

namespace kiln::emulator::test {

/// True if an NVRTC was found (KILN_NVRTC, or where Kiln looks for it).
bool nvrtc_present();

/// PTX of `source` for "compute_80" and the like. Throws kiln::Error with NVRTC's log.
std::string compile(const std::string& source, const std::string& arch, const std::vector<std::string>& options = {});

/// The architectures that Kiln's templates are made for, as far as this NVRTC knows them: "compute_75", ...
std::vector<std::string> architectures();

}  // namespace kiln::emulator::test
