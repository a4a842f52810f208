// The tensors that user code reads, as operands of a request.
#pragma once

#include "kiln/generator/request.h"

namespace kiln {

/// Refuses a request without a tensor that its user code reads, or with one that it does not.
void check_user_names(const Request& request);

/// Refuses a user's tensor that fits neither the result, or the input of a prologue, nor their channels. All other
/// operands are complete and valid: the result has the dimension of its channels.
void check_user_operand(const Request& request, const Operand& operand);

/// Whether dimension 0 of a user's tensor, which may not be completed yet, is the batch: it does not repeat there.
bool has_images(const Request& request, const Operand& operand);

}  // namespace kiln
