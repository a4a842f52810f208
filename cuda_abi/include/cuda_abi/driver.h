// The part of the CUDA driver's binary interface that Kiln calls and its emulator exports.
//
// Our own declarations, so that no CUDA header is needed to build. Names, values and signatures are those of the CUDA
// driver API reference manual; each entry point is listed under the symbol that libcuda exports (cuMemAlloc_v2, ...).
// Everything stands in a namespace: a program may include NVIDIA's cuda.h beside Kiln.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_abi {

using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct ContextTag*;
using CUmodule = struct ModuleTag*;
using CUfunction = struct FunctionTag*;
using CUstream = struct StreamTag*;
using CUevent = struct EventTag*;
using CUgraph = struct GraphTag*;
using CUgraphNode = struct GraphNodeTag*;
using CUgraphExec = struct GraphExecTag*;
using CUmemoryPool = struct MemoryPoolTag*;
using CUmemGenericAllocationHandle = unsigned long long;
struct CUuuid {
  unsigned char bytes[16];
};

enum CUresult : int {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_DEINITIALIZED = 4,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_INVALID_PTX = 218,
  CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
  CUDA_ERROR_INVALID_SOURCE = 300,
  CUDA_ERROR_OPERATING_SYSTEM = 304,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_ILLEGAL_STATE = 401,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
  CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_NOT_PERMITTED = 800,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  CUDA_ERROR_STREAM_CAPTURE_MERGE = 902,
  CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
  CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
  CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
  CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
  CUDA_ERROR_CAPTURED_EVENT = 907,
  CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
  CUDA_ERROR_UNKNOWN = 999,
};

enum CUdevice_attribute : int {
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y = 3,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z = 4,
  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5,
  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y = 6,
  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z = 7,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
  CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY = 9,
  CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
  CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK = 12,
  CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,  // kHz
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_ECC_ENABLED = 32,
  CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,        // kHz
  CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,  // bits
  CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,            // bytes
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
  CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
  CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
  CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS = 88,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR = 106,
  CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK = 111,
};

enum CUfunction_attribute : int {
  CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
  CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,  // static shared memory
  CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2,
  CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,  // per thread
  CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
  CU_FUNC_ATTRIBUTE_PTX_VERSION = 5,
  CU_FUNC_ATTRIBUTE_BINARY_VERSION = 6,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
};

enum CUjit_option : int {
  CU_JIT_INFO_LOG_BUFFER = 3,
  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
  CU_JIT_ERROR_LOG_BUFFER = 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
};

enum CUstreamCaptureStatus : int {
  CU_STREAM_CAPTURE_STATUS_NONE = 0,
  CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
  CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
};

/// Which threads may make calls that could disturb a capture (cuMemAlloc, ...) while it lasts.
enum CUstreamCaptureMode : int {
  CU_STREAM_CAPTURE_MODE_GLOBAL = 0,        // none
  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,  // all but the one that began it
  CU_STREAM_CAPTURE_MODE_RELAXED = 2,       // all
};

enum CUgraphNodeType : int {
  CU_GRAPH_NODE_TYPE_KERNEL = 0,
  CU_GRAPH_NODE_TYPE_MEMCPY = 1,
  CU_GRAPH_NODE_TYPE_MEMSET = 2,
};

/// CUDA_KERNEL_NODE_PARAMS_v1: what the entry points without a suffix take, in drivers of every version.
struct CUDA_KERNEL_NODE_PARAMS {
  CUfunction func;
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  void** kernelParams;
  void** extra;
};

enum CUpointer_attribute : int {
  CU_POINTER_ATTRIBUTE_CONTEXT = 1,
  CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,     // CUmemorytype
  CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,  // where kernels of the current context find it
  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
  CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17,  // null for memory of no pool
};

enum CUmemorytype : unsigned {
  CU_MEMORYTYPE_HOST = 1,
  CU_MEMORYTYPE_DEVICE = 2,
};

enum CUlaunchAttributeID : int {
  CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,                        // all blocks run at once: they may wait for each other
  CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,                  // blocks that share their shared memory
  CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,  // may begin before the launch ahead of it has ended
};

union CUlaunchAttributeValue {
  char pad[64];
  int cooperative;
  struct {
    unsigned x, y, z;
  } clusterDim;
  int programmaticStreamSerializationAllowed;
};

struct CUlaunchAttribute {
  CUlaunchAttributeID id;
  char pad[8 - sizeof(CUlaunchAttributeID)];
  CUlaunchAttributeValue value;
};

struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute* attrs;
  unsigned numAttrs;
};

/// Descriptor of a tensor for copies between global and shared memory (cp.async.bulk.tensor): its address, extents,
/// strides and the box that one copy moves. Passed to kernels as a parameter of these 128 bytes.
struct alignas(64) CUtensorMap {
  uint64_t opaque[16];
};

