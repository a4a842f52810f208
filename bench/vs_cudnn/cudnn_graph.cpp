#include "cudnn_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kiln::bench {
namespace {

using namespace cuda_abi;  // NOLINT(google-build-using-namespace): the names of the interface spoken here

constexpr int64_t most_knobs = 64;  // of one engine; cuDNN 9 knows 44 kinds
constexpr int64_t most_notes = 16;

Descriptor graph_of(const CudnnHandle& handle, const Operations& operations) {
  Descriptor graph(handle.library(), CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  const auto raw = operations.raw();
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle.raw());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            std::span<const cudnnBackendDescriptor_t>(raw));
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

CudnnGraph::CudnnGraph(const CudnnHandle& handle, Operations operations)
    : handle_(handle), operations_(std::move(operations)), graph_(graph_of(handle, operations_)) {}

std::vector<EngineConfig> CudnnGraph::engine_configs() const {
  std::vector<EngineConfig> configs;
  add_configs(CUDNN_HEUR_MODE_A, "A", configs);
  add_configs(CUDNN_HEUR_MODE_B, "B", configs);
  add_configs(CUDNN_HEUR_MODE_FALLBACK, "fallback", configs);
  return configs;
}

void CudnnGraph::add_configs(cudnnBackendHeurMode_t mode, const char* name, std::vector<EngineConfig>& configs) const {
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

std::optional<std::string> unequal_arithmetic(const Request& request, const EngineConfig& config) {
  const auto has = [&](cudnnBackendNumericalNote_t note) {
    return std::find(config.notes.begin(), config.notes.end(), note) != config.notes.end();
  };
  const bool f32 = request.operands.front().spec.dtype == DType::f32;  // an input of every operation
  if (f32 && !request.arithmetic.tf32 && has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) return "TF32";
  if (has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) return "rounds its inputs down";
  if (has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) return "adds up below f32";
  return std::nullopt;
}

VariantPack::VariantPack(const std::shared_ptr<const CudnnLibrary>& library,
                         const std::vector<Operations::Bound>& bound, const std::vector<CUdeviceptr>& addresses,
                         CUdeviceptr workspace)
    : descriptor_(library, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR) {
  std::vector<int64_t> ids;
  std::vector<CUdeviceptr> pointers;
  for (const Operations::Bound& tensor : bound) {
    ids.push_back(tensor.id);
    pointers.push_back(addresses.at(tensor.operand));
  }
  descriptor_.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, std::span<const int64_t>(ids));
  descriptor_.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::span<const CUdeviceptr>(pointers));
  descriptor_.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  descriptor_.finalize();
}

CudnnPlan::CudnnPlan(const CudnnHandle& handle, const EngineConfig& config)
    : descriptor_(handle.library(), CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
  descriptor_.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle.raw());
  descriptor_.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config.descriptor);
  descriptor_.finalize();
  workspace_bytes_ = descriptor_.get_int64(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
}

void CudnnPlan::execute(const CudnnHandle& handle, const VariantPack& operands) const {
  handle.library()->check(
      handle.library()->calls().cudnnBackendExecute(handle.raw(), descriptor_.raw(), operands.descriptor().raw()),
      "cudnnBackendExecute");
}

}  // namespace kiln::bench
