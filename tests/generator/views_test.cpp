// The typed views of requests: View::of(request).request() is the request again, whatever is in it. The lines hold
// nothing that a view could leave to be inferred.
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
#include "kiln/generator/operations/conv_backward_bias.h"
#include "kiln/generator/operations/conv_backward_data.h"
#include "kiln/generator/operations/conv_backward_filter.h"
#include "kiln/generator/operations/conv_forward.h"
#include "kiln/generator/operations/cross_entropy.h"
#include "kiln/generator/operations/dropout.h"
#include "kiln/generator/operations/gemm.h"
#include "kiln/generator/operations/local_norm.h"
#include "kiln/generator/operations/norm.h"
#include "kiln/generator/operations/pool_backward.h"
#include "kiln/generator/operations/pool_forward.h"
#include "kiln/generator/operations/reduce.h"
#include "kiln/generator/operations/softmax_backward.h"
#include "kiln/generator/operations/softmax_forward.h"
#include "kiln/generator/operations/tensor_ops.h"

namespace kiln {
namespace {

template <class View>
Request through(const Request& request) {
  return View::of(request).request();
}

const std::map<std::string, std::function<Request(const Request&)>>& views() {
  static const std::map<std::string, std::function<Request(const Request&)>> all = {
      {"activation_backward", through<ActivationBackward>},
      {"activation_forward", through<ActivationForward>},
      {"conv_backward_bias", through<ConvBackwardBias>},
      {"conv_backward_data", through<ConvBackwardData>},
      {"conv_backward_filter", through<ConvBackwardFilter>},
      {"conv_forward", through<ConvForward>},
      {"cross_entropy_backward", through<CrossEntropyBackward>},
      {"cross_entropy_forward", through<CrossEntropyForward>},
      {"dropout", through<Dropout>},
      {"gemm", through<Gemm>},
      {"local_conv_backward_data", through<ConvBackwardData>},
      {"local_conv_backward_filter", through<ConvBackwardFilter>},
      {"local_conv_forward", through<ConvForward>},
      {"local_norm_backward", through<LocalNormBackward>},
      {"local_norm_forward", through<LocalNormForward>},
      {"norm_backward", through<NormBackward>},
      {"norm_forward", through<NormForward>},
      {"norm_inference", through<NormInference>},
      {"pool_backward", through<PoolBackward>},
      {"pool_forward", through<PoolForward>},
      {"reduce", through<Reduce>},
      {"softmax_backward", through<SoftmaxBackward>},
      {"softmax_forward", through<SoftmaxForward>},
      {"tensor_op", through<TensorOp>},
      {"tensor_set", through<TensorSet>},
      {"tensor_transform", through<TensorTransform>}};
  return all;
}

constexpr const char* scaled = " alpha=any beta=any n=?";
constexpr const char* liberties = " tf32 fast deterministic";

std::vector<std::string> lines_of_windows_and_products() {
  const std::string window = " pad=1,2,0,1 stride=2,1 dilation=1,2 groups=2 mode=convolution";
  const std::string stages = " bias=f16:4@32 residual=f32:2x4x4x7@32 epilogue=add+bias+clip";
  const std::string data_stages = " bias=f16:4@32 residual=f32:2x4x8x8@32 epilogue=add+bias+clip";
  const std::string free = std::string(scaled) + liberties;
  const std::string of_weights = free + " constant_weights";
  return {
      "conv_forward x=f16:2x4x8x8@64 w=f32:4x2x3x3@32 y=bf16:2x4x4x7@16" + window + stages + of_weights,
      "conv_backward_data dy=f16:2x4x4x7@64 w=f32:4x2x3x3@32 dx=bf16:2x4x8x8@16" + window + data_stages + of_weights,
      "conv_backward_filter x=f16:2x4x8x8@64 dy=f32:2x4x4x7@32 dw=bf16:4x2x3x3@16" + window + free,
      "conv_backward_bias dy=f16:2x4x4x7@64 db=f32:4@32" + std::string(scaled),
      "local_conv_forward x=f16:2x4x8x8@64 w=f32:16x2x3x3@32 y=bf16:2x4x4x7@16 grid=2,2" + window + stages + of_weights,
      "local_conv_backward_data dy=f16:2x4x4x7@64 w=f32:16x2x3x3@32 dx=bf16:2x4x8x8@16 grid=2,2" + window +
          data_stages + of_weights,
      "local_conv_backward_filter x=f16:2x4x8x8@64 dy=f32:2x4x4x7@32 dw=bf16:16x2x3x3@16 grid=2,2" + window + free,
      "gemm a=f16:3x4@64 b=f32:4x5@32 c=bf16:3x5@16 bias=f16:5@32 residual=f32:3x5@32 epilogue=add+bias+relu" + free,
      "gemm a=f16:2x3x4@64 b=f32:2x4x5@32 c=bf16:2x3x5@16",
      "pool_forward x=f16:2x4x8x8@64 y=f32:2x4x6x4@32 indices=i32:2x4x6x4@64 window=3,2 pad=1,0,1,1 stride=1,2 "
      "dilation=2,1" +
          std::string(scaled),
      "pool_forward x=f16:2x4x8x8@64 y=f32:2x4x7x7@32 window=2 mode=avg_padded",
      "pool_backward dy=f32:2x4x6x4@32 x=f16:2x4x8x8@64 dx=bf16:2x4x8x8@16 window=3,2 pad=1,0,1,1 stride=1,2 "
      "dilation=2,1" +
          std::string(scaled),
      "pool_backward dy=f32:2x4x7x7@32 indices=i32:2x4x7x7@64 dx=bf16:2x4x8x8@16 window=2",
      "pool_backward dy=f32:2x4x7x7@32 dx=bf16:2x4x8x8@16 window=2 mode=avg",
  };
}

std::vector<std::string> lines_of_rows_and_elements() {
  return {
      "softmax_forward x=f16:2x4x3@64 y=f32:2x4x3@32 axis=2 mode=log" + std::string(scaled),
      "softmax_backward y=f16:2x4x3@64 dy=f32:2x4x3@32 dx=bf16:2x4x3@16 axis=2 mode=log" + std::string(scaled),
      "cross_entropy_forward x=f16:4x3@64 targets=i32:4@64 weights=f32:3@64 losses=f32:4@64 reduction=none ignore=7 "
      "smoothing=any n=?",
      "cross_entropy_forward x=f16:4x3@64 targets=i32:4@64 weights=f32:3@64 loss=f32:1@64 reduction=sum",
      "cross_entropy_backward x=f16:4x3@64 targets=i32:4@64 weights=f32:3@64 dlosses=f32:4@64 dx=f32:4x3@16 "
      "reduction=none ignore=7 smoothing=any n=?",
      "cross_entropy_backward x=f16:4x3@64 targets=i32:4@64 weights=f32:3@64 dloss=f32:1@64 dx=f32:4x3@16 "
      "reduction=sum",
      "activation_forward x=f16:2x3@64 y=f32:2x3@32 mode=swish" + std::string(scaled),
      "activation_backward x=f16:2x3@64 dy=f32:2x3@32 dx=bf16:2x3@16 mode=swish" + std::string(scaled),
      "activation_backward y=f16:2x3@64 dy=f32:2x3@32 dx=bf16:2x3@16 mode=tanh" + std::string(scaled),
      "tensor_transform x=f16:2x3@64 y=f32:2x6@32 pad=0,1,0,2 alpha=any beta=any",
      "tensor_transform x=f16:2x3@64 y=f32:2x3@32" + std::string(scaled),
      "tensor_set y=f16:2x3@64 n=?",
      "tensor_op a=f16:2x3@64 b=f32:2x3@32 c=bf16:2x3@16 y=f32:2x3@64 mode=select" + std::string(scaled),
      "tensor_op a=f16:2x3@64 y=f32:2x3@64 mode=sqrt",
      "dropout x=f16:2x3@64 y=f32:2x3@32 n=?",
      "reduce x=f16:2x3x4@64 y=f32:2x3x1@32 indices=i32:2x3x1@64 axes=2 mode=max" + std::string(scaled),
      "reduce x=f16:2x3x4@64 y=f32:1x1x1@32",
      "norm_forward x=f16:2x4x3@64 w=f32:1x1x3@32 b=f32:1x1x3@32 y=f32:2x4x3@32 mean=f32:2x4x1@64 "
      "inv_deviation=f32:2x4x1@64 residual=f32:2x4x3@16 epilogue=add activation=swish axes=2" +
          std::string(scaled),
      "norm_forward x=f16:2x4x3@64 y=f32:2x4x3@32 axes=0,2 running_mean=f32:1x4x1@64 running_variance=f32:1x4x1@64",
      "norm_forward x=f16:2x4x3@64 y=f32:2x4x3@32 axes=1 mode=rms",
      "norm_inference x=f16:2x4x3@64 w=f32:1x4x1@32 b=f32:1x4x1@32 running_mean=f32:1x4x1@64 "
      "running_variance=f32:1x4x1@64 "
      "y=f32:2x4x3@32 residual=f32:2x4x3@16 epilogue=add activation=swish axes=0,2" +
          std::string(scaled),
      "norm_inference x=f16:2x4x3@64 axes=0",
      "norm_backward dy=f16:2x4x3@64 x=f32:2x4x3@32 w=f32:1x1x3@32 b=f32:1x1x3@16 mean=f32:2x4x1@64 "
      "inv_deviation=f32:2x4x1@64 residual=f32:2x4x3@16 dx=f32:2x4x3@64 dw=f32:1x1x3@64 db=f32:1x1x3@16 "
      "dresidual=f16:2x4x3@16 activation=softplus axes=2 parameter_alpha=any parameter_beta=1 dresidual_alpha=0 "
      "dresidual_beta=any alpha=any beta=any",
      "norm_backward dy=f16:2x4x3@64 w=f32:1x1x3@32 y=f32:2x4x3@16 axes=2 n=?",
      "norm_backward dy=f16:2x4x3@64 axes=1 mode=rms",
      "local_norm_forward x=f16:2x4x3@64 y=f32:2x4x3@32 means=f32:2x4x3@16 axes=2 size=3" + std::string(scaled),
      "local_norm_forward x=f16:2x4x3@64 y=f32:2x4x3@32 axes=1",
      "local_norm_backward x=f16:2x4x3@64 means=f32:2x4x3@16 dy=f32:2x4x3@32 dx=f32:2x4x3@16 dmeans=f16:2x4x3@32 "
      "axes=2 "
      "size=3 dmeans_alpha=any dmeans_beta=1" +
          std::string(scaled),
      "local_norm_backward x=f16:2x4x3@64 axes=1",
  };
}

std::vector<std::string> lines() {
  std::vector<std::string> all = lines_of_windows_and_products();
  for (const std::string& line : lines_of_rows_and_elements()) all.push_back(line);
  return all;
}

TEST(TypedViews, GiveBackTheRequest) {
  for (const std::string& line : lines()) {
    const Request request = Request::parse(line);
    EXPECT_EQ(views().at(request.operation)(request).key(), request.key());
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
  for (const std::string& line : lines()) {
    const Request request = Request::parse(line);
    std::set<std::string>& of = given[request.operation];
    for (const Operand& operand : request.operands) {
      if (is_given(line, operand.name)) of.insert(operand.name);
    }
    for (const Attribute& attribute : request.attributes) {
      values[request.operation][attribute.name].insert(attribute.value);
    }
    if (request.dynamic_batch) of.insert("n=?");
    if (request.blend == Blend{Scale::any, Scale::any}) of.insert("blend");
    if (request.arithmetic == Arithmetic{true, true, true}) of.insert("arithmetic");
    if (!request.epilogue.empty()) of.insert("epilogue");
    if (request.constant_weights) of.insert("constant_weights");
  }
  for (const Operation* operation : operations()) {
    const std::string name(operation->name());
    const std::set<std::string>& of = given[name];
    for (const OperandDefinition& operand : operation->operands()) {
      EXPECT_TRUE(of.contains(operand.name)) << name << " " << operand.name;
    }
    for (const AttributeDefinition& attribute : operation->attributes()) {
      if (attribute.printing == Printing::never) continue;
      std::set<AttributeValue> others = values[name][attribute.name];
      others.erase(attribute.fallback);
      EXPECT_FALSE(others.empty()) << name << " " << attribute.name;
    }
    EXPECT_TRUE(of.contains("n=?")) << name;
    EXPECT_EQ(of.contains("arithmetic"), operation->has_arithmetic()) << name;
    EXPECT_EQ(of.contains("constant_weights"), operation->has_weights()) << name;
    EXPECT_EQ(of.contains("epilogue"), !operation->stages().empty()) << name;
  }
}

}  // namespace
}  // namespace kiln
