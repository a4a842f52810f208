#include "loss/strided.h"

#include <algorithm>

#include "loss/cross_entropy_rows.h"

namespace kiln::descriptor {
namespace strided_cross_entropy_descriptor {
namespace {

struct Shape {
  int threads;
};

constexpr double together = 4;  // logits of a thread under way at a time

Estimate predict(const Shape& shape, const CrossEntropyRows& rows, const Target& target, const DeviceFigures& device) {
  const RowLayout layout = across_rows(rows);
  const double slice = std::min<double>(shape.threads, static_cast<double>(layout.inner.extent));
  const auto length = static_cast<double>(rows.length());
  const bool reads_twice = rows.is_backward || rows.smooths;
  double bytes = 0;  // of a logit and its gradient, in the cache
  for (size_t i = 0; i < rows.operands.size(); ++i) {
    const Operand& operand = rows.operands[i];
    if (operand.name != "x" && operand.name != "dx") continue;
    const double size = size_of(operand.spec.dtype);
    const double moved = lane_bytes(size, static_cast<double>(layout.inner.strides[i]) * size);
    bytes += moved * (operand.name == "x" && reads_twice ? 2 : 1);
  }
  StreamingWork work = cross_entropy_work(rows, shape.threads);
  work.cache_bytes = static_cast<double>(rows.elements()) * bytes;
  work.blocks = static_cast<double>(blocks_across(rows, layout, shape.threads).at(rows.extents().front()));
  work.threads = work.blocks * slice;
  work.instructions_per_thread = 90 + length * (reads_twice ? 20 : 10);
  work.bytes_in_flight_per_thread = std::min(together, length) * rows.logit_bytes();
  return streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace strided_cross_entropy_descriptor

Algorithm strided_cross_entropy(const std::string& operation) {
  using namespace strided_cross_entropy_descriptor;
  const std::string name = operation + "_strided";
  return describe<Shape, CrossEntropyRows>(name, operation, "loss/" + name + ".cu")
      .takes_prologue()
      .param("THREADS", &Shape::threads, {128, 32, 64, 256})
      .applies([](const CrossEntropyRows& rows, const Target&) { return refuse_across_rows(rows); })
      .opens([](const Shape& shape, const CrossEntropyRows&, const Target&) { return shape.threads == 128; })
      .program([name](const Shape& shape, const CrossEntropyRows& rows, const Target&, const Emitter& emit) {
        const RowLayout layout = across_rows(rows);
        Prelude prelude = cross_entropy_prelude(rows, layout, 1, emit);
        prelude.constant("THREADS", shape.threads);
        return cross_entropy_program(rows, name, shape.threads, blocks_across(rows, layout, shape.threads),
                                     emit.source(prelude));
      })
      .estimate(predict);
}

}  // namespace kiln::descriptor
