#include <algorithm>
#include <cmath>

#include "loss/along.h"

namespace kiln {

Algorithm cross_entropy_forward_rows() {
  using namespace descriptor;
  return along_cross_entropy<AlongShape>("cross_entropy_forward_rows", "cross_entropy_forward")
      .opens(
          [](const AlongShape& shape, const CrossEntropyRows&, const Target&) { return along_has_open_kernel(shape); })
      .program([](const AlongShape& shape, const CrossEntropyRows& rows, const Target&, const Emitter& emit) {
        const Prelude prelude = along_prelude(shape, rows, emit);
        return along_program("cross_entropy_forward_rows", shape, rows, emit.source(prelude));
      })
      .estimate([](const AlongShape& shape, const CrossEntropyRows& rows, const Target& target,
                   const DeviceFigures& device) {
        const auto accesses = static_cast<double>(steps_of(shape, rows));
        const double passes = rows.smooths ? 2 : 1;
        StreamingWork work = along_work(shape, rows);
        work.cache_bytes *= passes;
        work.instructions_per_thread = 100 + 12 * std::log2(shape.lanes) + passes * accesses * (12 + shape.vector * 8);
        work.bytes_in_flight_per_thread = std::min(accesses, 4.0) * shape.vector * rows.logit_bytes();
        return streaming_estimate(work, target.arch, device);
      });
}

}  // namespace kiln
