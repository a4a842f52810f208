#include "peer_kernels.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "kernel_folder.h"
#include "variant_check.h"

namespace kiln::bench {
namespace {

const std::filesystem::path folder = KILN_TRITON_KERNELS;

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::vector<TritonProgram> triton_programs() {
  std::vector<TritonProgram> programs;
  if (!std::filesystem::exists(folder)) return programs;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::filesystem::path path = entry.path();
    if (path.extension() != ".json") continue;
    const std::string description = content(path);
    programs.push_back({path.stem(), content(path.replace_extension(".ptx")), description});
  }
  std::sort(programs.begin(), programs.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return programs;
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
