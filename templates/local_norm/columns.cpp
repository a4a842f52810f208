#include "local_norm/columns.h"

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "local_norm/line.h"

namespace kiln::descriptor {
namespace local_norm_columns_descriptor {
namespace {

struct Shape {
  int segment, vector;             // elements of a thread: along the axis, of neighbouring rows
  int inner_lanes, segment_lanes;  // threads of a block
};

using Columns = LaidOut<across_rows>;

bool fits_registers(const Shape& shape, const Columns& columns, const Target&) {
  return line_fits_registers(columns, shape.segment, shape.vector);
}

bool is_aligned(const Shape& shape, const Columns& columns, const Target&) {
  return vector_pays(columns, columns.layout, shape.vector);
}

bool block_fits(const Shape& shape, const Columns&, const Target&) {
  const int threads = shape.inner_lanes * shape.segment_lanes;
  return threads >= 64 && threads <= 256;
}

bool lanes_have_work(const Shape& shape, const Columns& columns, const Target&) {
  const auto half_used = [](int64_t lanes, int64_t elements) { return lanes / 2 < elements; };
  return half_used(shape.segment, columns.length()) &&
         (shape.segment_lanes == 1 || half_used(int64_t{shape.segment_lanes} * shape.segment, columns.length())) &&
         (shape.inner_lanes == 32 || half_used(int64_t{shape.inner_lanes} * shape.vector, columns.layout.inner.extent));
}

bool has_open_kernel(const Shape& shape, const Columns&, const Target&) {
  return (shape.vector == 1 || shape.vector == 2) && (shape.segment == 8 || shape.segment == 2) &&
         shape.inner_lanes == 32 && shape.segment_lanes == 4;
}

Program program(const Shape& shape, const Columns& columns, const Target&, const Emitter& emit) {
  Prelude prelude = rows_prelude(columns, columns.layout, shape.vector, emit);
  add_local_norm(prelude, columns);
  prelude.constant("SEGMENT", shape.segment);
  prelude.constant("INNER_LANES", shape.inner_lanes).constant("SEGMENT_LANES", shape.segment_lanes);
  const std::string entry = columns.backward ? "local_norm_backward_columns" : "local_norm_forward_columns";
  Launch launch = local_norm_launch(columns, entry, shape.inner_lanes * shape.segment_lanes);
  int64_t blocks = ceil_div(columns.layout.inner.extent, int64_t{shape.inner_lanes} * shape.vector) *
                   ceil_div(columns.length(), int64_t{shape.segment_lanes} * shape.segment);
  for (const RowDimension& dimension : columns.fixed(columns.layout.outer)) blocks *= dimension.extent;
  launch.grid[0] = blocks_for(blocks, 1, columns.dynamic_batch, 1);
  return program_of(emit.source(prelude), launch);
}

std::optional<std::string> refusal(const Columns& columns, const Target&) {
  if (auto reason = line_refusal(columns)) return reason;
  return refuse_across_rows(columns);
}

Estimate predict(const Shape& shape, const Columns& columns, const Target& target, const DeviceFigures& device) {
  const double segment = shape.segment, vector = shape.vector;
  const ElementBytes bytes = element_bytes(columns, columns.layout, shape.vector);
  const LineWork line = line_work(columns, segment);
  const double size = size_of(columns.operands.front().spec.dtype);
  StreamingWork work;
  work.dram_bytes = columns.moved_bytes;
  work.threads = static_cast<double>(columns.elements()) / (segment * vector);
  work.cache_bytes = static_cast<double>(columns.elements()) *
                     (bytes.written + bytes.read * (segment + (columns.backward ? 2 : 1) * line.reach) / segment);
  work.instructions_per_thread = 80 + line.elements * (6 + 2 * vector) + vector * line.instructions + segment * 8;
  work.threads_per_block = shape.inner_lanes * shape.segment_lanes;
  work.blocks = work.threads / work.threads_per_block;
  work.registers_per_thread = 40 + vector * line.registers;
  work.bytes_in_flight_per_thread = line.elements * vector * size;
  return streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace local_norm_columns_descriptor

Algorithm local_norm_columns(const std::string& operation) {
  using namespace local_norm_columns_descriptor;
  return describe<Shape, Columns>(operation + "_columns", operation, "local_norm/" + operation + "_columns.cu")
      .param("VECTOR", &Shape::vector, {2, 4, 1, 8})
      .param("SEGMENT", &Shape::segment, {8, 4, 16, 2})
      .param("INNER_LANES", &Shape::inner_lanes, {32, 64, 128})
      .param("SEGMENT_LANES", &Shape::segment_lanes, {4, 2, 8, 1})
      .rule("inner extent, alignment and VECTOR agree", is_aligned)
      .rule("what windows reach fits registers", fits_registers)
      .rule("the block has 64 to 256 threads", block_fits)
      .pruning("less than half of the lanes are idle", lanes_have_work)
      .opens(has_open_kernel)
      .applies(refusal)
      .takes_prologue()
      .program(program)
      .estimate(predict);
}

}  // namespace kiln::descriptor
