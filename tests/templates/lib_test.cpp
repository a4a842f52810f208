// The building blocks of templates, each in a kernel of its own on the emulated devices.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "algorithm_cases.h"
#include "kiln/device/memory.h"
#include "kiln/device/stream.h"
#include "kiln/execution/executable.h"
#include "kiln/reference/convert.h"
#include "variant_check.h"

namespace kiln::testing_support::lib_test {
namespace {

constexpr int threads = 128;

// Runs `body`, the body of kernel(const In* x, Out* y, long long n) with `includes` before it, in blocks of 128 threads
// that together cover n, on the device of an architecture.
template <class Out, class In>
std::vector<Out> run(const Target& target, const std::string& includes, const std::string& types,
                     const std::string& body, const std::vector<In>& inputs, size_t outputs, int64_t n) {
  std::map<std::string, std::string> files = built_in_catalogue().library().files();
  files["lib_test.cu"] =
      includes + types + "extern \"C\" __global__ void kernel(const In* x, Out* y, long long n) {\n" + body + "\n}\n";
  Launch launch;
  launch.entry = "kernel";
  launch.grid[0] = Count{n, 0, threads};
  launch.block[0] = threads;
  launch.arguments = {OperandArgument{"x"}, OperandArgument{"y"}, Scalar::n};
  const Program program{{specialise(SourceLibrary(files), "lib_test.cu", Prelude(), "lib_test")}, {launch}};

  const TestDevice& device = *TestDevice::find(target.arch);
  const execution::Executable executable = device.load(program, target, {"x", "y"});
  const device::Stream stream(device.context);
  const device::Buffer x = device::upload(device.context, inputs);
  const device::Buffer y(device.context, outputs * sizeof(Out));
  executable.run(stream.raw(), std::vector<cuda_abi::CUdeviceptr>{x.address(), y.address()}, {}, n, 0);
  stream.synchronize();
  return device::download<Out>(*device.context, y.address(), outputs);
}

// One thread an element: y[i] = expression of x[i].
template <class Out, class In>
std::vector<Out> map(const Target& target, const std::string& includes, const std::string& types,
                     const std::string& expression, const std::vector<In>& inputs) {
  const std::string body =
      "const long long i = (long long)blockIdx.x * 128 + threadIdx.x;\nif (i < n) y[i] = " + expression + ";";
  return run<Out>(target, includes, types, body, inputs, inputs.size(), static_cast<int64_t>(inputs.size()));
}

std::vector<uint16_t> all_patterns() {
  std::vector<uint16_t> patterns(65536);
  for (size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<uint16_t>(i);
  return patterns;
}

// Every upper half of a float with lower halves next to and on the ties of bf16; among them those of f16.
std::vector<float> awkward_floats() {
  std::vector<float> floats;
  for (uint32_t upper = 0; upper < 65536; ++upper) {
    for (const uint32_t lower : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      floats.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  return floats;
}

bool same(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

const std::string fp8 = "#include \"lib/fp8.cuh\"\n";

class Conversions : public testing::TestWithParam<std::pair<int, int>> {
 protected:
  void SetUp() override {
    if (TestDevice::find(target_.arch) == nullptr) GTEST_SKIP() << "there is no device of " << target_.arch.name();
  }

  const Target target_ = target_of(GetParam().first, GetParam().second);
};

TEST_P(Conversions, OfEveryF16ToFloatAreExact) {
  const std::vector<float> got =
      map<float>(target_, "", "using In = f16; using Out = float;\n", "to_float(x[i])", all_patterns());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_PRED2(same, got[i], reference::from_f16(static_cast<uint16_t>(i))) << i;
  }
}

TEST_P(Conversions, OfEveryBf16ToFloatAreExact) {
  const std::vector<float> got =
      map<float>(target_, "", "using In = bf16; using Out = float;\n", "to_float(x[i])", all_patterns());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_PRED2(same, got[i], reference::from_bf16(static_cast<uint16_t>(i))) << i;
  }
}

TEST_P(Conversions, FromFloatToF16RoundToNearestEven) {
  const std::vector<float> floats = awkward_floats();
  const std::vector<uint16_t> got =
      map<uint16_t>(target_, "", "using In = float; using Out = f16;\n", "from_float<f16>(x[i])", floats);
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_PRED2(same, reference::from_f16(got[i]), reference::from_f16(reference::to_f16(floats[i]))) << floats[i];
  }
}

TEST_P(Conversions, FromFloatToBf16RoundToNearestEven) {
  const std::vector<float> floats = awkward_floats();
  const std::vector<uint16_t> got =
      map<uint16_t>(target_, "", "using In = float; using Out = bf16;\n", "from_float<bf16>(x[i])", floats);
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_PRED2(same, reference::from_bf16(got[i]), reference::from_bf16(reference::to_bf16(floats[i]))) << floats[i];
  }
}

TEST_P(Conversions, OfEveryFp8ToFloatAreExact) {
  std::vector<uint8_t> codes(256);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i);
  const std::string types = "using Out = float; using In = ";
  const auto e4m3 = map<float>(target_, fp8, types + "f8e4m3;\n", "to_float(x[i])", codes);
  const auto e5m2 = map<float>(target_, fp8, types + "f8e5m2;\n", "to_float(x[i])", codes);
  for (size_t i = 0; i < codes.size(); ++i) {
    ASSERT_PRED2(same, e4m3[i], reference::from_f8e4m3(codes[i])) << i;
    ASSERT_PRED2(same, e5m2[i], reference::from_f8e5m2(codes[i])) << i;
  }
}

TEST_P(Conversions, FromFloatToFp8SaturateAndRoundToNearestEven) {
  const std::vector<float> floats = awkward_floats();
  const std::string types = "using In = float; using Out = ";
  const auto e4m3 = map<uint8_t>(target_, fp8, types + "f8e4m3;\n", "from_float<f8e4m3>(x[i])", floats);
  const auto e5m2 = map<uint8_t>(target_, fp8, types + "f8e5m2;\n", "from_float<f8e5m2>(x[i])", floats);
  for (size_t i = 0; i < floats.size(); ++i) {
    ASSERT_EQ(e4m3[i], reference::to_f8e4m3(floats[i])) << floats[i];
    ASSERT_EQ(e5m2[i], reference::to_f8e5m2(floats[i])) << floats[i];
  }
}

TEST_P(Conversions, FromFloatToIntegersSaturateAndRoundToNearestEven) {
  const std::vector<float> floats = awkward_floats();
  const std::string types = "using In = float; using Out = ";
  const auto i32 = map<int32_t>(target_, "", types + "i32;\n", "from_float<i32>(x[i])", floats);
  const auto i8 = map<int8_t>(target_, "", types + "i8;\n", "from_float<i8>(x[i])", floats);
  const auto u8 = map<uint8_t>(target_, "", types + "u8;\n", "from_float<u8>(x[i])", floats);
  for (size_t i = 0; i < floats.size(); ++i) {
    ASSERT_EQ(i32[i], reference::round_to(DType::i32, floats[i])) << floats[i];
    ASSERT_EQ(i8[i], reference::round_to(DType::i8, floats[i])) << floats[i];
    ASSERT_EQ(u8[i], reference::round_to(DType::u8, floats[i])) << floats[i];
  }
}

TEST_P(Conversions, OfIntegersToFloatKeepTheirValue) {
  const std::vector<int8_t> i8 = {-128, -127, -1, 0, 1, 127};
  const std::vector<uint8_t> u8 = {0, 1, 127, 128, 255};
  const std::vector<int32_t> i32 = {std::numeric_limits<int32_t>::min(), -16777216, -1, 0, 1, 16777215};
  const auto expect_kept = [&](const std::string& type, const auto& values) {
    const auto got = map<float>(target_, "", "using Out = float; using In = " + type + ";\n", "to_float(x[i])", values);
    for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(got[i], static_cast<float>(values[i])) << type;
  };
  expect_kept("i8", i8);
  expect_kept("u8", u8);
  expect_kept("i32", i32);
}

TEST_P(Conversions, KeepNanWhereAMaximumIsTaken) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {nan, inf, -inf, 1, -1, 0, nan, 2, -0.0f, nan};
  const std::vector<float> got =
      map<float>(target_, "#include \"lib/math.cuh\"\n", "using In = float; using Out = float;\n",
                 "max_nan(x[i], x[(i + 1) % n])", values);
  for (size_t i = 0; i < got.size(); ++i) {
    const float a = values[i], b = values[(i + 1) % values.size()];
    const bool either = std::isnan(a) || std::isnan(b);
    EXPECT_EQ(std::isnan(got[i]), either) << a << " and " << b;
    EXPECT_TRUE(either || got[i] == std::max(a, b)) << a << " and " << b;
  }
}

