#include <algorithm>
#include <cmath>

#include "descriptor/prelude_and_launch.h"
#include "loss/along.h"

namespace kiln {
namespace cross_entropy_backward_rows_descriptor {
namespace {

using descriptor::CrossEntropyRows;

constexpr double kept_bytes = 256;       // of x in a thread's registers
constexpr int64_t most_open_steps = 16;  // whose elements an open kernel keeps

struct Shape : descriptor::AlongShape {
  int keep;  // whether elements stay in registers between the two passes
};

double kept(const Shape& shape, const CrossEntropyRows& rows) {
  return static_cast<double>(descriptor::steps_of(shape, rows) * shape.vector * rows.kept_bytes);
}

bool fits_registers(const Shape& shape, const CrossEntropyRows& rows, const Target& target) {
  if (shape.keep == 0) return true;
  const int registers = std::min(target.arch.registers_per_sm / shape.threads, target.arch.registers_per_thread);
  return kept(shape, rows) <= std::min<double>(kept_bytes, 4.0 * (registers - 40));
}

bool reads_twice_where_it_must(const Shape& shape, const CrossEntropyRows& rows, const Target&) {
  return shape.keep != 0 || descriptor::steps_of(shape, rows) > 4;
}

bool has_open_kernel(const Shape& shape, const CrossEntropyRows& rows, const Target&) {
  if (!descriptor::along_has_open_kernel(shape)) return false;
  const bool is_warps = shape.lanes <= 32;
  return shape.keep != 0 ? is_warps && descriptor::steps_of(shape, rows) <= most_open_steps : !is_warps;
}

Program program(const Shape& shape, const CrossEntropyRows& rows, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::along_prelude(shape, rows, emit);
  const int64_t steps = descriptor::steps_of(shape, rows);
  prelude.flag("KEEP", shape.keep != 0);
  prelude.constant("KEPT", shape.keep != 0 ? descriptor::steps_to_keep(emit, shape.lanes, steps, most_open_steps) : 1);
  return descriptor::along_program("cross_entropy_backward_rows", shape, rows, emit.source(prelude));
}

Estimate predict(const Shape& shape, const CrossEntropyRows& rows, const Target& target, const DeviceFigures& device) {
  const auto accesses = static_cast<double>(descriptor::steps_of(shape, rows));
  const double bytes = rows.logit_bytes();
  const bool keep = shape.keep != 0;
  descriptor::StreamingWork work = descriptor::along_work(shape, rows);
  const double under_way = std::min(work.threads, device.sms * 2048.0) * accesses * shape.vector * bytes;
  if (!keep) work.cache_bytes *= 1.5;
  if (!keep && under_way > static_cast<double>(device.l2_bytes) / 2) {
    work.dram_bytes += static_cast<double>(rows.elements()) * bytes;
  }
  work.instructions_per_thread =
      130 + 12 * std::log2(shape.lanes) + accesses * ((keep ? 18 : 28) + shape.vector * (keep ? 16 : 18));
  work.registers_per_thread = 40 + (keep ? kept(shape, rows) / 4 : 8);
  work.bytes_in_flight_per_thread = std::min(accesses, keep ? accesses : 4.0) * shape.vector * bytes;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace cross_entropy_backward_rows_descriptor

Algorithm cross_entropy_backward_rows() {
  using namespace cross_entropy_backward_rows_descriptor;
  return descriptor::along_cross_entropy<Shape>("cross_entropy_backward_rows", "cross_entropy_backward")
      .param("KEEP", &Shape::keep, {1, 0})
      .rule("kept elements fit registers", fits_registers)
      .pruning("rows are read twice only where they are long", reads_twice_where_it_must)
      .opens(has_open_kernel)
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
