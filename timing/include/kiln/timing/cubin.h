// Facts of a kernel that a cubin has besides the code: registers, memory, places of parameters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::timing {

/// Where a __constant__ variable lies in bank 3.
struct ConstantVariable {
  std::string name;  ///< As the linker knows it.
  uint64_t offset = 0, bytes = 0;
};

struct KernelFacts {
  std::string name;
  int registers = 0;            ///< Per thread.
  uint32_t shared_bytes = 0;    ///< Static, of a block.
  uint32_t local_bytes = 0;     ///< Frame of a thread: spilled registers and indexed arrays.
  uint32_t parameter_base = 0;  ///< Offset of the first parameter in constant bank 0.
  uint32_t parameter_bytes = 0;
  std::string constants;  ///< Bank 2: constants that the compiler put there.
  std::string variables;  ///< Bank 3: __constant__ variables, as the module has them at first.
  std::vector<ConstantVariable> variable_places;
};

/// The kernels of a cubin, in the order of their code. Throws Error(parse_error) for bytes that are no cubin or are cut
/// short.
std::vector<KernelFacts> read_cubin(std::string_view bytes);

/// The facts of `kernel`. Throws Error(invalid_argument) that lists the kernels if it is not among them.
const KernelFacts& find_kernel(const std::vector<KernelFacts>& kernels, std::string_view kernel);

}  // namespace kiln::timing
