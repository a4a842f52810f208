// Trusted kernels whose threads take a row each: lib/simple_rows.cuh.
#pragma once

#include <string>

#include "descriptor/rows.h"
#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// The parameter that all of these kernels have.
struct SimpleRows {
  int threads;
};

/// rows_prelude(), add_simple_rows() and THREADS.
Prelude simple_rows_prelude(const SimpleRows& simple, const Rows& rows);

/// One launch of `entry` for a thread a row. The arguments are the caller's to set.
Launch simple_rows_launch(const SimpleRows& simple, const Rows& rows, std::string entry);

/// Work that simple_rows_estimate() asks for, of all launches together.
struct SimpleRowWork {
  double dram_bytes = 0;    ///< All that has to move.
  double accesses = 1;      ///< Reads and writes for each element.
  double instructions = 0;  ///< For each element.
  double bytes_in_flight = 4;
  int launches = 1;
};

Estimate simple_rows_estimate(const SimpleRows& simple, const Rows& rows, const Target& target,
                              const DeviceFigures& device, const SimpleRowWork& work);

}  // namespace kiln::descriptor
