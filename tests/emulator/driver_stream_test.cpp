// Streams, events and the modelled timeline through the driver API.
#include <gtest/gtest.h>

#include "driver_fixture.h"

namespace kiln::emulator::testing::driver_stream_test {
namespace {

class DriverStream : public DriverTest {
 protected:
  // Milliseconds that one fill of `blocks` blocks takes on a stream, from event to event.
  float fill_time(unsigned blocks) {
    const CUevent start = event(), end = event();
    const CUstream alone = stream(CU_STREAM_NON_BLOCKING);
    record(start, alone);
    run(alone, blocks);
    record(end, alone);
    EXPECT_EQ(cuda.cuEventSynchronize(end), CUDA_SUCCESS);
    return elapsed(start, end);
  }
  void run(CUstream on, unsigned blocks) { EXPECT_EQ(fill(fill_, out_, 1, 1024, on, blocks), CUDA_SUCCESS); }
  void record(CUevent event, CUstream on) { EXPECT_EQ(cuda.cuEventRecord(event, on), CUDA_SUCCESS); }

  static constexpr unsigned whole_device = 16 * 132 * 4;  // blocks; four waves on an H200
  static constexpr unsigned few = 66;
  CUfunction fill_ = function(load(fill_ptx), "fill");
  CUdeviceptr out_ = allocate(4096);
};

const auto legacy = reinterpret_cast<CUstream>(1);
const auto per_thread = reinterpret_cast<CUstream>(2);

TEST_F(DriverStream, EventsMeasureModelledTimeExactly) {
  const float once = fill_time(whole_device);
  EXPECT_GT(once, 0.002f) << "at least the launch overhead";
  for (int i = 0; i < 5; ++i) EXPECT_EQ(fill_time(whole_device), once) << "the same launch takes the same time";
  const CUevent start = event(), end = event();
  record(start, nullptr);
  for (int i = 0; i < 3; ++i) run(nullptr, whole_device);
  record(end, nullptr);
  EXPECT_FLOAT_EQ(elapsed(start, end), 3 * once);
  EXPECT_FLOAT_EQ(elapsed(end, start), -3 * once);
  EXPECT_EQ(elapsed(end, end), 0.0f);
}

TEST_F(DriverStream, SmallKernelsOfTwoStreamsOverlap) {
  const float once = fill_time(few);
  const CUstream first = stream(), second = stream();
  const CUevent start = event(), first_end = event(), second_end = event();
  record(start, first);
  run(first, few);
  run(second, few);
  record(first_end, first);
  record(second_end, second);
  EXPECT_FLOAT_EQ(elapsed(start, first_end), once);
  EXPECT_FLOAT_EQ(elapsed(start, second_end), once);
}

TEST_F(DriverStream, KernelsThatFillTheDeviceTakeTurns) {
  const float once = fill_time(whole_device);
  const CUstream first = stream(), second = stream();
  const CUevent start = event(), end = event();
  record(start, first);
  run(first, whole_device);
  run(second, whole_device);
  record(end, second);
  EXPECT_FLOAT_EQ(elapsed(start, end), 2 * once);
}

TEST_F(DriverStream, WaitsForEvents) {
  const float once = fill_time(few);
  const CUstream first = stream(), second = stream();
  const CUevent start = event(), between = event(), end = event();
  record(start, first);
  run(first, few);
  record(between, first);
  EXPECT_EQ(cuda.cuStreamWaitEvent(second, between, 0), CUDA_SUCCESS);
  run(second, few);
  record(end, second);
  EXPECT_FLOAT_EQ(elapsed(start, end), 2 * once);
  EXPECT_EQ(cuda.cuStreamWaitEvent(first, event(), 0), CUDA_SUCCESS) << "never recorded: nothing to wait for";
}

TEST_F(DriverStream, LegacyDefaultStreamIsOrderedWithBlockingStreamsOnly) {
  const float once = fill_time(few);
  const CUstream blocking = stream(), free_running = stream(CU_STREAM_NON_BLOCKING);
  const CUevent start = event(), blocking_end = event(), free_end = event(), legacy_end = event();
  record(start, blocking);
  run(blocking, few);
  run(nullptr, few);
  run(blocking, few);
  run(free_running, few);
  record(legacy_end, legacy);
  record(blocking_end, blocking);
  record(free_end, free_running);
  EXPECT_FLOAT_EQ(elapsed(start, blocking_end), 3 * once);
  EXPECT_FLOAT_EQ(elapsed(start, legacy_end), 3 * once) << "comes after all blocking work";
  EXPECT_FLOAT_EQ(elapsed(start, free_end), once);
}

TEST_F(DriverStream, PerThreadDefaultStreamIsOrderedWithTheLegacyOne) {
  const float once = fill_time(few);
  const CUevent start = event(), end = event();
  record(start, per_thread);
  run(per_thread, few);
  run(nullptr, few);
  run(per_thread, few);
  record(end, per_thread);
  EXPECT_FLOAT_EQ(elapsed(start, end), 3 * once);
}

TEST_F(DriverStream, SynchronisingMovesTheHostPastTheDevice) {
  const CUstream first = stream(CU_STREAM_NON_BLOCKING), second = stream(CU_STREAM_NON_BLOCKING);
  const CUevent first_end = event(), second_start = event();
  run(first, few);
  record(first_end, first);
  EXPECT_EQ(cuda.cuStreamSynchronize(first), CUDA_SUCCESS);
  record(second_start, second);
  EXPECT_GE(elapsed(first_end, second_start), 0.0f) << "enqueued after the host had waited";
}

TEST_F(DriverStream, CopiesTakeTheirModelledTime) {
  const size_t bytes = 50'000'000;
  const CUdeviceptr from = allocate(bytes), to = allocate(bytes);
  std::vector<char> host(bytes);
  const CUevent start = event(), copied = event(), moved = event(), filled = event();
  record(start, nullptr);
  EXPECT_EQ(cuda.cuMemcpyHtoDAsync_v2(from, host.data(), bytes, nullptr), CUDA_SUCCESS);
  record(copied, nullptr);
  EXPECT_EQ(cuda.cuMemcpyDtoDAsync_v2(to, from, bytes, nullptr), CUDA_SUCCESS);
  record(moved, nullptr);
  EXPECT_EQ(cuda.cuMemsetD8Async(to, 1, bytes, nullptr), CUDA_SUCCESS);
  record(filled, nullptr);
  EXPECT_FLOAT_EQ(elapsed(start, copied), 1.002f) << "50 GB/s over the host link, and the overhead of 2 us";
  EXPECT_FLOAT_EQ(elapsed(copied, moved), 2 * 50e6f / 4.3e12f * 1e3f + 0.002f);
  EXPECT_FLOAT_EQ(elapsed(moved, filled), 50e6f / 4.3e12f * 1e3f + 0.002f);
}

TEST_F(DriverStream, EventsWithoutATimeCannotBeCompared) {
  const CUevent timed = event(), untimed = event(CU_EVENT_DISABLE_TIMING), never = event();
  record(timed, nullptr);
  record(untimed, nullptr);
  float milliseconds = 0;
  EXPECT_EQ(cuda.cuEventElapsedTime(&milliseconds, timed, untimed), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuda.cuEventElapsedTime(&milliseconds, timed, never), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuda.cuEventQuery(never), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuEventSynchronize(untimed), CUDA_SUCCESS);
}

TEST_F(DriverStream, EndsWithItsHandle) {
  const CUstream created = stream();
  const CUevent recorded = event();
  CUcontext owner = nullptr;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  EXPECT_EQ(cuda.cuStreamGetCtx(created, &owner), CUDA_SUCCESS);
  EXPECT_EQ(owner, context);
  EXPECT_EQ(cuda.cuStreamIsCapturing(created, &status), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(cuda.cuStreamQuery(created), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuStreamDestroy_v2(created), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuStreamDestroy_v2(created), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuda.cuStreamSynchronize(created), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuda.cuEventRecord(recorded, created), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuda.cuEventDestroy_v2(recorded), CUDA_SUCCESS);
  EXPECT_EQ(cuda.cuEventRecord(recorded, nullptr), CUDA_ERROR_INVALID_HANDLE);
  CUstream refused = nullptr;
  EXPECT_EQ(cuda.cuStreamCreate(&refused, 2), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace kiln::emulator::testing::driver_stream_test
