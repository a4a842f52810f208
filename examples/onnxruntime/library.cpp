// A library of custom operators for ONNX Runtime: nodes of the domain `kiln` run on Kiln. docs/engines.md explains it.
//
//   session_options.register_custom_ops_library("libkiln_onnxruntime.so")
#include <kiln/base/error.h>
#include <kiln/call.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "../framework/framework_call.h"
#include "layers.h"
#include "ort_abi.h"

namespace kiln_onnxruntime {
namespace {

/// Throws what ONNX Runtime says is wrong.
void check(const OrtApi& api, OrtStatus* status) {
  if (status == nullptr) return;
  const std::string message = api.GetErrorMessage(status);
  api.ReleaseStatus(status);
  throw std::runtime_error(message);
}

/// Runs `body`; what it throws becomes a status, with Kiln's message and hint.
template <class Body>
OrtStatus* status_of(const OrtApi& api, const Body& body) {
  try {
    body();
    return nullptr;
  } catch (const kiln::Error& error) {
    const bool wrong =
        error.code() == kiln::ErrorCode::invalid_argument || error.code() == kiln::ErrorCode::parse_error;
    const bool missing = error.code() == kiln::ErrorCode::unsupported;
    return api.CreateStatus(wrong     ? ORT_INVALID_ARGUMENT
                            : missing ? ORT_NOT_IMPLEMENTED
                                      : ORT_FAIL,
                            (std::string("kiln: ") + error.what()).c_str());
  } catch (const std::exception& error) {
    return api.CreateStatus(ORT_FAIL, error.what());
  }
}

/// Reads attributes. One that a node does not have is a status of failure, and gives what is empty.
class AttributeReader {
 public:
  AttributeReader(const OrtApi& api, const OrtKernelInfo* info) : api_(api), info_(info) {}

  std::vector<int64_t> integers(const char* name) const {
    size_t size = 0;
    if (!has(api_.KernelInfoGetAttributeArray_int64(info_, name, nullptr, &size))) return {};
    std::vector<int64_t> values(size);
    check(api_, api_.KernelInfoGetAttributeArray_int64(info_, name, values.data(), &size));
    return values;
  }
  std::string word(const char* name) const {
    size_t size = 0;
    if (!has(api_.KernelInfoGetAttribute_string(info_, name, nullptr, &size))) return {};
    std::string value(size, '\0');
    check(api_, api_.KernelInfoGetAttribute_string(info_, name, value.data(), &size));
    return value.c_str();  // the size counts the zero at the end
  }
  void integer(const char* name, int64_t& value) const { has(api_.KernelInfoGetAttribute_int64(info_, name, &value)); }

 private:
  bool has(OrtStatus* status) const {
    if (status == nullptr) return true;
    api_.ReleaseStatus(status);
    return false;
  }

  const OrtApi& api_;
  const OrtKernelInfo* info_;
};

Attributes attributes_of(const AttributeReader& reader) {
  Attributes attributes;
  attributes.kernel_shape = reader.integers("kernel_shape");
  attributes.pads = reader.integers("pads");
  attributes.strides = reader.integers("strides");
  attributes.dilations = reader.integers("dilations");
  attributes.auto_pad = reader.word("auto_pad");
  attributes.activation = reader.word("activation");
  reader.integer("group", attributes.group);
  reader.integer("ceil_mode", attributes.ceil_mode);
  reader.integer("count_include_pad", attributes.count_include_pad);
  reader.integer("axis", attributes.axis);
  return attributes;
}

struct ElementType {
  ONNXTensorElementDataType onnx;
  kiln::DType dtype;
  const char* name;
};

constexpr std::array element_types = {
    ElementType{ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, kiln::f32, "f32"},
    ElementType{ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, kiln::f16, "f16"},
    ElementType{ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, kiln::bf16, "bf16"},
};

struct Provider {
  const char* name;
  framework::Memory memory;
};

constexpr std::array providers = {Provider{"CPUExecutionProvider", framework::Memory::host},
                                  Provider{"CUDAExecutionProvider", framework::Memory::device}};

/// A node of a session. Sessions run it from several threads at a time.
class Node {
 public:
  Node(const OrtApi& api, const NodeKind& kind, const ElementType& type, const Provider& provider,
       const OrtKernelInfo* info)
      : api_(api),
        kind_(kind),
        type_(type),
        provider_(provider),
        attributes_(attributes_of(AttributeReader(api, info))) {}