enum CUtensorMapDataType : int {
  CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0,
  CU_TENSOR_MAP_DATA_TYPE_INT32 = 3,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT16 = 6,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT32 = 7,
  CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 = 9,
};

enum CUtensorMapInterleave : int {
  CU_TENSOR_MAP_INTERLEAVE_NONE = 0,
};

/// How the 16-byte pieces of a box's rows are exchanged in shared memory, against bank conflicts: within 32, 64, 128
/// bytes.
enum CUtensorMapSwizzle : int {
  CU_TENSOR_MAP_SWIZZLE_NONE = 0,
  CU_TENSOR_MAP_SWIZZLE_32B = 1,
  CU_TENSOR_MAP_SWIZZLE_64B = 2,
  CU_TENSOR_MAP_SWIZZLE_128B = 3,
};

enum CUtensorMapL2promotion : int {
  CU_TENSOR_MAP_L2_PROMOTION_NONE = 0,
  CU_TENSOR_MAP_L2_PROMOTION_L2_128B = 2,
};

enum CUtensorMapFloatOOBfill : int {
  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0,  // zeros
};

inline constexpr unsigned CU_STREAM_DEFAULT = 0;
inline constexpr unsigned CU_STREAM_NON_BLOCKING = 1;
inline constexpr unsigned CU_EVENT_DEFAULT = 0;
inline constexpr unsigned CU_EVENT_DISABLE_TIMING = 2;

