// Program: the kernels of one variant and how to launch them, as pure data.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace kiln {

/// A number that may depend on the batch n of the call: ceil((fixed + per_n * n) / divisor).
struct Count {
  int64_t fixed = 1;
  int64_t per_n = 0;
  int64_t divisor = 1;

  int64_t at(int64_t n) const { return (fixed + per_n * n + divisor - 1) / divisor; }
  bool operator==(const Count&) const = default;
};

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

/// What the request's user code reads: struct UserArguments of lib/user_code.cuh, a pointer to each of its tensors and
/// then its scalars. Something without meaning if there is none.
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

using Argument =
    std::variant<OperandArgument, WorkspaceArgument, Scalar, UserArgument, OperationScalar, OperationInteger>;

/// Start one kernel. A grid with a zero extent (an empty batch) starts nothing.
struct Launch {
  size_t source = 0;  ///< index into Program::sources
  std::string entry;  ///< an extern "C" __global__ function of that source
  std::array<Count, 3> grid;
  std::array<unsigned, 3> block{1, 1, 1};
  unsigned dynamic_shared_bytes = 0;
  std::vector<Argument> arguments;
  bool operator==(const Launch&) const = default;
};

/// Fill part of the workspace with zero bytes.
struct ClearWorkspace {
  int64_t offset = 0;  ///< bytes
  int64_t bytes = 0;
  bool operator==(const ClearWorkspace&) const = default;
};

using Step = std::variant<Launch, ClearWorkspace>;

/// One callable of a case for each kind, for std::visit. Whoever reads Steps or Arguments visits them: a new kind does
/// not compile until each of them says what it is there.
template <class... Cases>
struct Match : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Match(Cases...) -> Match<Cases...>;  // which C++20 implies; Clang does from 17 on

/// Calls `use` with every launch among `steps`, in order.
template <class Steps, class Use>
void for_each_launch(Steps&& steps, Use use) {
  for (auto& step : steps) {
    using Given = std::conditional_t<std::is_const_v<std::remove_reference_t<decltype(step)>>, const Launch, Launch>;
    std::visit(Match{[&](Given& launch) { use(launch); }, [](const ClearWorkspace&) {}}, step);
  }
}

/// What a kernel declares for an argument: a pointer or an integer of 8 bytes, a float, a struct by value.
enum class ParameterKind { word, number, structure };
ParameterKind parameter_kind(const Argument& argument);
/// "operand x", "workspace", "alpha", "number 2 of the operation": for messages.
std::string describe(const Argument& argument);

/// Bytes of the workspace up to the last that one of the steps may touch.
int64_t workspace_end(const std::vector<Step>& steps);

/// Everything needed to compile and run one variant. Steps run in order on one stream.
struct Program {
  std::vector<std::string> sources;  ///< each one self-contained CUDA C++17
  std::vector<Step> steps;
  int64_t workspace_bytes = 0;  ///< 256-byte aligned device memory that the caller provides
  bool deterministic = true;    ///< bitwise reproducible on one device

  /// Identifies the code of the sources (code_of()) and the launches: programs whose sources differ in comments or
  /// layout have equal digests.
  std::string digest() const;
  bool operator==(const Program&) const = default;
};

}  // namespace kiln
