#include "clock_fixture.h"

#include "kiln/base/environment.h"

namespace kiln::emulator::testing {

const Variables machine_clock = {{"KILN_EMULATOR_CLOCK", "machine"}, {"KILN_EMULATOR_DEVICE", "a100"}};

device::Compiled compile(const std::string& source, const std::string& arch) {
  const auto nvrtc = device::Nvrtc::open({.library = Environment::read().nvrtc});
  return nvrtc->compile(source, "test.cu", {.arch = arch});
}

std::string fat(const device::Compiled& compiled) {
  return compiled.image(*device::Driver::from_table({}, "emulated", true));
}

ClockTest::ClockTest(const std::string& source, const Variables& environment, const std::string& arch)
    : DriverTest(environment), compiled_(compile(source, arch)), module_(load_fat(fat(compiled_))) {}

CUmodule ClockTest::load_fat(const std::string& image) const {
  CUmodule module = nullptr;
  EXPECT_EQ(cuda.cuModuleLoadDataEx(&module, image.data(), 0, nullptr, nullptr), CUDA_SUCCESS);
  return module;
}

nlohmann::json ClockTest::run(const char* kernel, std::vector<void*> parameters, unsigned blocks, unsigned threads,
                              unsigned shared_bytes, CUstream stream) {
  const CUfunction found = function(module_, kernel);
  EXPECT_EQ(cuda.cuLaunchKernel(found, blocks, 1, 1, threads, 1, 1, shared_bytes, stream, parameters.data(), nullptr),
            CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuCtxSynchronize(), CUDA_SUCCESS) << cuda.last_fault();
  return nlohmann::json::parse(cuda.last_launch())["modelled_time"];
}

CUdeviceptr ClockTest::numbers(size_t count) {
  const CUdeviceptr there = allocate(count * 4);
  put(there, std::vector<uint32_t>(count, 0x3f800000));
  return there;
}

void ClockTest::put(CUdeviceptr there, const std::vector<uint32_t>& words) const {
  EXPECT_EQ(cuda.cuMemcpyHtoD_v2(there, words.data(), words.size() * 4), CUDA_SUCCESS);
}

}  // namespace kiln::emulator::testing
