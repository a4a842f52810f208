// Operations as cuDNN's graph API sees them: described, made a graph, and as all engine configurations that its
// heuristics offer for that.
#pragma once

#include <cuda_abi/driver.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cudnn_library.h"
#include "kiln/generator/operations/conv_pass.h"
#include "kiln/generator/operations/pool_forward.h"

namespace kiln::bench {

cuda_abi::cudnnDataType_t cudnn_data_type(DType dtype);

/// Operations on operands of a request, in the order in which they are applied. All compute in f32; results on the way
/// stay f32 and never reach memory. Tensors of three dimensions get a fourth of one element: cuDNN counts from two
/// spatial axes up. Describing needs no device. Throws CudnnError.
class Operations {
 public:
  using Tensor = size_t;

  /// A tensor of the graph that an address must be bound to.
  struct Bound {
    int64_t id;
    size_t operand;  ///< Index into the request's operands.
  };

  explicit Operations(std::shared_ptr<const CudnnLibrary> library) : library_(std::move(library)) {}

  Tensor operand(size_t operand, const TensorSpec& spec);
  /// One element a channel of `y`, for all of its positions.
  Tensor bias(size_t operand, const TensorSpec& spec, const TensorSpec& y);
  Tensor intermediate(const TensorSpec& like);

  /// Which of the three tensors of a convolution is computed from the other two.
  enum class Convolution { forward, backward_data, backward_filter };

  /// y = x * w; or dx, or dw, in the place of x and w, from dy in the place of y. `conv`: of the forward convolution.
  void convolve(Convolution kind, const ConvPass& conv, Tensor x, Tensor w, Tensor y);
  /// sum = a + scale * b
  void add(Tensor a, Tensor b, float scale, Tensor sum);
  /// out = min(max(in, lo), hi)
  void clamp(Tensor in, float lo, float hi, Tensor out);
  void resample(const PoolForward& pool, Tensor x, Tensor y);

  const std::shared_ptr<const CudnnLibrary>& library() const { return library_; }
  const std::vector<Bound>& bound() const { return bound_; }
  /// Descriptors of the operations.
  std::vector<cuda_abi::cudnnBackendDescriptor_t> raw() const;

 private:
  Tensor tensor(DType dtype, const std::vector<int64_t>& extents, const std::vector<int64_t>& strides, int alignment,
                bool in_memory);
  void pointwise(Descriptor mode, Tensor x, std::optional<Tensor> b, float scale, Tensor y);

  std::shared_ptr<const CudnnLibrary> library_;
  std::vector<Descriptor> parts_;  // tensors, parameters and operations: alive as long as a graph of them
  std::vector<size_t> tensors_, operations_;
  std::vector<Bound> bound_;
};

/// One of cuDNN's ways to do a graph.
struct EngineConfig {
  std::string name;       ///< "engine 14 (2=3 14=1)": global index, and knob=value in cuDNN's numbers.
  std::string heuristic;  ///< Where it was found first: "A", "B" or "fallback".
  std::vector<cuda_abi::cudnnBackendNumericalNote_t> notes;
  Descriptor descriptor;
};

class CudnnGraph {
 public:
  /// `handle` must outlive this. Throws CudnnError, with code unsupported where cuDNN knows no such graph.
  CudnnGraph(const CudnnHandle& handle, Operations operations);

  /// Configurations that the heuristics A, B and fallback offer, in their order, without repetition.
  std::vector<EngineConfig> engine_configs() const;
  const std::vector<Operations::Bound>& bound() const { return operations_.bound(); }

 private:
  void add_configs(cuda_abi::cudnnBackendHeurMode_t mode, const char* name, std::vector<EngineConfig>& configs) const;

  const CudnnHandle& handle_;
  Operations operations_;
  Descriptor graph_;
};

/// Why a configuration's arithmetic is not what the request permits; nothing if it is: products and sums in f32 of the
/// stored values. f32 without tensor cores, which would round to TF32; no inputs rounded down; no sums below f32.
std::optional<std::string> unequal_arithmetic(const Request& request, const EngineConfig& config);

/// The addresses of one set of operands, bound once.
class VariantPack {
 public:
  /// `addresses`: of the request's operands.
  VariantPack(const std::shared_ptr<const CudnnLibrary>& library, const std::vector<Operations::Bound>& bound,
              const std::vector<cuda_abi::CUdeviceptr>& addresses, cuda_abi::CUdeviceptr workspace);
  const Descriptor& descriptor() const { return descriptor_; }

 private:
  Descriptor descriptor_;
};

/// A configuration made ready to run.
class CudnnPlan {
 public:
  CudnnPlan(const CudnnHandle& handle, const EngineConfig& config);

  int64_t workspace_bytes() const { return workspace_bytes_; }
  /// Enqueues on the handle's stream; it may be another handle than the one that the plan was made with, which must
  /// live.
  void execute(const CudnnHandle& handle, const VariantPack& operands) const;

 private:
  Descriptor descriptor_;
  int64_t workspace_bytes_ = 0;
};

}  // namespace kiln::bench
