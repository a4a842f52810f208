// Executable: a compiled Program loaded on a device, ready to run on a stream.
#pragma once

#include <cuda_abi/driver.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kiln/device/context.h"
#include "kiln/device/module.h"
#include "kiln/execution/compile.h"
#include "kiln/generator/program.h"
#include "kiln/generator/run_values.h"

namespace kiln::execution {

class TensorMapSlot;

/// Modules loaded, kernels found, large dynamic shared memory permitted, argument lists resolved. Move-only.
///
/// Keeps its context alive. run() is const and may be called from several threads at the same time.
class Executable {
 public:
  /// Most values (operands, workspace addresses, scalars) that one program may pass to its kernels.
  static constexpr size_t max_values = 128;

  /// Loads `compiled` into `context`. `operands` names the pointers that run() takes, in their order: the operands of
  /// the request. An operand that the program asks for and that is not among them is passed as null.
  ///
  /// Throws DriverError if an image cannot be loaded, a kernel is missing or the device refuses its shared memory;
  /// Error(unsupported) if a kernel cannot run with its block size (too many registers), or needs what the device or
  /// its driver lacks: clusters, tensor maps.
  Executable(std::shared_ptr<const device::ContextHandle> context, const CompiledProgram& compiled,
             const std::vector<std::string>& operands);
  ~Executable();
  Executable(Executable&&) noexcept;
  Executable& operator=(Executable&&) noexcept;

  /// Enqueues all steps on `stream` and returns.
  ///
  /// `operands`: one device address per name given to the constructor. `n`: the batch of this call (the request's own
  /// if that is fixed), whatever `given` says. `workspace`: workspace_bytes() of device memory, 256-byte aligned; not
  /// read if that is 0. Calls that overlap in time need a workspace each.
  ///
  /// No allocation, no lookup, no lock, no synchronisation: legal while a CUDA graph is captured. A launch whose grid
  /// has a zero extent is skipped. Throws Error(invalid_argument) for a wrong number of operands, Error(unsupported) if
  /// the grid of this n exceeds the device's, DriverError if a launch is refused; earlier steps stay enqueued then.
  void run(cuda_abi::CUstream stream, std::span<const cuda_abi::CUdeviceptr> operands, const RunValues& given,
           int64_t n, cuda_abi::CUdeviceptr workspace) const {
    enqueue(stream, operands, given, n, {workspace, workspace + static_cast<uint64_t>(preparation_.bytes)},
            all_steps());
  }

  /// Enqueues the steps that depend on nothing but weights, which fill `prepared`: preparation().bytes of device
  /// memory, 256-byte aligned. Only those of `operands` that these steps read are looked at.
  void prepare(cuda_abi::CUstream stream, std::span<const cuda_abi::CUdeviceptr> operands,
               cuda_abi::CUdeviceptr prepared) const {
    enqueue(stream, operands, {}, 0, {prepared, 0}, all_steps().first(preparation_.steps));
  }
  /// run() without those steps, of which `prepared` holds what they made. `workspace`: what is left of it,
  /// workspace_bytes() - preparation().bytes. Calls that overlap in time may share `prepared`.
  void run_prepared(cuda_abi::CUstream stream, std::span<const cuda_abi::CUdeviceptr> operands, const RunValues& given,
                    int64_t n, cuda_abi::CUdeviceptr prepared, cuda_abi::CUdeviceptr workspace) const {
    enqueue(stream, operands, given, n, {prepared, workspace}, all_steps().subspan(preparation_.steps));
  }

  /// run() of `count` steps from the one of number `first` on. Results of other steps are in the workspace if nothing
  /// else used it.
  void run_part(cuda_abi::CUstream stream, std::span<const cuda_abi::CUdeviceptr> operands, const RunValues& given,
                int64_t n, cuda_abi::CUdeviceptr workspace, size_t first, size_t count) const {
    enqueue(stream, operands, given, n, {workspace, workspace + static_cast<uint64_t>(preparation_.bytes)},
            all_steps().subspan(first, count));
  }
  /// The steps of the program.
  size_t steps() const { return steps_.size(); }

