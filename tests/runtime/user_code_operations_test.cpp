// User code of operations that are no forward layer: what a call gives, against values worked out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "device_fixture.h"
#include "kiln/activation.h"
#include "kiln/affine_grid.h"
#include "kiln/ctc_loss.h"
#include "kiln/dropout.h"
#include "kiln/epilogue.h"
#include "kiln/grid_sample.h"
#include "kiln/im2col.h"
#include "kiln/loss.h"
#include "kiln/pool.h"
#include "kiln/reduce.h"
#include "kiln/scatter.h"
#include "kiln/softmax.h"
#include "kiln/tensor_ops.h"

namespace kiln::user_code_operations_test {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

// acc times a gate for each row, plus a scalar.
class UserCodeOperations : public DeviceTest {
 protected:
  Tensor of(const std::vector<float>& values, std::initializer_list<int64_t> extents) {
    return {upload(values), f32, extents, contiguous};
  }
  Tensor empty(std::initializer_list<int64_t> extents) { return of(std::vector<float>(8, -99), extents); }
  std::vector<float> values(const Tensor& y, size_t count) const { return download<float>(y.data(), count); }

  // A prologue: x * x + shift.
  Epilogue squared(float shift) const { return expression(squared_, {}, {{"shift", shift}}); }
  Epilogue gated(float shift) const { return expression(code_, {{"gate", gate_}}, {{"shift", shift}}); }

