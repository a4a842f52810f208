// Operands that span more than 2^31 elements, in sparse memory: images lie so far apart that offsets need 64 bits, and
// only the pages that are touched take up memory on the emulated device. The results must be those of the same kernel
// on packed operands, bit by bit.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "algorithm_cases.h"
#include "kiln/device/memory.h"
#include "kiln/execution/executable.h"
#include "kiln/templates/catalogue.h"
#include "variant_check.h"

namespace kiln::testing_support::large_tensor_test {
namespace {

using Elements = std::vector<uint16_t>;  // of f16

constexpr int64_t far = (int64_t{1} << 31) + 64;  // elements from one image to the next

bool is_batched(const std::string& operand) {
  return operand != "w";
}

// The operand in device memory, its images where the strides say.
device::Buffer placed(const std::shared_ptr<const device::ContextHandle>& context, const Operand& operand,
                      const Elements& elements) {
  device::Buffer buffer(context, static_cast<size_t>(operand.spec.span()) * sizeof(uint16_t));
  const int64_t images = is_batched(operand.name) ? operand.spec.extents[0] : 1;
  const size_t image = elements.size() / static_cast<size_t>(images);
  for (int64_t i = 0; i < images; ++i) {
    const auto offset = static_cast<uint64_t>(i * operand.spec.strides[0]) * sizeof(uint16_t);
    device::copy_to_device(*context, buffer.address() + offset, elements.data() + static_cast<size_t>(i) * image,
                           image * sizeof(uint16_t));
  }
  return buffer;
}

// y after `choice` ran on `inputs`, which hold the images one after the other.
Elements result_of(const Request& request, const Choice& choice, std::map<std::string, Elements> inputs) {
  const TestDevice& device = TestDevice::get();
  const TensorSpec& y = request.at("y");
  inputs["y"].assign(static_cast<size_t>(y.elements()), 0x7fff);
  std::vector<std::string> names;
  std::vector<device::Buffer> buffers;
  std::vector<cuda_abi::CUdeviceptr> addresses;
  for (const Operand& operand : request.operands) {
    names.push_back(operand.name);
    buffers.push_back(placed(device.context, operand, inputs.at(operand.name)));
    addresses.push_back(buffers.back().address());
  }
  const Program program = built_in_catalogue().program(request, device.target, choice);
  const execution::Executable executable = device.load(program, device.target, names);
  const device::Buffer workspace(device.context, static_cast<size_t>(executable.workspace_bytes()));
  executable.run(nullptr, addresses, {}, request.batch(), workspace.address());
  Elements result(static_cast<size_t>(y.elements()));
  const cuda_abi::CUdeviceptr written =
      addresses[static_cast<size_t>(std::find(names.begin(), names.end(), "y") - names.begin())];
  const size_t image = result.size() / static_cast<size_t>(y.extents[0]);
  for (int64_t i = 0; i < y.extents[0]; ++i) {
    const auto offset = static_cast<uint64_t>(i * y.strides[0]) * sizeof(uint16_t);
    device::copy_to_host(*device.context, result.data() + static_cast<size_t>(i) * image, written + offset,
                         image * sizeof(uint16_t));
  }
  return result;
}

// Elements for the operands of a request: quarters from -1 to 1, as binary16.
std::map<std::string, Elements> elements_of(const Request& request) {
  std::mt19937 random(1);
  std::map<std::string, Elements> all;
  for (const Operand& operand : request.operands) {
    Elements& elements = all[operand.name];
    constexpr std::array<uint16_t, 8> values{0xbc00, 0xba00, 0xb800, 0xb400, 0x3400, 0x3800, 0x3a00, 0x3c00};
    for (int64_t i = 0; i < operand.spec.elements(); ++i) elements.push_back(values[random() % values.size()]);
  }
  return all;
}

struct LargeCase {
  std::string algorithm, packed;
};

void PrintTo(const LargeCase& large_case, std::ostream* out) {
  *out << large_case.algorithm << " " << large_case.packed;
}

class LargeTensors : public testing::TestWithParam<LargeCase> {};

TEST_P(LargeTensors, GiveWhatPackedOnesGive) {
  const Request packed = Request::parse(GetParam().packed);
  Request apart = packed;
  for (Operand& operand : apart.operands) {
    if (is_batched(operand.name)) operand.spec.strides[0] = far;
  }
  apart = Request::parse(apart.key());
  const Algorithm& algorithm = *built_in_catalogue().find(GetParam().algorithm);
  const Target& target = TestDevice::get().target;
  ASSERT_EQ(algorithm.on(apart, target).refusal(), std::nullopt);
  const Choice choice{algorithm.name(), algorithm.on(apart, target).first_legal().value()};
  EXPECT_THAT(built_in_catalogue().program(apart, target, choice).sources.front().code,
              testing::HasSubstr("using Index = long long;"));

  const std::map<std::string, Elements> inputs = elements_of(packed);
  EXPECT_EQ(result_of(apart, choice, inputs), result_of(packed, choice, inputs));
}

// Offsets in y fit 32 bits, those in the tensor do not.
TEST(LargeUserTensors, GiveWhatPackedOnesGive) {
  const Expressions known = {{"gated", Expression("acc * gate", {"gate"})}};
  const std::string line = "softmax_forward x=f16:2x40 epilogue=user:gated epilogue.gate=f16:2x40";
  const Request packed = Request::parse(line, known);
  const Request apart = Request::parse(fmt::format("{}:{},1", line, far), known);
  const Choice choice{"softmax_warp", Config::parse("LANES=32,THREADS=128,VECTOR=2")};
  const std::map<std::string, Elements> inputs = elements_of(packed);
  EXPECT_EQ(result_of(apart, choice, inputs), result_of(packed, choice, inputs));
}

INSTANTIATE_TEST_SUITE_P(
    BeyondTwoToThe31, LargeTensors,
    testing::Values(
        LargeCase{"conv_simple", "conv_forward x=f16:2x8x5x6:nchw w=f16:8x8x3x3:nchw pad=1"},
        LargeCase{"conv_direct", "conv_forward x=f16:2x8x5x6:nchw w=f16:8x8x3x3:nchw pad=1"},
        LargeCase{"conv_implicit_gemm", "conv_forward x=f16:2x8x5x8:nchw w=f16:8x8x3x3:nchw pad=1"},
        LargeCase{"conv_implicit_gemm", "conv_forward x=f16:2x16x5x6:nhwc w=f16:24x16x3x3:nhwc pad=1"},
        LargeCase{"conv_implicit_gemm_splitk", "conv_forward x=f16:2x16x5x6:nhwc w=f16:24x16x3x3:nhwc pad=1"},
        LargeCase{"conv_1x1", "conv_forward x=f16:2x16x4x8:nchw w=f16:24x16x1x1:nchw"},
        LargeCase{"conv_1x1", "conv_forward x=f16:2x16x4x8:nhwc w=f16:24x16x1x1:nhwc"},
        LargeCase{"conv_depthwise_nchw", "conv_forward x=f16:2x8x5x8:nchw w=f16:8x1x3x3:nchw groups=8 pad=1"},
        LargeCase{"conv_depthwise_nhwc", "conv_forward x=f16:2x8x5x8:nhwc w=f16:8x1x3x3:nhwc groups=8 pad=1"},
        LargeCase{"pool_nchw", "pool_forward x=f16:2x3x7x8:nchw mode=max window=3 stride=2 pad=1"},
        LargeCase{"pool_nhwc", "pool_forward x=f16:2x8x7x8:nhwc mode=avg window=3 stride=2 pad=1"},
        LargeCase{"pool_global_nchw", "pool_forward x=f16:2x3x7x8:nchw mode=avg window=global"},
        LargeCase{"pool_global_nhwc", "pool_forward x=f16:2x8x7x8:nhwc mode=max window=global"},
        LargeCase{"softmax_warp", "softmax_forward x=f16:2x40 axis=1"},
        LargeCase{"softmax_block", "softmax_forward x=f16:2x3x40:ncw axis=2"},
        LargeCase{"softmax_strided", "softmax_forward x=f16:2x5x48:ncw axis=1"}));

}  // namespace
}  // namespace kiln::testing_support::large_tensor_test
