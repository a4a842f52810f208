// NVRTC's names of GPU architectures.
#pragma once

#include <string>
#include <string_view>

namespace kiln::device {

/// Whether code may use instructions of exactly one architecture (wgmma, setmaxnreg, tcgen05: "sm_90a").
enum class ArchFeatures {
  portable,  ///< "sm_90"
  specific,  ///< "sm_90a" where the architecture has such a set (9.0 and later), "sm_89" where it has none.
};

/// The real architecture of a compute capability: "sm_90a". Compiling for it yields a cubin and resource use.
std::string real_arch(int cc_major, int cc_minor, ArchFeatures features = ArchFeatures::specific);

/// The virtual architecture of a compute capability: "compute_90". Compiling for it yields PTX only.
std::string virtual_arch(int cc_major, int cc_minor, ArchFeatures features = ArchFeatures::portable);

/// True for "sm_...": a compile for it yields a cubin.
bool is_real_arch(std::string_view arch);

/// The number in an architecture's name: 90 for "sm_90a" and "compute_90". Throws Error(invalid_argument) if malformed.
int arch_number(std::string_view arch);

}  // namespace kiln::device
