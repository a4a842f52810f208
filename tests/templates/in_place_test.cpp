// Operations that headers say work in place: every algorithm with an output in the place of an input gives the bits
// that the same kernel gives with an output of its own.
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <set>
#include <string>

#include "algorithm_cases.h"
#include "kiln/device/memory.h"
#include "kiln/generator/check_values.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/fill.h"
#include "pairwise.h"
#include "variant_check.h"

namespace kiln::testing_support::in_place_test {
namespace {

using Memory = std::vector<std::byte>;
using Names = std::vector<std::string>;
/// Outputs, and the input that each is to be.
using Places = std::map<std::string, std::string>;

struct InPlaceCase {
  std::string name;
  std::string request;
  std::vector<Places> places;  ///< Each a call of its own.
  Names served_by;             ///< At least these serve the request; every one that does is run.
  std::string all_of = {};     ///< The algorithm of which a pairwise cover runs, not the default alone.
};

std::string name_of(const testing::TestParamInfo<InPlaceCase>& info) {
  return info.param.name;
}

void PrintTo(const InPlaceCase& in_place, std::ostream* out) {
  *out << in_place.request;
}

class InPlace : public testing::TestWithParam<InPlaceCase> {
 protected:
  // Contents of the outputs after a call. The outputs that `places` names start with their inputs' contents, so that
  // beta meets the same values, and are these inputs if `in_place`.
  std::map<std::string, Memory> outputs_of(const execution::Executable& executable, const Places& places,
                                           bool in_place) const {
    const TestDevice& device = TestDevice::get();
    std::vector<device::Buffer> buffers;
    std::map<std::string, cuda_abi::CUdeviceptr> addresses;
    for (const Operand& operand : request_.operands) {
      const auto place = places.find(operand.name);
      buffers.push_back(
          device::upload(device.context, contents_.at(place == places.end() ? operand.name : place->second)));
      addresses[operand.name] = buffers.back().address();
    }
    if (in_place) {
      for (const auto& [output, input] : places) addresses[output] = addresses.at(input);
    }
    std::vector<cuda_abi::CUdeviceptr> operands;
    for (const Operand& operand : request_.operands) operands.push_back(addresses.at(operand.name));
    const device::Buffer workspace(device.context, static_cast<size_t>(executable.workspace_bytes()));
    executable.run(nullptr, operands, values_, request_.batch(), workspace.address());

    std::map<std::string, Memory> outputs;
    for (const Operand& operand : request_.operands) {
      if (!is_written(request_, operand.name)) continue;
      Memory& output = outputs[operand.name];
      output.resize(contents_.at(operand.name).size());
      device::copy_to_host(*device.context, output.data(), addresses.at(operand.name), output.size());
    }
    return outputs;
  }

  void expect_equal_elsewhere(const Choice& choice) const {
    const TestDevice& device = TestDevice::get();
    SCOPED_TRACE(choice.algorithm + " " + choice.config.print());
    std::vector<std::string> names;
    for (const Operand& operand : request_.operands) names.push_back(operand.name);
    const execution::Executable executable =
        device.load(built_in_catalogue().program(request_, device.target, choice), device.target, names);
    for (const Places& places : GetParam().places) {
      const auto elsewhere = outputs_of(executable, places, false);
      for (const auto& [output, input] : places) {
        EXPECT_NE(elsewhere.at(output), contents_.at(input)) << output << " was not written";
      }
      for (const auto& [output, memory] : outputs_of(executable, places, true)) {
        const auto place = places.find(output);
        EXPECT_EQ(memory, elsewhere.at(output))
            << output << (place == places.end() ? "" : " in the place of " + place->second);
      }
    }
  }

