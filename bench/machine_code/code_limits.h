// The committed limits on machine code, from the table limits.txt.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernel_code.h"
#include "kiln/generator/arch.h"
#include "kiln/generator/catalogue.h"
#include "kiln/generator/request.h"

namespace kiln::bench {

/// Limits on one variant on one architecture.
struct CodeLimit {
  Request request;
  std::string algorithm;
  std::string config;  ///< "default": the first legal one.
  Arch arch;
  int registers = 0;       ///< The most per thread.
  double per_product = 0;  ///< The most instructions of the main loop for each tensor instruction in it.
  uint32_t spills = 0;     ///< The most loads and stores of local memory.
  size_t line = 0;         ///< Line of the limit in the table.

  bool is_of_default() const { return config == "default"; }
};

/// Reads a table. `#` begins a comment. A line that begins without a space is a request. Lines that begin with spaces
/// follow it: a variant, ALGORITHM and a configuration or `default`, and its limits by architecture:
///
///     conv_forward x=f16:8x64x28x28:nhwc w=f16:64x64x3x3:nhwc pad=1
///       conv_tensor default
///         80 86 89 90: registers<=240 instructions<=2.2
///         120: registers<=240 instructions<=3.2 spills<=2
///
/// Without a limit on spills none is permitted.
///
/// Throws Error(parse_error) naming the line: limits without a variant, a variant without a request or without limits,
/// an unknown architecture, a limit that is missing or no number.
std::vector<CodeLimit> parse_code_limits(std::string_view text);

/// Fault of code that breaks a limit, in a line that names the variant; empty if there is none.
std::string fault_of(const CodeLimit& limit, const KernelCode& code);

}  // namespace kiln::bench
