#include "descriptor/prelude_and_launch.h"
#include "descriptor/simple_rows.h"
#include "kiln/generator/algorithm.h"
#include "norm/norm_gradient_rows.h"

namespace kiln {
namespace norm_backward_simple_descriptor {
namespace {

using descriptor::NormGradientRows;
using descriptor::Rows;
using descriptor::SimpleRows;
using namespace descriptor::norm_gradient;

Prelude prelude_of(const SimpleRows& simple, const NormGradientRows& gradient, const Rows& rows) {
  Prelude prelude = descriptor::simple_rows_prelude(simple, rows);
  descriptor::add_norm_gradient(prelude, gradient);
  return prelude;
}

// dw and db before dx, which may be written over dy.
Program program(const SimpleRows& simple, const NormGradientRows& rows, const Target&, const Emitter& emit) {
  Program result;
  if (rows.has_parameters) {
    Launch parameters = descriptor::simple_rows_launch(simple, rows.parameters, "norm_backward_simple_parameters");
    parameters.arguments =
        descriptor::operand_arguments({"dy", "x", "w", "b", "mean", "inv_deviation", "y", "residual", "dw", "db"});
    descriptor::append(parameters, {UserArgument{}, parameter_alpha, parameter_beta});
    descriptor::add_activation_numbers(parameters, first_of_activation);
    result.sources.push_back(emit.source(prelude_of(simple, rows, rows.parameters)));
    result.steps.emplace_back(parameters);
  }
  Launch elements = descriptor::simple_rows_launch(simple, rows, "norm_backward_simple");
  elements.source = result.sources.size();
  elements.arguments =
      descriptor::operand_arguments({"dy", "x", "w", "b", "mean", "inv_deviation", "y", "residual", "dx", "dresidual"});
  descriptor::append(elements, {Scalar::alpha, Scalar::beta, UserArgument{}, dresidual_alpha, dresidual_beta});
  descriptor::add_activation_numbers(elements, first_of_activation);
  descriptor::append(elements, {Scalar::n});
  result.sources.push_back(emit.source(prelude_of(simple, rows, rows)));
  result.steps.emplace_back(elements);
  return result;
}

Estimate predict(const SimpleRows& simple, const NormGradientRows& rows, const Target& target,
                 const DeviceFigures& device) {
  descriptor::SimpleRowWork work;
  work.dram_bytes = rows.moved_bytes * 4;
  work.accesses = 8;
  work.instructions = 120;
  work.bytes_in_flight = 8;
  work.launches = rows.has_parameters ? 2 : 1;
  return descriptor::simple_rows_estimate(simple, rows, target, device, work);
}

}  // namespace
}  // namespace norm_backward_simple_descriptor

Algorithm norm_backward_simple() {
  using namespace norm_backward_simple_descriptor;
  return describe<SimpleRows, NormGradientRows>("norm_backward_simple", "norm_backward", "norm/norm_backward_simple.cu")
      .trusted()
      .takes_prologue()
      .param("THREADS", &SimpleRows::threads, {128, 64, 256})
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
