// Small kernels run with full checks: bugs that must be reported, word for word, and correct code that must pass.
#pragma once

#include <string>
#include <vector>

#include "core_fixture.h"

namespace kiln::emulator::test {

/// A kernel with %r0 = thread, %r1 = &tile (2 KB of shared memory), %r2 = &tile[thread] (words), %r3 = lane,
/// %rd0 = &out[thread] (words), %rd1 = the input, %rd10 = &board and %rd11 = &board[thread] (256 words, all 0, in which
/// races are looked for), %r20 = block. Blocks of `threads` threads.
struct StrictKernel {
  std::string body;
  uint32_t threads = 64;
  uint32_t blocks = 1;
  uint32_t host_threads = 1;
};

/// One party of a report: what it does, and the instruction that does it, which stands in the body once.
struct Party {
  uint32_t thread = 0;
  std::string instruction;
};

/// Runs the kernel with full checks and returns its fault, or one with an empty report.
Fault run_strict(const StrictKernel& kernel);

/// Expects exactly this report: "<place>, thread (...) ...: `what`", the line, and "the other" line if there is one.
/// "{other}" in `what` stands for the other thread.
void expect_report(const StrictKernel& kernel, FaultKind kind, const Party& first, const std::string& what);
void expect_report(const StrictKernel& kernel, FaultKind kind, const Party& first, const std::string& what,
                   const Party& other);

/// Expects that nothing is reported; returns what the threads of block 0 stored to out.
std::vector<uint32_t> expect_silence(const StrictKernel& kernel);

}  // namespace kiln::emulator::test
