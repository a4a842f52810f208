// Tables of bad arguments: what is wrong, and what the error says.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "device_fixture.h"

namespace kiln {

struct Bad {
  std::string what;  ///< The argument and what is wrong with it.
  std::function<void()> call;
  std::string message;  ///< Part of the error's text.
};

inline constexpr int64_t huge = int64_t{1} << 40;

/// Calls point at memory that has to stay as it was.
class BadArguments : public DeviceTest {
 protected:
  static constexpr size_t bytes = 65536;

  BadArguments() : base_(static_cast<const std::byte*>(upload(std::vector<std::byte>(bytes, std::byte{0x5a})))) {}

  /// Each must throw invalid_argument with its message, and leave the memory alone.
  void expect_refused(const std::vector<Bad>& table) {
    const std::vector<std::byte> before = download(base_, bytes);
    for (const Bad& bad : table) {
      EXPECT_THAT(refusal_of(bad.call), testing::HasSubstr(bad.message)) << bad.what;
      ASSERT_EQ(download(base_, bytes), before) << bad.what << ": something ran";
    }
  }

  Tensor at(size_t offset, std::initializer_list<int64_t> extents, DType dtype = f32) const {
    return {base_ + offset, dtype, extents, contiguous};
  }

  const std::byte* const base_;
};

}  // namespace kiln
