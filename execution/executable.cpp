#include "kiln/execution/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "kiln/base/error.h"
#include "kiln/device/launch.h"
#include "kiln/device/memory.h"
#include "kiln/device/stream.h"
#include "kiln/generator/arch.h"
#include "kiln/generator/request.h"
#include "source_name.h"
#include "tensor_map_slot.h"

namespace kiln::execution {

using cuda_abi::CUdeviceptr;
using cuda_abi::CUlaunchAttribute;
using cuda_abi::CUlaunchAttributeID;
using cuda_abi::CUstream;

namespace {

// The table of values of one call: the scalars first, then those of the operation and its integers, then a null
// pointer, then what user code reads, then operands, the front of the workspace and its rest, then addresses further on
// in these. Each value takes 8 bytes, but for the block of UserArgument: a pointer to each of its tensors, and its
// scalars side by side. Tensor maps stand elsewhere.
constexpr size_t scalar_count = 5;
constexpr size_t first_own_slot = scalar_count;
constexpr size_t first_integer_slot = first_own_slot + max_operation_scalars;
constexpr size_t null_slot = first_integer_slot + max_operation_integers;
constexpr size_t user_slot = null_slot + 1;
constexpr size_t user_slots = Expression::max_tensors + (Expression::max_scalars + 1) / 2;
constexpr size_t first_operand_slot = user_slot + user_slots;
constexpr size_t workspace_slots = 2;
constexpr size_t max_maps = 8;

uint64_t bits_of(float value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

[[noreturn]] void refuse_grid(const device::Function& function, const std::array<int64_t, 3>& grid) {
  throw Error(ErrorCode::unsupported,
              fmt::format("kernel {} needs a grid of {} x {} x {} blocks; the most is {} x {} x {}", function.name(),
                          grid[0], grid[1], grid[2], most_blocks_in_x, most_blocks_in_y, most_blocks_in_y),
              "choose another algorithm or configuration for this request");
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

CUlaunchAttribute flag(CUlaunchAttributeID id) {
  CUlaunchAttribute attribute{};
  attribute.id = id;
  attribute.value.cooperative = 1;  // as the other flag lies in the union
  return attribute;
}

std::vector<CUlaunchAttribute> attributes_for(const Launch& launch, const device::DeviceInfo& device) {
  constexpr int hopper = 9;
  const auto& [cluster, cooperative, programmatic] = launch.attributes;
  std::vector<CUlaunchAttribute> attributes;
  if (cluster != std::array<unsigned, 3>{1, 1, 1}) {
    if (device.cc_major < hopper) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("kernel {} runs in clusters of blocks, which compute capability {}.{} lacks",
                              launch.entry, device.cc_major, device.cc_minor),
                  "choose another algorithm for this device");
    }
    CUlaunchAttribute attribute{};
    attribute.id = cuda_abi::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim = {cluster[0], cluster[1], cluster[2]};
    attributes.push_back(attribute);
  }
  if (cooperative) attributes.push_back(flag(cuda_abi::CU_LAUNCH_ATTRIBUTE_COOPERATIVE));
  if (programmatic && device.cc_major >= hopper) {
    attributes.push_back(flag(cuda_abi::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION));
  }
  return attributes;
}

// Before anything is enqueued: an older driver has cuLaunchKernel alone.
void require_attributes(const device::Driver& driver) {
  (void)driver.optional_call(driver.calls().cuLaunchKernelEx, "cuLaunchKernelEx");
}

// How many blocks of the launch the device runs at once.
int64_t resident_blocks(const device::Function& function, const Launch& launch, const device::DeviceInfo& device) {
  const int threads = static_cast<int>(launch.block[0] * launch.block[1] * launch.block[2]);
  return std::max(int64_t{1}, int64_t{function.occupancy(threads, launch.dynamic_shared_bytes)} * device.sms);
}

uint8_t as_slot(size_t slot) {
  if (slot >= Executable::max_values) refuse_too_many_values();
  return static_cast<uint8_t>(slot);
}

// Closes what a source leaves open. The code need not read all of it: what it does not read is not there.
//
// On a stream of its own, so that it waits for no work of others and disturbs no capture of theirs.
void write_extents(const std::shared_ptr<const device::ContextHandle>& context, const device::Module& module,
                   const std::vector<Extent>& extents) {
  if (extents.empty()) return;
  const device::BesideCaptures beside(context->driver());
  const device::Stream stream(context);
  std::vector<std::vector<std::byte>> written;  // until the stream has passed it
  for (const Extent& extent : extents) {
    const std::optional<device::Global> global = module.find_global(extent.name);
    if (!global) continue;
    std::vector<std::byte>& bytes = written.emplace_back(extent.values.size() * static_cast<size_t>(extent.bytes));
    for (size_t i = 0; i < extent.values.size(); ++i) {
      const auto narrow = static_cast<int32_t>(extent.values[i]);
      if (extent.bytes == 4)
        std::memcpy(&bytes[i * 4], &narrow, 4);
      else
        std::memcpy(&bytes[i * 8], &extent.values[i], 8);
    }
    if (global->bytes != bytes.size()) {
      throw Error(ErrorCode::internal, fmt::format("{}: {} has {} bytes, and {} are written", module.name(),
                                                   extent.name, global->bytes, bytes.size()));
    }
    device::copy_to_device(*context, global->address, bytes.data(), bytes.size(), stream.raw());
  }
  stream.synchronize();
}

int64_t round_up(int64_t value, unsigned multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

Executable::Executable(std::shared_ptr<const device::ContextHandle> context, const CompiledProgram& compiled,
                       const std::vector<std::string>& operands)
    : context_(std::move(context)),
      weights_(operands.size()),
      workspace_bytes_(compiled.program.workspace_bytes),
      preparation_(compiled.program.preparation),
      deterministic_(compiled.program.deterministic),
      operand_count_(operands.size()) {
  if (first_operand_slot + operand_count_ + workspace_slots > max_values) refuse_too_many_values();
  for (size_t i = 0; i < operands.size(); ++i) {
    if (is_user_operand(operands[i])) user_tensors_.push_back(static_cast<uint8_t>(first_operand_slot + i));
  }
  if (user_tensors_.size() > Expression::max_tensors) refuse_too_many_values();
  for (size_t i = 0; i < compiled.images.size(); ++i) {
    const std::string image = compiled.images[i].loadable(context_->driver());
    modules_.emplace_back(context_, image, source_name(compiled.program, i));
    write_extents(context_, modules_.back(), compiled.program.sources[i].extents);
    image_bytes_ += image.size();
  }
  for (const Step& step : compiled.program.steps) {
    const bool of_weights = steps_.size() < preparation_.steps;
    std::visit(Match{[&](const ClearWorkspace& clear) { steps_.push_back(load(clear)); },
                     [&](const Launch& launch) {
                       if (of_weights) note_weights(launch, operands);
                       LoadedStep loaded;
                       loaded.is_launch = true;
                       loaded.launch = launches_.size();
                       steps_.push_back(loaded);
                       launches_.push_back(load(launch, operands));
                     }},
               step);
  }
}

Executable::~Executable() = default;
Executable::Executable(Executable&&) noexcept = default;
Executable& Executable::operator=(Executable&&) noexcept = default;

void Executable::note_weights(const Launch& launch, const std::vector<std::string>& operands) {
  for (const Argument& argument : launch.arguments) {
    const OperandArgument* operand = operand_of(argument);
    if (operand == nullptr) continue;
    const auto found = std::find(operands.begin(), operands.end(), operand->name);
    if (found != operands.end()) weights_[static_cast<size_t>(found - operands.begin())] = true;
  }
}

Executable::LoadedStep Executable::load(const ClearWorkspace& clear) {
  return {.is_launch = false,
          .launch = 0,
          .memory = as_slot(workspace_slot(clear.offset)),
          .bytes = clear.bytes,
          .in_words = clear.offset % 4 == 0 && clear.bytes % 4 == 0};
}

Executable::LoadedLaunch Executable::load(const Launch& launch, const std::vector<std::string>& operands) {
  if (launch.source >= modules_.size()) {
    throw Error(ErrorCode::internal, fmt::format("kernel {} is of source {}, but the program has {} compiled sources",
                                                 launch.entry, launch.source, modules_.size()));
  }
  if (launch.arguments.size() > max_values) refuse_too_many_values();
  LoadedLaunch loaded{.function = modules_[launch.source].function(launch.entry),
                      .grid = launch.grid,
                      .cluster = launch.attributes.cluster,
                      .resident_blocks = 0,
                      .fixed_grid = std::all_of(launch.grid.begin(), launch.grid.end(),
                                                [](const Count& count) { return count.per_n == 0; }),
                      .grid_at_load = {},
                      .block = launch.block,
                      .dynamic_shared = launch.dynamic_shared_bytes,
                      .attributes = attributes_for(launch, context_->device().info()),
                      .slots = {},
                      .maps = {},
                      .plain = true};
  if (!loaded.attributes.empty()) require_attributes(context_->driver());
  const device::FunctionAttributes attributes = loaded.function.attributes();
  require_block_fits(loaded.function, launch, attributes);
  const int64_t shared = int64_t{attributes.static_shared_bytes} + launch.dynamic_shared_bytes;
  if (launch.dynamic_shared_bytes > 0 && shared > context_->device().info().shared_per_block) {
    loaded.function.set_max_dynamic_shared(static_cast<int>(launch.dynamic_shared_bytes));
  }
  if (launch.persistent) loaded.resident_blocks = resident_blocks(loaded.function, launch, context_->device().info());
  if (loaded.fixed_grid) loaded.grid_at_load = grid_at(loaded, 0);
  for (const Argument& argument : launch.arguments) {
    if (const auto* map = std::get_if<TensorMapArgument>(&argument)) {
      if (loaded.maps.size() == max_maps) refuse_too_many_values();
      loaded.maps.push_back({loaded.slots.size(), std::make_unique<TensorMapSlot>(context_->driver(), *map)});
    }
    loaded.slots.push_back(slot_of(argument, operands));
  }
  loaded.plain = loaded.attributes.empty() && loaded.maps.empty();
  return loaded;
}

// Slot of an argument; for a tensor map, the slot of the address that it begins at.
uint8_t Executable::slot_of(const Argument& argument, const std::vector<std::string>& operands) {
  const auto slot_of_operand = [&](const OperandArgument& operand) -> size_t {
    const auto found = std::find(operands.begin(), operands.end(), operand.name);
    if (found == operands.end()) return null_slot;
    return derived_slot(first_operand_slot + static_cast<size_t>(found - operands.begin()), operand.offset);
  };
  const auto slot_of_range = [&](const WorkspaceArgument& range) { return workspace_slot(range.offset); };
  const size_t slot =
      std::visit(Match{slot_of_operand, slot_of_range, [](Scalar scalar) { return static_cast<size_t>(scalar); },
                       [](const UserArgument&) { return static_cast<size_t>(user_slot); },
                       [](const OperationScalar& own) { return first_own_slot + own.index; },
                       [](const OperationInteger& own) { return first_integer_slot + own.index; },
                       [&](const TensorMapArgument& map) {
                         return std::visit(Match{slot_of_operand, slot_of_range}, map.memory);
                       }},
                 argument);
  return as_slot(slot);
}

// The slot of the address at `offset` in the workspace: in its front, which may be prepared, or in the rest.
size_t Executable::workspace_slot(int64_t offset) {
  const size_t front = first_operand_slot + operand_count_;
  return offset < preparation_.bytes ? derived_slot(front, offset)
                                     : derived_slot(front + 1, offset - preparation_.bytes);
}

// The slot of the address `offset` bytes behind that of the slot `base`.
size_t Executable::derived_slot(size_t base, int64_t offset) {
  if (offset == 0) return base;
  const DerivedAddress wanted{static_cast<uint8_t>(base), offset};
  const auto found = std::find(derived_.begin(), derived_.end(), wanted);
  const size_t slot =
      first_operand_slot + operand_count_ + workspace_slots + static_cast<size_t>(found - derived_.begin());
  if (found == derived_.end()) derived_.push_back(wanted);
  return slot;
}

// Zero extents if there is nothing to do.
std::array<unsigned, 3> Executable::grid_at(const LoadedLaunch& launch, int64_t n) const {
  std::array<int64_t, 3> grid{};
  for (size_t i = 0; i < grid.size(); ++i) grid[i] = round_up(launch.grid[i].at(n), launch.cluster[i]);
  if (grid[0] <= 0 || grid[1] <= 0 || grid[2] <= 0) return {0, 0, 0};
  if (launch.resident_blocks > 0) {
    const int64_t fit = launch.resident_blocks / (grid[1] * grid[2]) / launch.cluster[0] * launch.cluster[0];
    grid[0] = std::clamp<int64_t>(fit, launch.cluster[0], grid[0]);
  }
  if (grid[0] > most_blocks_in_x || grid[1] > most_blocks_in_y || grid[2] > most_blocks_in_y)
    refuse_grid(launch.function, grid);
  return {static_cast<unsigned>(grid[0]), static_cast<unsigned>(grid[1]), static_cast<unsigned>(grid[2])};
}

void Executable::enqueue(CUstream stream, std::span<const CUdeviceptr> operands, const RunValues& given, int64_t n,
                         Memory memory, std::span<const LoadedStep> steps) const {
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
  for (size_t i = 0; i < given.operation_scalars.size(); ++i)
    values[first_own_slot + i] = bits_of(given.operation_scalars[i]);
  std::copy(given.operation_integers.begin(), given.operation_integers.end(), values.begin() + first_integer_slot);
  values[null_slot] = 0;
  uint64_t* slot = std::copy(operands.begin(), operands.end(), values.data() + first_operand_slot);
  *slot++ = memory.front;
  *slot++ = memory.rest;
  for (const DerivedAddress& address : derived_) *slot++ = values[address.base] + static_cast<uint64_t>(address.offset);
  // As struct UserArguments: at least one pointer, then the scalars.
  uint64_t* user = values.data() + user_slot;
  *user = 0;
  for (const uint8_t tensor : user_tensors_) *user++ = values[tensor];
  if (user_tensors_.empty()) ++user;
  std::memcpy(user, given.scalars.data(), sizeof given.scalars);

  const device::Current current(*context_);
  if (!is_captured()) note_capture(stream);
  for (const LoadedStep& step : steps) {
    if (step.is_launch) {
      start(launches_[step.launch], stream, values.data(), n);
    } else {
      clear(step, stream, values[step.memory]);
    }
  }
}

// Before anything is enqueued: whoever sees the graph must see the note.
void Executable::note_capture(CUstream stream) const {
  cuda_abi::CUstreamCaptureStatus status = cuda_abi::CU_STREAM_CAPTURE_STATUS_NONE;
  // The launch says what is wrong with a stream.
  const cuda_abi::CUresult result = context_->driver().calls().cuStreamIsCapturing(stream, &status);
  if (result == cuda_abi::CUDA_SUCCESS && status != cuda_abi::CU_STREAM_CAPTURE_STATUS_NONE)
    captured_->store(true, std::memory_order_release);
}

void Executable::start(const LoadedLaunch& launch, CUstream stream, uint64_t* values, int64_t n) const {
  const std::array<unsigned, 3> grid = launch.fixed_grid ? launch.grid_at_load : grid_at(launch, n);
  if (grid[0] == 0) return;
  std::array<void*, max_values> parameters;  // NOLINT(cppcoreguidelines-pro-type-member-init): as above
  for (size_t i = 0; i < launch.slots.size(); ++i) parameters[i] = values + launch.slots[i];
  if (!launch.plain) return start_with_more(launch, grid, stream, values, parameters.data(), n);
  device::launch(launch.function, {grid[0], grid[1], grid[2]}, {launch.block[0], launch.block[1], launch.block[2]},
                 launch.dynamic_shared, stream, parameters.data());
}

// With attributes, or tensor maps. These stand on this function's stack, so that other launches do without.
void Executable::start_with_more(const LoadedLaunch& launch, std::array<unsigned, 3> grid, CUstream stream,
                                 const uint64_t* values, void** parameters, int64_t n) const {
  std::array<cuda_abi::CUtensorMap, max_maps> maps;  // NOLINT(cppcoreguidelines-pro-type-member-init): as above
  for (size_t i = 0; i < launch.maps.size(); ++i) {
    const auto& [parameter, map] = launch.maps[i];
    map->get(values[launch.slots[parameter]], n, maps[i]);
    parameters[parameter] = &maps[i];
  }
  const device::Dim3 extents{grid[0], grid[1], grid[2]}, block{launch.block[0], launch.block[1], launch.block[2]};
  if (launch.attributes.empty()) {
    device::launch(launch.function, extents, block, launch.dynamic_shared, stream, parameters);
  } else {
    device::launch(launch.function, extents, block, launch.dynamic_shared, stream, parameters, launch.attributes);
  }
}

void Executable::clear(const LoadedStep& step, CUstream stream, CUdeviceptr address) const {
  if (step.in_words) {
    device::fill_words(*context_, address, 0, static_cast<size_t>(step.bytes) / 4, stream);
  } else {
    device::fill_bytes(*context_, address, 0, static_cast<size_t>(step.bytes), stream);
  }
}

}  // namespace kiln::execution
