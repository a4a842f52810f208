#include "descriptor/prelude_and_launch.h"
#include "descriptor/simple_rows.h"
#include "kiln/generator/algorithm.h"
#include "reduce/reduce_rows.h"

namespace kiln {
namespace reduce_simple_descriptor {
namespace {

using descriptor::ReduceRows;
using descriptor::SimpleRows;

Program program(const SimpleRows& simple, const ReduceRows& rows, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::simple_rows_prelude(simple, rows);
  descriptor::add_reduce(prelude, rows);

  Launch launch = descriptor::simple_rows_launch(simple, rows, "reduce_simple");
  launch.arguments = {OperandArgument{"x"},
                      OperandArgument{"y"},
                      OperandArgument{"indices"},
                      Scalar::alpha,
                      Scalar::beta,
                      UserArgument{},
                      Scalar::n};
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const SimpleRows& simple, const ReduceRows& rows, const Target& target, const DeviceFigures& device) {
  descriptor::SimpleRowWork work;
  work.dram_bytes = rows.moved_bytes() * 2;
  work.accesses = 1;
  work.instructions = 25;
  return descriptor::simple_rows_estimate(simple, rows, target, device, work);
}

}  // namespace
}  // namespace reduce_simple_descriptor

Algorithm reduce_simple() {
  using namespace reduce_simple_descriptor;
  return describe<SimpleRows, ReduceRows>("reduce_simple", "reduce", "reduce/reduce_simple.cu")
      .trusted()
      .takes_prologue()
      .param("THREADS", &SimpleRows::threads, {128, 64, 256})
      .adds([](const SimpleRows&, const ReduceRows& rows, const Target&) {
        return rows.order(std::string(descriptor::in_one_thread));
      })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
