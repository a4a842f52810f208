#include "kiln/device/module.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

// A driver that loads lazily does so when a kernel is asked for or about: all of it stands beside captures.
namespace kiln::device {
namespace {

using cuda_abi::CUfunction_attribute;
using cuda_abi::CUmodule;
using cuda_abi::CUresult;

std::string quoted_name(const std::string& name) {
  return fmt::format("'{}'", name);
}

std::string load_hint(const Driver& driver, CUresult result) {
  switch (result) {
    case cuda_abi::CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return fmt::format(
          "the PTX is newer than this driver, which supports up to CUDA {}: update the driver or use an older NVRTC",
          cuda_version_text(driver.version()));
    case cuda_abi::CUDA_ERROR_NO_BINARY_FOR_GPU:
      return "the code was compiled for another architecture than this device's";
    case cuda_abi::CUDA_ERROR_INVALID_IMAGE:
      return "it is neither PTX nor a cubin that this driver can read";
    default:
      return {};
  }
}

}  // namespace

Module::Module(std::shared_ptr<const ContextHandle> context, const std::string& image, std::string name)
    : name_(std::move(name)) {
  const Current current(*context);
  const Driver& driver = context->driver();
  const BesideCaptures beside(driver);
  // A driver writes option values through pointer-sized slots: sizes are passed in the pointer itself.
  std::array<char, 16384> log = {};
  std::array<cuda_abi::CUjit_option, 2> options = {cuda_abi::CU_JIT_ERROR_LOG_BUFFER,
                                                   cuda_abi::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void*, 2> values = {log.data(), reinterpret_cast<void*>(uintptr_t{log.size() - 1})};
  CUmodule module = nullptr;
  const CUresult result = driver.calls().cuModuleLoadDataEx(
      &module, image.c_str(), static_cast<unsigned>(options.size()), options.data(), values.data());
  if (result != cuda_abi::CUDA_SUCCESS) {
    driver.fail(result, "cuModuleLoadDataEx", quoted_name(name_),
                std::string_view(log.data(), strnlen(log.data(), log.size())), load_hint(driver, result));
  }
  module_ = OwnedHandle<CUmodule>(std::move(context), module, &DriverTable::cuModuleUnload, "cuModuleUnload");
}

Function Module::function(const std::string& name) const {
  const ContextHandle& context = *module_.context();
  const Current current(context);
  const BesideCaptures beside(context.driver());
  cuda_abi::CUfunction function = nullptr;
  const CUresult result = context.driver().calls().cuModuleGetFunction(&function, module_.get(), name.c_str());
  if (result != cuda_abi::CUDA_SUCCESS) {
    context.driver().fail(result, "cuModuleGetFunction", fmt::format("kernel '{}' in '{}'", name, name_));
  }
  return Function(module_.context(), function, name);
}

Global Module::global(const std::string& name) const {
  if (const std::optional<Global> found = find_global(name)) return *found;
  module_.context()->driver().fail(cuda_abi::CUDA_ERROR_NOT_FOUND, "cuModuleGetGlobal",
                                   fmt::format("variable '{}' in '{}'", name, name_));
}

std::optional<Global> Module::find_global(const std::string& name) const {
  const ContextHandle& context = *module_.context();
  const Current current(context);
  const BesideCaptures beside(context.driver());
  Global global;
  const CUresult result =
      context.driver().calls().cuModuleGetGlobal_v2(&global.address, &global.bytes, module_.get(), name.c_str());
  if (result == cuda_abi::CUDA_ERROR_NOT_FOUND) return std::nullopt;
  if (result != cuda_abi::CUDA_SUCCESS) {
    context.driver().fail(result, "cuModuleGetGlobal", fmt::format("variable '{}' in '{}'", name, name_));
  }
  return global;
}

Function::Function(std::shared_ptr<const ContextHandle> context, cuda_abi::CUfunction function, std::string name)
    : context_(std::move(context)), function_(function), name_(std::move(name)) {}

FunctionAttributes Function::attributes() const {
  const Current current(*context_);
  const BesideCaptures beside(driver());
  const auto get = [&](CUfunction_attribute attribute) {
    int value = 0;
    driver().check(driver().calls().cuFuncGetAttribute(&value, attribute, function_), "cuFuncGetAttribute", name_);
    return value;
  };
  FunctionAttributes attributes;
  attributes.registers = get(cuda_abi::CU_FUNC_ATTRIBUTE_NUM_REGS);
  attributes.local_bytes = get(cuda_abi::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  attributes.static_shared_bytes = get(cuda_abi::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  attributes.constant_bytes = get(cuda_abi::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
  attributes.max_threads_per_block = get(cuda_abi::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  return attributes;
}

void Function::set_max_dynamic_shared(int bytes) const {
  const Current current(*context_);
  const BesideCaptures beside(driver());
  const CUresult result =
      driver().calls().cuFuncSetAttribute(function_, cuda_abi::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
  if (result != cuda_abi::CUDA_SUCCESS) {
    driver().fail(result, "cuFuncSetAttribute",
                  fmt::format("'{}' for {} bytes of dynamic shared memory (the device permits {} per block)", name_,
                              bytes, context_->device().info().shared_per_block_optin));
  }
}

int Function::occupancy(int threads, size_t dynamic_shared) const {
  const Current current(*context_);
  const BesideCaptures beside(driver());
  int blocks = 0;
  driver().check(
      driver().calls().cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function_, threads, dynamic_shared),
      "cuOccupancyMaxActiveBlocksPerMultiprocessor", name_);
  return blocks;
}

}  // namespace kiln::device
