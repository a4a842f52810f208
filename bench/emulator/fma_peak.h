// The measured ceiling of one host core, and the clock it is measured with.
#pragma once

namespace kiln::bench {

/// CPU time of this thread in seconds: other processes on the machine do not count.
double thread_seconds();

/// GFLOP/s of independent f32 multiply-adds held in registers, with the widest vectors this CPU has; fastest of 5 runs.
double fma_peak_gflops();

}  // namespace kiln::bench
