#include "local_norm/local_norm_rows.h"

#include <utility>

#include "descriptor/parts.h"
#include "norm/norm_rows.h"

namespace kiln::descriptor {

LocalNormRows LocalNormRows::of(const Request& request) {
  LocalNormRows rows;
  rows.backward = request.operation == "local_norm_backward";
  rows.operands = rows.backward ? operands_or_stand_ins(request, {"x", "means", "dy", "dx", "dmeans"})
                                : operands_or_stand_ins(request, {"x", "means", "y"});
  for (const Operand& operand : request.operands) rows.present.push_back(operand.name);
  rows.axes = request.ints("axes");
  rows.dynamic_batch = request.dynamic_batch;
  rows.size = request.ints("size").front();
  for (size_t i = 0; i < rows.axes.size(); ++i) rows.window *= rows.size;
  rows.blend = request.blend;
  rows.moved_bytes = bytes_of_operands(request);
  return rows;
}

void add_local_norm(Prelude& prelude, const LocalNormRows& rows) {
  prelude.constant("SIZE", rows.size).constant("WINDOW", rows.window);
  add_presence(prelude, rows, rows.present);
  add_blend(prelude, rows.blend);
}

Launch local_norm_launch(const LocalNormRows& rows, std::string entry, int threads) {
  Launch launch;
  launch.entry = std::move(entry);
  launch.block[0] = static_cast<unsigned>(threads);
  for (const Operand& operand : rows.operands) launch.arguments.emplace_back(OperandArgument{operand.name});
  for (const Scalar scalar : {Scalar::alpha, Scalar::beta}) launch.arguments.emplace_back(scalar);
  for (size_t i = 0; i < 3; ++i) launch.arguments.emplace_back(OperationScalar{i});
  launch.arguments.emplace_back(Scalar::n);
  return launch;
}

}  // namespace kiln::descriptor
