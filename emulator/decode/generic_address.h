// Addresses of instructions that take them as generic ones, whatever state space they are written for.
#pragma once

#include <initializer_list>

#include "decode/context.h"

namespace kiln::emulator {

/// The generic address (64 bits) that the operand stands for in `space`; what stands behind its first part, in a
/// tensor's address, is ignored.
RegisterId generic_address(DecodeContext& context, const ptx::Operand& operand, ptx::Space space);

/// The next state space; generic if none is named. Fails unless it is generic or one of `allowed`.
ptx::Space space_among(DecodeContext& context, std::initializer_list<ptx::Space> allowed);

}  // namespace kiln::emulator
