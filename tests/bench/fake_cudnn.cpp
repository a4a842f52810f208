// A cuDNN for tests: it exports the entry points of cuda_abi/cudnn.h, knows one operation, and computes it on the host,
// because the emulated device's memory is host memory. Each engine configuration takes a device time of its own: a fill
// of its workspace. It is as strict about the order of calls as cuDNN.
//
// Engines: 1 (knob 2: 0 or 1, the second twice as fast), offered by A; 2, TF32 on tensor cores, and 1 again, by B;
// 3, which refuses to become a plan; 4, whose results are wrong; 5, which asks for all memory; 6, slow, by fallback.
#include <cuda_abi/cudnn.h>
#include <cuda_abi/driver.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

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
    std::memcpy(values.data(), attribute.bytes.data(), attribute.bytes.size());
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
      return 4;
    default:
      return 8;
  }
}

char last_error[256] = "";  // cuDNN keeps it for each thread; the tests have one

cudnnStatus_t refuse(cudnnStatus_t status, const char* why) {
  std::snprintf(last_error, sizeof last_error, "%s", why);
  return status;
}

CUstream stream_of_handle = nullptr;

// The driver is loaded already, by the process under test.
template <class Function>
Function* driver_entry(const char* name) {
  void* library = dlopen(getenv("FAKE_CUDNN_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) std::abort();
  return reinterpret_cast<Function*>(dlsym(library, name));
}

struct Tensor {
  std::vector<int64_t> extents, strides;
  float* data;
  float& at(int64_t a, int64_t b, int64_t c, int64_t d) const {
    return data[a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3]];
  }
};

Tensor tensor(const Node& operation, cudnnBackendAttributeName_t name, const Node& pack) {
  const Node& node = operation.node(name);
  const auto ids = pack.all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto id = std::find(ids.begin(), ids.end(), node.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)) - ids.begin();
  return {node.all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS), node.all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES),
          static_cast<float*>(pack.all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).at(static_cast<size_t>(id)))};
}

void convolve(const Node& operation, const Node& pack, float scale) {
  const Tensor x = tensor(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, pack);
  const Tensor w = tensor(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, pack);
  const Tensor y = tensor(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, pack);
  const Node& conv = operation.node(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
  const auto pads = conv.all<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  const auto strides = conv.all<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  const auto dilations = conv.all<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  const int64_t groups = x.extents[1] / w.extents[1], per_group = w.extents[0] / groups;
  const auto element = [&](int64_t n, int64_t k, int64_t p, int64_t q) {
    double sum = 0;
    for (int64_t c = 0; c < w.extents[1]; ++c) {
      for (int64_t r = 0; r < w.extents[2]; ++r) {
        for (int64_t s = 0; s < w.extents[3]; ++s) {
          const int64_t h = p * strides[0] - pads[0] + r * dilations[0];
          const int64_t column = q * strides[1] - pads[1] + s * dilations[1];
          if (h < 0 || h >= x.extents[2] || column < 0 || column >= x.extents[3]) continue;
          sum += static_cast<double>(x.at(n, k / per_group * w.extents[1] + c, h, column)) * w.at(k, c, r, s);
        }
      }
    }
    return static_cast<float>(sum);
  };
  for (int64_t n = 0; n < y.extents[0]; ++n) {
    for (int64_t k = 0; k < y.extents[1]; ++k) {
      for (int64_t p = 0; p < y.extents[2]; ++p) {
        for (int64_t q = 0; q < y.extents[3]; ++q) y.at(n, k, p, q) = scale * element(n, k, p, q);
      }
    }
  }
}

// Copies `values` out as GetAttribute does.
template <class T>
cudnnStatus_t give(const std::vector<T>& values, int64_t requested, int64_t* count, void* elements) {
  if (count != nullptr) *count = static_cast<int64_t>(values.size());
  if (elements != nullptr) {
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
    if (node.type != type) return refuse(CUDNN_STATUS_BAD_PARAM, "a descriptor of another type");
    node.engine = found[i];
    node.graph = graph;
    node.finalized = true;
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

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
  *handle = reinterpret_cast<cudnnHandle_t>(8);
  return getenv("FAKE_CUDNN_FAILS") == nullptr ? CUDNN_STATUS_SUCCESS
                                               : refuse(CUDNN_STATUS_NOT_INITIALIZED, "no device for the fake");
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t) {
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
  return node.node(name).finalized ? CUDNN_STATUS_SUCCESS : refuse(CUDNN_STATUS_BAD_PARAM, "its part is not finalized");
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  Node& node = *static_cast<Node*>(descriptor);
  if (node.type == CUDNN_BACKEND_TENSOR_DESCRIPTOR && node.one<int>(CUDNN_ATTR_TENSOR_DATA_TYPE) != CUDNN_DATA_FLOAT) {
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "the fake knows f32 only");
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
  auto* const fill = driver_entry<CUresult(CUdeviceptr, unsigned char, size_t, CUstream)>("cuMemsetD8Async");
  if (fill(workspace, 0, static_cast<size_t>(node.engine->workspace), stream_of_handle) != CUDA_SUCCESS) {
    return refuse(CUDNN_STATUS_EXECUTION_FAILED, "the fill failed");
  }
  convolve(node.graph->node(CUDNN_ATTR_OPERATIONGRAPH_OPS), pack, node.engine->index == 4 ? 1.5F : 1.0F);
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
