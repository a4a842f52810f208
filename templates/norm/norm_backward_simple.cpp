#include <utility>

#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "norm/norm_gradient_rows.h"

namespace kiln {
namespace {

using descriptor::NormGradientRows;
using descriptor::Rows;

struct Shape {
  int threads;
};

std::string source_of(const Shape& shape, const NormGradientRows& gradient, const Rows& rows, const Emitter& emit) {
  Prelude prelude = descriptor::rows_prelude(rows);
  descriptor::add_simple_rows(prelude, rows);
  descriptor::add_norm_gradient(prelude, gradient);
  prelude.constant("THREADS", shape.threads);
  return emit.source(prelude);
}

Launch launch_of(const Shape& shape, const Rows& rows, std::string entry) {
  Launch launch;
  launch.entry = std::move(entry);
  launch.block[0] = static_cast<unsigned>(shape.threads);
  launch.grid[0] = descriptor::blocks_for_rows(rows, shape.threads);
  return launch;
}

// dw and db before dx, which may be written over dy.
Program program(const Shape& shape, const NormGradientRows& rows, const Target&, const Emitter& emit) {
  Program result;
  if (rows.has_parameters) {
    Launch parameters = launch_of(shape, rows.parameters, "norm_backward_simple_parameters");
    parameters.arguments = descriptor::operand_arguments({"dy", "x", "mean", "inv_deviation", "y", "dw", "db"});
    result.sources.push_back(source_of(shape, rows, rows.parameters, emit));
    result.steps.emplace_back(parameters);
  }
  Launch elements = launch_of(shape, rows, "norm_backward_simple");
  elements.source = result.sources.size();
  elements.arguments = descriptor::operand_arguments({"dy", "x", "w", "mean", "inv_deviation", "y", "dx", "dresidual"});
  for (const Scalar scalar : {Scalar::alpha, Scalar::beta, Scalar::n}) elements.arguments.emplace_back(scalar);
  result.sources.push_back(source_of(shape, rows, rows, emit));
  result.steps.emplace_back(elements);
  return result;
}

Estimate predict(const Shape& shape, const NormGradientRows& rows, const Target& target, const DeviceFigures& device) {
  const auto count = static_cast<double>(rows.count());
  descriptor::StreamingWork work;
  // Neighbouring threads take neighbouring rows: each of their accesses moves a sector of its own.
  work.dram_bytes = rows.moved_bytes * 4;
  work.cache_bytes = static_cast<double>(rows.elements()) * 32 * 8;
  work.threads = count;
  work.instructions_per_thread = 60 + static_cast<double>(rows.length()) * 120;
  work.blocks = count / shape.threads;
  work.threads_per_block = shape.threads;
  work.bytes_in_flight_per_thread = 8;
  work.launches = rows.has_parameters ? 2 : 1;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace

Algorithm norm_backward_simple() {
  return describe<Shape, NormGradientRows>("norm_backward_simple", "norm_backward", "norm/norm_backward_simple.cu")
      .trusted()
      .param("THREADS", &Shape::threads, {128, 64, 256})
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
