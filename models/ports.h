// The tensors of a run against what a model takes and gives.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kiln/model.h"

namespace kiln::models {

/// Whether tensors of these extents differ in the first one only: then Model::set_batch() may help.
bool differ_in_batch_only(std::span<const int64_t> a, std::span<const int64_t> b);

/// Whether all inputs are given, with the extents that they are wanted in.
bool have_extents(const std::vector<ModelTensor>& wanted, std::span<const NamedTensor> given);

/// Extents of the inputs that are given. `declared`: those of the model. Throws Error(invalid_argument) for what is
/// missing, given twice, unknown, or of another dtype.
InputShapes shapes_of(const std::vector<ModelTensor>& declared, std::span<const NamedTensor> given);

/// Writes to `addresses` where the tensors of `wanted` are, in that order. Throws Error(invalid_argument) for what is
/// missing, given twice, unknown, or different, or is in memory that `context` does not reach. `what`: "input" or
/// "output".
void take(const Context& context, const std::vector<ModelTensor>& wanted, std::span<const NamedTensor> given,
          const char* what, const void** addresses);

/// An output is written while inputs and other outputs are read: throws Error(invalid_argument) if it shares memory
/// with one of them.
void check_apart(std::span<const NamedTensor> inputs, std::span<const NamedTensor> outputs);

}  // namespace kiln::models
