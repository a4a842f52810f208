#include "launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

namespace kiln::emulator {
namespace {

// Keys of cuLaunchKernel's `extra` list.
const auto param_end = reinterpret_cast<void*>(0x0);
const auto param_buffer_pointer = reinterpret_cast<void*>(0x1);
const auto param_buffer_size = reinterpret_cast<void*>(0x2);

CUresult code_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::illegal_address:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case FaultKind::misaligned_address:
      return CUDA_ERROR_MISALIGNED_ADDRESS;
    case FaultKind::illegal_instruction:
      return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case FaultKind::deadlock:
      return CUDA_ERROR_LAUNCH_TIMEOUT;
    case FaultKind::timeout:
      return CUDA_ERROR_LAUNCH_TIMEOUT;
    case FaultKind::assertion:
      return CUDA_ERROR_ASSERT;
    case FaultKind::race:  // hardware would notice none of these
    case FaultKind::uninitialised_read:
    case FaultKind::divergent_barrier:
      return CUDA_ERROR_LAUNCH_FAILED;
  }
  return CUDA_ERROR_LAUNCH_FAILED;
}

void validate(const LaunchArguments& arguments, const DeviceModel& model, const Function& function) {
  const KernelInfo& kernel = info(*function.kernel);
  const Dim3& grid = arguments.grid;
  const Dim3& block = arguments.block;
  require(grid.x > 0 && grid.y > 0 && grid.z > 0 && block.x > 0 && block.y > 0 && block.z > 0);
  require(grid.x <= max_grid_x && grid.y <= max_grid_yz && grid.z <= max_grid_yz);
  require(block.x <= max_block_threads && block.y <= max_block_threads && block.z <= max_block_z);
  require(block.count() <= max_block_threads);
  require(kernel.max_threads == 0 || block.count() <= kernel.max_threads);
  require(!kernel.required_block || block == *kernel.required_block);
  require(!kernel.needs_cluster, CUDA_ERROR_NOT_SUPPORTED);
  require(arguments.dynamic_shared_bytes <= static_cast<uint32_t>(function.dynamic_shared_limit.load()));
  const auto threads = static_cast<uint32_t>(block.count());
  const int resident =
      function_occupancy(model, function, threads, arguments.dynamic_shared_bytes).blocks_per_multiprocessor;
  require(resident > 0, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  const uint64_t at_once = static_cast<uint64_t>(resident) * static_cast<uint64_t>(model.limits.multiprocessors);
  require(!arguments.cooperative || grid.count() <= at_once, cooperative_launch_too_large);
}

std::vector<std::byte> packed_buffer(void** extra, const KernelInfo& kernel) {
  const void* buffer = nullptr;
  size_t bytes = 0;
  for (; *extra != param_end; extra += 2) {
    if (*extra == param_buffer_pointer) {
      buffer = extra[1];
    } else if (*extra == param_buffer_size) {
      bytes = *static_cast<const size_t*>(extra[1]);
    } else {
      fail(CUDA_ERROR_INVALID_VALUE);
    }
  }
  require(buffer != nullptr && bytes >= kernel.parameter_bytes);
  const auto* begin = static_cast<const std::byte*>(buffer);
  return {begin, begin + kernel.parameter_bytes};
}

std::vector<std::byte> pack_parameters(const LaunchArguments& arguments, const KernelInfo& kernel) {
  if (kernel.parameters.empty()) return {};
  require((arguments.parameters == nullptr) != (arguments.extra == nullptr));
  if (arguments.extra != nullptr) return packed_buffer(arguments.extra, kernel);
  std::vector<std::byte> buffer(kernel.parameter_bytes);
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    require(arguments.parameters[i] != nullptr);
    std::memcpy(buffer.data() + kernel.parameters[i].offset, arguments.parameters[i], kernel.parameters[i].bytes);
  }
  return buffer;
}

LaunchRecord describe(const Device& device, const KernelWork& work, const Counters& counters, MachineTime machine) {
  const DeviceModel& model = device.model;
  const KernelInfo& kernel = info(*work.function->kernel);
  LaunchRecord record;
  record.device = device.name;
  record.kernel = kernel.name;
  record.grid = work.grid;
  record.block = work.block;
  record.shared_bytes = uint64_t{kernel.static_shared_bytes} + work.dynamic_shared_bytes;
  record.registers_per_thread = registers_of(*work.function);
  const auto threads = static_cast<uint32_t>(work.block.count());
  record.occupancy = function_occupancy(model, *work.function, threads, work.dynamic_shared_bytes);
  record.counters = counters;
  record.time = model_launch(model, {work.grid.count(), threads, record.occupancy}, counters);
  record.machine = std::move(machine);
  return record;
}

