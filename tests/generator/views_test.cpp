// The typed views of requests: View::of(request).request() is the request again, whatever is in it.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/generator/operation.h"
#include "kiln/generator/operations/activation.h"
#include "kiln/generator/operations/affine_grid.h"
#include "kiln/generator/operations/attention.h"
#include "kiln/generator/operations/conv_backward_bias.h"
#include "kiln/generator/operations/conv_backward_data.h"
#include "kiln/generator/operations/conv_backward_filter.h"
#include "kiln/generator/operations/conv_forward.h"
#include "kiln/generator/operations/cross_entropy.h"
#include "kiln/generator/operations/ctc_loss.h"
#include "kiln/generator/operations/dropout.h"
#include "kiln/generator/operations/gather.h"
#include "kiln/generator/operations/gemm.h"
#include "kiln/generator/operations/grid_sample.h"
#include "kiln/generator/operations/im2col.h"
#include "kiln/generator/operations/local_norm.h"
#include "kiln/generator/operations/norm.h"
#include "kiln/generator/operations/pool_backward.h"
#include "kiln/generator/operations/pool_forward.h"
#include "kiln/generator/operations/recurrent.h"
#include "kiln/generator/operations/reduce.h"
#include "kiln/generator/operations/reduce_backward.h"
#include "kiln/generator/operations/resize.h"
#include "kiln/generator/operations/resize_backward.h"
#include "kiln/generator/operations/scatter.h"
#include "kiln/generator/operations/softmax_backward.h"
#include "kiln/generator/operations/softmax_forward.h"
#include "kiln/generator/operations/tensor_op_backward.h"
#include "kiln/generator/operations/tensor_ops.h"
#include "kiln/generator/operations/unpool_backward.h"
#include "request_suites.h"

namespace kiln::views_test {
namespace {

template <class View>
Request through(const Request& request) {
  return View::of(request).request();
}

const std::map<std::string, std::function<Request(const Request&)>>& views() {
  static const std::map<std::string, std::function<Request(const Request&)>> all = {
      {"activation_backward", through<ActivationBackward>},
      {"activation_forward", through<ActivationForward>},
      {"attention_backward", through<AttentionBackward>},
      {"attention_forward", through<AttentionForward>},
      {"conv_backward_bias", through<ConvBackwardBias>},
      {"conv_backward_data", through<ConvBackwardData>},
      {"conv_backward_filter", through<ConvBackwardFilter>},
      {"conv_forward", through<ConvForward>},
      {"cross_entropy_backward", through<CrossEntropyBackward>},
      {"cross_entropy_forward", through<CrossEntropyForward>},
      {"ctc_loss_backward", through<CtcLossBackward>},
      {"ctc_loss_forward", through<CtcLossForward>},
      {"dropout", through<Dropout>},
      {"gather", through<Gather>},
      {"scatter", through<Scatter>},
      {"gemm", through<Gemm>},
      {"grid_sample", through<GridSample>},
      {"grid_sample_backward_data", through<GridSampleBackwardData>},
      {"grid_sample_backward_grid", through<GridSampleBackwardGrid>},
      {"affine_grid", through<AffineGrid>},
      {"affine_grid_backward", through<AffineGridBackward>},
      {"local_conv_backward_data", through<ConvBackwardData>},
      {"local_conv_backward_filter", through<ConvBackwardFilter>},
      {"local_conv_forward", through<ConvForward>},
      {"local_norm_backward", through<LocalNormBackward>},
      {"local_norm_forward", through<LocalNormForward>},
      {"norm_affine", through<NormAffine>},
      {"norm_backward", through<NormBackward>},
      {"norm_forward", through<NormForward>},
      {"norm_inference", through<NormInference>},
      {"pool_backward", through<PoolBackward>},
      {"pool_forward", through<PoolForward>},
      {"recurrent_forward", through<RecurrentForward>},
      {"recurrent_backward", through<RecurrentBackward>},
      {"reduce", through<Reduce>},
      {"reduce_backward", through<ReduceBackward>},
      {"resize", through<Resize>},
      {"resize_backward", through<ResizeBackward>},
      {"im2col", through<Im2col>},
      {"col2im", through<Col2im>},
      {"softmax_backward", through<SoftmaxBackward>},
      {"softmax_forward", through<SoftmaxForward>},
      {"tensor_op", through<TensorOp>},
      {"tensor_op_backward", through<TensorOpBackward>},
      {"tensor_set", through<TensorSet>},
      {"tensor_transform", through<TensorTransform>},
      {"unpool_backward", through<UnpoolBackward>}};
  return all;
}

TEST(TypedViews, GiveBackTheRequest) {
  for (const Request& request : testing_support::all_requests()) {
    if (request.user_code) continue;  // which views do not hold
    const auto view = views().find(request.operation);
    ASSERT_NE(view, views().end()) << request.operation << " needs its view in views()";
    EXPECT_EQ(view->second(request).key(), request.key());
  }
}

// Whether the line would make another request without this operand, or none.
bool is_given(const std::string& line, const std::string& operand) {
  const size_t begin = line.find(" " + operand + "=");
  if (begin == line.npos) return false;
  const std::string without = line.substr(0, begin) + line.substr(std::min(line.find(' ', begin + 1), line.size()));
  try {
    return Request::parse(without) != Request::parse(line);
  } catch (const Error&) {
    return true;
  }
}

TEST(TypedViews, AreAskedForAllThatTheirRequestsMayHold) {
  std::map<std::string, std::set<std::string>> given;
  std::map<std::string, std::map<std::string, std::set<AttributeValue>>> values;
  for (const Request& request : testing_support::all_requests()) {
    if (request.user_code) continue;
    const std::string line = request.key();
    std::set<std::string>& of = given[request.operation];
    for (const Operand& operand : request.operands) {
      if (is_given(line, operand.name)) of.insert(operand.name);
    }
    for (const Attribute& attribute : request.attributes) {
      values[request.operation][attribute.name].insert(attribute.value);
    }
    if (request.dynamic_batch) of.insert("n=?");
    if (request.blend == Blend{Scale::any, Scale::any}) of.insert("blend");
    if (request.arithmetic == Arithmetic{.tf32 = true, .fast = true, .deterministic = true}) of.insert("arithmetic");
    if (!request.epilogue.empty()) of.insert("epilogue");
    if (request.constant_weights) of.insert("constant_weights");
  }
  for (const Operation* operation : operations()) {
    const std::string name(operation->name());
    const std::set<std::string>& of = given[name];
    const std::string lines = "of " + name + " in tests/requests: awkward.txt needs one";
    for (const OperandDefinition& operand : operation->operands()) {
      EXPECT_TRUE(of.contains(operand.name)) << "no line with " << operand.name << " " << lines;
    }
    for (const AttributeDefinition& attribute : operation->attributes()) {
      if (attribute.printing == Printing::never) continue;
      std::set<AttributeValue> others = values[name][attribute.name];
      others.erase(attribute.fallback);
      EXPECT_FALSE(others.empty()) << "no line with another " << attribute.name << " than the default " << lines;
    }
    EXPECT_TRUE(of.contains("n=?")) << "no line with n=? " << lines;
    EXPECT_EQ(of.contains("arithmetic"), operation->has_arithmetic()) << "tf32 fast deterministic " << lines;
    EXPECT_EQ(of.contains("constant_weights"), operation->has_weights()) << "constant_weights " << lines;
    EXPECT_EQ(of.contains("epilogue"), !operation->stages().empty()) << "epilogue=STAGES " << lines;
  }
}

}  // namespace
}  // namespace kiln::views_test
