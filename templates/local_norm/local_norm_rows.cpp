#include "local_norm/local_norm_rows.h"

#include <algorithm>
#include <utility>

#include "descriptor/prelude_and_launch.h"
#include "kiln/generator/operation.h"
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
  if (rows.backward) rows.dmeans_blend = blend_of(request, "dmeans");
  rows.moved_bytes = bytes_of_operands(request);
  return rows;
}

bool LocalNormRows::has_means() const {
  return std::find(present.begin(), present.end(), "means") != present.end();
}

std::vector<RowDimension> LocalNormRows::fixed(std::vector<RowDimension> outer) const {
  if (dynamic_batch && extents()[0] > 1) outer.pop_back();
  return outer;
}

std::vector<RowDimension> LocalNormRows::window_dimensions() const {
  std::vector<RowDimension> dimensions;
  for (const int64_t axis : axes) {
    const auto d = static_cast<size_t>(axis);
    if (extents()[d] <= 1) continue;
    RowDimension& dimension = dimensions.emplace_back();
    dimension.extent = extents()[d];
    for (const Operand& operand : operands) {
      dimension.strides.push_back(operand.spec.extents[d] <= 1 ? 0 : operand.spec.strides[d]);
    }
  }
  std::sort(dimensions.begin(), dimensions.end(),
            [](const RowDimension& a, const RowDimension& b) { return a.strides < b.strides; });
  return dimensions;
}

void add_local_norm(Prelude& prelude, const LocalNormRows& rows) {
  prelude.constant("SIZE", rows.size).constant("WINDOW", rows.window);
  add_presence(prelude, rows, rows.present);
  add_blend(prelude, rows.blend);
  if (rows.backward) add_blend(prelude, rows.dmeans_blend, "DMEANS_");
}

Count blocks_for_elements(const LocalNormRows& rows, int64_t per_block) {
  const int64_t images = rows.is_axis(0) ? 1 : rows.extents()[0];
  return blocks_for(rows.per_image() * rows.length(), images, rows.dynamic_batch, per_block);
}

Launch local_norm_launch(const LocalNormRows& rows, std::string entry, int threads) {
  Launch launch = launch_of(std::move(entry), threads);
  for (const Operand& operand : rows.operands) append(launch, {OperandArgument{operand.name}});
  append(launch, {Scalar::alpha, Scalar::beta, UserArgument{}});
  const size_t scalars = rows.backward ? 5 : 3;  // lrn_alpha, lrn_beta, lrn_k; dmeans_alpha, dmeans_beta
  for (size_t i = 0; i < scalars; ++i) append(launch, {OperationScalar{i}});
  append(launch, {Scalar::n});
  return launch;
}

}  // namespace kiln::descriptor
