#include "driver_fixture.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace kiln::emulator::testing {
namespace {

// The loader tells libraries apart by file, so a copy is a second library.
std::string private_copy() {
  std::string folder = (std::filesystem::temp_directory_path() / "kiln-emulator-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("cannot create " + folder);
  std::string path = folder + "/libkiln_emulator.so";
  std::filesystem::copy_file(KILN_EMULATOR_LIBRARY, path);
  return path;
}

const Emulator& shared_emulator(const Variables& environment) {
  static std::map<Variables, Emulator> instances;
  return instances.try_emplace(environment, environment).first->second;
}

// Result of `call` with these environment variables set.
template <class Call>
auto with(const Variables& environment, const Call& call) {
  Variables before;
  for (const auto& [name, value] : environment) {
    if (const char* old = std::getenv(name.c_str())) before[name] = old;
    setenv(name.c_str(), value.c_str(), 1);
  }
  const auto result = call();
  for (const auto& [name, value] : environment) unsetenv(name.c_str());
  for (const auto& [name, value] : before) setenv(name.c_str(), value.c_str(), 1);
  return result;
}

}  // namespace

Emulator::Emulator(const Variables& environment, bool initialise_now) {
  const std::string path = private_copy();
  library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const std::string error = library_ == nullptr ? dlerror() : "";
  std::filesystem::remove_all(std::filesystem::path(path).parent_path());
  if (library_ == nullptr) throw std::runtime_error(error);
#define KILN_TEST_LOAD(name, ...) name = function<__VA_ARGS__>(#name);
  KILN_CUDA_DRIVER_ENTRY_POINTS(KILN_TEST_LOAD)
  KILN_CUDA_DRIVER_OPTIONAL_ENTRY_POINTS(KILN_TEST_LOAD)
#undef KILN_TEST_LOAD
  if (initialise_now && initialise(environment) != CUDA_SUCCESS) throw std::runtime_error("cuInit failed");
}

CUresult Emulator::initialise(const Variables& environment) {
  return with(environment, [&] { return cuInit(0); });
}

std::string Emulator::refused_setting(const Variables& environment) {
  return with(environment, [&] { return std::string(function<const char*()>("kiln_emulator_refused_setting")()); });
}

// The library stays loaded: its driver never ends either.
Emulator::~Emulator() = default;

void* Emulator::symbol(const char* name) const {
  return dlsym(library_, name);
}
std::string Emulator::not_timed() const {
  return function<const char*()>("kiln_emulator_not_timed")();
}

std::string Emulator::last_fault() const {
  return function<const char*()>("kiln_emulator_last_fault")();
}
std::string Emulator::last_launch() const {
  return function<const char*()>("kiln_emulator_last_launch_json")();
}

DriverTest::DriverTest(const Variables& environment) : cuda(shared_emulator(environment)) {
  EXPECT_EQ(cuda.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSetCurrent(context), CUDA_SUCCESS);
}

DriverTest::~DriverTest() {
  cuda.cuDevicePrimaryCtxRelease_v2(0);
}

CUdeviceptr DriverTest::allocate(size_t bytes) {
  CUdeviceptr address = 0;
  EXPECT_EQ(cuda.cuMemAlloc_v2(&address, bytes), CUDA_SUCCESS);
  return address;
}

CUmodule DriverTest::load(const std::string& ptx) {
  CUmodule module = nullptr;
  char log[1024] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  EXPECT_EQ(cuda.cuModuleLoadDataEx(&module, ptx.c_str(), 2, options, values), CUDA_SUCCESS) << log;
  return module;
}

CUfunction DriverTest::function(CUmodule module, const char* name) {
  CUfunction found = nullptr;
  EXPECT_EQ(cuda.cuModuleGetFunction(&found, module, name), CUDA_SUCCESS) << name;
  return found;
}

CUstream DriverTest::stream(unsigned flags) {
  CUstream created = nullptr;
  EXPECT_EQ(cuda.cuStreamCreate(&created, flags), CUDA_SUCCESS);
  return created;
}

CUevent DriverTest::event(unsigned flags) {
  CUevent created = nullptr;
  EXPECT_EQ(cuda.cuEventCreate(&created, flags), CUDA_SUCCESS);
  return created;
}

std::vector<uint32_t> DriverTest::read(CUdeviceptr address, size_t count) {
  std::vector<uint32_t> values(count);
  EXPECT_EQ(cuda.cuMemcpyDtoH_v2(values.data(), address, count * sizeof(uint32_t)), CUDA_SUCCESS);
  return values;
}

CUresult DriverTest::fill(CUfunction fill, CUdeviceptr out, uint32_t value, uint32_t count, CUstream stream,
                          unsigned blocks) {
  void* parameters[] = {&out, &value, &count};
  const unsigned needed = blocks > 0 ? blocks : (count + 127) / 128;
  return cuda.cuLaunchKernel(fill, needed, 1, 1, 128, 1, 1, 0, stream, parameters, nullptr);
}

float DriverTest::elapsed(CUevent start, CUevent end) {
  float milliseconds = -1;
  EXPECT_EQ(cuda.cuEventElapsedTime(&milliseconds, start, end), CUDA_SUCCESS);
  return milliseconds;
}

const std::string fill_ptx = R"(
.version 7.8
.target sm_75
.address_size 64

.global .align 16 .b8 table[256];

.visible .entry fill(.param .u64 fill_out, .param .u32 fill_value, .param .u32 fill_count)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<5>;

  ld.param.u64 %rd1, [fill_out];
  ld.param.u32 %r1, [fill_value];
  ld.param.u32 %r2, [fill_count];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r6, %r3, %r4, %r5;
  setp.ge.u32 %p1, %r6, %r2;
  @%p1 bra $done;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r6, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r1;
$done:
  ret;
}

.visible .entry capped()
.maxntid 256, 1, 1
{
  .shared .align 4 .b8 tile[40000];
  .reg .b32 %r<2>;

  mov.u32 %r1, 0;
  st.shared.u32 [tile], %r1;
  ret;
}
)";

std::string with_target(std::string ptx, const std::string& target) {
  const std::string old = ".target sm_75";
  ptx.replace(ptx.find(old), old.size(), ".target " + target);
  return ptx;
}

}  // namespace kiln::emulator::testing
