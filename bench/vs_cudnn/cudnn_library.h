// cuDNN, loaded at run time; its descriptors as values that clean up after themselves.
#pragma once

#include <cuda_abi/cudnn.h>
#include <cuda_abi/driver.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "kiln/base/error.h"

namespace kiln::bench {

namespace detail {
using namespace cuda_abi;  // NOLINT(google-build-using-namespace): the list spells its types unqualified
struct CudnnTable {
#define KILN_CUDNN_TABLE_MEMBER(symbol, ...) std::add_pointer_t<__VA_ARGS__> symbol = nullptr;
  KILN_CUDNN_ENTRY_POINTS(KILN_CUDNN_TABLE_MEMBER)
#undef KILN_CUDNN_TABLE_MEMBER
};
}  // namespace detail

/// A cuDNN call that failed. code() is unsupported where cuDNN says that it cannot do what was asked, else
/// driver_error.
class CudnnError : public Error {
 public:
  CudnnError(cuda_abi::cudnnStatus_t status, const std::string& message);
  cuda_abi::cudnnStatus_t status() const { return status_; }

 private:
  cuda_abi::cudnnStatus_t status_;
};

/// A loaded cuDNN 9. Immutable.
class CudnnLibrary {
 public:
  /// `path`: libcudnn.so.9 itself or the folder that holds it; unset: the loader's path. Throws Error(missing_library)
  /// with what to do, Error(unsupported) for another major version.
  static std::shared_ptr<const CudnnLibrary> open(const std::optional<std::string>& path);

  const detail::CudnnTable& calls() const { return table_; }
  /// "9.19.0"
  std::string version() const;
  const std::string& path() const { return path_; }
  /// Throws CudnnError with cuDNN's own words unless `status` is success.
  void check(cuda_abi::cudnnStatus_t status, const char* call) const;

 private:
  detail::CudnnTable table_;
  std::string path_;
};

/// A cuDNN handle, in the context that is current on the constructing thread.
class CudnnHandle {
 public:
  CudnnHandle(std::shared_ptr<const CudnnLibrary> library, cuda_abi::CUstream stream);
  ~CudnnHandle();
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;

  const std::shared_ptr<const CudnnLibrary>& library() const { return library_; }
  cuda_abi::cudnnHandle_t raw() const { return handle_; }

 private:
  std::shared_ptr<const CudnnLibrary> library_;
  cuda_abi::cudnnHandle_t handle_ = nullptr;
};

/// A backend descriptor: attributes are set, then finalize(), then they can be read. Move-only.
class Descriptor {
 public:
  Descriptor(std::shared_ptr<const CudnnLibrary> library, cuda_abi::cudnnBackendDescriptorType_t type);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;

  cuda_abi::cudnnBackendDescriptor_t raw() const { return raw_; }

  template <class T>
  void set(cuda_abi::cudnnBackendAttributeName_t name, cuda_abi::cudnnBackendAttributeType_t type,
           std::span<const T> values) {
    set_raw(name, type, static_cast<int64_t>(values.size()), values.data());
  }
  template <class T>
  void set(cuda_abi::cudnnBackendAttributeName_t name, cuda_abi::cudnnBackendAttributeType_t type, const T& value) {
    set_raw(name, type, 1, &value);
  }
  void set(cuda_abi::cudnnBackendAttributeName_t name, const Descriptor& value) {
    set(name, cuda_abi::CUDNN_TYPE_BACKEND_DESCRIPTOR, value.raw());
  }
  void finalize();

  /// The elements of an attribute, at most `most`.
  template <class T>
  std::vector<T> get(cuda_abi::cudnnBackendAttributeName_t name, cuda_abi::cudnnBackendAttributeType_t type,
                     int64_t most) const {
    std::vector<T> values(static_cast<size_t>(most));
    values.resize(static_cast<size_t>(get_raw(name, type, most, values.data())));
    return values;
  }
  int64_t get_int64(cuda_abi::cudnnBackendAttributeName_t name) const;
  /// Descriptors that are an attribute: cuDNN fills in descriptors of `type` that exist already.
  std::vector<Descriptor> get_descriptors(cuda_abi::cudnnBackendAttributeName_t name,
                                          cuda_abi::cudnnBackendDescriptorType_t type, int64_t most) const;
  /// How many elements an attribute has.
  int64_t count(cuda_abi::cudnnBackendAttributeName_t name, cuda_abi::cudnnBackendAttributeType_t type) const;

 private:
  void set_raw(cuda_abi::cudnnBackendAttributeName_t name, cuda_abi::cudnnBackendAttributeType_t type, int64_t count,
               const void* values);
  int64_t get_raw(cuda_abi::cudnnBackendAttributeName_t name, cuda_abi::cudnnBackendAttributeType_t type, int64_t most,
                  void* values) const;

  std::shared_ptr<const CudnnLibrary> library_;
  cuda_abi::cudnnBackendDescriptor_t raw_ = nullptr;
};

}  // namespace kiln::bench
