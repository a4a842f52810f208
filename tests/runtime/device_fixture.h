// Device memory and a Context for tests: the emulated device, or the driver that KILN_DRIVER names.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/cache/record.h"
#include "kiln/context.h"
#include "kiln/device/context.h"
#include "kiln/device/memory.h"
#include "kiln/generator/request.h"

namespace kiln {

class DeviceTest : public testing::Test {
 protected:
  DeviceTest();

  /// Options for a Context on the same device, without a cache.
  ContextOptions options() const;
  /// This device, as databases name it.
  cache::DeviceEntry entry() const;
  /// A record that makes `candidate` the winner of `request` on this device.
  cache::Record record(const Request& request, const ExplainedCandidate& candidate, double seconds) const;
  /// options() with a database, made anew, in which `candidate` is the winner of `request`.
  ContextOptions options_with_winner(const Request& request, const ExplainedCandidate& candidate) const;

  /// options() that record requests in `file`, which is removed first, and serve none: all that there is to take
  /// kernels from is a bundle without any. Requests are recorded before anything is made for them.
  ContextOptions options_that_only_record(const std::string& file) const;

  /// `built`, where the build left it; where these tests were carried elsewhere, what came along under `carried`.
  static std::string at_hand(const std::string& built, const std::string& carried);

  /// Device memory with a copy of `bytes`; lives as long as the test.
  void* upload(std::span<const std::byte> bytes);
  template <class T>
  void* upload(const std::vector<T>& values) {
    return upload(std::as_bytes(std::span(values)));
  }
  /// `count` values, once the device has finished.
  template <class T = std::byte>
  std::vector<T> download(const void* address, size_t count) const {
    synchronize();
    return device::download<T>(*device_, reinterpret_cast<cuda_abi::CUdeviceptr>(address), count);
  }
  void synchronize() const { device_->synchronize(); }

  /// Runs `plan` of a request on seeded operands and compares every output with the reference.
  void expect_matches_reference(const Request& request, const Plan& plan);

  /// Uploads seeded operands of `line`'s request by their names, calls, and compares the result with the reference.
  void expect_right(const std::string& line, const std::function<void(std::map<std::string, void*>&)>& call,
                    float alpha = 1, float beta = 0);

  /// The text of the error that `call` throws, which must be a `code`; "accepted" if it throws nothing.
  static std::string refusal_of(const std::function<void()>& call, ErrorCode code = ErrorCode::invalid_argument);

  std::shared_ptr<const device::ContextHandle> device_;

 private:
  Environment environment_;
  std::vector<device::Buffer> buffers_;
};

}  // namespace kiln
