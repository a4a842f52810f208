// Kernels of CUTLASS that tests run, and the requests that they run on.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "cutlass_source.h"

namespace kiln::bench {

struct CutlassCase {
  std::string name;
  int major, minor;  ///< Compute capability.
  CutlassChoice choice;
  std::vector<std::string> requests;
};

const std::vector<CutlassCase>& cutlass_cases();

void PrintTo(const CutlassCase& peer, std::ostream* out);

}  // namespace kiln::bench
