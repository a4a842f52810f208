// A fake driver that loads any module, finds any kernel, and writes down launches and fills.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fake_driver.h"

namespace kiln::execution {

struct RecordedLaunch {
  uint64_t function = 0;  ///< Length of the kernel's name: kernels of one test have names of different lengths.
  std::array<unsigned, 3> grid{}, block{};
  unsigned dynamic_shared = 0;
  uint64_t stream = 0;
  std::vector<uint64_t> arguments;  ///< The first `arguments_read`, `argument_words` values each.
  std::vector<cuda_abi::CUlaunchAttribute> attributes;
};

/// Arguments of a call of cuTensorMapEncodeTiled.
struct RecordedMap {
  int type = 0, swizzle = 0;
  uint64_t address = 0;
  std::vector<uint64_t> extents, strides;
  std::vector<unsigned> box, steps;
};

struct RecordingDriver {
  RecordingDriver();
  ~RecordingDriver();
  RecordingDriver(const RecordingDriver&) = delete;
  RecordingDriver& operator=(const RecordingDriver&) = delete;

  device::FakeDriver fake;
  size_t arguments_read = 0;
  size_t argument_words = 1;  ///< How many values of 8 bytes are read of each.
  int max_threads = 1024;     ///< Most threads of a block that every kernel reports.
  int static_shared = 0;
  int blocks_per_sm = 2;                 ///< Occupancy of every kernel.
  std::vector<std::string> occupancies;  ///< "THREADS BYTES" that the occupancy was asked for.
  std::vector<std::string> steps;        ///< "launch" and "clear ADDRESS WORDSx4" or "clear ADDRESS BYTESx1", in order.
  std::vector<RecordedLaunch> launches;
  std::vector<std::string> images;    ///< Images that were loaded.
  std::vector<RecordedMap> maps;      ///< The first word of a map's bytes is 1 + its place here.
  std::vector<int> permitted_shared;  ///< Values of cuFuncSetAttribute.
};

}  // namespace kiln::execution
