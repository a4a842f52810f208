// The part of ONNX Runtime's C API that a library of custom operators calls, so that none of its headers is needed: its
// wheels have none.
//
// Our own declarations, by onnxruntime_c_api.h of version 16 (ONNX Runtime 1.16). OrtApi is a table that only grows at
// its end: GetApi(16) gives it in every later version too. An entry's number stands behind it; those between are not
// declared. All pointers of one platform are of one size, so the numbers are the layout.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct OrtStatus;
struct OrtValue;
struct OrtMemoryInfo;
struct OrtTensorTypeAndShapeInfo;
struct OrtSessionOptions;
struct OrtCustomOpDomain;
struct OrtKernelInfo;
struct OrtKernelContext;
struct OrtCustomOp;

inline constexpr uint32_t ort_api_version = 16;

enum OrtErrorCode : int {
  ORT_OK = 0,
  ORT_FAIL = 1,
  ORT_INVALID_ARGUMENT = 2,
  ORT_NOT_IMPLEMENTED = 9,
};

enum ONNXTensorElementDataType : int {
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16 = 10,
  ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16 = 16,
};

enum OrtCustomOpInputOutputCharacteristic : int { INPUT_OUTPUT_REQUIRED = 0, INPUT_OUTPUT_OPTIONAL = 1 };

enum OrtMemType : int { OrtMemTypeDefault = 0 };

// Functions that return a status give null where all went well.
struct OrtApi {
  OrtStatus* (*CreateStatus)(OrtErrorCode code, const char* message);  // 0
  void* entries_1[1];
  const char* (*GetErrorMessage)(const OrtStatus* status);  // 2
  void* entries_3[23];
  OrtStatus* (*CreateCustomOpDomain)(const char* name, OrtCustomOpDomain** out);           // 26
  OrtStatus* (*CustomOpDomain_Add)(OrtCustomOpDomain* domain, const OrtCustomOp* op);      // 27
  OrtStatus* (*AddCustomOpDomain)(OrtSessionOptions* options, OrtCustomOpDomain* domain);  // 28
  void* entries_29[22];
  OrtStatus* (*GetTensorMutableData)(OrtValue* value, void** out);  // 51
  void* entries_52[9];
  OrtStatus* (*GetDimensionsCount)(const OrtTensorTypeAndShapeInfo* info, size_t* out);               // 61
  OrtStatus* (*GetDimensions)(const OrtTensorTypeAndShapeInfo* info, int64_t* values, size_t count);  // 62
  void* entries_63[2];
  OrtStatus* (*GetTensorTypeAndShape)(const OrtValue* value, OrtTensorTypeAndShapeInfo** out);  // 65
  void* entries_66[6];
  OrtStatus* (*MemoryInfoGetId)(const OrtMemoryInfo* info, int* out);  // 72
  void* entries_73[13];
  OrtStatus* (*KernelInfoGetAttribute_int64)(const OrtKernelInfo* info, const char* name, int64_t* out);  // 86
  OrtStatus* (*KernelInfoGetAttribute_string)(const OrtKernelInfo* info, const char* name, char* out,
                                              size_t* size);                                // 87
  OrtStatus* (*KernelContext_GetInputCount)(const OrtKernelContext* context, size_t* out);  // 88
  void* entries_89[1];
  OrtStatus* (*KernelContext_GetInput)(const OrtKernelContext* context, size_t index, const OrtValue** out);  // 90
  OrtStatus* (*KernelContext_GetOutput)(OrtKernelContext* context, size_t index, const int64_t* dimensions,
                                        size_t count, OrtValue** out);  // 91
  void* entries_92[1];
  void (*ReleaseStatus)(OrtStatus* status);  // 93
  void* entries_94[5];
  void (*ReleaseTensorTypeAndShapeInfo)(OrtTensorTypeAndShapeInfo* info);  // 99
  void* entries_100[63];
  OrtStatus* (*KernelInfoGetAttributeArray_int64)(const OrtKernelInfo* info, const char* name, int64_t* out,
                                                  size_t* size);  // 163
  void* entries_164[29];
  OrtStatus* (*KernelContext_GetGPUComputeStream)(const OrtKernelContext* context, void** out);  // 193
  OrtStatus* (*GetTensorMemoryInfo)(const OrtValue* value, const OrtMemoryInfo** out);           // 194
};

