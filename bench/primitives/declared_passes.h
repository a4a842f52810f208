// The declared passes: how often an operation has to move each of its operands, from the table passes.txt.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/generator/request.h"

namespace kiln::bench {

/// `count` passes over all of an operand: loads and stores alike.
struct Passes {
  std::string operand;
  double count = 1;
  /// Over as many f32 as the operand has elements, instead of the operand itself: partial results of its extents that
  /// stand in the workspace.
  bool as_f32 = false;
};

/// Where a declaration names no other: vectors of two sectors' halves are asked for twice, and a tenth besides.
inline constexpr double usual_requested = 2.2;

/// Declaration of the table for one request.
struct DeclaredRow {
  Request request;
  std::vector<Passes> passes;  ///< Passes of every operand of the request, each at least once.
  std::string reason;
  size_t line = 0;                     ///< Line of the request in the table.
  double requested = usual_requested;  ///< The most that warps may ask for, as a multiple of the distinct sectors.
};

/// Reads a table. `#` begins a comment. A line that begins without a space declares passes and says why,
///
///     x*2 y f32(y)*8: the reason
///
/// with `requested<=3.5` among the passes where warps may ask for that many times the distinct sectors; it holds for
/// the requests in the lines that follow, which begin with spaces. Each of them makes two rows: as it is, and with f16
/// in place of f32; a single one if it has no f32 to replace, or `only` stands before it. Definitions of user code
/// stand there as in a requests file.
///
/// Throws Error(parse_error) naming the line: a request without passes, passes that are not a name and a count, an
/// operand of a request without passes or passes of something that the request does not have.
std::vector<DeclaredRow> parse_passes(std::string_view text);

/// Few of `rows`, for a quick look at all of them: one of each operation under each declaration, by turns in f32 and in
/// f16 where both are there.
std::vector<DeclaredRow> quick_rows(const std::vector<DeclaredRow>& rows);

/// The operations that exist and have no row.
std::vector<std::string> operations_without(const std::vector<DeclaredRow>& rows);

/// The bytes that `row` declares.
double declared_bytes(const DeclaredRow& row);
/// Partial results among them.
double declared_partials(const DeclaredRow& row);

/// The most that may be moved, as a multiple of what is declared: 1.1, and 1.25 for gradients.
double traffic_limit(const Request& request);

/// The least: where less is moved, the table declares passes that the kernels do without.
inline constexpr double least_traffic = 0.95;

/// Fault of a call of `row` that moved `unique_bytes` and asked for `requested_bytes`, in a line that names the
/// request; empty if there is none.
std::string fault_of(const DeclaredRow& row, double unique_bytes, double requested_bytes);

}  // namespace kiln::bench
