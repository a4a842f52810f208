// The rows of normalisations and of their gradients, and the constants of their kernels: shared by the descriptors.
#pragma once

#include <string_view>
#include <vector>

#include "descriptor/row_blocks.h"
#include "kiln/generator/operations/norm.h"

namespace kiln::descriptor {

/// Every operand that a kernel knows, whether the request has it or not: stand-ins have one element.
struct NormRows : Rows {
  /// Rows of norm_forward and norm_inference: x, w, b, y, mean, inv_deviation, running_mean, running_variance,
  /// residual.
  static NormRows of(const Request& request);

  std::vector<std::string> present;  ///< The operands that there are.
  NormMode mode = NormMode::standard;
  bool given = false;  ///< Whether the running statistics are what x is normalised by.
  std::vector<EpilogueStage> epilogue;
  ActivationMode activation = ActivationMode::identity;
  Blend blend;
  int x_bytes = 0;         ///< Bytes of an element of x: kept_bytes_of().
  double moved_bytes = 0;  ///< Bytes of all operands, each once; the result twice, if it is read.

  bool has(std::string_view operand) const;
  /// The first number of the activation.
  size_t activation_scalar() const { return given ? 1 : 2; }
  /// Floats that the statistics of a row's part have.
  int words() const { return mode == NormMode::rms ? 1 : 3; }
};

/// The request's operands of these names, the first with all extents, and stand-ins for those that are not there.
std::vector<Operand> operands_or_stand_ins(const Request& request, const std::vector<std::string_view>& names);

/// moved_bytes of a request.
double bytes_of_operands(const Request& request);

/// HAS_W and so on for every operand.
void add_presence(Prelude& prelude, const Rows& rows, const std::vector<std::string>& present);

/// Adds the constants of lib/norm.cuh, and GIVEN.
void add_norm(Prelude& prelude, const NormRows& rows);

/// ActivationNumbers as arguments: Operation::scalars() from `first` on.
void add_activation_numbers(Launch& launch, size_t first);

/// The launch norm_apply of lib/norm_blocks.cuh. `statistics`: what a merge left; nothing where x is normalised by
/// running statistics.
Launch norm_apply(const RowBlocks& blocks, const NormRows& rows, const WorkspaceArgument& statistics);

/// Estimate of kernels of lib/norm_blocks.cuh that keep `kept` elements of a thread in registers, in `launches`.
Estimate norm_blocks_estimate(const RowBlocks& blocks, const NormRows& rows, const Target& target,
                              const DeviceFigures& device, double kept, int launches);

/// Operands of these names as arguments; null where the request has none.
std::vector<Argument> operand_arguments(const std::vector<std::string_view>& names);

}  // namespace kiln::descriptor
