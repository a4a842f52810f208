// A context of the C API on the device at hand, and memory for its calls.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "kiln/context.h"
#include "kiln/kiln.h"

namespace kiln::capi {

class CApi : public testing::Test {
 protected:
  /// Options that never read or write what belongs to the person who runs the tests.
  static kiln_context_options options();
  /// The same for a context of C++. All share the kernels that one of them compiled.
  static ContextOptions cpp_options();

  CApi();
  ~CApi() override;

  /// Device memory with a copy of `values`; lives as long as the test.
  void* upload(const std::vector<float>& values);
  std::vector<float> download(const void* data) const;

  /// A tensor in logical order, or in the memory order `layout`.
  static kiln_tensor tensor(const void* data, std::initializer_list<int64_t> extents, const char* layout = nullptr);

  kiln_context* context_ = nullptr;

 private:
  struct Block {
    kiln_memory* memory;
    size_t count;
  };

  std::vector<Block> blocks_;
};

/// Besides, a context of C++, which gives what is to be expected.
class CApiBesideCpp : public CApi {
 protected:
  Context cpp_{cpp_options()};
};

/// `count` values between -1 and 1 that differ from one another.
std::vector<float> wave(size_t count, float step = 0.37f);

}  // namespace kiln::capi
