// The declared passes: how often an operation has to move each of its operands, from the table passes.txt.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/generator/request.h"

namespace kiln::bench {

/// `count` passes over all of an operand, or over the workspace: loads and stores alike.
struct Passes {
  std::string operand;
  int64_t count = 1;
};

/// The name under which passes over the workspace are declared.
inline constexpr std::string_view workspace_name = "workspace";

/// What the table declares for one request.
struct DeclaredRow {
  Request request;
  std::vector<Passes> passes;  ///< Of every operand of the request, and at most once of the workspace.
  std::string reason;
};

/// Reads a table. `#` begins a comment. A line that begins without a space declares passes and says why,
///
///     x*2 y workspace*2: the reason
///
/// and holds for the requests in the lines that follow, which begin with spaces. Each of them makes two rows: as it is,
/// and with f16 in place of f32.
///
/// Throws Error(parse_error) naming the line: a request without passes, passes that are not a name and a count, an
/// operand of a request without passes or passes of something that the request does not have.
std::vector<DeclaredRow> parse_passes(std::string_view text);

/// The bytes that `row` declares for a variant that has `workspace_bytes` of workspace.
double declared_bytes(const DeclaredRow& row, int64_t workspace_bytes);

/// The most that may be moved, as a multiple of what is declared: 1.1, and 1.25 for gradients.
double traffic_limit(const Request& request);

/// The least: where less is moved, the table declares passes that the kernels do without.
inline constexpr double least_traffic = 0.95;

}  // namespace kiln::bench
