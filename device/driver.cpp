#include "kiln/device/driver.h"

#include <fmt/format.h>

#include <utility>

namespace kiln::device {
namespace {

using cuda_abi::CUresult;

ErrorCode error_code(CUresult result) {
  return result == cuda_abi::CUDA_ERROR_OUT_OF_MEMORY ? ErrorCode::out_of_memory : ErrorCode::driver_error;
}

}  // namespace

// The codes are those that the driver API reference says leave the process in an inconsistent state. Some are of no
// other use to Kiln, hence numbers.
bool loses_context(CUresult result) {
  switch (static_cast<int>(result)) {
    case 214:  // CUDA_ERROR_ECC_UNCORRECTABLE
    case 220:  // CUDA_ERROR_NVLINK_UNCORRECTABLE
    case cuda_abi::CUDA_ERROR_ILLEGAL_ADDRESS:
    case cuda_abi::CUDA_ERROR_LAUNCH_TIMEOUT:
    case cuda_abi::CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case cuda_abi::CUDA_ERROR_ASSERT:
    case 714:  // CUDA_ERROR_HARDWARE_STACK_ERROR
    case cuda_abi::CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case cuda_abi::CUDA_ERROR_MISALIGNED_ADDRESS:
    case 717:  // CUDA_ERROR_INVALID_ADDRESS_SPACE
    case 718:  // CUDA_ERROR_INVALID_PC
    case cuda_abi::CUDA_ERROR_LAUNCH_FAILED:
      return true;
    default:
      return false;
  }
}

DriverError::DriverError(CUresult result, std::string message, std::string hint)
    : Error(error_code(result), std::move(message), std::move(hint)), result_(result) {}

Driver::Driver(const DriverTable& table, std::string description, bool emulated)
    : table_(table), description_(std::move(description)), emulated_(emulated) {}

std::shared_ptr<const Driver> Driver::from_table(const DriverTable& table, std::string description, bool emulated) {
  return std::shared_ptr<const Driver>(new Driver(table, std::move(description), emulated));
}

int Driver::version() const {
  if (table_.cuDriverGetVersion == nullptr) return 0;
  int version = 0;
  check(table_.cuDriverGetVersion(&version), "cuDriverGetVersion", description_);
  return version;
}

int Driver::device_count() const {
  if (table_.cuDeviceGetCount == nullptr) return 0;
  int count = 0;
  check(table_.cuDeviceGetCount(&count), "cuDeviceGetCount", description_);
  return count;
}

std::string Driver::describe(CUresult result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (table_.cuGetErrorName != nullptr) table_.cuGetErrorName(result, &name);
  if (table_.cuGetErrorString != nullptr) table_.cuGetErrorString(result, &text);
  const std::string code = name != nullptr ? name : fmt::format("driver code {}", static_cast<int>(result));
  return text != nullptr ? fmt::format("{}, {}", code, text) : code;
}

void Driver::fail(CUresult result, std::string_view call, std::string_view object, std::string_view detail,
                  std::string hint) const {
  std::string message = fmt::format("{} of {} failed: {}", call, object, describe(result));
  const auto add = [&message](std::string_view lines) {
    if (!lines.empty()) message += fmt::format("{}\n{}", message.find('\n') == std::string::npos ? ":" : "", lines);
  };
  add(detail);
  if (last_fault_ != nullptr && loses_context(result)) {
    if (const char* const report = last_fault_()) add(report);
  }
  if (hint.empty() && loses_context(result)) {
    hint =
        "work before this call failed, and the CUDA context of this process is lost with it: end the process. "
        "KILN_DRIVER=emulator, or compute-sanitizer, finds the kernel and the access";
  }
  if (hint.empty() && result == cuda_abi::CUDA_ERROR_INVALID_HANDLE) {
    hint = "give a stream of this device that has not been destroyed, or none";
  }
  throw DriverError(result, std::move(message), std::move(hint));
}

void Driver::refuse_missing(std::string_view name) const {
  throw Error(ErrorCode::unsupported,
              fmt::format("{} lacks the entry point {}, which this kernel needs", description_, name),
              "install a newer NVIDIA driver, or choose another algorithm");
}

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace kiln::device
