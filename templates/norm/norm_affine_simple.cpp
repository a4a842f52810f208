#include <algorithm>

#include "descriptor/prelude_and_launch.h"
#include "descriptor/simple_rows.h"
#include "kiln/generator/algorithm.h"
#include "norm/norm_affine_rows.h"

namespace kiln {
namespace norm_affine_simple_descriptor {
namespace {

using descriptor::AffineRows;
using descriptor::SimpleRows;

Program program(const SimpleRows& simple, const AffineRows& rows, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::simple_rows_prelude(simple, rows);
  descriptor::add_affine(prelude, rows);
  std::vector<int64_t> extents = rows.pairs.extents();
  for (int64_t& extent : extents) extent = std::max<int64_t>(extent, 1);  // divisors, of an empty tensor too
  prelude.extents("PAIR_EXTENTS", extents);

  Launch launch = descriptor::simple_rows_launch(simple, rows, "norm_affine_simple");
  launch.arguments = descriptor::operand_arguments({"x", "w", "b", "scale", "shift"});
  descriptor::append(launch, {UserArgument{}, OperationScalar{0}, Scalar::n});
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const SimpleRows& simple, const AffineRows& rows, const Target& target, const DeviceFigures& device) {
  descriptor::SimpleRowWork work;
  work.dram_bytes = rows.moved_bytes;
  work.instructions = 30;
  return descriptor::simple_rows_estimate(simple, rows, target, device, work);
}

}  // namespace
}  // namespace norm_affine_simple_descriptor

Algorithm norm_affine_simple() {
  using namespace norm_affine_simple_descriptor;
  return describe<SimpleRows, AffineRows>("norm_affine_simple", "norm_affine", "norm/norm_affine_simple.cu")
      .trusted()
      .takes_prologue()
      .param("THREADS", &SimpleRows::threads, {128, 64, 256})
      .adds([](const SimpleRows&, const AffineRows&, const Target&) { return std::string(descriptor::in_one_thread); })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
