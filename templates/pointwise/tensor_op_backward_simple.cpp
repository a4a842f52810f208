#include "descriptor/prelude_and_launch.h"
#include "descriptor/simple_rows.h"
#include "kiln/generator/algorithm.h"
#include "pointwise/gradient_rows.h"

namespace kiln {
namespace tensor_op_backward_simple_descriptor {
namespace {

using descriptor::OpGradientRows;
using descriptor::SimpleRows;

Program program(const SimpleRows& simple, const OpGradientRows& rows, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::simple_rows_prelude(simple, rows);
  descriptor::add_op_gradient(prelude, rows);
  Launch launch = descriptor::simple_rows_launch(simple, rows, "tensor_op_backward_simple");
  launch.arguments = {OperandArgument{"dy"}, OperandArgument{"a"}, OperandArgument{"b"}, OperandArgument{"dx"},
                      Scalar::alpha,         Scalar::beta,         UserArgument{},       Scalar::n};
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const SimpleRows& simple, const OpGradientRows& rows, const Target& target,
                 const DeviceFigures& device) {
  descriptor::SimpleRowWork work;
  work.dram_bytes = rows.moved_bytes() * 2;
  work.accesses = 3;
  work.instructions = 40;
  return descriptor::simple_rows_estimate(simple, rows, target, device, work);
}

}  // namespace
}  // namespace tensor_op_backward_simple_descriptor

Algorithm tensor_op_backward_simple() {
  using namespace tensor_op_backward_simple_descriptor;
  return describe<SimpleRows, OpGradientRows>("tensor_op_backward_simple", "tensor_op_backward",
                                              "pointwise/tensor_op_backward_simple.cu")
      .trusted()
      .param("THREADS", &SimpleRows::threads, {128, 64, 256})
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
