#include "installation.h"

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace kiln::install {
namespace {

const fs::path build_folder = KILN_BUILD_DIR;

// Where scripts/setup put NVRTC into the build folder, an installation would not find it.
std::string nvrtc_setting() {
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"}) {
    const fs::path library = build_folder / "lib" / name;
    if (std::getenv("KILN_NVRTC") == nullptr && fs::exists(library)) return "KILN_NVRTC=" + library.string() + " ";
  }
  return {};
}

void expect_success(const std::string& command) {
  const Outcome outcome = run(command);
  ASSERT_EQ(outcome.exit_code, 0) << command << "\n" << outcome.text;
}

}  // namespace

Outcome run(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen(("cd / && { " + command + "; } 2>&1 </dev/null").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer{};
  for (size_t n = 0; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) outcome.text.append(buffer.data(), n);
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

Outcome run_on_device(const std::string& command) {
  const std::string driver = std::getenv("KILN_DRIVER") == nullptr ? "KILN_DRIVER=emulator " : "";
  return run("env -u KILN_PACK_PATH -u KILN_BUNDLE_PATH -u KILN_RECORD KILN_CACHE=off KILN_KERNEL_STORE=off " + driver +
             nvrtc_setting() + command);
}

fs::path Installed::work() {
  return build_folder / "tests" / "install-work";
}

void Installed::SetUpTestSuite() {
  fs::remove_all(work());
  fs::create_directories(work());
  expect_success(std::string(KILN_CMAKE) + " --install " + build_folder.string() + " --prefix " + prefix().string());
  expect_success(std::string(KILN_CPACK) + " -G DEB --config " + (build_folder / "CPackConfig.cmake").string() +
                 " -B " + (work() / "deb").string());
  expect_success("dpkg-deb -x " + package_file().string() + " " + package_root().string());
}

fs::path Installed::package_file() {
  for (const auto& entry : fs::directory_iterator(work() / "deb")) {
    if (entry.path().extension() == ".deb") return entry.path();
  }
  return work() / "deb" / "no package was made";
}

}  // namespace kiln::install
