#include "local_norm/segments.h"

#include <algorithm>

#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "local_norm/line.h"

namespace kiln::descriptor {
namespace local_norm_segments_descriptor {
namespace {

struct Shape {
  int vector;  // elements of a thread
  int threads;
};

using Segments = LaidOut<along_rows>;

bool fits_registers(const Shape& shape, const Segments& segments, const Target&) {
  return line_fits_registers(segments, shape.vector, 1);
}

bool is_aligned(const Shape& shape, const Segments& segments, const Target&) {
  return vector_pays(segments, segments.layout, shape.vector);
}

Program program(const Shape& shape, const Segments& segments, const Target&, const Emitter& emit) {
  Prelude prelude = rows_prelude(segments, segments.layout, shape.vector, emit);
  add_local_norm(prelude, segments);
  prelude.constant("THREADS", shape.threads);
  const std::string entry = segments.backward ? "local_norm_backward_segments" : "local_norm_forward_segments";
  Launch launch = local_norm_launch(segments, entry, shape.threads);
  launch.grid[0] = blocks_for_elements(segments, int64_t{shape.threads} * shape.vector);
  return program_of(emit.source(prelude), launch);
}

std::optional<std::string> refusal(const Segments& segments, const Target&) {
  if (auto reason = line_refusal(segments)) return reason;
  return refuse_along_rows(segments);
}

Estimate predict(const Shape& shape, const Segments& segments, const Target& target, const DeviceFigures& device) {
  const double vector = shape.vector;
  const ElementBytes bytes = element_bytes(segments, segments.layout, shape.vector);
  const LineWork line = line_work(segments, vector);
  StreamingWork work;
  work.dram_bytes = segments.moved_bytes;
  work.threads = static_cast<double>(segments.elements()) / vector;
  // Whole vectors on either side of a thread's own are read again.
  const double ends = 2 * std::max(line.reach, std::min(vector, 16.0 / size_of(segments.operands.front().spec.dtype)));
  work.cache_bytes = static_cast<double>(segments.elements()) * (bytes.written + bytes.read * (vector + ends) / vector);
  work.instructions_per_thread = 60 + line.elements * 6 + line.instructions;
  work.threads_per_block = shape.threads;
  work.blocks = work.threads / work.threads_per_block;
  work.registers_per_thread = 40 + line.registers;
  work.bytes_in_flight_per_thread = line.elements * size_of(segments.operands.front().spec.dtype);
  return streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace local_norm_segments_descriptor

Algorithm local_norm_segments(const std::string& operation) {
  using namespace local_norm_segments_descriptor;
  return describe<Shape, Segments>(operation + "_segments", operation, "local_norm/" + operation + "_segments.cu")
      .param("VECTOR", &Shape::vector, {8, 4, 16, 2, 1})
      .param("THREADS", &Shape::threads, {128, 256, 64})
      .rule("row length, alignment and VECTOR agree", is_aligned)
      .rule("what windows reach fits registers", fits_registers)
      .opens([](const Shape& shape, const Segments&, const Target&) {
        return shape.threads == 128 && (shape.vector == 1 || shape.vector == 4);
      })
      .applies(refusal)
      .takes_prologue()
      .program(program)
      .estimate(predict);
}

}  // namespace kiln::descriptor
