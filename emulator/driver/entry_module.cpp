// Modules, their functions and variables, and what is known of a function.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "driver.h"
#include "driver/exports.h"
#include "launch.h"

namespace kiln::emulator {
namespace {

// The log buffer that a caller may pass among the options: the text goes in, and its length back to the size option.
class ErrorLog {
 public:
  ErrorLog(unsigned count, const CUjit_option* options, void** values) {
    require(count == 0 || (options != nullptr && values != nullptr));
    for (unsigned i = 0; i < count; ++i) {
      if (options[i] == CU_JIT_ERROR_LOG_BUFFER) buffer_ = static_cast<char*>(values[i]);
      if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) size_ = &values[i];
      if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) info_size_ = &values[i];
    }
    capacity_ = size_ == nullptr ? 0 : reinterpret_cast<uintptr_t>(*size_);
  }

  /// Whether the caller reads it.
  bool is_wanted() const { return buffer_ != nullptr && capacity_ > 0; }

  void write(std::string_view text) {
    if (info_size_ != nullptr) *info_size_ = nullptr;  // nothing is ever written there
    if (size_ == nullptr) return;
    size_t length = 0;
    if (buffer_ != nullptr && capacity_ > 0) {
      length = std::min(text.size(), capacity_ - 1);
      std::memcpy(buffer_, text.data(), length);
      buffer_[length] = '\0';
    }
    *size_ = reinterpret_cast<void*>(static_cast<uintptr_t>(length));
  }

 private:
  char* buffer_ = nullptr;
  void** size_ = nullptr;
  void** info_size_ = nullptr;
  size_t capacity_ = 0;
};

/// `bytes` can be read of the image; SIZE_MAX if its contents say how long it is.
CUmodule load(const void* image, size_t bytes, ErrorLog& log) {
  Driver& driver = Driver::instance();
  const std::shared_ptr<Context> context = current_context();
  auto module = std::make_shared<Module>();
  module->context = context;
  try {
    const Device& device = context->device();
    LoadedImage loaded = load_image(image, bytes, device.model, driver.settings(), device.card.has_value());
    module->program = std::move(loaded.program);
    module->code = std::move(loaded.code);
  } catch (const ImageRefused& refused) {
    log.write(refused.log);
    if (!log.is_wanted()) std::fprintf(stderr, "kiln emulator: module: %s\n", refused.log.c_str());
    fail(refused.code);
  }
  log.write("");
  if (RegionGroup variables = variables_of(module->program)) context->memory().add(std::move(variables));
  return driver.modules.add(std::move(module));
}

CUfunction make_function(Driver& driver, const Module& module, const Kernel& kernel) {
  auto function = std::make_shared<Function>();
  function->context = module.context;
  function->program = module.program;
  function->kernel = &kernel;
  function->code = module.code;
  const int static_shared = static_cast<int>(info(kernel).static_shared_bytes);
  function->dynamic_shared_limit = std::max(0, default_shared_per_block - static_shared);
  return driver.functions.add(std::move(function));
}

const DeviceModel& model_of(const Function& function) {
  return usable_context_of(function)->device().model;
}

int attribute_of(const Function& function, CUfunction_attribute attribute) {
  const DeviceModel& model = model_of(function);
  const KernelInfo& kernel = info(*function.kernel);
  const int binary_version = model.limits.major * 10 + model.limits.minor;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return kernel.max_threads > 0 ? static_cast<int>(kernel.max_threads) : max_block_threads;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      return static_cast<int>(kernel.static_shared_bytes);
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      return 0;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      return static_cast<int>(kernel.local_bytes);
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      return static_cast<int>(registers_of(function));
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      return target_capability(*function.program);  // of the virtual architecture, as the driver means it
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      return binary_version;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return function.dynamic_shared_limit;
  }
  fail(CUDA_ERROR_INVALID_VALUE);
}

