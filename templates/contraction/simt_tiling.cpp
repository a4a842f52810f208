#include "contraction/simt_tiling.h"

#include <algorithm>

#include "descriptor/numbers.h"

namespace kiln::descriptor {
namespace {

// Halves a vector until every thread has one to move.
int shared_out(int run, int64_t elements, int threads) {
  while (run > 1 && elements / run < threads) run /= 2;
  return run;
}

}  // namespace

SimtAccess simt_access(const SimtTiling& tiling, const Contraction& contraction) {
  // Runs along the depth stay in their chunk, runs of c in a thread's quads.
  constexpr int64_t longest = 8, quad = 4;
  const int64_t of_a = contraction.a_along() == Along::depth ? tiling.block_k : longest;
  const int64_t of_b = contraction.b_along() == Along::depth ? tiling.block_k : longest;
  return {shared_out(contraction.a_run(of_a), tiling.block_m * tiling.block_k, tiling.threads()),
          shared_out(contraction.b_run(of_b), tiling.block_n * tiling.block_k, tiling.threads()),
          contraction.c_run(quad)};
}

// LaneTile of lib/gemm_tile.cuh pads the rows where single elements go down its columns.
int shared_bytes(const SimtTiling& tiling, const Contraction& contraction) {
  const SimtAccess access = simt_access(tiling, contraction);
  const auto padding = [](Along along, int run) { return along == Along::depth && run == 1 ? 4 : 0; };
  return tiling.shared_bytes(padding(contraction.a_along(), access.a_run) +
                             padding(contraction.b_along(), access.b_run));
}

unsigned shared_bytes(const SimtTiling& tiling, const Contractions& parts) {
  int most = 0;
  for (const Contraction& part : parts.list) most = std::max(most, shared_bytes(tiling, part));
  return static_cast<unsigned>(most);
}

int lanes_m(const SimtTiling& tiling, Along c) {
  const bool along_columns = c == Along::columns;
  const int threads_m = tiling.block_m / tiling.thread_m, threads_n = tiling.block_n / tiling.thread_n;
  for (const int lanes : {along_columns ? 4 : 8, along_columns ? 8 : 4, 16, 2}) {
    if (threads_m % lanes == 0 && threads_n % (32 / lanes) == 0) return lanes;
  }
  return 0;
}

void add_simt_tiling(Prelude& prelude, const SimtTiling& tiling, const Contraction& contraction, int blocks) {
  const SimtAccess access = simt_access(tiling, contraction);
  prelude.constant("BLOCK_M", tiling.block_m).constant("BLOCK_N", tiling.block_n).constant("BLOCK_K", tiling.block_k);
  prelude.constant("THREAD_M", tiling.thread_m).constant("THREAD_N", tiling.thread_n);
  prelude.constant("SLICES", tiling.slices).constant("THREADS", tiling.threads());
  prelude.constant("LANES_M", lanes_m(tiling, contraction.c_along())).constant("STAGES", tiling.stages);
  prelude.constant("SHARED_BYTES", shared_bytes(tiling, contraction)).constant("MIN_BLOCKS", blocks);
  prelude.flag("WHOLE_CHANNELS", tiling.block_k % contraction.addresses.taps() == 0);
  prelude.constant("X_RUN", access.a_run).constant("W_RUN", access.b_run).constant("Y_RUN", access.c_run);
}

}  // namespace kiln::descriptor