  const OrtApi& api() const { return api_; }

  void compute(OrtKernelContext* context) {
    std::vector<const OrtValue*> values = inputs_of(context);
    std::vector<Extents> extents;
    for (const OrtValue* value : values) extents.push_back(value != nullptr ? extents_of(value) : Extents{});
    const Layer& layer = layer_for(extents);
    OrtValue* output = nullptr;
    check(api_, api_.KernelContext_GetOutput(context, 0, layer.y.data(), layer.y.size(), &output));

    std::vector<kiln::NamedTensor> tensors;
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] != nullptr) tensors.push_back({kind_.inputs[i], tensor_of(values[i], extents[i])});
    }
    tensors.push_back({"y", tensor_of(output, layer.y)});
    void* stream = nullptr;
    int ordinal = 0;
    if (provider_.memory == framework::Memory::device) {
      check(api_, api_.KernelContext_GetGPUComputeStream(context, &stream));
      const OrtMemoryInfo* place = nullptr;
      check(api_, api_.GetTensorMemoryInfo(output, &place));
      check(api_, api_.MemoryInfoGetId(place, &ordinal));
    }
    framework::call(ordinal, provider_.memory, layer.what, tensors, stream);
  }

 private:
  /// Null for those that the node does not have.
  std::vector<const OrtValue*> inputs_of(const OrtKernelContext* context) const {
    size_t count = 0;
    check(api_, api_.KernelContext_GetInputCount(context, &count));
    std::vector<const OrtValue*> values(count);
    for (size_t i = 0; i < count; ++i) check(api_, api_.KernelContext_GetInput(context, i, &values[i]));
    return values;
  }

  Extents extents_of(const OrtValue* value) const {
    OrtTensorTypeAndShapeInfo* info = nullptr;
    check(api_, api_.GetTensorTypeAndShape(value, &info));
    const std::unique_ptr<OrtTensorTypeAndShapeInfo, void (*)(OrtTensorTypeAndShapeInfo*)> owned(
        info, api_.ReleaseTensorTypeAndShapeInfo);
    size_t rank = 0;
    check(api_, api_.GetDimensionsCount(info, &rank));
    Extents extents(rank);
    check(api_, api_.GetDimensions(info, extents.data(), rank));
    return extents;
  }

  kiln::Tensor tensor_of(const OrtValue* value, const Extents& extents) const {
    void* data = nullptr;
    check(api_, api_.GetTensorMutableData(const_cast<OrtValue*>(value), &data));
    return {data, type_.dtype, extents, kiln::contiguous};
  }

  /// Made once for each set of shapes. Kiln itself keeps the plan, and finds it by the layer's text and the tensors.
  const Layer& layer_for(const std::vector<Extents>& inputs) {
    const std::scoped_lock lock(mutex_);
    const auto known = layers_.find(inputs);
    if (known != layers_.end()) return known->second;
    return layers_.emplace(inputs, layer_of(kind_, attributes_, inputs, type_.name)).first->second;
  }

  const OrtApi& api_;
  const NodeKind& kind_;
  const ElementType& type_;
  const Provider& provider_;
  Attributes attributes_;
  std::mutex mutex_;
  std::map<std::vector<Extents>, Layer> layers_;  // which stay where they are
};

