// An NVRTC that compiles nothing, of the version FAKE_NVRTC_VERSION ("12.0"), for the architectures
// FAKE_NVRTC_ARCHS ("90 75"), as the environment has them when it is asked. It fails at compiling, or with
// FAKE_NVRTC_FAILS "early" before that, "memory" for want of memory, "never" not at all: all code is one comment. The
// file FAKE_NVRTC_LOG, if it is named, gets a line each time.
#include <cuda_abi/nvrtc.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

using namespace cuda_abi;  // NOLINT(google-build-using-namespace): the entry points' types

namespace {

constexpr char code[] = "// nothing";

std::string setting(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::vector<int> archs() {
  std::istringstream text(setting("FAKE_NVRTC_ARCHS"));
  std::vector<int> all;
  for (int arch = 0; text >> arch;) all.push_back(arch);
  return all;
}

}  // namespace

extern "C" {

const char* nvrtcGetErrorString(nvrtcResult) {
  return "it compiles nothing";
}

nvrtcResult nvrtcVersion(int* major, int* minor) {
  return std::sscanf(setting("FAKE_NVRTC_VERSION").c_str(), "%d.%d", major, minor) == 2 ? NVRTC_SUCCESS
                                                                                        : NVRTC_ERROR_INVALID_INPUT;
}

nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  *count = static_cast<int>(archs().size());
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int* list) {
  for (const int arch : archs()) *list++ = arch;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char*, const char*, int, const char* const*,
                               const char* const*) {
  *program = nullptr;
  const std::string log = setting("FAKE_NVRTC_LOG");
  if (!log.empty()) std::ofstream(log, std::ios::app) << "asked\n";
  return setting("FAKE_NVRTC_FAILS") == "early" ? NVRTC_ERROR_PROGRAM_CREATION_FAILURE : NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram*) {
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram, int, const char* const*) {
  const std::string fails = setting("FAKE_NVRTC_FAILS");
  if (fails == "never") return NVRTC_SUCCESS;
  return fails == "memory" ? NVRTC_ERROR_OUT_OF_MEMORY : NVRTC_ERROR_COMPILATION;
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram, size_t* bytes) {
  *bytes = 0;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTXSize(nvrtcProgram, size_t* bytes) {
  *bytes = sizeof(code);
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetPTX(nvrtcProgram, char* text) {
  std::memcpy(text, code, sizeof(code));
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* bytes) {
  return nvrtcGetPTXSize(program, bytes);
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* image) {
  return nvrtcGetPTX(program, image);
}

// A function that nothing calls: the log is empty.
nvrtcResult nvrtcGetProgramLog(nvrtcProgram, char*) {
  return NVRTC_ERROR_INVALID_PROGRAM;
}

}  // extern "C"