  Expression code_{"acc * gate + shift", {"gate"}, {"shift"}};
  Expression squared_{"--- prologue\nx * x + shift", {}, {"shift"}};
  Tensor gate_ = of({2, 10}, {2, 1});
  Tensor x_ = of({1, 2, 3, 4}, {2, 2});
  Tensor y_ = empty({2, 2});
  Context context_{options()};
};

TEST_F(UserCodeOperations, Transforms) {
  tensor_transform(context_, x_, y_, {.epilogue = gated(1)});
  EXPECT_THAT(values(y_, 4), ElementsAre(3, 5, 31, 41));
  tensor_transform(context_, x_, y_, {.epilogue = gated(-1)});
  EXPECT_THAT(values(y_, 4), ElementsAre(1, 3, 29, 39));
  const Tensor padded = empty({2, 3});
  tensor_transform(context_, x_, padded,
                   {.pad_begin = {0, 1}, .value = 7, .epilogue = expression("--- prologue\n-x\n---\n2.0f * acc")});
  EXPECT_THAT(values(padded, 6), ElementsAre(14, -2, -4, 14, -6, -8));
}

TEST_F(UserCodeOperations, Values) {
  tensor_set(context_, y_, 3, gated(0.5F));
  EXPECT_THAT(values(y_, 4), ElementsAre(6.5F, 6.5F, 30.5F, 30.5F));
  tensor_set(context_, y_, 3);
  EXPECT_THAT(values(y_, 4), ElementsAre(3, 3, 3, 3));
}

// In place: y is an input.
TEST_F(UserCodeOperations, Arithmetic) {
  tensor_op(context_, TensorOpMode::mul, x_, x_, x_, {.alpha = 2, .epilogue = gated(1)});
  EXPECT_THAT(values(x_, 4), ElementsAre(5, 17, 181, 321));
  tensor_op(context_, TensorOpMode::sqrt, x_, y_, {.epilogue = expression("--- prologue\nx * x")});
  EXPECT_THAT(values(y_, 4), Pointwise(FloatNear(1e-3F), {5.0F, 17.0F, 181.0F, 321.0F}));
}

TEST_F(UserCodeOperations, Dropouts) {
  dropout_forward(context_, x_, y_, {.p = 0, .epilogue = gated(1)});
  EXPECT_THAT(values(y_, 4), ElementsAre(3, 5, 31, 41));
  dropout_backward(context_, x_, y_, {.p = 1, .epilogue = gated(1)});
  EXPECT_THAT(values(y_, 4), ElementsAre(1, 1, 1, 1));
}

TEST_F(UserCodeOperations, GradientsOfReductions) {
  const Tensor dy(upload<float>({2, 3}), f32, {2, 1}, nc);
  reduce_backward(context_, ReduceMode::mean, dy, y_, {.alpha = 2, .epilogue = gated(1)});
  EXPECT_THAT(values(y_, 4), ElementsAre(5, 5, 31, 31));
  reduce_backward(context_, ReduceMode::norm2, dy, y_, {.x = x_, .y = dy, .epilogue = gated(0)});
  EXPECT_THAT(values(y_, 4), ElementsAre(2, 4, 30, 40));
}

TEST_F(UserCodeOperations, GradientsOfTensorFunctions) {
  tensor_op_backward(context_, TensorOpMode::neg, TensorOpInput::a, x_, y_, {.epilogue = gated(1)});
  EXPECT_THAT(values(y_, 4), ElementsAre(-1, -3, -29, -39));
  const Tensor sums = empty({2, 1});
  tensor_op_backward(context_, TensorOpMode::mul, TensorOpInput::a, x_, sums, {.b = x_, .epilogue = gated(1)});
  EXPECT_THAT(values(sums, 2), ElementsAre(11, 251));
}

TEST_F(UserCodeOperations, ReductionsWithAndWithoutIndices) {
  const Tensor sums = empty({2, 1}), at(upload<int32_t>({-9, -9}), i32, {2, 1}, nc);
  reduce(context_, ReduceMode::add, x_, sums, {.epilogue = gated(1)});
  EXPECT_THAT(values(sums, 2), ElementsAre(7, 71));
  reduce(context_, ReduceMode::mul, x_, sums, {.epilogue = squared(1)});
  EXPECT_THAT(values(sums, 2), ElementsAre(10, 170));
  reduce(context_, ReduceMode::max, x_, sums, at, {.epilogue = gated(1)});
  EXPECT_THAT(values(sums, 2), ElementsAre(5, 41));
  EXPECT_THAT(download<int32_t>(at.data(), 2), ElementsAre(1, 1));
  reduce(context_, ReduceMode::max, x_, sums, at, {.epilogue = expression("--- prologue\n-x")});
  EXPECT_THAT(values(sums, 2), ElementsAre(-1, -3));
  EXPECT_THAT(download<int32_t>(at.data(), 2), ElementsAre(0, 0));
}

// y (dy - sum(y dy)) with y = 1/2: (dy - mean) / 2.
TEST_F(UserCodeOperations, SoftmaxGradients) {
  softmax_backward(context_, of({0.5F, 0.5F, 0.5F, 0.5F}, {2, 2}), x_, y_, {.epilogue = gated(1)});
  EXPECT_THAT(values(y_, 4), ElementsAre(0.5F, 1.5F, -1.5F, 3.5F));
  softmax_backward(context_, of({0.5F, 0.5F, 0.5F, 0.5F}, {2, 2}), x_, y_, {.epilogue = squared(1)});
  EXPECT_THAT(values(y_, 4), ElementsAre(-0.75F, 0.75F, -1.75F, 1.75F));  // of x squared
}

TEST_F(UserCodeOperations, ActivationGradients) {
  activation_backward(context_, of({-1, 1, 1, -1}, {2, 2}), x_, y_, {.epilogue = gated(1)});
  EXPECT_THAT(values(y_, 4), ElementsAre(1, 5, 31, 1));
  activation_backward(context_, of({-1, 1, 1, -1}, {2, 2}), x_, y_, {.epilogue = squared(1)});
  EXPECT_THAT(values(y_, 4), ElementsAre(0, 5, 10, 0));
}

TEST_F(UserCodeOperations, LossesAndTheirGradients) {
  const Tensor logits = of({0, 0, 0, 0}, {2, 2}), targets(upload<int32_t>({0, 1}), i32, {2}, contiguous);
  const Tensor losses = empty({2}), loss = empty({1});
  const float each = std::log(2.0F);
  const Expression per_row("acc * weight + shift", {"weight"}, {"shift"});
  const auto weighted = [&](const Tensor& weight) { return expression(per_row, {{"weight", weight}}, {{"shift", 1}}); };
  cross_entropy_forward(context_, logits, targets, losses,
                        {.reduction = LossReduction::none, .epilogue = weighted(of({2, 3}, {2}))});
  EXPECT_THAT(values(losses, 2), Pointwise(FloatNear(1e-5F), {2 * each + 1, 3 * each + 1}));
  cross_entropy_forward(context_, logits, targets, loss,
                        {.reduction = LossReduction::sum, .epilogue = weighted(of({5}, {1}))});
  EXPECT_THAT(values(loss, 1), Pointwise(FloatNear(1e-4F), {10 * each + 1}));
  cross_entropy_backward(context_, logits, targets, y_, {.reduction = LossReduction::sum, .epilogue = gated(1)});
  EXPECT_THAT(values(y_, 4), ElementsAre(0, 2, 6, -4));
  const Tensor roots = of({1, 2, 3, 1}, {2, 2});  // logits of 1, 4 and 9, 1
  cross_entropy_forward(context_, roots, targets, losses,
                        {.reduction = LossReduction::none, .epilogue = squared(0.5F)});
  EXPECT_THAT(values(losses, 2), Pointwise(FloatNear(1e-4F), {3.048587F, 8.000335F}));
  cross_entropy_backward(context_, roots, targets, y_, {.reduction = LossReduction::sum, .epilogue = squared(0.5F)});
  EXPECT_THAT(values(y_, 4), Pointwise(FloatNear(1e-5F), {-0.952574F, 0.952574F, 0.999665F, -0.999665F}));
  EXPECT_THAT(refusal_of([&] {
                cross_entropy_forward(context_, logits, targets, loss,
                                      {.dynamic_batch = true, .epilogue = expression("acc")});
              }),
              HasSubstr("its result is a sum over the batch"));
}

TEST_F(UserCodeOperations, Scatter) {
  const Tensor updates = of({1, 2, 3, 4, 5, 6}, {3, 2}), rows(upload<int32_t>({1, -1, 7}), i32, {3, 1}, contiguous);
  const Tensor y = empty({2, 2});
  const Expression per_element("acc * weight + shift", {"weight"}, {"shift"});
  scatter(context_, updates, rows, y,
          {.epilogue = expression(per_element, {{"weight", of({1, 2, 3, 4}, {2, 2})}}, {{"shift", 1}})});
  EXPECT_THAT(values(y, 4), ElementsAre(1, 1, 13, 25)) << "both rows are the last; 7 is none";
}

TEST_F(UserCodeOperations, Im2colAndCol2im) {
  const Tensor x = of({1, 2, 3, 4}, {1, 1, 2, 2}), y = empty({1, 2, 2, 1}), z = empty({1, 1, 2, 2});
  const Expression per_element("acc * weight + shift", {"weight"}, {"shift"});
  const auto code = [&](const Tensor& weight) { return expression(per_element, {{"weight", weight}}, {{"shift", 1}}); };
  im2col(context_, x, y, {.window = {1, 2}, .epilogue = code(of({1, 2, 3, 4}, {1, 2, 2, 1}))});
  EXPECT_THAT(values(y, 4), ElementsAre(2, 7, 7, 17)) << "left column, then right column";
  const Tensor columns = of({1, 2, 3, 4, 5, 6, 7, 8}, {1, 4, 2, 1});
  col2im(context_, columns, z,
         {.window = {2, 2}, .pad = {1, 0, 0, 0}, .epilogue = code(of({1, 2, 3, 4}, {1, 1, 2, 2}))});
  EXPECT_THAT(values(z, 4), ElementsAre(8, 23, 19, 33)) << "two windows hold the first row, one the second";
}

// Positions half a pixel apart, of an image of ones.
TEST_F(UserCodeOperations, GridSampleAndItsGradients) {
  const Tensor x = of({1, 1, 1, 1}, {1, 1, 2, 2}), grid = of({0, 0, -0.5F, 0}, {1, 1, 2, 2});
  const Tensor y = empty({1, 1, 1, 2}), dx = empty({1, 1, 2, 2}), dgrid = empty({1, 1, 2, 2});
  const Expression per_element("acc * weight + shift", {"weight"}, {"shift"});
  const auto code = [&](const Tensor& weight) { return expression(per_element, {{"weight", weight}}, {{"shift", 1}}); };
  grid_sample(context_, x, grid, y, {.epilogue = code(of({2, 10}, {1, 1, 1, 2}))});
  EXPECT_THAT(values(y, 2), ElementsAre(3, 11));
  const Tensor dy = of({4, 8}, {1, 1, 1, 2});
  grid_sample_backward_data(context_, dy, grid, dx, {.epilogue = code(of({1, 2, 3, 4}, {1, 1, 2, 2}))});
  EXPECT_THAT(values(dx, 4), ElementsAre(6, 3, 16, 5)) << "a quarter of 4 each, half of 8 on the left";
  grid_sample_backward_grid(context_, dy, x, grid, dgrid, {.epilogue = code(of({1, 2, 3, 4}, {1, 1, 2, 2}))});
  EXPECT_THAT(values(dgrid, 4), ElementsAre(1, 1, 1, 1)) << "flat in the middle of an image of ones";
}

TEST_F(UserCodeOperations, AffineGridAndItsGradient) {
  const Tensor theta = of({1, 0, 3, 0, 1, 0}, {1, 2, 3}), grid = empty({1, 1, 2, 2}), dtheta = empty({1, 2, 3});
  const Expression per_element("acc * weight + shift", {"weight"}, {"shift"});
  const auto code = [&](const Tensor& weight) { return expression(per_element, {{"weight", weight}}, {{"shift", 1}}); };
  affine_grid(context_, theta, grid, {.epilogue = code(of({1, 2, 3, 4}, {1, 1, 2, 2}))});
  EXPECT_THAT(values(grid, 4), ElementsAre(3.5, 1, 11.5, 1));
  affine_grid_backward(context_, of({1, 2, 3, 4}, {1, 1, 2, 2}), dtheta,
                       {.epilogue = code(of({1, 2, 3, 4, 5, 6}, {1, 2, 3}))});
  EXPECT_THAT(values(dtheta, 6), ElementsAre(2, 1, 13, 5, 1, 37));
}

// Two classes of equal scores at one step, of which the second is the label: a path of probability 1/2.
TEST_F(UserCodeOperations, CtcLossAndItsGradient) {
  const Tensor scores = of({0, 0, 0, 0}, {2, 1, 2}), labels(upload<int32_t>({1, 1}), i32, {2, 1}, contiguous);
  const Tensor loss = empty({2}), prefixes = empty({2, 1, 3}), dx = empty({2, 1, 2}), dloss = of({1, 2}, {2});
  const Expression per_image("acc * weight + shift", {"weight"}, {"shift"});
  const float each = std::log(2.0F);
  ctc_loss_forward(
      context_, scores, labels, loss,
      {.prefixes = prefixes, .epilogue = expression(per_image, {{"weight", of({2, 3}, {2})}}, {{"shift", 1}})});
  EXPECT_THAT(values(loss, 2), Pointwise(FloatNear(1e-5F), {2 * each + 1, 3 * each + 1}));
  EXPECT_THAT(values(prefixes, 2), ElementsAre(0, 0));
  ctc_loss_backward(
      context_, scores, labels, prefixes, dx,
      {.dloss = dloss, .epilogue = expression(per_image, {{"weight", of({2, 10}, {2, 1, 1})}}, {{"shift", 1}})});
  EXPECT_THAT(values(dx, 4), Pointwise(FloatNear(1e-5F), {2, 0, 11, -9}));
}

TEST_F(UserCodeOperations, MaximaWithIndicesAndTheirGradients) {
  const Tensor x = of({1, 5, 3, 2, 9, 7, 8, 6}, {1, 2, 2, 2}), y = empty({1, 2, 1, 1});
  const Tensor at(upload<int32_t>({-9, -9}), i32, {1, 2, 1, 1}, nchw), dx = empty({1, 2, 2, 2});
  const Expression code("acc * gate + shift + c", {"gate"}, {"shift"});
  const Epilogue epilogue = expression(code, {{"gate", of({2, 10}, {2})}}, {{"shift", 1}});
  pool_forward(context_, x, y, at, {.epilogue = epilogue});
  EXPECT_THAT(values(y, 2), ElementsAre(11, 92));
  EXPECT_THAT(download<int32_t>(at.data(), 2), ElementsAre(1, 0));
  pool_forward(context_, x, y, at, {.epilogue = expression("--- prologue\n-x")});
  EXPECT_THAT(values(y, 2), ElementsAre(-1, -6));
  EXPECT_THAT(download<int32_t>(at.data(), 2), ElementsAre(0, 3));
  pool_forward(context_, x, y, at, {.epilogue = epilogue});
  const Tensor dy = of({3, 4}, {1, 2, 1, 1});
  const auto gradient = ElementsAre(1, 7, 1, 1, 42, 2, 2, 2);
  pool_backward(context_, dy, x, dx, {.epilogue = epilogue});
  EXPECT_THAT(values(dx, 8), gradient);
  pool_backward_from_indices(context_, dy, at, dx, {.epilogue = epilogue});
  EXPECT_THAT(values(dx, 8), gradient);
  const Expression entering("--- prologue\nx * s + 10 * c", {}, {"s"});
  pool_backward(context_, dy, x, dx, {.epilogue = expression(entering, {}, {{"s", 2}})});
  EXPECT_THAT(values(dx, 8), ElementsAre(0, 6, 0, 0, 18, 0, 0, 0));
}

TEST_F(UserCodeOperations, RefuseStagesAndTensorsOverTheResult) {
  EXPECT_THAT(refusal_of([&] { tensor_transform(context_, x_, y_, {.epilogue = relu}); }),
              HasSubstr("tensor_transform takes no epilogue of stages"));
  EXPECT_THAT(refusal_of([&] { tensor_set(context_, y_, 1, relu); }), HasSubstr("tensor_set takes no epilogue of"));
  EXPECT_THAT(refusal_of([&] {
                const Expression code("acc + t", {"t"});
                dropout_forward(context_, x_, y_, {.epilogue = expression(code, {{"t", y_}})});
              }),
              HasSubstr("dropout: the memory of y and t overlaps"));
  EXPECT_THAT(refusal_of([&] {
                const Expression code("acc + t", {"t"});
                softmax_backward(context_, x_, x_, y_, {.epilogue = expression(code, {{"t", y_}})});
              }),
              HasSubstr("softmax_backward: the memory of dx and t overlaps"));
}

// As many tensors as a call can have, of as many dimensions as a Tensor can.
TEST_F(UserCodeOperations, LeaveRoomForTheLargestCalls) {
  const Tensor x = empty({1, 1, 1, 1, 1, 1}), dx = empty({1, 1, 1, 1, 1, 1});
  const Expression code("acc + p0 + p1 + p2 + p3 + p4 + p5 + p6 + p7",
                        {"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"});
  const Epilogue eight =
      expression(code, {{"p0", x}, {"p1", x}, {"p2", x}, {"p3", x}, {"p4", x}, {"p5", x}, {"p6", x}, {"p7", x}});
  EXPECT_THAT(refusal_of([&] { cross_entropy_backward(context_, x, x, x, dx, {.weights = x, .epilogue = eight}); }),
              HasSubstr("cross_entropy_backward"));
}

}  // namespace
}  // namespace kiln::user_code_operations_test
