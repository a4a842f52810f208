// Operands that a launch of its own copies into the workspace first, in an order in which asynchronous copies can take
// them: lib/copied_operands.cuh asks for neighbours along the depth, or along the rows or columns, in pieces of 16
// bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kiln/generator/algorithm.h"
#include "kiln/generator/request.h"

namespace kiln::descriptor {

/// An operand that may be packed. In its packed order `inner`, one of its first two dimensions, is innermost, behind
/// the spatial ones, and the other is outermost.
struct PackedRole {
  std::string name;  ///< in the request
  int inner;
  int64_t groups;           ///< that `inner` is divided into
  bool is_filled_up;        ///< with zeros, to pieces of 16 bytes
  bool is_weights = false;  ///< which stay the same where the request has constant_weights
};

/// An operand that is packed. Both specs have three spatial dimensions (with_three_axes()).
struct PackedOperand {
  PackedRole role;
  TensorSpec from, to;
  bool dynamic_n = false;  ///< dimension 0 of `from` is as long as the call says
  bool is_prepared = false;

  int64_t bytes() const;
};

/// `request` with the operands of `roles` that cannot be copied in pieces of 16 bytes as they would be packed, and what
/// these are. Elements that are filled in count as elements of the request that is returned. Nothing is packed where it
/// would take more than 2 GiB.
struct PackedRequest {
  Request request;
  std::vector<PackedOperand> operands;
  bool is_too_large = false;
};
PackedRequest with_packed_operands(const Request& request, const std::vector<PackedRole>& roles);

/// Path of the template that packs.
inline constexpr const char* packing_template = "conv/tensor/pack_operand.cu";

/// `program`, whose operands are those of the packed request, behind the launches that make these: weights first, as a
/// Preparation.
Program behind_packing(const std::vector<PackedOperand>& operands, Program program, const Emitter& emit);

/// Bytes that packing moves, and its launches: without what is prepared.
double packed_bytes(const std::vector<PackedOperand>& operands);
int packing_launches(const std::vector<PackedOperand>& operands);

}  // namespace kiln::descriptor
