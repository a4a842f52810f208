#include "cudnn_convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kiln::bench {
namespace {

using namespace cuda_abi;  // NOLINT(google-build-using-namespace): the names of the interface spoken here

constexpr int64_t x_id = 'x', w_id = 'w', y_id = 'y';
constexpr int64_t most_knobs = 64;  // of one engine; cuDNN 9 knows 44 kinds
constexpr int64_t most_notes = 16;

cudnnDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return CUDNN_DATA_HALF;
    case DType::bf16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

Descriptor tensor(const CudnnHandle& handle, const TensorSpec& spec, int64_t id) {
  Descriptor made(handle.library(), CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, data_type(spec.dtype));
  made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, std::span<const int64_t>(spec.extents));
  made.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, std::span<const int64_t>(spec.strides));
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, int64_t{spec.alignment});
  made.finalize();
  return made;
}

Descriptor convolution(const CudnnHandle& handle, const ConvForward& conv) {
  Descriptor made(handle.library(), CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const auto per_axis = [&](cudnnBackendAttributeName_t name, const std::vector<int64_t>& values) {
    made.set(name, CUDNN_TYPE_INT64, std::span<const int64_t>(values));
  };
  made.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, int64_t{conv.axes()});
  made.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  made.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
           conv.mirrored ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION);
  per_axis(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, conv.pad_begin);
  per_axis(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, conv.pad_end);
  per_axis(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, conv.stride);
  per_axis(CUDNN_ATTR_CONVOLUTION_DILATIONS, conv.dilation);
  made.finalize();
  return made;
}

// cuDNN infers the groups from the channels of x and w.
std::vector<Descriptor> forward(const CudnnHandle& handle, const ConvForward& conv) {
  std::vector<Descriptor> parts;
  parts.push_back(tensor(handle, conv.x, x_id));
  parts.push_back(tensor(handle, conv.w, w_id));
  parts.push_back(tensor(handle, conv.y, y_id));
  parts.push_back(convolution(handle, conv));
  Descriptor operation(handle.library(), CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, parts[0]);
  operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, parts[1]);
  operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, parts[2]);
  operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, parts[3]);
  operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1.0F);
  operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 0.0F);
  operation.finalize();
  parts.push_back(std::move(operation));
  return parts;
}

Descriptor graph_of(const CudnnHandle& handle, const Descriptor& operation) {
  Descriptor graph(handle.library(), CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle.raw());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  graph.finalize();
  return graph;
}

// "engine 14 (2=3 14=1)", and the engine's numerical notes.
void describe(EngineConfig& config) {
  const auto engines =
      config.descriptor.get_descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  if (engines.empty()) throw Error(ErrorCode::driver_error, "cuDNN gave an engine configuration without an engine");
  config.notes = engines[0].get<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                             CUDNN_TYPE_NUMERICAL_NOTE, most_notes);
  std::string knobs;
  for (const Descriptor& knob : config.descriptor.get_descriptors(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                                                  CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, most_knobs)) {
    const auto type = knob.get<int>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1);
    knobs += fmt::format("{}{}={}", knobs.empty() ? "" : " ", type.empty() ? -1 : type[0],
                         knob.get_int64(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
  }
  config.name = fmt::format("engine {} ({})", engines[0].get_int64(CUDNN_ATTR_ENGINE_GLOBAL_INDEX), knobs);
}

}  // namespace

VariantPack::VariantPack(const std::shared_ptr<const CudnnLibrary>& library, CUdeviceptr x, CUdeviceptr w,
                         CUdeviceptr y, CUdeviceptr workspace)
    : descriptor_(library, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR) {
  const std::array<int64_t, 3> ids = {x_id, w_id, y_id};
  const std::array<CUdeviceptr, 3> addresses = {x, w, y};
  descriptor_.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, std::span<const int64_t>(ids));
  descriptor_.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::span<const CUdeviceptr>(addresses));
  descriptor_.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  descriptor_.finalize();
}

CudnnPlan::CudnnPlan(const CudnnHandle& handle, const EngineConfig& config)
    : handle_(handle), descriptor_(handle.library(), CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
  descriptor_.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle.raw());
  descriptor_.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config.descriptor);
  descriptor_.finalize();
  workspace_bytes_ = descriptor_.get_int64(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
}

void CudnnPlan::execute(const VariantPack& operands) const {
  handle_.library()->check(
      handle_.library()->calls().cudnnBackendExecute(handle_.raw(), descriptor_.raw(), operands.descriptor().raw()),
      "cudnnBackendExecute");
}

std::optional<std::string> not_comparable(const Request& request) {
  if (request.operation != "conv_forward") return "the comparison covers conv_forward so far";
  if (request.dynamic_batch) return "its batch is dynamic";
  if (!request.epilogue.empty() || request.user_epilogue) return "it has an epilogue";
  if (request.blend != Blend{}) return "it scales or adds to its output";
  if (request.at("y").elements() == 0) return "its output is empty";
  return std::nullopt;
}

CudnnConvolution::CudnnConvolution(const CudnnHandle& handle, const Request& request)
    : handle_(handle), parts_(forward(handle, ConvForward::of(request))), graph_(graph_of(handle, parts_.back())) {}

std::vector<EngineConfig> CudnnConvolution::engine_configs() const {
  std::vector<EngineConfig> configs;
  add_configs(CUDNN_HEUR_MODE_A, "A", configs);
  add_configs(CUDNN_HEUR_MODE_B, "B", configs);
  add_configs(CUDNN_HEUR_MODE_FALLBACK, "fallback", configs);
  return configs;
}

void CudnnConvolution::add_configs(cudnnBackendHeurMode_t mode, const char* name,
                                   std::vector<EngineConfig>& configs) const {
  Descriptor heuristic(handle_.library(), CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph_);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  try {
    heuristic.finalize();
  } catch (const CudnnError& error) {
    if (error.code() == ErrorCode::unsupported) return;  // this heuristic knows nothing of such a graph
    throw;
  }
  const int64_t offered = heuristic.count(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  for (Descriptor& found :
       heuristic.get_descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, offered)) {
    EngineConfig config{{}, name, {}, std::move(found)};
    describe(config);
    const bool known = std::any_of(configs.begin(), configs.end(),
                                   [&](const EngineConfig& other) { return other.name == config.name; });
    if (!known) configs.push_back(std::move(config));
  }
}

std::optional<std::string> CudnnConvolution::unequal_arithmetic(const Request& request, const EngineConfig& config) {
  const auto has = [&](cudnnBackendNumericalNote_t note) {
    return std::find(config.notes.begin(), config.notes.end(), note) != config.notes.end();
  };
  const bool f32 = request.at("x").dtype == DType::f32;
  if (f32 && !request.arithmetic.tf32 && has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) return "TF32";
  if (has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) return "rounds its inputs down";
  if (has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) return "adds up below f32";
  return std::nullopt;
}

}  // namespace kiln::bench
