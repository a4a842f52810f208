#include "loss/simple.h"

#include "loss/cross_entropy_rows.h"

namespace kiln::descriptor {
namespace simple_cross_entropy_descriptor {
namespace {

struct Shape {
  int threads;
};

Estimate predict(const Shape& shape, const CrossEntropyRows& rows, const Target& target, const DeviceFigures& device) {
  const auto count = static_cast<double>(rows.count());
  StreamingWork work = cross_entropy_work(rows, shape.threads);
  // Neighbouring threads take neighbouring rows: each of their accesses moves a sector of its own.
  work.dram_bytes *= 3;
  work.cache_bytes = static_cast<double>(rows.elements()) * 32 * 4;
  work.threads = count;
  work.instructions_per_thread = 80 + static_cast<double>(rows.length()) * 36;
  work.blocks = count / shape.threads;
  work.bytes_in_flight_per_thread = rows.logit_bytes();
  return streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace simple_cross_entropy_descriptor

Algorithm simple_cross_entropy(const std::string& operation) {
  using namespace simple_cross_entropy_descriptor;
  const std::string name = operation + "_simple";
  return describe<Shape, CrossEntropyRows>(name, operation, "loss/" + name + ".cu")
      .trusted()
      .takes_prologue()
      .param("THREADS", &Shape::threads, {128, 64, 256})
      .program([name](const Shape& shape, const CrossEntropyRows& rows, const Target&, const Emitter& emit) {
        Prelude prelude = cross_entropy_prelude(rows);
        prelude.constant("THREADS", shape.threads);
        return cross_entropy_program(rows, name, shape.threads, blocks_for_rows(rows, shape.threads),
                                     emit.source(prelude));
      })
      .estimate(predict);
}

}  // namespace kiln::descriptor
