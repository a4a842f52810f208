#include "peer_kernels.h"

#include <filesystem>

#include "kernel_folder.h"
#include "variant_check.h"

namespace kiln::bench {
namespace {

const std::filesystem::path folder = KILN_TRITON_KERNELS;

}  // namespace

std::vector<TritonProgram> triton_programs() {
  return triton_programs(folder);
}

std::string why_no_triton() {
  return "no kernels of Triton in " + folder.string() + ": scripts/setup --peers, then scripts/build, puts them there";
}

store::FileStore& peer_store() {
  static store::FileStore compiled(
      {.folder = testing_support::kernel_folder(), .limit_bytes = testing_support::kernel_folder_mib << 20});
  return compiled;
}

checking::CheckOptions peer_options(const Request& request) {
  checking::CheckOptions options = testing_support::thorough();
  const DTypeTraits& factors = traits(request.operands.front().spec.dtype);
  if (factors.floating && factors.bytes == 1) options.fills = {reference::Values::integers};
  if (request.arithmetic.tf32) std::erase(options.fills, reference::Values::specials);
  return options;
}

}  // namespace kiln::bench
