#include "loss/along.h"

#include <algorithm>

#include "descriptor/numbers.h"

namespace kiln::descriptor {

int64_t steps_of(const AlongShape& shape, const CrossEntropyRows& rows) {
  const int64_t step = int64_t{shape.lanes} * shape.vector;
  return ceil_div(rows.length(), step);
}

bool along_aligned(const AlongShape& shape, const CrossEntropyRows& rows, const Target&) {
  return vector_pays(rows, along_rows(rows), shape.vector);
}

bool along_fills_blocks(const AlongShape& shape, const CrossEntropyRows&, const Target&) {
  return shape.lanes <= 32 || shape.lanes == shape.threads;
}

bool along_lanes_have_work(const AlongShape& shape, const CrossEntropyRows& rows, const Target&) {
  return shape.lanes == 1 || shape.lanes / 2 * shape.vector < rows.length();
}

Prelude along_prelude(const AlongShape& shape, const CrossEntropyRows& rows) {
  Prelude prelude = cross_entropy_prelude(rows, along_rows(rows), shape.vector);
  prelude.constant("THREADS", shape.threads).constant("LANES", shape.lanes);
  return prelude;
}

Program along_program(const std::string& name, const AlongShape& shape, const CrossEntropyRows& rows, Source source) {
  return cross_entropy_program(rows, name, shape.threads, blocks_for_rows(rows, shape.threads / shape.lanes),
                               std::move(source));
}

StreamingWork along_work(const AlongShape& shape, const CrossEntropyRows& rows) {
  StreamingWork work = cross_entropy_work(rows, shape.threads);
  // A warp reads a piece of each of its rows at a time; pieces of less than two sectors waste look-ups in L1.
  const double waste = std::max(1.0, 64.0 / (shape.lanes * shape.vector * rows.logit_bytes()));
  double moved = 0;
  const RowLayout layout = along_rows(rows);
  for (size_t i = 0; i < rows.operands.size(); ++i) {
    if (!rows.is_full(i)) continue;
    const double size = size_of(rows.operands[i].spec.dtype);
    moved += lane_bytes(size, static_cast<double>(layout.row.front().strides[i]) * size);
  }
  work.cache_bytes = static_cast<double>(rows.elements()) * waste * moved;
  work.threads = static_cast<double>(rows.count() * shape.lanes);
  work.blocks = work.threads / shape.threads;
  return work;
}

}  // namespace kiln::descriptor
