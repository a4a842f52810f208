// Commands on requests with open extents: the open kernels of all their sizes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "json.h"
#include "kiln/generator/catalogue.h"
#include "kiln/runtime/open_line_kernels.h"
#include "output.h"

namespace kiln::cli {

/// Throws Error: unsupported for a line that no open kernel serves, with the reason; invalid_argument for an extent
/// that is no open one; as Request::parse() for a line of which no size makes a request.
std::vector<OpenLineKernels> all_sizes_of(const std::vector<std::string>& lines, const Catalogue& catalogue,
                                          const Target& target, const DeviceFigures& figures);

/// Table of the kernels, with the least and the largest size of each. Kernels of one choice, which differ in the memory
/// that they are for, are one row.
std::string text_of(const OpenLineKernels& all, const Output& output);
Json json_of(const OpenLineKernels& all);

/// A request with the open kernels to check for it.
struct SizeToCheck {
  Request request;
  std::vector<Choice> choices;
};

/// Up to `count` sizes of each kernel (0: all), from small ones on, of those that the reference computes within about a
/// second: some 2^28 operations and 2^22 elements. The smallest size of a kernel where all are larger.
std::vector<SizeToCheck> sizes_to_check(const OpenLineKernels& all, size_t count, const Arch& arch);

}  // namespace kiln::cli
