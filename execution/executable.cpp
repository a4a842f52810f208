#include "kiln/execution/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kiln/base/error.h"
#include "kiln/device/launch.h"
#include "kiln/device/memory.h"
#include "kiln/generator/request.h"
#include "source_name.h"

namespace kiln::execution {
namespace {

// The table of values of one call: the scalars first, then those of the operation and its integers, then a null
// pointer, then what user code reads, then operands and the workspace, then addresses further on in these. Each value
// takes 8 bytes, but for the block of UserArgument: a pointer to each of its tensors, and its scalars side by side.
constexpr size_t scalar_count = 5;
constexpr size_t first_own_slot = scalar_count;
constexpr size_t first_integer_slot = first_own_slot + max_operation_scalars;
constexpr size_t null_slot = first_integer_slot + max_operation_integers;
constexpr size_t user_slot = null_slot + 1;
constexpr size_t user_slots = Expression::max_tensors + (Expression::max_scalars + 1) / 2;
constexpr size_t first_operand_slot = user_slot + user_slots;

constexpr int64_t max_grid_x = 2147483647;  // CUDA C++ Programming Guide, "Compute Capabilities"; the same for all
constexpr int64_t max_grid_yz = 65535;

uint64_t bits_of(float value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

[[noreturn]] void refuse_grid(const device::Function& function, const std::array<int64_t, 3>& grid) {
  throw Error(ErrorCode::unsupported,
              fmt::format("kernel {} needs a grid of {} x {} x {} blocks; the most is {} x {} x {}", function.name(),
                          grid[0], grid[1], grid[2], max_grid_x, max_grid_yz, max_grid_yz),
              "choose another algorithm or configuration for this request");
}

// Zero extents if there is nothing to do.
std::array<unsigned, 3> grid_at(const std::array<Count, 3>& counts, int64_t n, const device::Function& function) {
  const std::array<int64_t, 3> grid{counts[0].at(n), counts[1].at(n), counts[2].at(n)};
  if (grid[0] <= 0 || grid[1] <= 0 || grid[2] <= 0) return {0, 0, 0};
  if (grid[0] > max_grid_x || grid[1] > max_grid_yz || grid[2] > max_grid_yz) refuse_grid(function, grid);
  return {static_cast<unsigned>(grid[0]), static_cast<unsigned>(grid[1]), static_cast<unsigned>(grid[2])};
}

[[noreturn]] void refuse_too_many_values() {
  throw Error(ErrorCode::unsupported,
              fmt::format("a program passes more than {} values to its kernels", Executable::max_values));
}

void require_block_fits(const device::Function& function, const Launch& launch,
                        const device::FunctionAttributes& attributes) {
  const int64_t threads = int64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  if (attributes.max_threads_per_block > 0 && threads > attributes.max_threads_per_block) {
    throw Error(ErrorCode::unsupported,
                fmt::format("kernel {} starts {} threads a block, but with {} registers a thread at most {} fit",
                            function.name(), threads, attributes.registers, attributes.max_threads_per_block));
  }
}

}  // namespace

Executable::Executable(std::shared_ptr<const device::ContextHandle> context, const CompiledProgram& compiled,
                       const std::vector<std::string>& operands)
    : context_(std::move(context)),
      workspace_bytes_(compiled.program.workspace_bytes),
      deterministic_(compiled.program.deterministic),
      operand_count_(operands.size()) {
  if (first_operand_slot + operand_count_ + 1 > max_values) refuse_too_many_values();
  for (size_t i = 0; i < operands.size(); ++i) {
    if (is_user_operand(operands[i])) user_tensors_.push_back(static_cast<uint8_t>(first_operand_slot + i));
  }
  if (user_tensors_.size() > Expression::max_tensors) refuse_too_many_values();
  for (size_t i = 0; i < compiled.images.size(); ++i) {
    modules_.emplace_back(context_, compiled.images[i].loadable(context_->driver()), source_name(compiled.program, i));
  }
  for (const Step& step : compiled.program.steps) {
    std::visit(Match{[&](const ClearWorkspace& clear) {
                       steps_.push_back({false, 0, clear});
                     },
                     [&](const Launch& launch) {
                       steps_.push_back({true, launches_.size(), {}});
                       launches_.push_back(load(launch, operands));
                     }},
               step);
  }
}

Executable::LoadedLaunch Executable::load(const Launch& launch, const std::vector<std::string>& operands) {
  if (launch.source >= modules_.size()) {
    throw Error(ErrorCode::internal, fmt::format("kernel {} is of source {}, but the program has {} compiled sources",
                                                 launch.entry, launch.source, modules_.size()));
  }
  if (launch.arguments.size() > max_values) refuse_too_many_values();
  LoadedLaunch loaded{.function = modules_[launch.source].function(launch.entry),
                      .grid = launch.grid,
                      .fixed_grid = std::all_of(launch.grid.begin(), launch.grid.end(),
                                                [](const Count& count) { return count.per_n == 0; }),
                      .grid_at_load = {},
                      .block = launch.block,
                      .dynamic_shared = launch.dynamic_shared_bytes,
                      .slots = {}};
  const device::FunctionAttributes attributes = loaded.function.attributes();
  require_block_fits(loaded.function, launch, attributes);
  const int64_t shared = int64_t{attributes.static_shared_bytes} + launch.dynamic_shared_bytes;
  if (launch.dynamic_shared_bytes > 0 && shared > context_->device().info().shared_per_block) {
    loaded.function.set_max_dynamic_shared(static_cast<int>(launch.dynamic_shared_bytes));
  }
  if (loaded.fixed_grid) loaded.grid_at_load = grid_at(launch.grid, 0, loaded.function);
  for (const Argument& argument : launch.arguments) loaded.slots.push_back(slot_of(argument, operands));
  return loaded;
}

uint8_t Executable::slot_of(const Argument& argument, const std::vector<std::string>& operands) {
  const auto slot_of_operand = [&](const OperandArgument& operand) -> size_t {
    const auto found = std::find(operands.begin(), operands.end(), operand.name);
    if (found == operands.end()) return null_slot;
    return derived_slot(first_operand_slot + static_cast<size_t>(found - operands.begin()), operand.offset);
  };
  const size_t slot = std::visit(Match{slot_of_operand,
                                       [&](const WorkspaceArgument& range) {
                                         return derived_slot(first_operand_slot + operand_count_, range.offset);
                                       },
                                       [](Scalar scalar) { return static_cast<size_t>(scalar); },
                                       [](const UserArgument&) { return static_cast<size_t>(user_slot); },
                                       [](const OperationScalar& own) { return first_own_slot + own.index; },
                                       [](const OperationInteger& own) { return first_integer_slot + own.index; }},
                                 argument);
  if (slot >= max_values) refuse_too_many_values();
  return static_cast<uint8_t>(slot);
}

// The slot of the address `offset` bytes behind that of the slot `base`.
size_t Executable::derived_slot(size_t base, int64_t offset) {
  if (offset == 0) return base;
  const DerivedAddress wanted{static_cast<uint8_t>(base), offset};
  const auto found = std::find(derived_.begin(), derived_.end(), wanted);
  const size_t slot = first_operand_slot + operand_count_ + 1 + static_cast<size_t>(found - derived_.begin());
  if (found == derived_.end()) derived_.push_back(wanted);
  return slot;
}

void Executable::run(cuda_abi::CUstream stream, std::span<const cuda_abi::CUdeviceptr> operands, const RunValues& given,
                     int64_t n, cuda_abi::CUdeviceptr workspace) const {
  if (operands.size() != operand_count_) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} operands were given; the request has {}", operands.size(), operand_count_));
  }
  std::array<uint64_t, max_values> values;  // NOLINT(cppcoreguidelines-pro-type-member-init): only what is used is set
  values[static_cast<size_t>(Scalar::n)] = static_cast<uint64_t>(n);
  values[static_cast<size_t>(Scalar::alpha)] = bits_of(given.alpha);
  values[static_cast<size_t>(Scalar::beta)] = bits_of(given.beta);
  values[static_cast<size_t>(Scalar::clip_lo)] = bits_of(given.clip_lo);
  values[static_cast<size_t>(Scalar::clip_hi)] = bits_of(given.clip_hi);
  for (size_t i = 0; i < given.scalars.size(); ++i) values[first_own_slot + i] = bits_of(given.scalars[i]);
  std::copy(given.integers.begin(), given.integers.end(), values.begin() + first_integer_slot);
  values[null_slot] = 0;
  uint64_t* slot = std::copy(operands.begin(), operands.end(), values.data() + first_operand_slot);
  *slot++ = workspace;
  for (const DerivedAddress& address : derived_) *slot++ = values[address.base] + static_cast<uint64_t>(address.offset);
  // As struct UserArguments: at least one pointer, then the scalars.
  uint64_t* user = values.data() + user_slot;
  *user = 0;
  for (const uint8_t tensor : user_tensors_) *user++ = values[tensor];
  if (user_tensors_.empty()) ++user;
  std::memcpy(user, given.user.data(), sizeof given.user);

