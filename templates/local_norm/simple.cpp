#include "local_norm/simple.h"

#include "descriptor/prelude_and_launch.h"
#include "descriptor/simple_rows.h"
#include "descriptor/streaming_estimate.h"
#include "local_norm/local_norm_rows.h"

namespace kiln::descriptor {
namespace local_norm_simple_descriptor {
namespace {

Program program(const SimpleRows& shape, const LocalNormRows& rows, const Target&, const Emitter& emit) {
  Prelude prelude = simple_rows_prelude(shape, rows);
  add_local_norm(prelude, rows);
  const std::string entry = rows.backward ? "local_norm_backward_simple" : "local_norm_forward_simple";
  Launch launch = local_norm_launch(rows, entry, shape.threads);
  launch.grid[0] = blocks_for_elements(rows, shape.threads);
  return program_of(emit.source(prelude), launch);
}

Estimate predict(const SimpleRows& shape, const LocalNormRows& rows, const Target& target,
                 const DeviceFigures& device) {
  const auto window = static_cast<double>(rows.window);
  const double taps = rows.backward ? window * (window + 2) : window;
  StreamingWork work;
  work.dram_bytes = rows.moved_bytes;
  work.threads = static_cast<double>(rows.elements());
  work.cache_bytes = work.threads * taps * 8;
  work.instructions_per_thread = 80 + taps * 16;
  work.blocks = work.threads / shape.threads;
  work.threads_per_block = shape.threads;
  work.bytes_in_flight_per_thread = 4;
  return streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace local_norm_simple_descriptor

Algorithm local_norm_simple(const std::string& operation) {
  using namespace local_norm_simple_descriptor;
  return describe<SimpleRows, LocalNormRows>(operation + "_simple", operation, "local_norm/" + operation + "_simple.cu")
      .trusted()
      .takes_prologue()
      .param("THREADS", &SimpleRows::threads, {128, 64, 256})
      .opens([](const SimpleRows& shape, const LocalNormRows&, const Target&) { return shape.threads == 128; })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln::descriptor
