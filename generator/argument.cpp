#include "kiln/generator/argument.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kiln/generator/request.h"

namespace kiln {
namespace {

// Larger than any tensor's count of elements, and small enough that Count::at() cannot overflow for a batch of 2^20.
constexpr int64_t max_count = int64_t{1} << 42;

std::string name_of(Scalar scalar) {
  switch (scalar) {
    case Scalar::n:
      return "n";
    case Scalar::alpha:
      return "alpha";
    case Scalar::beta:
      return "beta";
    case Scalar::clip_lo:
      return "clip_lo";
    case Scalar::clip_hi:
      return "clip_hi";
  }
  return "unknown";
}

template <class Memory>
Argument as_argument(const Memory& memory) {
  return std::visit([](const auto& value) { return Argument(value); }, memory);
}

std::string identity_of_map(const TensorMapArgument& map) {
  std::string text = fmt::format("map {} {} swizzle {}", identity_of(as_argument(map.memory)), to_string(map.dtype),
                                 static_cast<int>(map.swizzle));
  for (const Count& extent : map.extents) text += " " + identity_of(extent);
  for (const int64_t stride : map.byte_strides) text += fmt::format(" stride {}", stride);
  for (const unsigned extent : map.box) text += fmt::format(" box {}", extent);
  return text;
}

int64_t bytes_of(Swizzle swizzle) {
  constexpr int64_t least = 32;
  return least << (static_cast<int>(swizzle) - static_cast<int>(Swizzle::bytes_32));
}

// The rules of cuTensorMapEncodeTiled (CUDA driver API, "Tensor Map Object Management").
std::string fault_of_map(const TensorMapArgument& map) {
  constexpr int64_t grain = 16, most_stride = int64_t{1} << 40;
  constexpr unsigned most_box = 256;
  const size_t rank = map.extents.size();
  if (rank < 1 || rank > TensorMapArgument::max_rank) return fmt::format("a tensor map of {} dimensions", rank);
  if (map.byte_strides.size() + 1 != rank || map.box.size() != rank) return "a tensor map whose lists differ in length";
  if (!std::all_of(map.extents.begin(), map.extents.end(), is_legal)) return "a tensor map without a legal extent";
  const auto is_stride = [](int64_t stride) { return stride >= 0 && stride < most_stride && stride % grain == 0; };
  if (!std::all_of(map.byte_strides.begin(), map.byte_strides.end(), is_stride)) {
    return "a tensor map with a stride that is no multiple of 16 bytes";
  }
  const auto is_box = [](unsigned extent) { return extent >= 1 && extent <= most_box; };
  if (!std::all_of(map.box.begin(), map.box.end(), is_box)) return "a tensor map with a box beyond 1 to 256";
  const int64_t row = int64_t{map.box.front()} * size_of(map.dtype);
  if (row % grain != 0) return fmt::format("a tensor map with a box whose rows have {} bytes", row);
  if (map.swizzle < Swizzle::none || map.swizzle > Swizzle::bytes_128) return "a tensor map with an unknown swizzle";
  if (map.swizzle != Swizzle::none && row > bytes_of(map.swizzle)) {
    return fmt::format("a tensor map whose swizzle is narrower than its box's rows of {} bytes", row);
  }
  return {};
}

// Memory that an argument points into: one of the two, or neither.
struct Memory {
  const OperandArgument* operand = nullptr;
  const WorkspaceArgument* range = nullptr;
};

Memory memory_of(const Argument& argument) {
  static constexpr Match pointed = {[](const OperandArgument& operand) { return Memory{.operand = &operand}; },
                                    [](const WorkspaceArgument& range) { return Memory{.range = &range}; }};
  return std::visit(
      Match{pointed, [](const TensorMapArgument& map) { return std::visit(pointed, map.memory); },
            [](const Scalar&) { return Memory{}; }, [](const UserArgument&) { return Memory{}; },
            [](const OperationScalar&) { return Memory{}; }, [](const OperationInteger&) { return Memory{}; }},
      argument);
}

std::string unless(bool holds, std::string fault) {
  return holds ? std::string() : std::move(fault);
}

}  // namespace

bool is_legal(const Count& count) {
  return count.divisor >= 1 && count.divisor <= max_count && count.fixed >= -max_count && count.fixed <= max_count &&
         count.per_n >= 0 && count.per_n <= max_count;
}

bool is_range_within(int64_t offset, int64_t bytes, int64_t workspace) {
  return offset >= 0 && bytes >= 0 && offset <= workspace && bytes <= workspace - offset;
}

ParameterKind parameter_kind(const Argument& argument) {
  return std::visit(
      Match{[](const OperandArgument&) { return ParameterKind::word; },
            [](const WorkspaceArgument&) { return ParameterKind::word; },
            [](Scalar scalar) { return scalar == Scalar::n ? ParameterKind::word : ParameterKind::number; },
            [](const UserArgument&) { return ParameterKind::user; },
            [](const OperationScalar&) { return ParameterKind::number; },
            [](const OperationInteger&) { return ParameterKind::word; },
            [](const TensorMapArgument&) { return ParameterKind::tensor_map; }},
      argument);
}

std::string describe(const Argument& argument) {
  return std::visit(
      Match{[](const OperandArgument& operand) { return "operand " + operand.name; },
            [](const WorkspaceArgument&) { return std::string("workspace"); },
            [](Scalar scalar) { return name_of(scalar); },
            [](const UserArgument&) { return std::string("what user code reads"); },
            [](const OperationScalar& scalar) { return fmt::format("number {} of the operation", scalar.index); },
            [](const OperationInteger& integer) { return fmt::format("integer {} of the operation", integer.index); },
            [](const TensorMapArgument& map) { return "a tensor map of " + describe(as_argument(map.memory)); }},
      argument);
}

const OperandArgument* operand_of(const Argument& argument) {
  return memory_of(argument).operand;
}

std::optional<WorkspaceArgument> workspace_range(const Argument& argument) {
  const WorkspaceArgument* range = memory_of(argument).range;
  return range != nullptr ? std::optional(*range) : std::nullopt;
}

std::string fault_of(const Argument& argument, int64_t workspace_bytes) {
  return std::visit(
      Match{
          [](const OperandArgument& operand) {
            return unless(operand.offset >= 0 && operand.offset <= max_count,
                          fmt::format("an address outside of {}", operand.name));
          },
          [&](const WorkspaceArgument& range) {
            return unless(is_range_within(range.offset, range.bytes, workspace_bytes),
                          "memory outside of the workspace");
          },
          [](Scalar scalar) { return unless(scalar >= Scalar::n && scalar <= Scalar::clip_hi, "an unknown scalar"); },
          [](const UserArgument&) { return std::string(); },
          [](const OperationScalar& own) { return unless(own.index < max_operation_scalars, "an unknown scalar"); },
          [](const OperationInteger& own) { return unless(own.index < max_operation_integers, "an unknown integer"); },
          [&](const TensorMapArgument& map) {
            std::string fault = fault_of(as_argument(map.memory), workspace_bytes);
            return fault.empty() ? fault_of_map(map) : fault;
          }},
      argument);
}

std::string identity_of(const Argument& argument) {
  return std::visit(
      Match{[](const OperandArgument& operand) { return fmt::format("operand {}+{}", operand.name, operand.offset); },
            [](const WorkspaceArgument& range) { return fmt::format("workspace {}+{}", range.offset, range.bytes); },
            [](Scalar scalar) { return fmt::format("scalar {}", static_cast<int>(scalar)); },
            [](const UserArgument&) { return std::string("user"); },
            [](const OperationScalar& scalar) { return fmt::format("own {}", scalar.index); },
            [](const OperationInteger& integer) { return fmt::format("integer {}", integer.index); },
            [](const TensorMapArgument& map) { return identity_of_map(map); }},
      argument);
}

std::string identity_of(const Count& count) {
  return fmt::format("{}+{}n/{}", count.fixed, count.per_n, count.divisor);
}

}  // namespace kiln
