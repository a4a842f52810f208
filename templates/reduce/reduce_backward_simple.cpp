#include "descriptor/prelude_and_launch.h"
#include "descriptor/simple_rows.h"
#include "kiln/generator/algorithm.h"
#include "reduce/reduce_rows.h"

namespace kiln {
namespace reduce_backward_simple_descriptor {
namespace {

using descriptor::ReduceGradientRows;
using descriptor::SimpleRows;

Program program(const SimpleRows& simple, const ReduceGradientRows& rows, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::simple_rows_prelude(simple, rows);
  descriptor::add_reduce_gradient(prelude, rows);
  Launch launch = descriptor::simple_rows_launch(simple, rows, "reduce_backward_simple");
  launch.arguments = descriptor::reduce_gradient_arguments();
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const SimpleRows& simple, const ReduceGradientRows& rows, const Target& target,
                 const DeviceFigures& device) {
  descriptor::SimpleRowWork work;
  work.dram_bytes = rows.moved_bytes() * 2;
  work.accesses = 2;
  work.instructions = 30;
  return descriptor::simple_rows_estimate(simple, rows, target, device, work);
}

}  // namespace
}  // namespace reduce_backward_simple_descriptor

Algorithm reduce_backward_simple() {
  using namespace reduce_backward_simple_descriptor;
  return describe<SimpleRows, ReduceGradientRows>("reduce_backward_simple", "reduce_backward",
                                                  "reduce/reduce_backward_simple.cu")
      .trusted()
      .param("THREADS", &SimpleRows::threads, {128, 64, 256})
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