  const device::Current current(*context_);
  for (const LoadedStep& step : steps_) {
    if (step.is_launch) {
      start(launches_[step.launch], stream, values.data(), n);
    } else {
      clear(step.clear, stream, workspace);
    }
  }
}

void Executable::start(const LoadedLaunch& launch, cuda_abi::CUstream stream, uint64_t* values, int64_t n) const {
  const std::array<unsigned, 3> grid =
      launch.fixed_grid ? launch.grid_at_load : grid_at(launch.grid, n, launch.function);
  if (grid[0] == 0) return;
  std::array<void*, max_values> parameters;  // NOLINT(cppcoreguidelines-pro-type-member-init): as above
  for (size_t i = 0; i < launch.slots.size(); ++i) parameters[i] = values + launch.slots[i];
  device::launch(launch.function, {grid[0], grid[1], grid[2]}, {launch.block[0], launch.block[1], launch.block[2]},
                 launch.dynamic_shared, stream, parameters.data());
}

void Executable::clear(const ClearWorkspace& step, cuda_abi::CUstream stream, cuda_abi::CUdeviceptr workspace) const {
  const cuda_abi::CUdeviceptr address = workspace + static_cast<uint64_t>(step.offset);
  if (step.offset % 4 == 0 && step.bytes % 4 == 0) {
    device::fill_words(*context_, address, 0, static_cast<size_t>(step.bytes) / 4, stream);
  } else {
    device::fill_bytes(*context_, address, 0, static_cast<size_t>(step.bytes), stream);
  }
}

}  // namespace kiln::execution
