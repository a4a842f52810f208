// The part of NVRTC's binary interface that Kiln calls (CUDA 11.8 up to 13.x). Our own declarations; see driver.h.
#pragma once

#include <cstddef>

namespace cuda_abi {

using nvrtcProgram = struct NvrtcProgramTag*;

enum nvrtcResult : int {
  NVRTC_SUCCESS = 0,
  NVRTC_ERROR_OUT_OF_MEMORY = 1,
  NVRTC_ERROR_PROGRAM_CREATION_FAILURE = 2,
  NVRTC_ERROR_INVALID_INPUT = 3,
  NVRTC_ERROR_INVALID_PROGRAM = 4,
  NVRTC_ERROR_INVALID_OPTION = 5,
  NVRTC_ERROR_COMPILATION = 6,
  NVRTC_ERROR_BUILTIN_OPERATION_FAILURE = 7,
};

// X(symbol, result(parameters)), as in driver.h.
#define KILN_NVRTC_ENTRY_POINTS(X)                                                                                 \
  X(nvrtcGetErrorString, const char*(nvrtcResult result))                                                          \
  X(nvrtcVersion, nvrtcResult(int* major, int* minor))                                                             \
  X(nvrtcGetNumSupportedArchs, nvrtcResult(int* count))                                                            \
  X(nvrtcGetSupportedArchs, nvrtcResult(int* archs))                                                               \
  X(nvrtcCreateProgram, nvrtcResult(nvrtcProgram* program, const char* source, const char* name, int header_count, \
                                    const char* const* headers, const char* const* header_names))                  \
  X(nvrtcDestroyProgram, nvrtcResult(nvrtcProgram* program))                                                       \
  X(nvrtcCompileProgram, nvrtcResult(nvrtcProgram program, int option_count, const char* const* options))          \
  X(nvrtcGetPTXSize, nvrtcResult(nvrtcProgram program, size_t* bytes))                                             \
  X(nvrtcGetPTX, nvrtcResult(nvrtcProgram program, char* ptx))                                                     \
  X(nvrtcGetCUBINSize, nvrtcResult(nvrtcProgram program, size_t* bytes))                                           \
  X(nvrtcGetCUBIN, nvrtcResult(nvrtcProgram program, char* cubin))                                                 \
  X(nvrtcGetProgramLogSize, nvrtcResult(nvrtcProgram program, size_t* bytes))                                      \
  X(nvrtcGetProgramLog, nvrtcResult(nvrtcProgram program, char* log))

}  // namespace cuda_abi
