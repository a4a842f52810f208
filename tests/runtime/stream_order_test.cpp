// Order between two streams, as a capture shows it: a stream that waits for a captured one joins its capture, and a
// capture ends only where every stream that joined has been waited for.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "device_fixture.h"
#include "kiln/device/stream.h"
#include "kiln/stream.h"

namespace kiln::stream_order_test {
namespace {

using namespace cuda_abi;

class StreamOrderTest : public DeviceTest {
 protected:
  void fill(Stream stream) const { plan_.run(stream, {y_}, nullptr, plan_.values({{"value", 2.0F}})); }

  // How the capture of `first` ended, of what `enqueue` does.
  template <class Enqueue>
  CUresult end_of_capture(const Enqueue& enqueue) {
    using Table = device::DriverTable;
    EXPECT_EQ(device_->call(&Table::cuStreamBeginCapture_v2, first_.raw(), CU_STREAM_CAPTURE_MODE_RELAXED),
              CUDA_SUCCESS);
    enqueue();
    CUgraph graph = nullptr;
    const CUresult result = device_->call(&Table::cuStreamEndCapture, first_.raw(), &graph);
    if (graph != nullptr) {
      EXPECT_EQ(device_->call(&Table::cuGraphDestroy, graph), CUDA_SUCCESS);
    }
    return result;
  }

  device::Stream first_{device_}, second_{device_};
  Context context_{options()};
  Plan plan_ = context_.plan(Request::parse("tensor_set y=f32:8"));
  std::vector<float> zeros_ = std::vector<float>(8);
  void* y_ = upload(zeros_);
};

TEST_F(StreamOrderTest, LaterWorkOfTheOtherStreamFollows) {
  const CUresult result = end_of_capture([&] {
    order(context_, first_.raw(), second_.raw());
    fill(second_.raw());  // captured, though nobody captures this stream
    order(context_, second_.raw(), first_.raw());
  });
  EXPECT_EQ(result, CUDA_SUCCESS);
  EXPECT_EQ(download<float>(y_, 8), zeros_);
}

TEST_F(StreamOrderTest, OneWayLeavesTheCaptureOpen) {
  const CUresult result = end_of_capture([&] {
    order(context_, first_.raw(), second_.raw());
    fill(second_.raw());
  });
  EXPECT_EQ(result, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
}

TEST_F(StreamOrderTest, OneStreamNeedsNoOrder) {
  const auto legacy = reinterpret_cast<Stream>(uintptr_t{1});
  const CUresult result = end_of_capture([&] {  // in which the default stream may not wait, nor be waited for
    order(context_, first_.raw(), first_.raw());
    order(context_, nullptr, legacy);
    order(context_, legacy, nullptr);
    fill(first_.raw());
  });
  EXPECT_EQ(result, CUDA_SUCCESS);
}

TEST_F(StreamOrderTest, AStreamThatThereIsNotIsRefused) {
  if (!context_.is_emulated()) GTEST_SKIP() << "NVIDIA's driver follows the handle, and ends the process";
  const auto none = reinterpret_cast<Stream>(uintptr_t{0x1234560});
  EXPECT_NE(refusal_of([&] { order(context_, none, nullptr); }, ErrorCode::driver_error), "accepted");
  EXPECT_NE(refusal_of([&] { order(context_, nullptr, none); }, ErrorCode::driver_error), "accepted");
}

}  // namespace
}  // namespace kiln::stream_order_test
