#include "descriptor/simple_rows.h"

#include <utility>

#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"

namespace kiln::descriptor {

Prelude simple_rows_prelude(const SimpleRows& simple, const Rows& rows) {
  Prelude prelude = rows_prelude(rows);
  add_simple_rows(prelude, rows);
  prelude.constant("THREADS", simple.threads);
  return prelude;
}

Launch simple_rows_launch(const SimpleRows& simple, const Rows& rows, std::string entry) {
  Launch launch = launch_of(std::move(entry), simple.threads);
  launch.grid[0] = blocks_for_rows(rows, simple.threads);
  return launch;
}

Estimate simple_rows_estimate(const SimpleRows& simple, const Rows& rows, const Target& target,
                              const DeviceFigures& device, const SimpleRowWork& work) {
  const auto count = static_cast<double>(rows.count());
  StreamingWork streaming;
  streaming.dram_bytes = work.dram_bytes;
  // Neighbouring threads take neighbouring rows: each of their accesses moves a sector of its own.
  streaming.cache_bytes = static_cast<double>(rows.elements()) * 32 * work.accesses;
  streaming.threads = count;
  streaming.instructions_per_thread = 60 + static_cast<double>(rows.length()) * work.instructions;
  streaming.blocks = count / simple.threads;
  streaming.threads_per_block = simple.threads;
  streaming.bytes_in_flight_per_thread = work.bytes_in_flight;
  streaming.launches = work.launches;
  return streaming_estimate(streaming, target.arch, device);
}

}  // namespace kiln::descriptor
