#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "reduce/reduce_rows.h"

namespace kiln {
namespace {

using descriptor::ReduceRows;

struct Shape {
  int threads;
};

Program program(const Shape& shape, const ReduceRows& rows, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::rows_prelude(rows);
  descriptor::add_simple_rows(prelude, rows);
  descriptor::add_reduce(prelude, rows);
  prelude.constant("THREADS", shape.threads);

  Launch launch;
  launch.entry = "reduce_simple";
  launch.block[0] = static_cast<unsigned>(shape.threads);
  launch.grid[0] = descriptor::blocks_for_rows(rows, shape.threads);
  launch.arguments = {OperandArgument{"x"}, OperandArgument{"y"}, OperandArgument{"indices"},
                      Scalar::alpha,        Scalar::beta,         Scalar::n};
  return Program{{emit.source(prelude)}, {launch}};
}

Estimate predict(const Shape& shape, const ReduceRows& rows, const Target& target, const DeviceFigures& device) {
  const auto count = static_cast<double>(rows.count());
  descriptor::StreamingWork work;
  // Neighbouring threads take neighbouring rows: each of their accesses moves a sector of its own.
  work.dram_bytes = rows.moved_bytes() * 2;
  work.cache_bytes = static_cast<double>(rows.elements()) * 32;
  work.threads = count;
  work.instructions_per_thread = 60 + static_cast<double>(rows.length()) * 25;
  work.blocks = count / shape.threads;
  work.threads_per_block = shape.threads;
  work.bytes_in_flight_per_thread = 4;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace

Algorithm reduce_simple() {
  return describe<Shape, ReduceRows>("reduce_simple", "reduce", "reduce/reduce_simple.cu")
      .trusted()
      .param("THREADS", &Shape::threads, {128, 64, 256})
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
