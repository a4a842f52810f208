// Resources that ptxas reports for the kernels it compiled.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln::device {

/// Resources of one compiled kernel, from ptxas' verbose log. Bytes unless said otherwise.
struct KernelResources {
  std::string name;   ///< As in the PTX: mangled unless extern "C".
  std::string arch;   ///< "sm_90a"
  int registers = 0;  ///< Per thread, 32-bit.
  int spill_stores = 0;
  int spill_loads = 0;
  int stack = 0;  ///< Per thread.
  int static_shared = 0;
  int constant = 0;  ///< Bank 0: the kernel's parameters and what the system puts before them.
  int barriers = 0;  ///< Named barriers used.
};

/// Reads the "ptxas info" lines of a log made with --ptxas-options=-v, in the order of the log; other lines are
/// skipped.
///
/// Knows both the forms of CUDA 11.8 ("N bytes cmem[0]" and no barriers) and of 12 and 13 ("used N barriers").
std::vector<KernelResources> parse_resource_log(std::string_view log);

}  // namespace kiln::device