// Entry points with their signatures: X(symbol, result(parameters)). A list, because two sides need exactly the same
// one: the loader makes a table of function pointers of it, and the emulator checks its exports against it.
#define KILN_CUDA_DRIVER_ENTRY_POINTS(X)                                                                               \
  X(cuInit, CUresult(unsigned flags))                                                                                  \
  X(cuDriverGetVersion, CUresult(int* version))                                                                        \
  X(cuGetErrorName, CUresult(CUresult error, const char** name))                                                       \
  X(cuGetErrorString, CUresult(CUresult error, const char** text))                                                     \
  X(cuDeviceGetCount, CUresult(int* count))                                                                            \
  X(cuDeviceGet, CUresult(CUdevice* device, int ordinal))                                                              \
  X(cuDeviceGetName, CUresult(char* name, int length, CUdevice device))                                                \
  X(cuDeviceGetUuid_v2, CUresult(CUuuid* uuid, CUdevice device))                                                       \
  X(cuDeviceTotalMem_v2, CUresult(size_t* bytes, CUdevice device))                                                     \
  X(cuDeviceGetAttribute, CUresult(int* value, CUdevice_attribute attribute, CUdevice device))                         \
  X(cuDevicePrimaryCtxRetain, CUresult(CUcontext* context, CUdevice device))                                           \
  X(cuDevicePrimaryCtxRelease_v2, CUresult(CUdevice device))                                                           \
  X(cuCtxGetCurrent, CUresult(CUcontext* context))                                                                     \
  X(cuCtxSetCurrent, CUresult(CUcontext context))                                                                      \
  X(cuCtxPushCurrent_v2, CUresult(CUcontext context))                                                                  \
  X(cuCtxPopCurrent_v2, CUresult(CUcontext* context))                                                                  \
  X(cuCtxGetDevice, CUresult(CUdevice* device))                                                                        \
  X(cuCtxSynchronize, CUresult())                                                                                      \
  X(cuModuleLoadDataEx,                                                                                                \
    CUresult(CUmodule* module, const void* image, unsigned option_count, CUjit_option* options, void** option_values)) \
  X(cuModuleUnload, CUresult(CUmodule module))                                                                         \
  X(cuModuleGetFunction, CUresult(CUfunction* function, CUmodule module, const char* name))                            \
  X(cuModuleGetGlobal_v2, CUresult(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name))            \
  X(cuFuncGetAttribute, CUresult(int* value, CUfunction_attribute attribute, CUfunction function))                     \
  X(cuFuncSetAttribute, CUresult(CUfunction function, CUfunction_attribute attribute, int value))                      \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor,                                                                       \
    CUresult(int* blocks, CUfunction function, int block_size, size_t dynamic_shared_bytes))                           \
  X(cuMemGetInfo_v2, CUresult(size_t* free_bytes, size_t* total_bytes))                                                \
  X(cuMemAlloc_v2, CUresult(CUdeviceptr* address, size_t bytes))                                                       \
  X(cuMemFree_v2, CUresult(CUdeviceptr address))                                                                       \
  X(cuMemHostAlloc, CUresult(void** pointer, size_t bytes, unsigned flags))                                            \
  X(cuMemHostRegister_v2, CUresult(void* pointer, size_t bytes, unsigned flags))                                       \
  X(cuMemHostUnregister, CUresult(void* pointer))                                                                      \
  X(cuMemFreeHost, CUresult(void* pointer))                                                                            \
  X(cuMemcpyHtoD_v2, CUresult(CUdeviceptr destination, const void* source, size_t bytes))                              \
  X(cuMemcpyDtoH_v2, CUresult(void* destination, CUdeviceptr source, size_t bytes))                                    \
  X(cuMemcpyHtoDAsync_v2, CUresult(CUdeviceptr destination, const void* source, size_t bytes, CUstream stream))        \
  X(cuMemcpyDtoHAsync_v2, CUresult(void* destination, CUdeviceptr source, size_t bytes, CUstream stream))              \
  X(cuMemcpyDtoDAsync_v2, CUresult(CUdeviceptr destination, CUdeviceptr source, size_t bytes, CUstream stream))        \
  X(cuMemsetD8Async, CUresult(CUdeviceptr address, unsigned char value, size_t count, CUstream stream))                \
  X(cuMemsetD32Async, CUresult(CUdeviceptr address, unsigned value, size_t count, CUstream stream))                    \
  X(cuPointerGetAttribute, CUresult(void* value, CUpointer_attribute attribute, CUdeviceptr address))                  \
  X(cuMemGetAddressRange_v2, CUresult(CUdeviceptr* base, size_t* bytes, CUdeviceptr address))                          \
  X(cuStreamCreate, CUresult(CUstream* stream, unsigned flags))                                                        \
  X(cuStreamDestroy_v2, CUresult(CUstream stream))                                                                     \
  X(cuStreamSynchronize, CUresult(CUstream stream))                                                                    \
  X(cuStreamQuery, CUresult(CUstream stream))                                                                          \
  X(cuStreamWaitEvent, CUresult(CUstream stream, CUevent event, unsigned flags))                                       \
  X(cuStreamGetCtx, CUresult(CUstream stream, CUcontext* context))                                                     \
  X(cuStreamIsCapturing, CUresult(CUstream stream, CUstreamCaptureStatus* status))                                     \
  X(cuEventCreate, CUresult(CUevent* event, unsigned flags))                                                           \
  X(cuEventDestroy_v2, CUresult(CUevent event))                                                                        \
  X(cuEventRecord, CUresult(CUevent event, CUstream stream))                                                           \
  X(cuEventQuery, CUresult(CUevent event))                                                                             \
  X(cuEventSynchronize, CUresult(CUevent event))                                                                       \
  X(cuEventElapsedTime, CUresult(float* milliseconds, CUevent start, CUevent end))                                     \
  X(cuLaunchKernel, CUresult(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
                             unsigned block_y, unsigned block_z, unsigned dynamic_shared_bytes, CUstream stream,       \
                             void** parameters, void** extra))                                                         \
  X(cuStreamBeginCapture_v2, CUresult(CUstream stream, CUstreamCaptureMode mode))                                      \
  X(cuStreamEndCapture, CUresult(CUstream stream, CUgraph* graph))                                                     \
  X(cuThreadExchangeStreamCaptureMode, CUresult(CUstreamCaptureMode* mode))                                            \
  X(cuGraphGetNodes, CUresult(CUgraph graph, CUgraphNode* nodes, size_t* count))                                       \
  X(cuGraphNodeGetType, CUresult(CUgraphNode node, CUgraphNodeType* type))                                             \
  X(cuGraphKernelNodeGetParams, CUresult(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* parameters))                       \
  X(cuGraphInstantiateWithFlags, CUresult(CUgraphExec* executable, CUgraph graph, unsigned long long flags))           \
  X(cuGraphExecKernelNodeSetParams,                                                                                    \
    CUresult(CUgraphExec executable, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters))                     \
  X(cuGraphLaunch, CUresult(CUgraphExec executable, CUstream stream))                                                  \
  X(cuGraphExecDestroy, CUresult(CUgraphExec executable))                                                              \
  X(cuGraphDestroy, CUresult(CUgraph graph))

// Entry points that an older driver may lack, which serves all but the kernels that need them.
#define KILN_CUDA_DRIVER_OPTIONAL_ENTRY_POINTS(X)                                                                   \
  X(cuLaunchKernelEx, CUresult(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra)) \
  X(cuMemRetainAllocationHandle, CUresult(CUmemGenericAllocationHandle* handle, void* address))                     \
  X(cuMemRelease, CUresult(CUmemGenericAllocationHandle handle))                                                    \
  X(cuTensorMapEncodeTiled,                                                                                         \
    CUresult(CUtensorMap* map, CUtensorMapDataType type, unsigned rank, void* address, const uint64_t* extents,     \
             const uint64_t* byte_strides, const unsigned* box, const unsigned* element_strides,                    \
             CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,        \
             CUtensorMapFloatOOBfill fill))

}  // namespace cuda_abi
