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

// A thread reads one element of each of four rows of 256, which hold their numbers, twice a round.
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

// Register `index` of a lane's factors: four of the first matrix, two of the second.
uint32_t factor_bits(int lane_of_block, int index, uint32_t drawn, uint32_t fixed) {
  return ((static_cast<uint32_t>(lane_of_block) * 8 + static_cast<uint32_t>(index)) * 2654435769U & drawn) | fixed;
}

// Element of a warp's product at a row and column, by the layout of the PTX ISA: a register of a lane has elements that
// lie side by side in the depth, four lanes have a row or column, and two registers its two halves.
struct MatrixProduct {
  int elements;  // of a register
  uint32_t drawn, fixed;
  double (*value)(uint32_t bits, int element);

  double at(int warp, int row, int column) const {
    double sum = 0;
    for (int half = 0; half < 2; ++half) {
      for (int quarter = 0; quarter < 4; ++quarter) {
        const int a = 32 * warp + row % 8 * 4 + quarter, b = 32 * warp + column * 4 + quarter;
        const uint32_t of_a = factor_bits(a, 2 * half + row / 8, drawn, fixed);
        const uint32_t of_b = factor_bits(b, 4 + half, drawn, fixed);
        for (int element = 0; element < elements; ++element) sum += value(of_a, element) * value(of_b, element);
      }
    }
    return sum;
  }
};

// A sign and two bits of a mantissa, of an element of `width` bits whose mantissa has `mantissa`.
template <int width, int mantissa>
double drawn_value(uint32_t bits, int element) {
  const uint32_t of_element = bits >> (element * width);
  return ((of_element >> (width - 1) & 1) != 0 ? -1 : 1) * (1 + (of_element >> (mantissa - 2) & 3) / 4.0);
}
double int8_value(uint32_t bits, int element) {
  return static_cast<int8_t>(bits >> (element * 8) & 0xff);
}

// The bits of a value that f16 has.
uint32_t f16_bits(double value) {
  if (value == 0) return 0;
  int exponent = 0;
  const double mantissa = std::frexp(std::abs(value), &exponent);
  return (value < 0 ? 0x8000U : 0U) | static_cast<uint32_t>((exponent + 14) << 10) |
         (static_cast<uint32_t>(mantissa * 2048) & 0x3ff);
}

TEST_F(CalibrationKernels, MultiplyMatricesInEightChains) {
  struct Row {
    const char* kernel;
    int least;
    MatrixProduct product;
    bool sums_are_f16 = false;
  };
  const MatrixProduct f16{2, 0x83008300, 0x3c003c00, drawn_value<16, 10>};
  const int arch = 10 * context_->device().info().cc_major + context_->device().info().cc_minor;
  for (const auto& [kernel, least, product, sums_are_f16] :
       {Row{"multiply_f16", 75, f16}, Row{"multiply_f16_in_f16", 75, f16, true},
        Row{"multiply_tf32", 80, {1, 0x80600000, 0x3f800000, drawn_value<32, 23>}},
        Row{"multiply_int8", 75, {4, 0xffffffff, 0, int8_value}},
        Row{"multiply_fp8", 89, {4, 0x86868686, 0x38383838, drawn_value<8, 3>}}}) {
    if (arch < least) continue;
    for (const long long rounds : {0LL, 1LL, 2LL}) {
      const device::Buffer to = upload(Floats(2 * threads + 1, -1));
      run(kernel, 2, to.address(), rounds);
      Floats expected;
      for (int thread = 0; thread < 2 * static_cast<int>(threads); ++thread) {
        const int lane = thread % 32, warp = thread % static_cast<int>(threads) / 32, column = lane % 4 * 2;
        double sum = 0;
        uint32_t bits = 0;
        for (const int row : {lane / 4, lane / 4 + 8}) {
          const double left = rounds * product.at(warp, row, column),
                       right = rounds * product.at(warp, row, column + 1);
          sum += 8 * (left + right);
          bits += 8 * (f16_bits(left) | f16_bits(right) << 16);
        }
        expected.push_back(sums_are_f16 ? static_cast<float>(bits) : static_cast<float>(sum));
      }
      expected.push_back(-1);
      EXPECT_EQ(download(to), expected) << kernel << ", " << rounds << " rounds";
    }
  }
}

}  // namespace
}  // namespace kiln::calibration::kernels_test
