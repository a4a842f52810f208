// The tensor functions from an application's point of view.
#include "kiln/tensor_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "device_fixture.h"

namespace kiln::tensor_ops_test {
namespace {

using testing::ElementsAre;

class TensorFunctionCalls : public DeviceTest {
 protected:
  TensorFunctionCalls() : context_(options()) {}

  Context context_;
};

TEST_F(TensorFunctionCalls, TransformConvertsLaysOutAndScales) {
  const Tensor x(upload<float>({1.5F, -2, 3, 400, 5, -6}), f32, {1, 2, 3}, contiguous);
  const Tensor y(upload<int8_t>({0, 0, 0, 0, 0, 0}), i8, {1, 2, 3}, {6, 1, 2});
  tensor_transform(context_, x, y, {.alpha = 2});
  EXPECT_THAT(download<int8_t>(y.data(), 6), ElementsAre(3, 127, -4, 10, 6, -12));
}

TEST_F(TensorFunctionCalls, TransformCropsByStridesAndPadsWithAValue) {
  // The lower right 2 x 2 of a 3 x 3 matrix, into the middle of another.
  const std::vector<float> matrix{0, 0, 0, 0, 1, 2, 0, 3, 4};
  const Tensor x(static_cast<float*>(upload(matrix)) + 4, f32, {2, 2}, {3, 1});
  const Tensor y(upload(std::vector<float>(12, 9)), f32, {3, 4}, contiguous);
  tensor_transform(context_, x, y, {.pad_begin = {1, 1}, .pad_end = {0, 1}, .value = -1});
  EXPECT_THAT(download<float>(y.data(), 12), ElementsAre(-1, -1, -1, -1, -1, 1, 2, -1, -1, 3, 4, -1));
}

TEST_F(TensorFunctionCalls, TransformConcatenatesIntoPartsOfATensor) {
  const Tensor a(upload<float>({1, 2, 3, 4}), f32, {2, 2}, contiguous),
      b(upload<float>({5, 6}), f32, {2, 1}, contiguous);
  float* const joined = static_cast<float*>(upload(std::vector<float>(6)));
  tensor_transform(context_, a, Tensor(joined, f32, {2, 2}, {3, 1}));
  tensor_transform(context_, b, Tensor(joined + 2, f32, {2, 1}, {3, 1}));
  EXPECT_THAT(download<float>(joined, 6), ElementsAre(1, 2, 5, 3, 4, 6));
}

TEST_F(TensorFunctionCalls, AddRepeatsAVectorOverAMatrix) {
  const Tensor x(upload<float>({10, 20, 30}), f32, {1, 3}, contiguous);
  const Tensor y(upload<float>({1, 2, 3, 4, 5, 6}), f32, {2, 3}, contiguous);
  tensor_add(context_, x, y);
  EXPECT_THAT(download<float>(y.data(), 6), ElementsAre(11, 22, 33, 14, 25, 36));
  tensor_add(context_, x, y, 0.5F, -1);
  EXPECT_THAT(download<float>(y.data(), 6), ElementsAre(-6, -12, -18, -9, -15, -21));
}

// One kernel for batches 3 and 4: what repeats has a batch of 1 in both.
TEST_F(TensorFunctionCalls, InputsRepeatThroughADynamicBatch) {
  const Tensor row(upload<float>({10, 20}), f32, {1, 2}, contiguous);
  for (const int64_t n : {3, 4}) {
    const Tensor x(upload<float>({1, 2, 3, 4, 5, 6, 7, 8}), f32, {n, 2}, contiguous);
    const Tensor y(upload(std::vector<float>(8, -1)), f32, {n, 2}, contiguous);
    const float seventh = n == 4 ? 17 : -1, eighth = n == 4 ? 28 : -1;
    tensor_op(context_, TensorOpMode::add, row, x, y, {.dynamic_batch = true});
    EXPECT_THAT(download<float>(y.data(), 8), ElementsAre(11, 22, 13, 24, 15, 26, seventh, eighth));
    tensor_transform(context_, row, y, {.beta = 1, .dynamic_batch = true});
    EXPECT_THAT(download<float>(y.data(), 8), ElementsAre(21, 42, 23, 44, 25, 46, n == 4 ? 27 : -1, n == 4 ? 48 : -1));
  }
}

TEST_F(TensorFunctionCalls, ScaleAndSetWriteEveryElementAndNoOther) {
  float* const memory_of_y = static_cast<float*>(upload<float>({1, 2, 3, 4, 5, 6}));
  const Tensor all(memory_of_y, f32, {6}, contiguous), part(memory_of_y, f32, {2, 2}, {3, 1});
  tensor_scale(context_, part, 10);
  EXPECT_THAT(download<float>(all.data(), 6), ElementsAre(10, 20, 3, 40, 50, 6));
  tensor_set(context_, part, -7);
  EXPECT_THAT(download<float>(all.data(), 6), ElementsAre(-7, -7, 3, -7, -7, 6));
  tensor_set(context_, part, 8);
  EXPECT_THAT(download<float>(all.data(), 6), ElementsAre(8, 8, 3, 8, 8, 6)) << "a value is no part of the plan";
  const Tensor bytes(upload<uint8_t>({0, 0, 0}), u8, {3}, contiguous);
  tensor_set(context_, bytes, 300);
  EXPECT_THAT(download<uint8_t>(bytes.data(), 3), ElementsAre(255, 255, 255));
}

TEST_F(TensorFunctionCalls, OpTakesOneTwoAndThreeInputsAlsoInPlace) {
  const Tensor a(upload<float>({4, 9, 16, 25}), f32, {2, 2}, contiguous),
      b(upload<float>({1, 10}), f32, {1, 2}, contiguous);
  const Tensor mask(upload<uint8_t>({1, 0, 0, 1}), u8, {2, 2}, contiguous);
  const Tensor y(upload(std::vector<float>(4)), f32, {2, 2}, contiguous);
  tensor_op(context_, TensorOpMode::sqrt, a, y);
  EXPECT_THAT(download<float>(y.data(), 4), ElementsAre(2, 3, 4, 5));
  tensor_op(context_, TensorOpMode::sub, a, b, y);
  EXPECT_THAT(download<float>(y.data(), 4), ElementsAre(3, -1, 15, 15));
  tensor_op(context_, TensorOpMode::sub, a, b, y, {.alpha = 2, .beta = 1});
  EXPECT_THAT(download<float>(y.data(), 4), ElementsAre(9, -3, 45, 45));
  tensor_op(context_, TensorOpMode::select, mask, a, b, a);
  EXPECT_THAT(download<float>(a.data(), 4), ElementsAre(4, 10, 1, 25));
}

}  // namespace
}  // namespace kiln::tensor_ops_test