// The two ways that bf16 and fp8 are made and that NaN is kept: by bit arithmetic, and by instructions from 8.0 or 8.9
// on.
INSTANTIATE_TEST_SUITE_P(Architectures, Conversions, testing::Values(std::pair{7, 5}, std::pair{9, 0}),
                         [](const auto& test) {
                           return "Sm" + std::to_string(test.param.first * 10 + test.param.second);
                         });

TEST(QuickExp, StaysWithinItsBound) {
  std::vector<float> values;
  for (int i = 0; i < 4096; ++i) values.push_back(static_cast<float>(-i) / 48);
  const std::vector<float> got = map<float>(TestDevice::get().target, "#include \"lib/math.cuh\"\n",
                                            "using In = float; using Out = float;\n", "quick_exp(x[i])", values);
  for (size_t i = 0; i < got.size(); ++i) {
    const double expected = std::exp(static_cast<double>(values[i]));
    const double bound = expected * (0x1p-22 + std::fabs(values[i]) * 0x1p-23) + 0x1p-126;
    ASSERT_NEAR(got[i], expected, bound) << values[i];
  }
}

TEST(Vectors, MoveTheirElementsWhateverTheWidth) {
  std::vector<uint16_t> values(1024);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint16_t>(i * 7);
  for (const int width : {1, 2, 4, 8, 16}) {
    const std::string size = std::to_string(width);
    const std::vector<uint16_t> got =
        run<uint16_t>(TestDevice::get().target, "#include \"lib/vector.cuh\"\n", "using In = f16; using Out = f16;\n",
                      "const int i = threadIdx.x * " + size + ";\nif (i >= 1024) return;\nVector<f16, " + size +
                          "> v = load_readonly<" + size + ">(x + i);\nconst Vector<f16, " + size + "> w = load<" +
                          size + ">(x + i);\nv[0].bits += w[" + size + " - 1].bits;\nstore(y + i, v);",
                      values, values.size(), threads);
    for (size_t i = 0; i < std::min<size_t>(values.size(), static_cast<size_t>(threads) * width); ++i) {
      const bool first = i % width == 0;
      const auto expected = static_cast<uint16_t>(values[i] + (first ? values[i + width - 1] : 0));
      ASSERT_EQ(got[i], expected) << "element " << i << " of vectors of " << width;
    }
  }
}