int blocks_per_multiprocessor(const Function& function, int block_size, size_t dynamic_shared_bytes) {
  const DeviceModel& model = model_of(function);
  const KernelInfo& kernel = info(*function.kernel);
  require(block_size > 0);
  const bool launchable = block_size <= max_block_threads &&
                          (kernel.max_threads == 0 || static_cast<uint32_t>(block_size) <= kernel.max_threads) &&
                          dynamic_shared_bytes <= static_cast<size_t>(function.dynamic_shared_limit);
  if (!launchable) return 0;
  return function_occupancy(model, function, static_cast<uint32_t>(block_size), dynamic_shared_bytes)
      .blocks_per_multiprocessor;
}

}  // namespace

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned option_count, CUjit_option* options,
                            void** option_values) {
  return entry([&] {
    require(module != nullptr && image != nullptr);
    Driver::instance().captures.before_unsafe_call();
    ErrorLog log(option_count, options, option_values);
    *module = load(image, SIZE_MAX, log);
  });
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

CUresult cuModuleLoad(CUmodule* module, const char* path) {
  return entry([&] {
    require(module != nullptr && path != nullptr);
    Driver::instance().captures.before_unsafe_call();
    std::ifstream file(path, std::ios::binary);
    require(file.good(), file_not_found);
    const std::string image{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    require(!file.bad(), file_not_found);
    ErrorLog log(0, nullptr, nullptr);
    *module = load(image.c_str(), image.size(), log);
  });
}

CUresult cuModuleUnload(CUmodule module) {
  return entry([&] {
    Driver& driver = Driver::instance();
    driver.captures.before_unsafe_call();
    const std::shared_ptr<Module> removed = driver.modules.remove(module);
    require(removed != nullptr, CUDA_ERROR_INVALID_HANDLE);
    driver.functions.remove_if([&](const Function& function) { return function.program == removed->program; });
    const std::shared_ptr<Context> context = removed->context.lock();
    require(context != nullptr, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    const std::lock_guard execution(context->execution());
    if (const RegionGroup variables = variables_of(removed->program)) {
      context->memory().remove(variables->front().begin);
    }
    context->require_usable();
  });
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return entry([&] {
    Driver& driver = Driver::instance();
    require(function != nullptr && name != nullptr);
    const std::shared_ptr<Module> found = lookup(driver.modules, module);
    usable_context_of(*found);
    const Kernel* kernel = find_kernel(*found->program, name);
    require(kernel != nullptr, CUDA_ERROR_NOT_FOUND);
    const std::lock_guard lock(found->mutex);
    CUfunction& handle = found->functions[name];
    if (handle == nullptr) handle = make_function(driver, *found, *kernel);
    *function = handle;
  });
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
  return entry([&] {
    require(name != nullptr);
    const std::shared_ptr<Module> found = lookup(Driver::instance().modules, module);
    usable_context_of(*found);
    const std::vector<GlobalVariable>& variables = global_variables(*found->program);
    const auto variable = std::find_if(variables.begin(), variables.end(),
                                       [&](const GlobalVariable& candidate) { return candidate.name == name; });
    require(variable != variables.end(), CUDA_ERROR_NOT_FOUND);
    if (address != nullptr) *address = variable->address;
    if (bytes != nullptr) *bytes = variable->bytes;
  });
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  return entry([&] {
    require(value != nullptr);
    *value = attribute_of(*lookup(Driver::instance().functions, function), attribute);
  });
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return entry([&] {
    constexpr int preferred_shared_memory_carveout = 9;  // percent, a hint that changes nothing here
    const std::shared_ptr<Function> found = lookup(Driver::instance().functions, function);
    const DeviceModel& model = model_of(*found);
    if (static_cast<int>(attribute) == preferred_shared_memory_carveout) {
      require(value >= -1 && value <= 100);
      return;
    }
    require(attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    const int static_shared = static_cast<int>(info(*found->kernel).static_shared_bytes);
    require(value >= 0 && value <= model.limits.shared_per_block_optin - static_shared);
    found->dynamic_shared_limit = value;
  });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int block_size,
                                                     size_t dynamic_shared_bytes) {
  return entry([&] {
    require(blocks != nullptr);
    *blocks =
        blocks_per_multiprocessor(*lookup(Driver::instance().functions, function), block_size, dynamic_shared_bytes);
  });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function, int block_size,
                                                              size_t dynamic_shared_bytes, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, dynamic_shared_bytes);
}

// The block size that keeps the most threads on a multiprocessor, the largest of several; a multiple of a warp unless
// the limit is less. `shared_bytes_of` says what a block of a size needs of dynamic shared memory; null: the same for
// all.
CUresult cuOccupancyMaxPotentialBlockSize(int* blocks, int* block_size, CUfunction function,
                                          size_t (*shared_bytes_of)(int block_size), size_t dynamic_shared_bytes,
                                          int block_size_limit) {
  return entry([&] {
    const std::shared_ptr<Function> found = lookup(Driver::instance().functions, function);
    require(blocks != nullptr && block_size != nullptr && block_size_limit >= 0);
    const auto most = static_cast<int>(attribute_of(*found, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
    const int limit = block_size_limit == 0 ? most : std::min(block_size_limit, most);
    int best_threads = 0;
    *blocks = *block_size = 0;
    for (int size = (limit + warp_size - 1) / warp_size * warp_size; size > 0; size -= warp_size) {
      const int threads = std::min(size, limit);
      const size_t shared = shared_bytes_of != nullptr ? shared_bytes_of(threads) : dynamic_shared_bytes;
      const int resident = blocks_per_multiprocessor(*found, threads, shared);
      if (resident * threads <= best_threads) continue;
      best_threads = resident * threads;
      *block_size = threads;
      *blocks = resident * model_of(*found).limits.multiprocessors;
    }
  });
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* blocks, int* block_size, CUfunction function,
                                                   size_t (*shared_bytes_of)(int block_size),
                                                   size_t dynamic_shared_bytes, int block_size_limit, unsigned) {
  return cuOccupancyMaxPotentialBlockSize(blocks, block_size, function, shared_bytes_of, dynamic_shared_bytes,
                                          block_size_limit);
}

}  // namespace kiln::emulator
