// Results of the kernels that measure a device: each of the bytes and operations that calibrate.cpp counts is there.
#include "kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "kiln/base/environment.h"
#include "kiln/device/arch.h"
#include "kiln/device/launch.h"
#include "kiln/device/memory.h"
#include "kiln/device/module.h"
#include "kiln/device/nvrtc.h"

namespace kiln::calibration::kernels_test {
namespace {

constexpr int64_t threads = 256;
using Floats = std::vector<float>;

class CalibrationKernels : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const Environment environment = Environment::read();
    context_ = device::ContextHandle::acquire(device::Device(device::Driver::open({environment.driver}), 0));
    const device::DeviceInfo& info = context_->device().info();
    const auto nvrtc = device::Nvrtc::open({environment.nvrtc});
    const device::Compiled compiled =
        nvrtc->compile(kernels_source, "calibration.cu",
                       {.arch = device::virtual_arch(info.cc_major, info.cc_minor, device::ArchFeatures::portable)});
    module_.emplace(context_, compiled.image(context_->driver()), "calibration");
  }
  static void TearDownTestSuite() {
    module_.reset();
    context_.reset();
  }

  template <class... Arguments>
  static void run(const char* kernel, unsigned blocks, Arguments... arguments) {
    const device::Function function = module_->function(kernel);
    const device::Current current(*context_);
    void* parameters[] = {static_cast<void*>(&arguments)...};
    device::launch(function, {blocks}, {static_cast<unsigned>(threads)}, 0, nullptr, parameters);
    context_->synchronize();
  }
  static device::Buffer upload(const Floats& values) { return device::upload(context_, values); }
  static Floats download(const device::Buffer& buffer) {
    return device::download<float>(*context_, buffer.address(), buffer.size() / sizeof(float));
  }

  static inline std::shared_ptr<const device::ContextHandle> context_;
  static inline std::optional<device::Module> module_;
};

// Elements of 16 bytes, fewer than threads, as many as four for each, and all between.
TEST_F(CalibrationKernels, CopyEachElementAndNothingBehindThem) {
  for (const unsigned blocks : {1U, 2U}) {
    const int64_t step = blocks * threads;
    for (const int64_t count : {int64_t{0}, int64_t{1}, step - 1, step + 1, 3 * step, 3 * step + 1, 4 * step - 1,
                                4 * step, 4 * step + 1, 8 * step + 3}) {
      Floats in(static_cast<size_t>(4 * count + 4 * step)), expected(in.size(), -1);
      for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
      std::copy(in.begin(), in.begin() + 4 * count, expected.begin());
      const device::Buffer from = upload(in), to = upload(Floats(in.size(), -1));
      run("copy_memory", blocks, from.address(), to.address(), static_cast<long long>(count));
      EXPECT_EQ(download(to), expected) << blocks << " blocks, " << count << " elements";
    }
  }
}

// Threads stand side by side in the first span and go from span to span; after the last one each begins again a block
// further.
TEST_F(CalibrationKernels, ReadABufferAgainAndAgainInTheOrderThatIsDocumented) {
  constexpr unsigned blocks = 3;
  struct Row {
    unsigned span, spans;
    long long rounds;
  };
  for (const auto& [span, spans, rounds] :
       {Row{256, 1, 2}, Row{256, 3, 2}, Row{512, 1, 3}, Row{512, 3, 4}, Row{768, 2, 5}}) {
    const unsigned count = span * spans;
    Floats in(4 * size_t{count});
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i / 4 * (i % 4 + 1) % 251);
    const device::Buffer from = upload(in), to = upload(Floats(size_t{blocks} * threads + 1, -1));
    run("read_memory", blocks, from.address(), to.address(), count, span, rounds);
    Floats expected;
    for (unsigned thread = 0; thread < blocks * threads; ++thread) {
      float sum = 0;
      for (unsigned access = 0; access < 4 * static_cast<unsigned>(rounds); ++access) {
        const unsigned lap = access / spans;
        const size_t element = (thread + lap * threads) % span + access % spans * size_t{span};
        for (size_t i = 0; i < 4; ++i) sum += in[4 * element + i];
      }
      expected.push_back(sum);
    }
    expected.push_back(-1);
    EXPECT_EQ(download(to), expected) << spans << " spans of " << span << ", " << rounds << " rounds";
  }
}

TEST_F(CalibrationKernels, MultiplyAndAddInSixteenChainsOfEightARound) {
  for (const long long rounds : {0LL, 1LL, 3LL}) {
    const device::Buffer to = upload(Floats(2 * threads + 1, -1));
    run("multiply_add", 2, to.address(), 0.75F, 1.5F, rounds);
    Floats expected;
    for (int64_t thread = 0; thread < 2 * threads; ++thread) {
      float sum = 0;
      for (int64_t chain = 0; chain < 16; ++chain) {
        auto value = static_cast<float>(thread % threads + chain);
        for (long long i = 0; i < 8 * rounds; ++i) value = std::fma(value, 0.75F, 1.5F);
        sum += value;
      }
      expected.push_back(sum);
    }
    expected.push_back(-1);
    EXPECT_EQ(download(to), expected) << rounds << " rounds";
  }
}

// Four rows have 256 elements, each holding its number: a thread reads one of each row, twice a round.
TEST_F(CalibrationKernels, ReadSharedMemoryEightTimesARound) {
  for (const long long rounds : {0LL, 1LL, 3LL}) {
    const device::Buffer to = upload(Floats(2 * threads + 1, -1));
    run("read_shared", 2, to.address(), rounds);
    Floats expected;
    for (int64_t i = 0; i < 2 * threads; ++i) {
      const int64_t column = i % threads;
      expected.push_back(static_cast<float>(2 * rounds * (4 * column + (0 + 1 + 2 + 3) * threads)));
    }
    expected.push_back(-1);
    EXPECT_EQ(download(to), expected) << rounds << " rounds";
  }
}

}  // namespace
}  // namespace kiln::calibration::kernels_test
