// One convolution as cuDNN's graph API sees it: all engine configurations that its heuristics offer, as plans.
#pragma once

#include <cuda_abi/driver.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cudnn_library.h"
#include "kiln/generator/operations/conv_forward.h"

namespace kiln::bench {

/// One of cuDNN's ways to do it.
struct EngineConfig {
  std::string name;       ///< "engine 14 (2=3 14=1)": global index, and knob=value in cuDNN's numbers.
  std::string heuristic;  ///< Where it was found first: "A", "B" or "fallback".
  std::vector<cuda_abi::cudnnBackendNumericalNote_t> notes;
  Descriptor descriptor;
};

/// The addresses of one set of operands, bound once.
class VariantPack {
 public:
  VariantPack(const std::shared_ptr<const CudnnLibrary>& library, cuda_abi::CUdeviceptr x, cuda_abi::CUdeviceptr w,
              cuda_abi::CUdeviceptr y, cuda_abi::CUdeviceptr workspace);
  const Descriptor& descriptor() const { return descriptor_; }

 private:
  Descriptor descriptor_;
};

/// A configuration made ready to run.
class CudnnPlan {
 public:
  CudnnPlan(const CudnnHandle& handle, const EngineConfig& config);

  int64_t workspace_bytes() const { return workspace_bytes_; }
  /// Enqueues on the handle's stream.
  void execute(const VariantPack& operands) const;

 private:
  const CudnnHandle& handle_;
  Descriptor descriptor_;
  int64_t workspace_bytes_ = 0;
};

/// Why cuDNN is not asked for this request; nothing if it is: a convolution with a fixed batch, without scaling and
/// epilogue, so that both sides do exactly the same.
std::optional<std::string> not_comparable(const Request& request);

class CudnnConvolution {
 public:
  /// `request`: not_comparable() is nothing. `handle` must outlive this. Throws CudnnError.
  CudnnConvolution(const CudnnHandle& handle, const Request& request);

  /// What the heuristics A, B and fallback offer, in their order, without repetition.
  std::vector<EngineConfig> engine_configs() const;

  /// Why a configuration's arithmetic is not what the request permits; nothing if it is: products and sums in f32 of
  /// the stored values. f32 without tensor cores, which would round to TF32; no inputs rounded down; no sums below f32.
  static std::optional<std::string> unequal_arithmetic(const Request& request, const EngineConfig& config);

 private:
  void add_configs(cuda_abi::cudnnBackendHeurMode_t mode, const char* name, std::vector<EngineConfig>& configs) const;

  const CudnnHandle& handle_;
  std::vector<Descriptor> parts_;  // tensors, convolution, operation: alive as long as the graph
  Descriptor graph_;
};

}  // namespace kiln::bench
