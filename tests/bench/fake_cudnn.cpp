// A cuDNN for tests: it exports the entry points of cuda_abi/cudnn.h (those of before the graph API in fake_calls.cpp)
// and computes on the host, because the emulated device's memory is host memory. Each engine configuration takes a
// device time of its own: a fill of its workspace. It is as strict about the order of calls as cuDNN.
//
// Engines, of any graph: 1 (knob 2: 0 or 1, the second twice as fast), offered by A; 2, TF32 on tensor cores, and 1
// again, by B; 3, which refuses to become a plan; 4, whose results are wrong; 5, which asks for all memory; 6, slow, by
// fallback. With FAKE_CUDNN_UNFUSED in the environment, graphs of several operations are not supported.
#include <cuda_abi/cudnn.h>
#include <cuda_abi/driver.h>
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <vector>

#include "fake_arithmetic.h"
#include "fake_state.h"

using namespace cuda_abi;  // NOLINT(google-build-using-namespace): it is the interface implemented here

namespace {

struct Engine {
  int64_t index;
  int64_t knob;  // -1: none
  cudnnBackendHeurMode_t found_by;
  int64_t workspace;  // bytes: what it takes in time
  std::vector<cudnnBackendNumericalNote_t> notes;
};

const std::vector<Engine>& engines() {
  static const std::vector<Engine> all = {
      {1, 0, CUDNN_HEUR_MODE_A, 64 << 20, {}},
      {1, 1, CUDNN_HEUR_MODE_A, 32 << 20, {}},
      {2, -1, CUDNN_HEUR_MODE_B, 1 << 20, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}},
      {1, 0, CUDNN_HEUR_MODE_B, 64 << 20, {}},
      {3, -1, CUDNN_HEUR_MODE_B, 1 << 20, {}},
      {4, -1, CUDNN_HEUR_MODE_B, 1 << 20, {CUDNN_NUMERICAL_NOTE_WINOGRAD}},
      {5, -1, CUDNN_HEUR_MODE_FALLBACK, int64_t{1} << 50, {}},
      {6, -1, CUDNN_HEUR_MODE_FALLBACK, 128 << 20, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}},
  };
  return all;
}

// An attribute's bytes; descriptors are kept as pointers.
struct Attribute {
  cudnnBackendAttributeType_t type{};
  std::vector<char> bytes;
  int64_t count = 0;
};

struct Node {
  cudnnBackendDescriptorType_t type{};
  bool finalized = false;
  std::map<int, Attribute> attributes;
  const Engine* engine = nullptr;
  const Node* graph = nullptr;  // of a heuristic's results, and of plans

  template <class T>
  std::vector<T> all(cudnnBackendAttributeName_t name) const {
    const Attribute& attribute = attributes.at(name);
    std::vector<T> values(static_cast<size_t>(attribute.count));
    if (!values.empty()) std::memcpy(values.data(), attribute.bytes.data(), attribute.bytes.size());
    return values;
  }
  template <class T>
  T one(cudnnBackendAttributeName_t name) const {
    return all<T>(name).at(0);
  }
  const Node& node(cudnnBackendAttributeName_t name) const {
    return *static_cast<const Node*>(one<cudnnBackendDescriptor_t>(name));
  }
};

size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_DATA_TYPE:
    case CUDNN_TYPE_CONVOLUTION_MODE:
    case CUDNN_TYPE_HEUR_MODE:
    case CUDNN_TYPE_KNOB_TYPE:
    case CUDNN_TYPE_NUMERICAL_NOTE:
    case CUDNN_TYPE_FLOAT:
    case CUDNN_TYPE_NAN_PROPOGATION:
    case CUDNN_TYPE_POINTWISE_MODE:
    case CUDNN_TYPE_RESAMPLE_MODE:
    case CUDNN_TYPE_PADDING_MODE:
      return 4;
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    default:
      return 8;
  }
}

