// Many threads, many contexts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "driver_fixture.h"

namespace kiln::emulator::testing::driver_threads_test {
namespace {

using ::testing::Each;

constexpr int thread_count = 6;
constexpr uint32_t elements = 3000;

void in_threads(const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < thread_count; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

// Allocates, fills through a kernel on its own stream, checks and frees, as one worker of an application does.
void work(const Emulator& cuda, CUfunction fill, uint32_t value) {
  CUstream stream = nullptr;
  ASSERT_EQ(cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  for (int round = 0; round < 20; ++round) {
    CUdeviceptr out = 0;
    uint32_t count = elements;
    ASSERT_EQ(cuda.cuMemAlloc_v2(&out, elements * 4), CUDA_SUCCESS);
    void* parameters[] = {&out, &value, &count};
    ASSERT_EQ(cuda.cuLaunchKernel(fill, (elements + 127) / 128, 1, 1, 128, 1, 1, 0, stream, parameters, nullptr),
              CUDA_SUCCESS);
    std::vector<uint32_t> result(elements);
    ASSERT_EQ(cuda.cuMemcpyDtoHAsync_v2(result.data(), out, elements * 4, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuda.cuStreamSynchronize(stream), CUDA_SUCCESS);
    ASSERT_THAT(result, Each(value));
    ASSERT_EQ(cuda.cuMemFree_v2(out), CUDA_SUCCESS);
  }
  ASSERT_EQ(cuda.cuStreamDestroy_v2(stream), CUDA_SUCCESS);
}

TEST(DriverThreads, ShareOneContext) {
  const Emulator cuda;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction fill = nullptr;
  ASSERT_EQ(cuda.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuCtxSetCurrent(context), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuModuleLoadDataEx(&module, fill_ptx.c_str(), 0, nullptr, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuda.cuModuleGetFunction(&fill, module, "fill"), CUDA_SUCCESS);
  in_threads([&](int i) {
    ASSERT_EQ(cuda.cuCtxSetCurrent(context), CUDA_SUCCESS);
    work(cuda, fill, static_cast<uint32_t>(i));
  });
}

TEST(DriverThreads, HaveAContextEachOnSeveralDevices) {
  const Emulator cuda(Variables{{"KILN_EMULATOR_DEVICE", "h200,t4,a100"}});
  auto* create = cuda.function<CUresult(CUcontext*, unsigned, CUdevice)>("cuCtxCreate_v2");
  auto* destroy = cuda.function<CUresult(CUcontext)>("cuCtxDestroy_v2");
  in_threads([&](int i) {
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CUfunction fill = nullptr;
    ASSERT_EQ(create(&context, 0, i % 3), CUDA_SUCCESS);
    ASSERT_EQ(cuda.cuModuleLoadDataEx(&module, fill_ptx.c_str(), 0, nullptr, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(cuda.cuModuleGetFunction(&fill, module, "fill"), CUDA_SUCCESS);
    work(cuda, fill, static_cast<uint32_t>(i));
    ASSERT_EQ(destroy(context), CUDA_SUCCESS);
  });
}

TEST(DriverThreads, MeasureTheSameModelledTimesWhateverOthersDo) {
  const Emulator cuda(Variables{{"KILN_EMULATOR_DEVICE", "h200,h200,h200,h200,h200,h200"}});
  std::vector<float> times(thread_count);
  in_threads([&](int i) {
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CUfunction fill = nullptr;
    CUevent start = nullptr, end = nullptr;
    CUdeviceptr out = 0;
    uint32_t value = 1, count = elements;
    ASSERT_EQ(cuda.cuDevicePrimaryCtxRetain(&context, i), CUDA_SUCCESS);
    ASSERT_EQ(cuda.cuCtxSetCurrent(context), CUDA_SUCCESS);
    ASSERT_EQ(cuda.cuModuleLoadDataEx(&module, fill_ptx.c_str(), 0, nullptr, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(cuda.cuModuleGetFunction(&fill, module, "fill"), CUDA_SUCCESS);
    ASSERT_EQ(cuda.cuMemAlloc_v2(&out, elements * 4), CUDA_SUCCESS);
    ASSERT_EQ(cuda.cuEventCreate(&start, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuda.cuEventCreate(&end, 0), CUDA_SUCCESS);
    void* parameters[] = {&out, &value, &count};
    for (int round = 0; round < 10 + i; ++round) {
      ASSERT_EQ(cuda.cuEventRecord(start, nullptr), CUDA_SUCCESS);
      ASSERT_EQ(cuda.cuLaunchKernel(fill, 24, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
      ASSERT_EQ(cuda.cuEventRecord(end, nullptr), CUDA_SUCCESS);
      ASSERT_EQ(cuda.cuEventSynchronize(end), CUDA_SUCCESS);
    }
    ASSERT_EQ(cuda.cuEventElapsedTime(&times[static_cast<size_t>(i)], start, end), CUDA_SUCCESS);
  });
  EXPECT_GT(times[0], 0.0f);
  EXPECT_THAT(times, Each(times[0]));
}

TEST(DriverThreads, MayEndAContextThatOthersStillUse) {
  const Emulator cuda;
  CUcontext context = nullptr;
  ASSERT_EQ(cuda.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
  std::atomic<int> running = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < thread_count; ++i) {
    threads.emplace_back([&] {
      EXPECT_EQ(cuda.cuCtxSetCurrent(context), CUDA_SUCCESS);
      ++running;
      CUresult result = CUDA_SUCCESS;
      while (result == CUDA_SUCCESS) {  // until the context is gone under it
        CUdeviceptr out = 0;
        result = cuda.cuMemAlloc_v2(&out, 4096);
        if (result == CUDA_SUCCESS) result = cuda.cuMemsetD32Async(out, 1, 1024, nullptr);
        if (result == CUDA_SUCCESS) result = cuda.cuMemFree_v2(out);
      }
      EXPECT_EQ(result, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    });
  }
  while (running < thread_count) std::this_thread::yield();
  EXPECT_EQ(cuda.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace kiln::emulator::testing::driver_threads_test
