// Where tests keep the kernels that they compile.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace kiln::testing_support {

/// The store of compiled kernels for tests that are not about it: TEST_KERNEL_STORE, which scripts/test gives to all
/// programs of a run, so that what several of them need is compiled once; else a folder of this program's own. Its keys
/// are those of the product (source, options, version of NVRTC).
inline std::string kernel_folder() {
  const char* const shared = std::getenv("TEST_KERNEL_STORE");
  return shared == nullptr ? testing::TempDir() + "kernels" : shared;
}

/// The most that this store may hold, in MiB. All tests of one tree fill some 500: there is room for several branches.
inline constexpr uint64_t kernel_folder_mib = 2048;

}  // namespace kiln::testing_support
