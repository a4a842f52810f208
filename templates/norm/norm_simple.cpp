#include "descriptor/prelude_and_launch.h"
#include "descriptor/simple_rows.h"
#include "kiln/generator/algorithm.h"
#include "norm/norm_rows.h"

namespace kiln {
namespace norm_simple_descriptor {
namespace {

using descriptor::NormRows;
using descriptor::SimpleRows;

Program program(const SimpleRows& simple, const NormRows& rows, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::simple_rows_prelude(simple, rows);
  descriptor::add_norm(prelude, rows);

  Launch launch = descriptor::simple_rows_launch(simple, rows, "norm_simple");
  launch.arguments = descriptor::operand_arguments(
      {"x", "w", "b", "y", "mean", "inv_deviation", "running_mean", "running_variance", "residual"});
  descriptor::append(launch, {Scalar::alpha, Scalar::beta, UserArgument{}, OperationScalar{0}, OperationScalar{1}});
  descriptor::add_activation_numbers(launch, rows.activation_scalar());
  descriptor::append(launch, {Scalar::n});
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const SimpleRows& simple, const NormRows& rows, const Target& target, const DeviceFigures& device) {
  descriptor::SimpleRowWork work;
  work.dram_bytes = rows.moved_bytes * 3;
  work.accesses = 4;
  work.instructions = 60;
  return descriptor::simple_rows_estimate(simple, rows, target, device, work);
}

Algorithm simple(const char* name, const char* operation) {
  return describe<SimpleRows, NormRows>(name, operation, "norm/norm_simple.cu")
      .trusted()
      .takes_prologue()
      .param("THREADS", &SimpleRows::threads, {128, 64, 256})
      .adds([](const SimpleRows&, const NormRows&, const Target&) { return std::string(descriptor::in_one_thread); })
      .program(program)
      .estimate(predict);
}

}  // namespace
}  // namespace norm_simple_descriptor

Algorithm norm_forward_simple() {
  using namespace norm_simple_descriptor;
  return simple("norm_forward_simple", "norm_forward");
}
Algorithm norm_inference_simple() {
  using namespace norm_simple_descriptor;
  return simple("norm_inference_simple", "norm_inference");
}

}  // namespace kiln