thread_local char last_error[256] = "";
int handles = 0;  // all have one stream and one memory
CUstream stream_of_handle = nullptr;
constexpr int64_t handle_bytes = 4 << 20;
CUdeviceptr memory_of_handle = 0;

// The driver is loaded already, by the process under test.
template <class Function>
Function* driver_entry(const char* name) {
  void* library = dlopen(getenv("FAKE_CUDNN_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) std::abort();
  return reinterpret_cast<Function*>(dlsym(library, name));
}

// Enqueues a fill on the handle's stream. False if the driver refuses.
bool fill(CUdeviceptr address, int64_t bytes) {
  auto* const call = driver_entry<CUresult(CUdeviceptr, unsigned char, size_t, CUstream)>("cuMemsetD8Async");
  return call(address, 0, static_cast<size_t>(bytes), stream_of_handle) == CUDA_SUCCESS;
}

// A graph at work: memory by tensor, for those on the way too.
class Run {
 public:
  Run(const Node& pack, float scale) : pack_(pack), scale_(scale) {}

  void apply(const Node& operation) {
    if (operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR) {
      convolve(operation, fake_cudnn::Computed::y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
               CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
               CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
    } else if (operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR) {
      convolve(operation, fake_cudnn::Computed::x, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC);
    } else if (operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR) {
      convolve(operation, fake_cudnn::Computed::w, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC);
    } else if (operation.type == CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR) {
      resample(operation);
    } else {
      pointwise(operation);
    }
  }

 private:
  fake_cudnn::Tensor tensor(const Node& operation, cudnnBackendAttributeName_t name) {
    const Node& node = operation.node(name);
    fake_cudnn::Tensor made{node.all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
                            node.all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES)};
    const auto id = node.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
    const auto ids = pack_.all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const auto at = static_cast<size_t>(std::find(ids.begin(), ids.end(), id) - ids.begin());
    if (node.attributes.contains(CUDNN_ATTR_TENSOR_IS_VIRTUAL)) {
      std::vector<float>& memory = on_the_way_[id];
      memory.resize(static_cast<size_t>(made.bytes()) / sizeof(float), std::numeric_limits<float>::quiet_NaN());
      made.data = memory.data();
    } else {
      made.data = static_cast<float*>(pack_.all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).at(at));
    }
    return made;
  }

  void convolve(const Node& operation, fake_cudnn::Computed computed, cudnnBackendAttributeName_t of_x,
                cudnnBackendAttributeName_t of_w, cudnnBackendAttributeName_t of_y,
                cudnnBackendAttributeName_t of_convolution) {
    const fake_cudnn::Tensor w = tensor(operation, of_w);
    const Node& conv = operation.node(of_convolution);
    const fake_cudnn::Windows windows{{w.extents[2], w.extents[3]},
                                      conv.all<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
                                      conv.all<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
                                      conv.all<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS)};
    fake_cudnn::convolve(tensor(operation, of_x), w, tensor(operation, of_y), windows, computed, scale_);
  }

  void resample(const Node& operation) {
    const Node& node = operation.node(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC);
    const fake_cudnn::Windows windows{node.all<int64_t>(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS),
                                      node.all<int64_t>(CUDNN_ATTR_RESAMPLE_PRE_PADDINGS),
                                      node.all<int64_t>(CUDNN_ATTR_RESAMPLE_STRIDES),
                                      {1, 1}};
    const int mode = node.one<int>(CUDNN_ATTR_RESAMPLE_MODE);
    fake_cudnn::pool(tensor(operation, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC),
                     tensor(operation, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC), windows,
                     mode == CUDNN_RESAMPLE_MAXPOOL                   ? fake_cudnn::Pooling::max
                     : mode == CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING ? fake_cudnn::Pooling::average_all
                                                                      : fake_cudnn::Pooling::average_inside,
                     scale_);
  }

  void pointwise(const Node& operation) {
    const Node& mode = operation.node(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    const fake_cudnn::Tensor x = tensor(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
    const fake_cudnn::Tensor y = tensor(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    if (mode.one<int>(CUDNN_ATTR_POINTWISE_MODE) == CUDNN_POINTWISE_ADD) {
      const fake_cudnn::Tensor b = tensor(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
      const auto scale = operation.one<float>(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2);
      fake_cudnn::for_each(y, [&](int64_t n, int64_t c, int64_t h, int64_t w) {
        const float added = scale == 0 ? 0 : scale * b.broadcast(n, c, h, w);  // times zero is not read
        y.at(n, c, h, w) = x.at(n, c, h, w) + added;
      });
      return;
    }
    const auto clip = [&](cudnnBackendAttributeName_t name, double otherwise) {
      return static_cast<float>(mode.attributes.contains(name) ? mode.one<double>(name) : otherwise);
    };
    const float lo = clip(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, 0);
    const float hi = clip(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, std::numeric_limits<double>::infinity());
    fake_cudnn::for_each(y, [&](int64_t n, int64_t c, int64_t h, int64_t w) {
      y.at(n, c, h, w) = std::min(std::max(x.at(n, c, h, w), lo), hi);
    });
  }

  const Node& pack_;
  float scale_;
  std::map<int64_t, std::vector<float>> on_the_way_;
};

// Copies `values` out as GetAttribute does.
template <class T>
cudnnStatus_t give(const std::vector<T>& values, int64_t requested, int64_t* count, void* elements) {
  if (count != nullptr) *count = static_cast<int64_t>(values.size());
  if (elements != nullptr && !values.empty()) {
    std::memcpy(elements, values.data(), sizeof(T) * std::min(values.size(), static_cast<size_t>(requested)));
  }
  return CUDNN_STATUS_SUCCESS;
}

// Descriptors are given by filling in those that the caller made.
cudnnStatus_t give_engines(const std::vector<const Engine*>& found, const Node* graph,
                           cudnnBackendDescriptorType_t type, int64_t requested, int64_t* count, void* elements) {
  *count = static_cast<int64_t>(found.size());
  for (size_t i = 0; elements != nullptr && i < std::min(found.size(), static_cast<size_t>(requested)); ++i) {
    Node& node = *static_cast<Node*>(static_cast<cudnnBackendDescriptor_t*>(elements)[i]);
    if (node.type != type) return fake_cudnn::refuse(CUDNN_STATUS_BAD_PARAM, "a descriptor of another type");
    node.engine = found[i];
    node.graph = graph;
    node.finalized = true;
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

namespace fake_cudnn {

cudnnStatus_t refuse(cudnnStatus_t status, const char* why) {
  std::snprintf(last_error, sizeof last_error, "%s", why);
  return status;
}

bool pass_time() {
  return fill(memory_of_handle, handle_bytes);
}

}  // namespace fake_cudnn

using fake_cudnn::refuse;

extern "C" {

size_t cudnnGetVersion() {
  return getenv("FAKE_CUDNN_VERSION") == nullptr ? 91900 : std::strtoull(getenv("FAKE_CUDNN_VERSION"), nullptr, 10);
}
const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_OF_THE_FAKE";
}
void cudnnGetLastErrorString(char* message, size_t bytes) {
  std::snprintf(message, bytes, "%s", last_error);
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (getenv("FAKE_CUDNN_FAILS") != nullptr) return refuse(CUDNN_STATUS_NOT_INITIALIZED, "no device for the fake");
  *handle = reinterpret_cast<cudnnHandle_t>(8);
  if (++handles > 1) return CUDNN_STATUS_SUCCESS;
  const CUresult result =
      driver_entry<CUresult(CUdeviceptr*, size_t)>("cuMemAlloc_v2")(&memory_of_handle, handle_bytes);
  return result == CUDA_SUCCESS ? CUDNN_STATUS_SUCCESS : refuse(CUDNN_STATUS_NOT_INITIALIZED, "no memory for the fake");
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t) {
  if (--handles == 0) driver_entry<CUresult(CUdeviceptr)>("cuMemFree_v2")(memory_of_handle);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t, struct StreamTag* stream) {
  stream_of_handle = stream;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
  *descriptor = new Node{type, false, {}, nullptr, nullptr};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete static_cast<Node*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* elements) {
  Node& node = *static_cast<Node*>(descriptor);
  if (node.finalized) return refuse(CUDNN_STATUS_BAD_PARAM, "it is finalized");
  const auto* bytes = static_cast<const char*>(elements);
  node.attributes[name] = {type, {bytes, bytes + size_of(type) * static_cast<size_t>(count)}, count};
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) return CUDNN_STATUS_SUCCESS;
  for (void* const part : node.all<cudnnBackendDescriptor_t>(name)) {
    if (!static_cast<const Node*>(part)->finalized) {
      return refuse(CUDNN_STATUS_BAD_PARAM, "its part is not finalized");
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  Node& node = *static_cast<Node*>(descriptor);
  if (node.type == CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
    if (node.one<int>(CUDNN_ATTR_TENSOR_DATA_TYPE) != CUDNN_DATA_FLOAT) {
      return refuse(CUDNN_STATUS_NOT_SUPPORTED, "the fake knows f32 only");
    }
    if (node.attributes.at(CUDNN_ATTR_TENSOR_DIMENSIONS).count != 4) {
      return refuse(CUDNN_STATUS_NOT_SUPPORTED, "the fake knows two axes only");
    }
  }
  if (node.type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR && getenv("FAKE_CUDNN_UNFUSED") != nullptr &&
      node.attributes.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).count > 1) {
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "the fake fuses nothing");
  }
  if (node.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    node.engine = node.node(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).engine;
    node.graph = node.node(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).graph;
    if (node.engine->index == 3) return refuse(CUDNN_STATUS_NOT_SUPPORTED, "engine 3 never works");
  }
  node.finalized = true;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, int64_t requested, int64_t* count, void* elements) {
  const Node& node = *static_cast<const Node*>(descriptor);
  if (!node.finalized) return refuse(CUDNN_STATUS_BAD_PARAM, "it is not finalized");
  std::vector<const Engine*> found;
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      for (const Engine& engine : engines()) {
        if (engine.found_by == node.one<int>(CUDNN_ATTR_ENGINEHEUR_MODE)) found.push_back(&engine);
      }
      return give_engines(found, &node.node(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH), CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                          requested, count, elements);
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      return give_engines({node.engine}, node.graph, CUDNN_BACKEND_ENGINE_DESCRIPTOR, requested, count, elements);
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
      if (node.engine->knob >= 0) found.push_back(node.engine);
      return give_engines(found, node.graph, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, requested, count, elements);
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
      return give<int>({2}, requested, count, elements);
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE:
      return give<int64_t>({node.engine->knob}, requested, count, elements);
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      return give<int64_t>({node.engine->index}, requested, count, elements);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      return give(node.engine->notes, requested, count, elements);
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      return give<int64_t>({node.engine->workspace}, requested, count, elements);
    default:
      return refuse(CUDNN_STATUS_BAD_PARAM, "the fake has no such attribute");
  }
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t variant_pack) {
  const Node& node = *static_cast<const Node*>(plan);
  const Node& pack = *static_cast<const Node*>(variant_pack);
  if (!pack.finalized) return refuse(CUDNN_STATUS_BAD_PARAM, "the variant pack is not finalized");
  const auto workspace = pack.one<CUdeviceptr>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  if (!fill(workspace, node.engine->workspace)) {
    return refuse(CUDNN_STATUS_EXECUTION_FAILED, "the fill failed");
  }
  Run run(pack, node.engine->index == 4 ? 1.5F : 1.0F);
  for (void* const operation : node.graph->all<cudnnBackendDescriptor_t>(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
    run.apply(*static_cast<const Node*>(operation));
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