struct OrtApiBase {
  const OrtApi* (*GetApi)(uint32_t version);  // null where the runtime is older than that version
  const char* (*GetVersionString)();
};

// An operator, as callbacks. ONNX Runtime reads no field that came after `version`.
struct OrtCustomOp {
  uint32_t version;
  void* (*CreateKernel)(const OrtCustomOp*, const OrtApi*, const OrtKernelInfo*);  // null: CreateKernelV2 counts
  const char* (*GetName)(const OrtCustomOp*);
  const char* (*GetExecutionProviderType)(const OrtCustomOp*);
  ONNXTensorElementDataType (*GetInputType)(const OrtCustomOp*, size_t index);
  size_t (*GetInputTypeCount)(const OrtCustomOp*);
  ONNXTensorElementDataType (*GetOutputType)(const OrtCustomOp*, size_t index);
  size_t (*GetOutputTypeCount)(const OrtCustomOp*);
  void (*KernelCompute)(void* kernel, OrtKernelContext*);  // null: KernelComputeV2 counts
  void (*KernelDestroy)(void* kernel);
  OrtCustomOpInputOutputCharacteristic (*GetInputCharacteristic)(const OrtCustomOp*, size_t index);
  OrtCustomOpInputOutputCharacteristic (*GetOutputCharacteristic)(const OrtCustomOp*, size_t index);
  OrtMemType (*GetInputMemoryType)(const OrtCustomOp*, size_t index);
  int (*GetVariadicInputMinArity)(const OrtCustomOp*);  // these four: of variadic operators
  int (*GetVariadicInputHomogeneity)(const OrtCustomOp*);
  int (*GetVariadicOutputMinArity)(const OrtCustomOp*);
  int (*GetVariadicOutputHomogeneity)(const OrtCustomOp*);
  OrtStatus* (*CreateKernelV2)(const OrtCustomOp*, const OrtApi*, const OrtKernelInfo*, void** kernel);
  OrtStatus* (*KernelComputeV2)(void* kernel, OrtKernelContext*);
};

}  // extern "C"

#define ORT_ENTRY_IS(name, number) static_assert(offsetof(OrtApi, name) == (number) * sizeof(void*), #name)
ORT_ENTRY_IS(CreateStatus, 0);
ORT_ENTRY_IS(GetErrorMessage, 2);
ORT_ENTRY_IS(CreateCustomOpDomain, 26);
ORT_ENTRY_IS(AddCustomOpDomain, 28);
ORT_ENTRY_IS(GetTensorMutableData, 51);
ORT_ENTRY_IS(GetDimensionsCount, 61);
ORT_ENTRY_IS(GetDimensions, 62);
ORT_ENTRY_IS(GetTensorTypeAndShape, 65);
ORT_ENTRY_IS(MemoryInfoGetId, 72);
ORT_ENTRY_IS(KernelInfoGetAttribute_int64, 86);
ORT_ENTRY_IS(KernelInfoGetAttribute_string, 87);
ORT_ENTRY_IS(KernelContext_GetInputCount, 88);
ORT_ENTRY_IS(KernelContext_GetInput, 90);
ORT_ENTRY_IS(KernelContext_GetOutput, 91);
ORT_ENTRY_IS(ReleaseStatus, 93);
ORT_ENTRY_IS(ReleaseTensorTypeAndShapeInfo, 99);
ORT_ENTRY_IS(KernelInfoGetAttributeArray_int64, 163);
ORT_ENTRY_IS(KernelContext_GetGPUComputeStream, 193);
ORT_ENTRY_IS(GetTensorMemoryInfo, 194);
#undef ORT_ENTRY_IS
static_assert(offsetof(OrtCustomOp, KernelComputeV2) == 18 * sizeof(void*), "as in version 16");
