#include "core_nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "cuda_abi/nvrtc.h"

namespace kiln::emulator::test {
namespace {

using namespace cuda_abi;

struct Nvrtc {
  template <class F>
  using Pointer = F*;
  void* library = nullptr;
  Pointer<nvrtcResult(nvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*)> create =
      nullptr;
  Pointer<nvrtcResult(nvrtcProgram*)> destroy = nullptr;
  Pointer<nvrtcResult(nvrtcProgram, int, const char* const*)> compile = nullptr;
  Pointer<nvrtcResult(nvrtcProgram, size_t*)> ptx_size = nullptr, log_size = nullptr;
  Pointer<nvrtcResult(nvrtcProgram, char*)> ptx = nullptr, log = nullptr;
  Pointer<nvrtcResult(int*)> arch_count = nullptr, archs = nullptr;
};

void* open_library() {
  std::vector<std::string> names;
  if (const char* given = std::getenv("KILN_NVRTC")) names.emplace_back(given);
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) names.emplace_back(name);
  for (const char* variable : {"CUDA_PATH", "CUDA_HOME"}) {
    if (const char* root = std::getenv(variable)) names.push_back(std::string(root) + "/lib64/libnvrtc.so");
  }
  names.emplace_back("/usr/local/cuda/lib64/libnvrtc.so");
  for (const std::string& name : names) {
    if (void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

template <class F>
void look_up(void* library, const char* name, F*& to) {
  to = reinterpret_cast<F*>(dlsym(library, name));
  if (to == nullptr) throw std::runtime_error(std::string("NVRTC lacks ") + name);
}

const Nvrtc& nvrtc() {
  static const Nvrtc loaded = [] {
    Nvrtc n;
    n.library = open_library();
    if (n.library == nullptr) return n;
    look_up(n.library, "nvrtcCreateProgram", n.create);
    look_up(n.library, "nvrtcDestroyProgram", n.destroy);
    look_up(n.library, "nvrtcCompileProgram", n.compile);
    look_up(n.library, "nvrtcGetPTXSize", n.ptx_size);
    look_up(n.library, "nvrtcGetPTX", n.ptx);
    look_up(n.library, "nvrtcGetProgramLogSize", n.log_size);
    look_up(n.library, "nvrtcGetProgramLog", n.log);
    look_up(n.library, "nvrtcGetNumSupportedArchs", n.arch_count);
    look_up(n.library, "nvrtcGetSupportedArchs", n.archs);
    return n;
  }();
  return loaded;
}

}  // namespace

bool nvrtc_present() {
  return nvrtc().library != nullptr;
}

std::string compile(const std::string& source, const std::string& arch, const std::vector<std::string>& options) {
  const Nvrtc& n = nvrtc();
  if (n.library == nullptr) throw std::runtime_error("no NVRTC was found");
  nvrtcProgram program = nullptr;
  if (n.create(&program, source.c_str(), "test.cu", 0, nullptr, nullptr) != NVRTC_SUCCESS) {
    throw std::runtime_error("nvrtcCreateProgram failed");
  }
  const std::string target = "--gpu-architecture=" + arch;
  std::vector<const char*> arguments = {target.c_str(), "--std=c++17", "--device-as-default-execution-space"};
  for (const std::string& option : options) arguments.push_back(option.c_str());
  const nvrtcResult result = n.compile(program, static_cast<int>(arguments.size()), arguments.data());
  size_t size = 0;
  std::string text;
  if (result == NVRTC_SUCCESS) {
    n.ptx_size(program, &size);
    text.resize(size);
    n.ptx(program, text.data());
  } else {
    n.log_size(program, &size);
    text.resize(size);
    n.log(program, text.data());
  }
  n.destroy(&program);
  if (result != NVRTC_SUCCESS) throw std::runtime_error("NVRTC for " + arch + ": " + text);
  text.resize(std::min(text.size(), text.find('\0')));
  return text;
}

std::vector<std::string> architectures() {
  int count = 0;
  std::vector<std::string> result;
  if (!nvrtc_present() || nvrtc().arch_count(&count) != NVRTC_SUCCESS) return result;
  std::vector<int> known(static_cast<size_t>(count));
  nvrtc().archs(known.data());
  for (const int arch : {75, 80, 86, 89, 90, 100, 120}) {
    if (std::find(known.begin(), known.end(), arch) != known.end()) result.push_back("compute_" + std::to_string(arch));
  }
  return result;
}

}  // namespace kiln::emulator::test
