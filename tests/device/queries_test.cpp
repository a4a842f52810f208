// Whether a stream or an event has come to its end, by what the driver answers.
#include <gtest/gtest.h>

#include "error_of.h"
#include "fake_driver.h"
#include "kiln/device/event.h"
#include "kiln/device/stream.h"

namespace kiln::device::queries_test {
namespace {

using cuda_abi::CUresult;

thread_local CUresult answer = cuda_abi::CUDA_SUCCESS;

class Queries : public testing::Test {
 protected:
  Queries() {
    fake_.table.cuStreamCreate = [](cuda_abi::CUstream* stream, unsigned) {
      *stream = reinterpret_cast<cuda_abi::CUstream>(uint64_t{5});
      return cuda_abi::CUDA_SUCCESS;
    };
    fake_.table.cuEventCreate = [](cuda_abi::CUevent* event, unsigned) {
      *event = reinterpret_cast<cuda_abi::CUevent>(uint64_t{6});
      return cuda_abi::CUDA_SUCCESS;
    };
    fake_.table.cuStreamDestroy_v2 = [](cuda_abi::CUstream) { return cuda_abi::CUDA_SUCCESS; };
    fake_.table.cuEventDestroy_v2 = [](cuda_abi::CUevent) { return cuda_abi::CUDA_SUCCESS; };
    fake_.table.cuStreamQuery = [](cuda_abi::CUstream) { return answer; };
    fake_.table.cuEventQuery = [](cuda_abi::CUevent) { return answer; };
  }

  FakeDriver fake_;
};

TEST_F(Queries, TellWorkThatGoesOnFromAnEndAndFromAFault) {
  const auto context = fake_.context();
  const Stream stream(context);
  const Event event(context);
  answer = cuda_abi::CUDA_SUCCESS;
  EXPECT_TRUE(stream.is_idle());
  EXPECT_TRUE(event.is_done());
  answer = cuda_abi::CUDA_ERROR_NOT_READY;
  EXPECT_FALSE(stream.is_idle());
  EXPECT_FALSE(event.is_done());
  answer = cuda_abi::CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_TRUE(error_of<DriverError>([&] { (void)stream.is_idle(); }).is_sticky());
  EXPECT_TRUE(error_of<DriverError>([&] { (void)event.is_done(); }).is_sticky());
}

}  // namespace
}  // namespace kiln::device::queries_test