  const Request request_ = Request::parse(GetParam().request, {{"scaled", Expression("--- prologue\nx * 0.5f")}});
  const RunValues values_ = [this] {
    RunValues values = check_values(request_);
    if (request_.blend.alpha == Scale::any) values.alpha = 0.5F;
    if (request_.blend.beta == Scale::any) values.beta = -3;
    return values;
  }();
  const std::map<std::string, Memory> contents_ = [this] {
    std::map<std::string, Memory> contents;
    for (const Operand& operand : request_.operands) {
      contents[operand.name] = reference::filled(request_, operand, reference::Values::uniform, contents.size());
    }
    return contents;
  }();
};

TEST_P(InPlace, GivesWhatItGivesElsewhere) {
  const Target& target = TestDevice::get().target;
  for (const Places& places : GetParam().places) {
    for (const auto& [output, input] : places) {
      ASSERT_EQ(request_.at(output).print(), request_.at(input).print()) << "one tensor";
    }
  }
  std::set<std::string> serving;
  for (const Algorithm& algorithm : built_in_catalogue().algorithms()) {
    const std::optional<Config> first = algorithm.on(request_, target).first_legal();
    if (!first) continue;
    serving.insert(algorithm.name());
    const bool all = algorithm.name() == GetParam().all_of;
    for (const Config& config : all ? pairwise_configs(algorithm.on(request_, target)) : std::vector{*first}) {
      expect_equal_elsewhere({algorithm.name(), config});
    }
  }
  for (const std::string& name : GetParam().served_by) EXPECT_TRUE(serving.contains(name)) << name;
}

const Places y_is_x = {{"y", "x"}}, dx_is_x = {{"dx", "x"}}, dx_is_y = {{"dx", "y"}}, dx_is_dy = {{"dx", "dy"}},
             y_is_residual = {{"y", "residual"}}, y_is_a = {{"y", "a"}}, y_is_b = {{"y", "b"}};
const Names softmax_rows = {"softmax_simple", "softmax_warp", "softmax_block", "softmax_online", "softmax_split"},
            softmax_long_rows = {"softmax_simple", "softmax_block", "softmax_online", "softmax_split"},
            softmax_across = {"softmax_simple", "softmax_strided"};
const Names gradient_rows = {"softmax_backward_simple", "softmax_backward_rows"},
            gradient_long_rows = {"softmax_backward_simple", "softmax_backward_rows", "softmax_backward_split"},
            gradient_across = {"softmax_backward_simple", "softmax_backward_strided"};
const Names activation = {"activation_forward_simple", "activation_forward_vector"},
            activation_gradient = {"activation_backward_simple", "activation_backward_vector"},
            dropout = {"dropout_simple", "dropout_vector"},
            transform = {"tensor_transform_simple", "tensor_transform_vector"},
            op = {"tensor_op_simple", "tensor_op_vector"};
const Names channels = {"norm_forward_simple", "norm_forward_channels"};
const Names norm = {"norm_forward_simple", "norm_forward_blocks"},
            inference = {"norm_inference_simple", "norm_inference_blocks"},
            norm_gradient = {"norm_backward_simple", "norm_backward_blocks"};
const Names loss_gradient = {"cross_entropy_backward_simple", "cross_entropy_backward_rows"},
            loss_gradient_across = {"cross_entropy_backward_simple", "cross_entropy_backward_strided"};
const std::string sub_region = ":200,30,8,1";

INSTANTIATE_TEST_SUITE_P(
    Softmax, InPlace,
    testing::Values(
        InPlaceCase{"Rows", "softmax_forward x=f32:3x268 axis=1 alpha=any beta=any", {y_is_x}, softmax_rows},
        InPlaceCase{"LongOddRowsLog",
                    "softmax_forward x=f32:2x4099 axis=1 mode=log epilogue=user:scaled",
                    {y_is_x},
                    softmax_long_rows},
        InPlaceCase{"RowsAcross", "softmax_forward x=f32:2x21x5x7 axis=1 alpha=any beta=any", {y_is_x}, softmax_across},
        InPlaceCase{"LongRowsAcross",
                    "softmax_forward x=f32:1x1031x3x4 axis=1 mode=log epilogue=user:scaled",
                    {y_is_x},
                    softmax_across},
        InPlaceCase{"RowsAcrossASubRegion",
                    "softmax_forward x=f32:2x6x3x4" + sub_region + " y=f32:2x6x3x4" + sub_region + " axis=1",
                    {y_is_x},
                    softmax_across},
        InPlaceCase{
            "Gradient", "softmax_backward y=f32:3x268 axis=1 alpha=any beta=any", {dx_is_y, dx_is_dy}, gradient_rows},
        InPlaceCase{
            "GradientLog", "softmax_backward y=f16:2x4099 axis=1 mode=log", {dx_is_y, dx_is_dy}, gradient_long_rows},
        InPlaceCase{"GradientAcross", "softmax_backward y=f32:2x21x5x7 axis=1", {dx_is_y, dx_is_dy}, gradient_across}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Pointwise, InPlace,
    testing::Values(InPlaceCase{"Activation", "activation_forward x=f16:3x16x9x8 mode=gelu", {y_is_x}, activation},
                    InPlaceCase{"ActivationOfOddLength",
                                "activation_forward x=f32:13x37 mode=swish beta=any epilogue=user:scaled",
                                {y_is_x},
                                activation},
                    InPlaceCase{"ActivationGradient",
                                "activation_backward x=f32:3x16x9x8 dy=f32:3x16x9x8 mode=tanh",
                                {dx_is_x, dx_is_dy},
                                activation_gradient},
                    InPlaceCase{"ActivationGradientFromY",
                                "activation_backward y=f16:13x37 dy=f16:13x37 mode=sigmoid",
                                {dx_is_y, dx_is_dy},
                                activation_gradient},
                    InPlaceCase{"Dropout", "dropout x=f32:3x16x9x8", {y_is_x}, dropout},
                    InPlaceCase{"Transform",
                                "tensor_transform x=f32:3x16x9x8 y=f32:3x16x9x8 alpha=any beta=any",
                                {y_is_x},
                                transform},
                    InPlaceCase{"Op", "tensor_op a=f32:3x16x9x8 b=f32:3x16x9x8 mode=sub", {y_is_a, y_is_b}, op}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Normalisations, InPlace,
    testing::Values(InPlaceCase{"Layer",
                                "norm_forward x=f16:3x1544 w=f32:1x1544 mean=f32:3x1 inv_deviation=f32:3x1",
                                {y_is_x},
                                norm},
                    InPlaceCase{"Batch",
                                "norm_forward x=f32:8x12x6x12:nhwc w=f32:1x12x1x1 running_mean=f32:1x12x1x1 "
                                "running_variance=f32:1x12x1x1 axes=0,2,3 epilogue=add+relu",
                                {y_is_x, y_is_residual},
                                norm,
                                "norm_forward_blocks"},
                    InPlaceCase{"GroupsChannelsLast",
                                "norm_forward x=f16:2x3x4x7x8:672,4,1,96,12 w=f32:1x3x4x1x1 axes=2,3,4 epilogue=add",
                                {y_is_x, y_is_residual},
                                channels},
                    InPlaceCase{"Inference",
                                "norm_inference x=f16:3x24x5x7:nhwc w=f32:1x24x1x1 epilogue=add+relu beta=any",
                                {y_is_x, y_is_residual},
                                inference},
                    InPlaceCase{"LayerGradient",
                                "norm_backward dy=f16:3x1544 w=f32:1x1544 dw=f32:1x1544 db=f32:1x1544",
                                {dx_is_x, dx_is_dy},
                                norm_gradient},
                    InPlaceCase{"BatchGradient",
                                "norm_backward dy=f32:8x12x6x12:nhwc residual=f32:8x12x6x12:nhwc w=f32:1x12x1x1 "
                                "dw=f32:1x12x1x1 db=f32:1x12x1x1 axes=0,2,3 parameter_beta=1 activation=gelu_tanh",
                                {dx_is_x, dx_is_dy},
                                norm_gradient,
                                "norm_backward_blocks"},
                    InPlaceCase{"GradientByTheResidual",
                                "norm_backward dy=f32:3x24x6x8:nhwc y=f32:3x24x6x8:nhwc dw=f32:1x24x1x1 "
                                "dresidual=f32:3x24x6x8:nhwc axes=0,2,3 beta=any dresidual_beta=any",
                                {{{"dresidual", "dy"}}, {{"dresidual", "dy"}, {"dx", "x"}}},
                                norm_gradient}),
    name_of);

INSTANTIATE_TEST_SUITE_P(Losses, InPlace,
                         testing::Values(InPlaceCase{"CrossEntropyGradient",
                                                     "cross_entropy_backward x=f32:11x264 smoothing=any beta=any",
                                                     {dx_is_x},
                                                     loss_gradient},
                                         InPlaceCase{"CrossEntropyGradientAcross",
                                                     "cross_entropy_backward x=bf16:3x19x5 weights=f32:19",
                                                     {dx_is_x},
                                                     loss_gradient_across}),
                         name_of);

}  // namespace
}  // namespace kiln::testing_support::in_place_test
