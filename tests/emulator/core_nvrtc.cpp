#include "core_nvrtc.h"

#include <cstdlib>
#include <memory>

#include "kiln/base/error.h"
#include "kiln/device/nvrtc.h"

namespace kiln::emulator::test {
namespace {

const std::shared_ptr<const device::Nvrtc>& nvrtc() {
  static const std::shared_ptr<const device::Nvrtc> opened = []() -> std::shared_ptr<const device::Nvrtc> {
    device::NvrtcChoice choice;
    if (const char* const given = std::getenv("KILN_NVRTC")) choice.library = given;
    try {
      return device::Nvrtc::open(choice);
    } catch (const Error&) {
      return nullptr;
    }
  }();
  return opened;
}

}  // namespace

bool nvrtc_present() {
  return nvrtc() != nullptr;
}

std::string compile(const std::string& source, const std::string& arch, const std::vector<std::string>& options) {
  device::CompileOptions how;
  how.arch = arch;
  how.extra = options;
  return nvrtc()->compile(source, "test.cu", how).ptx;
}

std::vector<std::string> architectures() {
  std::vector<std::string> result;
  for (const int arch : {75, 80, 86, 89, 90, 100, 120}) {
    if (nvrtc_present() && nvrtc()->supports(arch / 10, arch % 10)) result.push_back("compute_" + std::to_string(arch));
  }
  return result;
}

}  // namespace kiln::emulator::test
