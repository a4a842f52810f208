#include "cudnn_library.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "dynamic_library.h"

namespace kiln::bench {
namespace {

constexpr const char* soname = "libcudnn.so.9";

ErrorCode code_of(cuda_abi::cudnnStatus_t status) {
  return status / 1000 * 1000 == cuda_abi::CUDNN_STATUS_NOT_SUPPORTED ? ErrorCode::unsupported
                                                                      : ErrorCode::driver_error;
}

}  // namespace

CudnnError::CudnnError(cuda_abi::cudnnStatus_t status, const std::string& message)
    : Error(code_of(status), message), status_(status) {}

std::shared_ptr<const CudnnLibrary> CudnnLibrary::open(const std::optional<std::string>& path) {
  std::string name = path.value_or(soname);
  std::error_code ignored;
  if (std::filesystem::is_directory(name, ignored)) name = (std::filesystem::path(name) / soname).string();
  const device::DynamicLibrary library(name);
  if (!library.loaded()) {
    throw Error(ErrorCode::missing_library, fmt::format("cuDNN could not be loaded: {}", library.error()),
                "install cuDNN 9, or name libcudnn.so.9 or its folder with --cudnn");
  }
  auto opened = std::make_shared<CudnnLibrary>();
  opened->path_ = library.path();
  const auto load = [&](const char* symbol, void** entry) {
    *entry = library.find(symbol);
    if (*entry == nullptr) {
      throw Error(ErrorCode::missing_library, fmt::format("{} lacks the entry point {}", name, symbol),
                  "it is no cuDNN 9");
    }
  };
#define KILN_LOAD_ENTRY(symbol, ...) load(#symbol, reinterpret_cast<void**>(&opened->table_.symbol));
  KILN_CUDNN_ENTRY_POINTS(KILN_LOAD_ENTRY)
#undef KILN_LOAD_ENTRY
  if (opened->table_.cudnnGetVersion() / 10000 != 9) {
    throw Error(ErrorCode::unsupported, fmt::format("{} is cuDNN {}", name, opened->version()),
                "the comparison needs cuDNN 9");
  }
  return opened;
}

// 90 800 is 9.8.0: cuDNN 9 counts 10000 * major + 100 * minor + patch.
std::string CudnnLibrary::version() const {
  const size_t version = table_.cudnnGetVersion();
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

void CudnnLibrary::check(cuda_abi::cudnnStatus_t status, const char* call) const {
  if (status == cuda_abi::CUDNN_STATUS_SUCCESS) return;
  std::array<char, 1024> detail = {};
  table_.cudnnGetLastErrorString(detail.data(), detail.size() - 1);
  throw CudnnError(status, fmt::format("{} failed: {}{}{}", call, table_.cudnnGetErrorString(status),
                                       detail[0] == '\0' ? "" : ": ", detail.data()));
}

CudnnHandle::CudnnHandle(std::shared_ptr<const CudnnLibrary> library, cuda_abi::CUstream stream)
    : library_(std::move(library)) {
  library_->check(library_->calls().cudnnCreate(&handle_), "cudnnCreate");
  try {
    library_->check(library_->calls().cudnnSetStream(handle_, stream), "cudnnSetStream");
  } catch (...) {
    library_->calls().cudnnDestroy(handle_);
    throw;
  }
}

CudnnHandle::~CudnnHandle() {
  library_->calls().cudnnDestroy(handle_);
}

Descriptor::Descriptor(std::shared_ptr<const CudnnLibrary> library, cuda_abi::cudnnBackendDescriptorType_t type)
    : library_(std::move(library)) {
  library_->check(library_->calls().cudnnBackendCreateDescriptor(type, &raw_), "cudnnBackendCreateDescriptor");
}

Descriptor::~Descriptor() {
  if (raw_ != nullptr) library_->calls().cudnnBackendDestroyDescriptor(raw_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : library_(std::move(other.library_)), raw_(std::exchange(other.raw_, nullptr)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(library_, other.library_);
  std::swap(raw_, other.raw_);
  return *this;
}

void Descriptor::finalize() {
  library_->check(library_->calls().cudnnBackendFinalize(raw_), "cudnnBackendFinalize");
}

int64_t Descriptor::get_int64(cuda_abi::cudnnBackendAttributeName_t name) const {
  const auto values = get<int64_t>(name, cuda_abi::CUDNN_TYPE_INT64, 1);
  return values.empty() ? 0 : values.front();
}

std::vector<Descriptor> Descriptor::get_descriptors(cuda_abi::cudnnBackendAttributeName_t name,
                                                    cuda_abi::cudnnBackendDescriptorType_t type, int64_t most) const {
  std::vector<Descriptor> descriptors;
  std::vector<cuda_abi::cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < most; ++i) raw.push_back(descriptors.emplace_back(library_, type).raw());
  const int64_t found = get_raw(name, cuda_abi::CUDNN_TYPE_BACKEND_DESCRIPTOR, most, raw.data());
  descriptors.erase(descriptors.begin() + static_cast<std::ptrdiff_t>(std::min(found, most)), descriptors.end());
  return descriptors;
}

int64_t Descriptor::count(cuda_abi::cudnnBackendAttributeName_t name,
                          cuda_abi::cudnnBackendAttributeType_t type) const {
  return get_raw(name, type, 0, nullptr);
}

void Descriptor::set_raw(cuda_abi::cudnnBackendAttributeName_t name, cuda_abi::cudnnBackendAttributeType_t type,
                         int64_t count, const void* values) {
  library_->check(library_->calls().cudnnBackendSetAttribute(raw_, name, type, count, values),
                  "cudnnBackendSetAttribute");
}

int64_t Descriptor::get_raw(cuda_abi::cudnnBackendAttributeName_t name, cuda_abi::cudnnBackendAttributeType_t type,
                            int64_t most, void* values) const {
  int64_t found = 0;
  library_->check(library_->calls().cudnnBackendGetAttribute(raw_, name, type, most, &found, values),
                  "cudnnBackendGetAttribute");
  return values == nullptr ? found : std::min(found, most);
}

}  // namespace kiln::bench
