// Every softmax algorithm with y in the place of x: the bits are those of the same kernel with a y of its own.
#include <gtest/gtest.h>

#include <cmath>

#include "algorithm_cases.h"
#include "kiln/device/memory.h"
#include "variant_check.h"

namespace kiln::testing_support {
namespace {

using Elements = std::vector<float>;

// What `executable` makes of x: in its place, or in a y that held x before, so that beta meets the same values.
Elements result_of(const execution::Executable& executable, const Request& request, const Elements& x, bool in_place) {
  const device::ContextHandle& context = *TestDevice::get().context;
  const size_t bytes = x.size() * sizeof(float);
  const device::Buffer input(TestDevice::get().context, bytes), output(TestDevice::get().context, bytes);
  const cuda_abi::CUdeviceptr y = in_place ? input.address() : output.address();
  for (const device::Buffer* buffer : {&input, &output}) {
    device::copy_to_device(context, buffer->address(), x.data(), bytes);
  }
  const device::Buffer workspace(TestDevice::get().context, static_cast<size_t>(executable.workspace_bytes()));
  RunValues values = usual_values(request);
  if (request.blend.alpha == Scale::any) values.alpha = 0.5f;
  if (request.blend.beta == Scale::any) values.beta = -3;
  executable.run(nullptr, std::array{input.address(), y}, values, request.batch(), workspace.address());
  Elements result(x.size());
  device::copy_to_host(context, result.data(), y, bytes);
  return result;
}

class SoftmaxInPlace : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(SoftmaxInPlace, GivesWhatItGivesElsewhere) {
  const TestDevice& device = TestDevice::get();
  const Request request = Request::parse(GetParam().request);
  Elements x;
  for (int64_t i = 0; i < request.at("x").span(); ++i) x.push_back(5 * std::sin(0.37f * static_cast<float>(i)));
  std::vector<std::string> served_by;
  for (const Algorithm& algorithm : built_in_catalogue().algorithms()) {
    if (algorithm.refusal(request, device.target)) continue;
    const std::optional<Config> config = algorithm.space().first_legal(request, device.target);
    if (!config) continue;
    served_by.push_back(algorithm.name());
    SCOPED_TRACE(algorithm.name() + " " + config->print());
    const Program program = built_in_catalogue().program(request, device.target, {algorithm.name(), *config});
    const execution::Executable executable = device.load(program, device.target, {"x", "y"});
    const Elements elsewhere = result_of(executable, request, x, false);
    EXPECT_NE(elsewhere, x);
    EXPECT_EQ(result_of(executable, request, x, true), elsewhere);
  }
  EXPECT_EQ(served_by, GetParam().served_by);
}

using Names = std::vector<std::string>;

const Names rows = {"softmax_simple", "softmax_warp", "softmax_block", "softmax_online", "softmax_split"};
const Names long_rows = {"softmax_simple", "softmax_block", "softmax_online", "softmax_split"};
const Names strided = {"softmax_simple", "softmax_strided"};

INSTANTIATE_TEST_SUITE_P(
    Algorithms, SoftmaxInPlace,
    testing::Values(AlgorithmCase{"Rows", "softmax_forward x=f32:3x268 axis=1 alpha=any beta=any", rows},
                    AlgorithmCase{"LongOddRowsLog", "softmax_forward x=f32:2x4099 axis=1 mode=log", long_rows},
                    AlgorithmCase{"RowsAcross", "softmax_forward x=f32:2x21x5x7 axis=1 alpha=any beta=any", strided},
                    AlgorithmCase{"LongRowsAcross", "softmax_forward x=f32:1x1031x3x4 axis=1 mode=log", strided},
                    AlgorithmCase{"RowsAcrossASubRegion",
                                  "softmax_forward x=f32:2x6x3x4:200,30,8,1 y=f32:2x6x3x4:200,30,8,1 axis=1", strided}),
    case_name);

}  // namespace
}  // namespace kiln::testing_support