  int64_t workspace_bytes() const { return workspace_bytes_; }
  /// Steps and bytes of prepare(); no steps if `bytes` is 0.
  const Preparation& preparation() const { return preparation_; }
  /// Whether a step of prepare() reads the operand of that place.
  bool prepares(size_t operand) const { return weights_[operand]; }
  bool deterministic() const { return deterministic_; }
  /// Bytes of compiled code that are loaded.
  uint64_t image_bytes() const { return image_bytes_; }
  /// Whether some run was captured into a CUDA graph, whose launches need the modules as long as it is used.
  bool is_captured() const { return captured_->load(std::memory_order_acquire); }
  size_t operand_count() const { return operand_count_; }
  const std::shared_ptr<const device::ContextHandle>& context() const { return context_; }

 private:
  // A tensor map, in the place of what its slot has.
  struct LoadedMap {
    size_t parameter;
    std::unique_ptr<const TensorMapSlot> map;
  };
  // One kernel start. Arguments are slots of the table of values that enqueue() makes on its stack.
  struct LoadedLaunch {
    device::Function function;
    std::array<Count, 3> grid;
    std::array<unsigned, 3> cluster;
    int64_t resident_blocks;  // that the grid is cut to; 0 for a grid that is not
    bool fixed_grid;
    std::array<unsigned, 3> grid_at_load;  // if fixed_grid
    std::array<unsigned, 3> block;
    unsigned dynamic_shared;
    std::vector<cuda_abi::CUlaunchAttribute> attributes;
    std::vector<uint8_t> slots;
    std::vector<LoadedMap> maps;
    bool plain;  // neither attributes nor maps
  };
  // A launch, or the clearing of part of the workspace.
  struct LoadedStep {
    bool is_launch = false;
    size_t launch = 0;   // index into launches_
    uint8_t memory = 0;  // slot of the address of what is cleared
    int64_t bytes = 0;
    bool in_words = false;
  };
  // Where the front of the workspace is, which may be prepared, and where the rest of it is.
  struct Memory {
    cuda_abi::CUdeviceptr front, rest;
  };

  LoadedLaunch load(const Launch& launch, const std::vector<std::string>& operands);
  LoadedStep load(const ClearWorkspace& clear);
  void note_weights(const Launch& launch, const std::vector<std::string>& operands);
  std::array<unsigned, 3> grid_at(const LoadedLaunch& launch, int64_t n) const;
  uint8_t slot_of(const Argument& argument, const std::vector<std::string>& operands);
  size_t workspace_slot(int64_t offset);
  size_t derived_slot(size_t base, int64_t offset);
  std::span<const LoadedStep> all_steps() const { return steps_; }
  void enqueue(cuda_abi::CUstream stream, std::span<const cuda_abi::CUdeviceptr> operands, const RunValues& given,
               int64_t n, Memory memory, std::span<const LoadedStep> steps) const;
  void start(const LoadedLaunch& launch, cuda_abi::CUstream stream, uint64_t* values, int64_t n) const;
  void start_with_more(const LoadedLaunch& launch, std::array<unsigned, 3> grid, cuda_abi::CUstream stream,
                       const uint64_t* values, void** parameters, int64_t n) const;
  void clear(const LoadedStep& step, cuda_abi::CUstream stream, cuda_abi::CUdeviceptr address) const;
  void note_capture(cuda_abi::CUstream stream) const;

  std::shared_ptr<const device::ContextHandle> context_;
  std::vector<device::Module> modules_;
  std::vector<LoadedLaunch> launches_;
  std::vector<LoadedStep> steps_;
  // An address that is not an operand's own: of the workspace, or further on in an operand.
  struct DerivedAddress {
    uint8_t base;  // slot
    int64_t offset;
    bool operator==(const DerivedAddress&) const = default;
  };
  std::vector<DerivedAddress> derived_;  // of the slots behind the operands and the workspace
  std::vector<uint8_t> user_tensors_;    // slots of the operands of user code
  std::vector<bool> weights_;            // for each operand, whether a step of the preparation reads it
  int64_t workspace_bytes_ = 0;
  Preparation preparation_;
  bool deterministic_ = true;
  uint64_t image_bytes_ = 0;
  std::unique_ptr<std::atomic<bool>> captured_ = std::make_unique<std::atomic<bool>>(false);
  size_t operand_count_ = 0;
};

}  // namespace kiln::execution
