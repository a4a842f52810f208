// Error texts, finding entry points by name, and the emulator's own extensions.
#include <algorithm>
#include <array>
#include <climits>
#include <iterator>
#include <string>
#include <string_view>

#include "driver.h"
#include "driver/exports.h"
#include "driver/other_entry_points.h"
#include "kiln/emulator/extensions.h"
#include "per_thread.h"

namespace kiln::emulator {
namespace {

struct ErrorText {
  CUresult code;
  const char* name;
  const char* text;
};

// The driver's wording, since people search for it.
constexpr std::array error_texts = {
    ErrorText{CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    ErrorText{CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    ErrorText{CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    ErrorText{CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    ErrorText{CUDA_ERROR_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    ErrorText{CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    ErrorText{CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    ErrorText{CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    ErrorText{CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    ErrorText{CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
              "no kernel image is available for execution on the device"},
    ErrorText{CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    ErrorText{CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
              "the provided PTX was compiled with an unsupported toolchain."},
    ErrorText{CUDA_ERROR_INVALID_SOURCE, "CUDA_ERROR_INVALID_SOURCE", "device kernel image is invalid"},
    ErrorText{file_not_found, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    ErrorText{CUDA_ERROR_OPERATING_SYSTEM, "CUDA_ERROR_OPERATING_SYSTEM",
              "OS call failed or operation not supported on this OS"},
    ErrorText{CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    ErrorText{CUDA_ERROR_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE",
              "the operation cannot be performed in the present state"},
    ErrorText{CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    ErrorText{CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    ErrorText{CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    ErrorText{CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
              "too many resources requested for launch"},
    ErrorText{CUDA_ERROR_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    ErrorText{CUDA_ERROR_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    ErrorText{CUDA_ERROR_ASSERT, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    ErrorText{static_cast<CUresult>(712), "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
              "part or all of the requested memory range is already mapped"},
    ErrorText{static_cast<CUresult>(713), "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
              "pointer does not correspond to a registered memory region"},
    ErrorText{CUDA_ERROR_ILLEGAL_INSTRUCTION, "CUDA_ERROR_ILLEGAL_INSTRUCTION",
              "an illegal instruction was encountered"},
    ErrorText{CUDA_ERROR_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    ErrorText{CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    ErrorText{cooperative_launch_too_large, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
              "too many blocks in cooperative launch"},
    ErrorText{CUDA_ERROR_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    ErrorText{CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    ErrorText{CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
              "system has unsupported display driver / cuda driver combination"},
    ErrorText{CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
              "operation not permitted when stream is capturing"},
    ErrorText{CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
              "operation failed due to a previous error during capture"},
    ErrorText{CUDA_ERROR_STREAM_CAPTURE_MERGE, "CUDA_ERROR_STREAM_CAPTURE_MERGE",
              "operation would result in a merge of separate capture sequences"},
    ErrorText{CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
              "capture was not ended in the same stream as it began"},
    ErrorText{CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
              "capturing stream has unjoined work"},
    ErrorText{CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
              "dependency created on uncaptured work in another stream"},
    ErrorText{CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
              "operation would make the legacy stream depend on a capturing blocking stream"},
    ErrorText{CUDA_ERROR_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT",
              "operation not permitted on an event last recorded in a capturing stream"},
    ErrorText{CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
              "attempt to terminate a thread-local capture sequence from another thread"},
    ErrorText{CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

// Stores the wanted text, or null and a failure for a code that is not listed.
void find_text(CUresult error, const char* ErrorText::*wanted, const char** result) {
  require(result != nullptr);
  const auto found = std::find_if(error_texts.begin(), error_texts.end(),
                                  [&](const ErrorText& candidate) { return candidate.code == error; });
  *result = found == error_texts.end() ? nullptr : (*found).*wanted;
  require(*result != nullptr);
}

}  // namespace
}  // namespace kiln::emulator

#define KILN_EMULATOR_DECLARE(symbol) extern "C" kiln::emulator::CUresult symbol();
KILN_EMULATOR_OTHER_ENTRY_POINTS(KILN_EMULATOR_DECLARE)
#undef KILN_EMULATOR_DECLARE

namespace kiln::emulator {
namespace {

struct Symbol {
  std::string_view name;
  void* function;
};

#define KILN_EMULATOR_CHECK_SIGNATURE(symbol, ...) \
  static_assert(std::is_same_v<decltype(symbol), __VA_ARGS__>, #symbol " must have the signature that is listed");
KILN_CUDA_DRIVER_ENTRY_POINTS(KILN_EMULATOR_CHECK_SIGNATURE)
KILN_CUDA_DRIVER_OPTIONAL_ENTRY_POINTS(KILN_EMULATOR_CHECK_SIGNATURE)
KILN_EMULATOR_EXTRA_ENTRY_POINTS(KILN_EMULATOR_CHECK_SIGNATURE)
#undef KILN_EMULATOR_CHECK_SIGNATURE

#define KILN_EMULATOR_SYMBOL(symbol, ...) Symbol{#symbol, reinterpret_cast<void*>(&symbol)},
#define KILN_EMULATOR_VARIANT(symbol, suffix) Symbol{#symbol #suffix, reinterpret_cast<void*>(&symbol##suffix)},
const Symbol symbols[] = {KILN_CUDA_DRIVER_ENTRY_POINTS(KILN_EMULATOR_SYMBOL)
                              KILN_CUDA_DRIVER_OPTIONAL_ENTRY_POINTS(KILN_EMULATOR_SYMBOL)
                                  KILN_EMULATOR_EXTRA_ENTRY_POINTS(KILN_EMULATOR_SYMBOL)
                                      KILN_EMULATOR_PER_THREAD_ENTRY_POINTS(KILN_EMULATOR_VARIANT)
                                          KILN_EMULATOR_OTHER_ENTRY_POINTS(KILN_EMULATOR_SYMBOL)};
#undef KILN_EMULATOR_VARIANT
#undef KILN_EMULATOR_SYMBOL

void* find_symbol(std::string_view name) {
  const auto found =
      std::find_if(std::begin(symbols), std::end(symbols), [&](const Symbol& s) { return s.name == name; });
  return found == std::end(symbols) ? nullptr : found->function;
}

struct Variant {
  std::string_view name;
  int since;
};

// The CUDA versions in which base names came to mean a new variant with another signature, for those after 11.3, before
// which nobody asked.
constexpr int only_by_full_name = INT_MAX;
constexpr std::array variants = {
    Variant{"cuCtxCreate_v3", 11040},
    Variant{"cuCtxCreate_v4", 12050},
    Variant{"cuCtxGetDevice_v2", only_by_full_name},
    Variant{"cuCtxSynchronize_v2", only_by_full_name},
    Variant{"cuDeviceGetUuid_v2", 11040},
    Variant{"cuEventElapsedTime_v2", 12080},
    Variant{"cuGetProcAddress_v2", 12000},
    Variant{"cuGraphAddDependencies_v2", 12030},
    Variant{"cuGraphAddKernelNode_v2", 12000},
    Variant{"cuGraphAddNode_v2", 12030},
    Variant{"cuGraphExecKernelNodeSetParams_v2", 12000},
    Variant{"cuGraphExecUpdate_v2", 12000},
    Variant{"cuGraphGetEdges_v2", 12030},
    Variant{"cuGraphKernelNodeGetParams_v2", 12000},
    Variant{"cuGraphKernelNodeSetParams_v2", 12000},
    Variant{"cuGraphNodeGetDependencies_v2", 12030},
    Variant{"cuGraphNodeGetDependentNodes_v2", 12030},
    Variant{"cuGraphRemoveDependencies_v2", 12030},
    Variant{"cuMemAdvise_v2", 12020},
    Variant{"cuMemPrefetchAsync_v2", 12020},
    Variant{"cuMemcpy3DBatchAsync_v2", 13000},
    Variant{"cuMemcpyBatchAsync_v2", 13000},
    Variant{"cuStreamBatchMemOp_v2", 11070},
    Variant{"cuStreamGetCaptureInfo_v3", 12030},
    Variant{"cuStreamGetCtx_v2", only_by_full_name},
    Variant{"cuStreamUpdateCaptureDependencies_v2", 12030},
    Variant{"cuStreamWaitValue32_v2", 11070},
    Variant{"cuStreamWaitValue64_v2", 11070},
    Variant{"cuStreamWriteValue32_v2", 11070},
    Variant{"cuStreamWriteValue64_v2", 11070},
};

bool is_for(int version, std::string_view name) {
  const auto found = std::find_if(variants.begin(), variants.end(), [&](const Variant& v) { return v.name == name; });
  return found == variants.end() || version >= found->since;
}

// The export that a base name ("cuMemAlloc") or a full one means to a program built for `version`, or null.
// `per_thread`: built for a default stream of each thread.
void* find_export(std::string_view base, int version, bool per_thread) {
  for (const std::string_view suffix : {"_v4", "_v3", "_v2", ""}) {
    const std::string name = std::string(base).append(suffix);
    if (find_symbol(name) == nullptr || (!suffix.empty() && !is_for(version, name))) continue;
    for (const std::string_view stream : {"_ptsz", "_ptds"}) {
      if (void* const own = per_thread ? find_symbol(std::string(name).append(stream)) : nullptr) return own;
    }
    return find_symbol(name);
  }
  return nullptr;
}

// Null where current_context() would end the call.
std::shared_ptr<Context> context_if_any() {
  const Driver* driver = Driver::if_initialised();
  const std::vector<CUcontext>& stack = context_stack();
  return driver == nullptr || stack.empty() ? nullptr : driver->contexts.find(stack.back());
}

std::string current_fault() {
  const Driver* driver = Driver::if_initialised();
  if (driver == nullptr) return {};
  const std::shared_ptr<Context> context = context_if_any();
  std::string report = context == nullptr ? std::string() : context->fault();
  return report.empty() ? driver->last_fault() : report;
}

std::string current_launch() {
  const std::shared_ptr<Context> context = context_if_any();
  const std::optional<LaunchRecord> record = context == nullptr ? std::nullopt : context->last_launch();
  return record ? to_json(*record) : std::string();
}

std::string reason_of_no_time() {
  const std::shared_ptr<Context> context = context_if_any();
  return context == nullptr ? std::string() : context->not_timed();
}

std::string taken_launches() {
  const std::shared_ptr<Context> context = context_if_any();
  std::string text = "[";
  if (context != nullptr) {
    uint32_t number = 0;
    for (const LaunchRecord& record : context->take_launches()) {
      text += (text.size() > 1 ? ", " : "") + to_json(record, ++number);
    }
  }
  return text + "]";
}

bool time_only(bool on) {
  const std::shared_ptr<Context> context = context_if_any();
  if (context == nullptr || !context->device().card) return false;
  context->set_time_only(on);
  return true;
}

}  // namespace

CUresult cuGetErrorName(CUresult error, const char** name) {
  return entry([&] { find_text(error, &ErrorText::name, name); });
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  return entry([&] { find_text(error, &ErrorText::text, text); });
}

// NVRTC 13 asks a libcuda it finds for its private tables, and crashes if it cannot ask.
CUresult cuGetExportTable(const void** table, const CUuuid*) {
  return entry([&] {
    require(table != nullptr);
    *table = nullptr;
    fail(CUDA_ERROR_NOT_FOUND);
  });
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, uint64_t flags, int* status) {
  return entry([&] {
    constexpr int found = 0, not_found = 1;                 // CUdriverProcAddressQueryResult
    constexpr uint64_t per_thread_default_stream = 1 << 1;  // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
    require(symbol != nullptr && function != nullptr);
    *function = find_export(symbol, version, (flags & per_thread_default_stream) != 0);
    if (status != nullptr) *status = *function != nullptr ? found : not_found;
    require(*function != nullptr, CUDA_ERROR_NOT_FOUND);
  });
}

CUresult cuGetProcAddress(const char* symbol, void** function, int version, uint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}

}  // namespace kiln::emulator

extern "C" __attribute__((visibility("default"))) const char* kiln_emulator_refused_setting(void) {
  static const kiln::emulator::PerThread<std::string> texts;
  std::string& text = texts.get();
  text.clear();
  try {
    kiln::emulator::Driver::initialise();
  } catch (const kiln::emulator::SettingsError& error) {
    text = error.what();
  } catch (...) {
    // cuInit() has a code for what is no setting's fault.
  }
  return text.c_str();
}

extern "C" __attribute__((visibility("default"))) const char* kiln_emulator_last_fault(void) {
  static const kiln::emulator::PerThread<std::string> texts;
  std::string& text = texts.get();
  text = kiln::emulator::current_fault();
  return text.c_str();
}

extern "C" __attribute__((visibility("default"))) const char* kiln_emulator_last_launch_json(void) {
  static const kiln::emulator::PerThread<std::string> texts;
  std::string& text = texts.get();
  text = kiln::emulator::current_launch();
  return text.c_str();
}

extern "C" __attribute__((visibility("default"))) const char* kiln_emulator_launches_json(void) {
  static const kiln::emulator::PerThread<std::string> texts;
  std::string& text = texts.get();
  text = kiln::emulator::taken_launches();
  return text.c_str();
}

extern "C" __attribute__((visibility("default"))) const char* kiln_emulator_not_timed(void) {
  static const kiln::emulator::PerThread<std::string> texts;
  std::string& text = texts.get();
  text = kiln::emulator::reason_of_no_time();
  return text.c_str();
}

extern "C" __attribute__((visibility("default"))) int kiln_emulator_time_only(int on) {
  return kiln::emulator::time_only(on != 0) ? 1 : 0;
}

extern "C" __attribute__((visibility("default"))) void kiln_emulator_trace_launches(uint64_t instructions) {
  const std::shared_ptr<kiln::emulator::Context> context = kiln::emulator::context_if_any();
  if (context != nullptr) context->trace_launches(instructions);
}
