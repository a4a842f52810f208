// Argument: what a launch gives to one parameter of its kernel, as pure data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kiln/generator/dtype.h"

namespace kiln {

/// A number that may depend on the batch n of the call: ceil((fixed + per_n * n) / divisor).
struct Count {
  int64_t fixed = 1;
  int64_t per_n = 0;
  int64_t divisor = 1;

  int64_t at(int64_t n) const { return (fixed + per_n * n + divisor - 1) / divisor; }
  bool operator==(const Count&) const = default;
};

/// Whether a count that was read from outside has a divisor, and at() cannot overflow for any batch.
bool is_legal(const Count& count);

/// A pointer into an operand; null if the request has no operand of that name.
struct OperandArgument {
  std::string name;
  int64_t offset = 0;  ///< bytes from its first element
  bool operator==(const OperandArgument&) const = default;
};

/// A pointer into the workspace. `bytes` is all that the kernel may touch from there on: what the workspace has to hold
/// follows from it (workspace_end()).
struct WorkspaceArgument {
  int64_t offset = 0;  ///< bytes
  int64_t bytes = 0;
  bool operator==(const WorkspaceArgument&) const = default;
};

/// Values that the request's user code reads: struct UserArguments of lib/user_code.cuh, a pointer to each of its
/// tensors and then its scalars. Something without meaning if there is none.
struct UserArgument {
  bool operator==(const UserArgument&) const = default;
};

/// A value of the call. `n` is passed as long long, the others as float.
enum class Scalar { n, alpha, beta, clip_lo, clip_hi };

/// A number of Operation::scalars(), passed as float.
struct OperationScalar {
  size_t index = 0;
  bool operator==(const OperationScalar&) const = default;
};

/// An integer of Operation::integers(), passed as unsigned long long.
struct OperationInteger {
  size_t index = 0;
  bool operator==(const OperationInteger&) const = default;
};

/// How the 16-byte pieces of a box's rows are exchanged in shared memory, so that a warp that reads a column meets
/// different banks: piece p of row r of a pattern of so many bytes is at p XOR r (PTX ISA, "Tensor Swizzling Modes").
enum class Swizzle { none, bytes_32, bytes_64, bytes_128 };

/// A tensor map, by which copies between global and shared memory (cp.async.bulk.tensor) find a box of a tensor: a
/// kernel declares it `const __grid_constant__ CUtensorMap`. Needs compute capability 9.0 and a driver of CUDA 12. All
/// zeros if the request has no operand of that name.
struct TensorMapArgument {
  static constexpr size_t max_rank = 5;

  std::variant<OperandArgument, WorkspaceArgument> memory;  ///< where the tensor begins, on a multiple of 16 bytes
  DType dtype = DType::f32;
  std::vector<Count> extents{};         ///< elements, innermost first; 1 to max_rank
  std::vector<int64_t> byte_strides{};  ///< of all dimensions but the innermost; multiples of 16
  std::vector<unsigned> box{};          ///< elements that one copy moves, 1 to 256 in each dimension
  Swizzle swizzle = Swizzle::none;      ///< none, or the bytes of a box's row at the most
  bool operator==(const TensorMapArgument&) const = default;
};

using Argument = std::variant<OperandArgument, WorkspaceArgument, Scalar, UserArgument, OperationScalar,
                              OperationInteger, TensorMapArgument>;

/// One callable of a case for each kind, for std::visit. Whoever reads Steps or Arguments visits them: a new kind does
/// not compile until each of them says what it is there.
template <class... Cases>
struct Match : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Match(Cases...) -> Match<Cases...>;  // which C++20 implies; Clang does from 17 on

/// Kind of parameter that a kernel declares for an argument: a pointer or an integer of 8 bytes, a float, struct
/// UserArguments or a tensor map by value.
enum class ParameterKind { word, number, user, tensor_map };
ParameterKind parameter_kind(const Argument& argument);
/// "operand x", "workspace", "alpha", "number 2 of the operation": for messages.
std::string describe(const Argument& argument);
/// The operand that the argument points into; null if it is none.
const OperandArgument* operand_of(const Argument& argument);
/// The part of the workspace that the argument lets a kernel touch, if any.
std::optional<WorkspaceArgument> workspace_range(const Argument& argument);
/// Whether so many bytes from `offset` on are in a workspace of that size, whatever the numbers are.
bool is_range_within(int64_t offset, int64_t bytes, int64_t workspace);
/// Fault of an argument that was read from outside, given that much workspace; empty if it has none. It is the object
/// of "is given".
std::string fault_of(const Argument& argument, int64_t workspace_bytes);
/// Text of an argument in digests of programs: it stays as it is, because stored digests hold it.
std::string identity_of(const Argument& argument);
std::string identity_of(const Count& count);

}  // namespace kiln