// How much of the device the launch's blocks can fill.
Share share_of(const LaunchRecord& record, const DeviceModel& model) {
  const uint64_t slots = static_cast<uint64_t>(model.limits.multiprocessors) *
                         static_cast<uint64_t>(record.occupancy.blocks_per_multiprocessor);
  const uint64_t blocks = std::min(record.grid.count(), slots);
  return static_cast<Share>((blocks * whole_engine + slots - 1) / slots);
}

// Before the launch runs: it may write over what decides its way.
MachineTime machine_time(const Driver& driver, const Context& context, const KernelWork& work, const LeftInL2& in_l2) {
  const Device& device = context.device();
  if (!device.card) return {};
  if (!work.function->code) return {std::nullopt, "the module has no machine code for this device"};
  const MachineLaunch launch = {info(*work.function->kernel).name,
                                work.grid,
                                work.block,
                                work.dynamic_shared_bytes,
                                work.parameters,
                                context.traced_instructions(),
                                in_l2,
                                global_variables(*work.function->program)};
  return driver.clock()->time(*work.function->code, launch, *device.card, *context.regions(), !context.is_time_only());
}

LaunchOutcome run_blocks(const Settings& settings, Context& context, const KernelWork& work) {
  return run({.kernel = work.function->kernel,
              .grid = work.grid,
              .block = work.block,
              .dynamic_shared_bytes = work.dynamic_shared_bytes,
              .parameters = work.parameters,
              .memory = context.regions(),
              .check = settings.check,
              .number = context.memory().next_launch(),
              .host_threads = settings.threads,
              .counted_blocks = settings.counted_blocks,
              .instruction_limit = settings.instruction_limit,
              .cooperative = work.cooperative});
}

/// CUlaunchAttributeID of those that change nothing here: hints, where memory is cached, how a host thread waits, the
/// order of launches.
bool is_without_effect(int id) {
  constexpr std::array ids = {0 /* ignore */, 1 /* access policy window */, 3 /* synchronization policy */,
                              5 /* cluster scheduling policy */,
                              // A launch begins when those before it have ended, which is one of the orders allowed.
                              static_cast<int>(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION), 8 /* priority */,
                              9 /* memory synchronization domain map */, 10 /* memory synchronization domain */,
                              14 /* preferred shared memory carveout */, 16 /* NVLink scheduling */};
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

LaunchArguments with_attributes(LaunchArguments arguments, const CUlaunchAttribute* attributes, unsigned count) {
  require(count == 0 || attributes != nullptr);
  for (unsigned k = 0; k < count; ++k) {
    const CUlaunchAttributeValue& value = attributes[k].value;
    if (attributes[k].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
      arguments.cooperative = value.cooperative != 0;
    } else if (attributes[k].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      const auto& cluster = value.clusterDim;
      require(cluster.x > 0 && cluster.y > 0 && cluster.z > 0);
      require(cluster.x == 1 && cluster.y == 1 && cluster.z == 1, CUDA_ERROR_NOT_SUPPORTED);
    } else {
      require(is_without_effect(attributes[k].id), CUDA_ERROR_NOT_SUPPORTED);
    }
  }
  return arguments;
}

Occupancy function_occupancy(const DeviceModel& model, const Function& function, uint32_t threads,
                             uint64_t dynamic_shared_bytes) {
  return occupancy(model.limits, {.threads = threads,
                                  .registers_per_thread = registers_of(function),
                                  .shared_bytes = info(*function.kernel).static_shared_bytes + dynamic_shared_bytes});
}

KernelWork prepare_launch(const Context& context, std::shared_ptr<const Function> function,
                          const LaunchArguments& arguments) {
  const KernelInfo& kernel = info(*function->kernel);
  validate(arguments, context.device().model, *function);
  std::vector<std::byte> parameters = pack_parameters(arguments, kernel);
  return {.function = std::move(function),
          .grid = arguments.grid,
          .block = arguments.block,
          .dynamic_shared_bytes = arguments.dynamic_shared_bytes,
          .cooperative = arguments.cooperative,
          .parameters = std::move(parameters)};
}

void execute_kernel(Driver& driver, Context& context, Track& track, const KernelWork& work) {
  MachineTime machine = machine_time(driver, context, work, track.in_l2);
  track.in_l2 = std::move(machine.in_l2);
  LaunchOutcome outcome;
  if (context.is_time_only()) {
    require(machine.time.has_value(), CUDA_ERROR_NOT_SUPPORTED);
  } else {
    outcome = run_blocks(driver.settings(), context, work);
  }
  if (outcome.fault) {
    driver.fault(context, code_of(outcome.fault->kind), outcome.fault->report);
    return;
  }
  LaunchRecord record = describe(context.device(), work, outcome.counters, std::move(machine));
  Timeline& timeline = context.device().timeline;
  if (const auto seconds = record.seconds()) {
    timeline.enqueue(track, HardwareEngine::compute, to_picoseconds(*seconds),
                     share_of(record, context.device().model));
  } else {
    timeline.note_untimed();
  }
  context.add_launch(std::move(record));
}

}  // namespace kiln::emulator
