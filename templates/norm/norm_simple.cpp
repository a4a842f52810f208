#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "norm/norm_rows.h"

namespace kiln {
namespace {

using descriptor::NormRows;

struct Shape {
  int threads;
};

Program program(const Shape& shape, const NormRows& rows, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::rows_prelude(rows);
  descriptor::add_simple_rows(prelude, rows);
  descriptor::add_norm(prelude, rows);
  prelude.constant("THREADS", shape.threads);

  Launch launch;
  launch.entry = "norm_simple";
  launch.block[0] = static_cast<unsigned>(shape.threads);
  launch.grid[0] = descriptor::blocks_for_rows(rows, shape.threads);
  launch.arguments = descriptor::operand_arguments(
      {"x", "w", "b", "y", "mean", "inv_deviation", "running_mean", "running_variance", "residual"});
  for (const Argument& argument : std::initializer_list<Argument>{Scalar::alpha, Scalar::beta, OperationScalar{0},
                                                                  OperationScalar{1}, Scalar::n}) {
    launch.arguments.push_back(argument);
  }
  return Program{{emit.source(prelude)}, {launch}};
}

Estimate predict(const Shape& shape, const NormRows& rows, const Target& target, const DeviceFigures& device) {
  const auto count = static_cast<double>(rows.count());
  descriptor::StreamingWork work;
  // Neighbouring threads take neighbouring rows: each of their accesses moves a sector of its own.
  work.dram_bytes = rows.moved_bytes * 3;
  work.cache_bytes = static_cast<double>(rows.elements()) * 32 * 4;
  work.threads = count;
  work.instructions_per_thread = 60 + static_cast<double>(rows.length()) * 60;
  work.blocks = count / shape.threads;
  work.threads_per_block = shape.threads;
  work.bytes_in_flight_per_thread = 4;
  return descriptor::streaming_estimate(work, target.arch, device);
}

Algorithm simple(const char* name, const char* operation) {
  return describe<Shape, NormRows>(name, operation, "norm/norm_simple.cu")
      .trusted()
      .param("THREADS", &Shape::threads, {128, 64, 256})
      .program(program)
      .estimate(predict);
}

}  // namespace

Algorithm norm_forward_simple() {
  return simple("norm_forward_simple", "norm_forward");
}
Algorithm norm_inference_simple() {
  return simple("norm_inference_simple", "norm_inference");
}

}  // namespace kiln
