// Nodes that no operation of Kiln is, and that several of them are. Numbers of the node are tensors of one element,
// which repeats.
#include "onnx/attributes.h"
#include "onnx/pointwise.h"
#include "onnx/readers.h"

namespace kiln::onnx_frontend {
namespace {

/// Requests one after another; each gives what it made.
class Steps {
 public:
  explicit Steps(const Source& source) : source_(source) {}

  TensorSpec operator()(TensorOpMode mode, std::vector<TensorSpec> operands) {
    return step(mode, std::move(operands), source_.options.dtype);
  }
  TensorSpec flags(TensorOpMode mode, std::vector<TensorSpec> operands) {
    return step(mode, std::move(operands), DType::u8);
  }

  TensorSpec number() const { return source_.spec({}); }
  Layer layer() { return std::move(layer_); }

 private:
  TensorSpec step(TensorOpMode mode, std::vector<TensorSpec> operands, DType dtype) {
    TensorOp op = tensor_op_of(source_, mode, std::move(operands), dtype);
    layer_.requests.push_back(op.request());
    return std::move(op.y);
  }

  const Source& source_;
  Layer layer_;
};

}  // namespace

/// x where it is above alpha, else 0.
Layer read_thresholded_relu(const Source& source) {
  require_inputs(source, 1, 1);
  Steps steps(source);
  const TensorSpec x = source.operand(0);
  const TensorSpec above = steps.flags(TensorOpMode::gt, {x, steps.number()});
  steps(TensorOpMode::select, {above, x, steps.number()});
  return steps.layer();
}

/// x, or slope x below 0. A constant slope of one element is a number of the call.
Layer read_prelu(const Source& source) {
  require_inputs(source, 2, 2);
  const TensorSpec x = source.operand(0), slope = source.operand(1);
  if (source.graph.is_constant(source.node.input(1)) && slope.elements() == 1) {
    return asked(activation_of(source, ActivationMode::leaky_relu).request());
  }
  if (slope.rank() > x.rank()) fail(source, "its slope has more dimensions than its input");
  Steps steps(source);
  const TensorSpec below = steps.flags(TensorOpMode::lt, {x, steps.number()});
  const TensorSpec steep = steps(TensorOpMode::mul, {x, slope});
  steps(TensorOpMode::select, {below, steep, x});
  return steps.layer();
}

/// alpha elu(x / alpha): x is divided by the alpha of one call, and multiplied by that of the next.
Layer read_celu(const Source& source) {
  require_inputs(source, 1, 1);
  ActivationForward elu = activation_of(source, ActivationMode::elu);
  if (Attributes(source.node).real("alpha").value_or(1) == 1) return asked(elu.request());
  ActivationForward divided = activation_of(source, ActivationMode::identity);
  divided.blend.alpha = elu.blend.alpha = Scale::any;
  return {{divided.request(), elu.request()}, {}};
}

/// x / (1 + |x|)
Layer read_softsign(const Source& source) {
  require_inputs(source, 1, 1);
  Steps steps(source);
  const TensorSpec x = source.operand(0);
  const TensorSpec above_one = steps(TensorOpMode::add, {steps(TensorOpMode::abs, {x}), steps.number()});
  steps(TensorOpMode::div, {x, above_one});
  return steps.layer();
}

/// 1 / x
Layer read_reciprocal(const Source& source) {
  require_inputs(source, 1, 1);
  Steps steps(source);
  steps(TensorOpMode::div, {steps.number(), source.operand(0)});
  return steps.layer();
}

}  // namespace kiln::onnx_frontend