TEST(Reductions, GiveEveryLaneTheResultOfItsGroup) {
  std::vector<float> values(threads);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i * 37) % 101);
  for (const int lanes : {1, 2, 4, 8, 16, 32, threads}) {
    const std::string reduce = lanes <= 32 ? "lanes_reduce<" + std::to_string(lanes) + ">(x[threadIdx.x], Sum())"
                                           : "block_reduce<128>(x[threadIdx.x], scratch, Sum())";
    const std::vector<float> got =
        run<float>(TestDevice::get().target, "#include \"lib/reduce.cuh\"\n", "using In = float; using Out = float;\n",
                   "__shared__ float scratch[32];\nscratch[0] = 0;\n__syncthreads();\ny[threadIdx.x] = " + reduce + ";",
                   values, values.size(), threads);
    for (size_t i = 0; i < values.size(); ++i) {
      float expected = 0;
      for (size_t j = i / lanes * lanes; j < (i / lanes + 1) * lanes; ++j) expected += values[j];
      ASSERT_EQ(got[i], expected) << "thread " << i << " of groups of " << lanes;
    }
  }
}

TEST(Coordinates, ComeOffALinearIndexAsDivisionAndRemainder) {
  const std::vector<int> values = {0, 1, 6, 7, 8, 48, 49, 123456789, 2147483647};
  const std::vector<int> got =
      run<int>(TestDevice::get().target, "#include \"lib/index.cuh\"\n", "using In = int; using Out = int;\n",
               "if (threadIdx.x >= n) return;\nint index = x[threadIdx.x];\nconst int coordinate = "
               "take_coordinate(index, 7);\ny[2 * threadIdx.x] = coordinate;\ny[2 * threadIdx.x + 1] = index;",
               values, 2 * values.size(), static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(got[2 * i], values[i] % 7);
    EXPECT_EQ(got[2 * i + 1], values[i] / 7);
  }
}

}  // namespace
}  // namespace kiln::testing_support::lib_test
