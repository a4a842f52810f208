// The trusted program of a request: what the check of its variants rests on.
#pragma once

#include <string>
#include <vector>

#include "kiln/generator/catalogue.h"

namespace kiln::checking {

/// The trusted algorithm of `request` at its first legal point.
///
/// If the request has user code: the prologue by itself, if there is one, the trusted algorithm for
/// without_user_code(request) on what that gives, and then what the epilogue may make of the result; see
/// checking/kernels/. It takes the operands `margin`, `low` and `high` besides, `input` (what the prologue applies to,
/// as f32 in logical order) and `perturbation` if the operation could have a prologue, as who checks may know the
/// digest of the code only, and the user's tensors as f32 for each element of y in logical order.
///
/// Throws Error(internal) if the trusted algorithm has no legal point.
Program trusted_program(const Catalogue& catalogue, const Request& request, const Target& target);

/// The operands that an Executable of it has to be made with, in order.
std::vector<std::string> trusted_operand_names(const Request& request);

}  // namespace kiln::checking
