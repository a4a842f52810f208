#include "softmax/softmax_rows.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "descriptor/prelude_and_launch.h"
#include "kiln/generator/operation.h"

namespace kiln::descriptor {
namespace {

void add_softmax(Prelude& prelude, const SoftmaxRows& softmax) {
  prelude.flag("LOG", softmax.mode == SoftmaxMode::log);
  add_blend(prelude, softmax.blend);
}

}  // namespace

SoftmaxRows SoftmaxRows::of(const Request& request) {
  SoftmaxRows softmax;
  for (const OperandDefinition& definition : operation(request.operation).operands()) {
    softmax.operands.push_back({definition.name, request.at(definition.name)});
    if (definition.role == Role::input) softmax.kept_bytes += kept_bytes_of(request, definition.name);
  }
  softmax.axes = request.ints("axis");
  softmax.dynamic_batch = request.dynamic_batch;
  softmax.mode = request.word("mode") == "log" ? SoftmaxMode::log : SoftmaxMode::accurate;
  softmax.blend = request.blend;
  return softmax;
}

double SoftmaxRows::compulsory_bytes() const {
  const double bytes = Rows::compulsory_bytes();
  return blend.beta == Scale::zero ? bytes : bytes + static_cast<double>(elements()) * size_of(result().dtype);
}

Prelude softmax_prelude(const SoftmaxRows& softmax) {
  Prelude prelude = rows_prelude(softmax);
  add_softmax(prelude, softmax);
  return prelude;
}

Prelude softmax_prelude(const SoftmaxRows& softmax, const RowLayout& layout, int vector, const Emitter& emit) {
  Prelude prelude = rows_prelude(softmax, layout, vector, emit);
  add_softmax(prelude, softmax);
  return prelude;
}

Prelude simple_softmax_prelude(const SoftmaxRows& softmax) {
  Prelude prelude = softmax_prelude(softmax);
  add_simple_rows(prelude, softmax);
  prelude.constant("AXIS", softmax.axes.front());
  return prelude;
}

Launch softmax_launch(const SoftmaxRows& softmax, std::string entry, int threads) {
  Launch launch = launch_of(std::move(entry), threads);
  for (const Operand& operand : softmax.operands) append(launch, {OperandArgument{operand.name}});
  append(launch, {Scalar::alpha, Scalar::beta, UserArgument{}, Scalar::n});
  return launch;
}

}  // namespace kiln::descriptor