/// One kind of node, for tensors of one type in the memory of one provider: what ONNX Runtime knows of an operator.
struct Operator : OrtCustomOp {
  const NodeKind* kind;
  const ElementType* type;
  const Provider* provider;

  Operator(const NodeKind& kind_, const ElementType& type_, const Provider& provider_)
      : OrtCustomOp{}, kind(&kind_), type(&type_), provider(&provider_) {
    version = ort_api_version;
    GetName = [](const OrtCustomOp* op) { return of(op).kind->name; };
    GetExecutionProviderType = [](const OrtCustomOp* op) { return of(op).provider->name; };
    GetInputType = [](const OrtCustomOp* op, size_t) { return of(op).type->onnx; };
    GetInputTypeCount = [](const OrtCustomOp* op) { return of(op).kind->inputs.size(); };
    GetOutputType = [](const OrtCustomOp* op, size_t) { return of(op).type->onnx; };
    GetOutputTypeCount = [](const OrtCustomOp*) { return size_t{1}; };
    GetInputCharacteristic = [](const OrtCustomOp* op, size_t index) {
      return index < of(op).kind->required ? INPUT_OUTPUT_REQUIRED : INPUT_OUTPUT_OPTIONAL;
    };
    GetOutputCharacteristic = [](const OrtCustomOp*, size_t) { return INPUT_OUTPUT_REQUIRED; };
    GetInputMemoryType = [](const OrtCustomOp*, size_t) { return OrtMemTypeDefault; };
    CreateKernelV2 = [](const OrtCustomOp* op, const OrtApi* api, const OrtKernelInfo* info, void** node) {
      return status_of(*api, [&] {
        const Operator& self = of(op);
        *node = std::make_unique<Node>(*api, *self.kind, *self.type, *self.provider, info).release();
      });
    };
    KernelComputeV2 = [](void* node, OrtKernelContext* context) {
      auto& self = *static_cast<Node*>(node);
      return status_of(self.api(), [&] { self.compute(context); });
    };
    KernelDestroy = [](void* node) { std::unique_ptr<Node>(static_cast<Node*>(node)).reset(); };
  }

 private:
  static const Operator& of(const OrtCustomOp* op) { return *static_cast<const Operator*>(op); }
};

/// The domain with all operators. ONNX Runtime keeps pointers to them: they stay until the process ends.
OrtCustomOpDomain* domain_with_operators(const OrtApi& api) {
  static auto& mutex = *new std::mutex;
  static OrtCustomOpDomain* made = nullptr;
  const std::scoped_lock lock(mutex);
  if (made != nullptr) return made;
  OrtCustomOpDomain* domain = nullptr;
  check(api, api.CreateCustomOpDomain("kiln", &domain));
  auto& operators = *new std::vector<std::unique_ptr<Operator>>;
  for (const Provider& provider : providers) {
    for (const NodeKind& kind : node_kinds()) {
      for (const ElementType& type : element_types) {
        operators.push_back(std::make_unique<Operator>(kind, type, provider));
        check(api, api.CustomOpDomain_Add(domain, operators.back().get()));
      }
    }
  }
  return made = domain;
}

}  // namespace
}  // namespace kiln_onnxruntime

/// Entry point that ONNX Runtime looks for in a library of custom operators.
extern "C" __attribute__((visibility("default"))) OrtStatus* RegisterCustomOps(OrtSessionOptions* options,
                                                                               const OrtApiBase* base) {
  const OrtApi* api = base->GetApi(ort_api_version);
  if (api == nullptr) {
    const std::string message =
        std::string("kiln: ONNX Runtime is ") + base->GetVersionString() + ", and 1.16 or later is needed";
    return base->GetApi(1)->CreateStatus(ORT_FAIL, message.c_str());
  }
  return kiln_onnxruntime::status_of(*api, [&] {
    kiln_onnxruntime::check(*api, api->AddCustomOpDomain(options, kiln_onnxruntime::domain_with_operators(*api)));
  });
}
