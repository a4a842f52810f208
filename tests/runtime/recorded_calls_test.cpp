// KILN_RECORD and the functions of the library: what each asks for is a line of the file, whatever becomes of it.
#include <gmock/gmock.h>

#include <fstream>
#include <set>
#include <span>

#include "device_fixture.h"
#include "kiln/activation.h"
#include "kiln/conv.h"
#include "kiln/dropout.h"
#include "kiln/gather.h"
#include "kiln/gemm.h"
#include "kiln/generator/operation.h"
#include "kiln/local_conv.h"
#include "kiln/local_norm.h"
#include "kiln/loss.h"
#include "kiln/norm.h"
#include "kiln/pool.h"
#include "kiln/reduce.h"
#include "kiln/resize.h"
#include "kiln/softmax.h"
#include "kiln/tensor_ops.h"

namespace kiln::recorded_calls_test {
namespace {

class RecordedCallsTest : public DeviceTest {
 protected:
  RecordedCallsTest() : file_(testing::TempDir() + "kiln_recorded_calls.txt") {
    context_.emplace(options_that_only_record(file_));
  }

  // Memory of its own: outputs must not overlap other operands.
  Tensor tensor(std::initializer_list<int64_t> extents, DType dtype = f32) {
    return {upload(std::vector<float>(1024)), dtype, extents, contiguous};
  }

  // The call must ask for one request, which becomes one more line of the file.
  void record(const std::function<void(Context&)>& call) {
    EXPECT_THAT(refusal_of([&] { call(*context_); }, ErrorCode::missing_library), testing::HasSubstr("NVRTC"));
    EXPECT_EQ(lines().size(), ++calls_);
  }

  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    std::ifstream stream(file_);
    for (std::string line; std::getline(stream, line);) all.push_back(line);
    return all;
  }

  void convolutions();
  void poolings();
  void elements();
  void products();
  void rows();
  void norms();

  std::string file_;
  std::optional<Context> context_;
  size_t calls_ = 0;
};

void RecordedCallsTest::convolutions() {
  const Tensor x = tensor({1, 4, 6, 6}), y = tensor({1, 4, 6, 6}), w = tensor({4, 4, 3, 3}), db = tensor({4});
  const Tensor local_w = tensor({16, 4, 3, 3});
  record([&](Context& c) { conv_forward(c, x, w, y, {.pad = {1, 1}}); });
  record([&](Context& c) { conv_backward_data(c, y, w, x, {.pad = {1, 1}}); });
  record([&](Context& c) { conv_backward_filter(c, x, y, w, {.pad = {1, 1}}); });
  record([&](Context& c) { conv_backward_bias(c, y, db); });
  record([&](Context& c) { local_conv_forward(c, x, local_w, y, {.grid = {2, 2}, .pad = {1, 1}}); });
  record([&](Context& c) { local_conv_backward_data(c, y, local_w, x, {.grid = {2, 2}, .pad = {1, 1}}); });
  record([&](Context& c) { local_conv_backward_filter(c, x, y, local_w, {.grid = {2, 2}, .pad = {1, 1}}); });
}

void RecordedCallsTest::poolings() {
  const PoolOptions halves{.window = {2, 2}, .stride = {2, 2}};
  const Tensor x = tensor({1, 4, 6, 6}), dx = tensor({1, 4, 6, 6}), y = tensor({1, 4, 3, 3});
  const Tensor indices = tensor({1, 4, 3, 3}, i32);
  record([&](Context& c) { pool_forward(c, x, y, halves); });
  record([&](Context& c) { pool_forward(c, x, y, indices, halves); });
  record([&](Context& c) { pool_backward(c, y, x, dx, halves); });
  record([&](Context& c) { pool_backward_from_indices(c, y, indices, dx, halves); });
  record([&](Context& c) { unpool_backward(c, x, indices, y, halves); });
  record([&](Context& c) { resize(c, x, y); });
}

void RecordedCallsTest::elements() {
  const Tensor a = tensor({5, 7}), b = tensor({5, 7}), c = tensor({5, 7}), y = tensor({5, 7});
  record([&](Context& k) { activation_forward(k, a, y); });
  record([&](Context& k) { activation_backward(k, a, b, y); });
  record([&](Context& k) { activation_backward_from_y(k, a, b, y, {.mode = ActivationMode::tanh}); });
  record([&](Context& k) { tensor_transform(k, a, tensor({5, 7}, i8)); });
  record([&](Context& k) { tensor_add(k, a, y); });
  record([&](Context& k) { tensor_scale(k, y, 2); });
  record([&](Context& k) { tensor_set(k, y, 2); });
  record([&](Context& k) { tensor_op(k, TensorOpMode::select, a, b, c, y); });
  record([&](Context& k) { dropout_forward(k, a, y); });
  record([&](Context& k) { gather(k, a, tensor({5, 7}, i32), y); });
}

void RecordedCallsTest::products() {
  const Tensor x = tensor({5, 7}), w = tensor({6, 7}), y = tensor({5, 6});
  record([&](Context& c) { gemm(c, x, tensor({7, 6}), y); });
  record([&](Context& c) { fully_connected_forward(c, x, w, y); });
  record([&](Context& c) { fully_connected_backward_data(c, y, w, x); });
  record([&](Context& c) { fully_connected_backward_weights(c, x, y, w); });
  record([&](Context& c) { fully_connected_backward_bias(c, y, tensor({6})); });
}

void RecordedCallsTest::rows() {
  const Tensor x = tensor({5, 7}), y = tensor({5, 7}), dx = tensor({5, 7}), targets = tensor({5}, i32);
  record([&](Context& c) { softmax_forward(c, x, y); });
  record([&](Context& c) { softmax_backward(c, x, y, dx); });
  record([&](Context& c) { reduce(c, ReduceMode::max, x, tensor({5, 1}), tensor({5, 1}, i32)); });
  record([&](Context& c) { cross_entropy_forward(c, x, targets, tensor({1})); });
  record([&](Context& c) { cross_entropy_backward(c, x, targets, dx); });
  record([&](Context& c) { cross_entropy_backward(c, x, targets, tensor({1}), dx); });
}

void RecordedCallsTest::norms() {
  const Tensor x = tensor({1, 4, 6, 6}), y = tensor({1, 4, 6, 6}), dx = tensor({1, 4, 6, 6}),
               residual = tensor({1, 4, 6, 6});
  const Tensor mean = tensor({4}), deviation = tensor({4}), w = tensor({4}), dw = tensor({4});
  const Tensor row = tensor({5, 7}), out = tensor({5, 7}), scale = tensor({7});
  record([&](Context& c) {
    batch_norm_forward(c, x, y, {.w = w, .mean = mean, .inv_deviation = deviation, .epilogue = add(residual) + relu});
  });
  const Activation swish{.mode = ActivationMode::swish};
  record([&](Context& c) { batch_norm_inference(c, x, mean, deviation, y, {.activation = swish}); });
  record([&](Context& c) {
    batch_norm_backward(c, x, y, deviation, dx, {.mean = mean, .activation = swish, .residual = residual, .dw = dw});
  });
  record([&](Context& c) { group_norm_forward(c, 2, x, y, {.w = w}); });
  record([&](Context& c) { rms_norm_forward(c, -1, row, out, {.w = scale}); });
  record([&](Context& c) { lrn_forward(c, x, y); });
  record([&](Context& c) { lrn_backward(c, x, y, dx); });
  record([&](Context& c) { lcn_forward(c, x, y); });
  record([&](Context& c) { lcn_backward(c, x, y, dx, {}, residual); });
}

TEST_F(RecordedCallsTest, NameEveryOperationAndParse) {
  convolutions();
  poolings();
  elements();
  products();
  rows();
  norms();
  std::set<std::string> recorded, known;
  for (const std::string& line : lines()) {
    const Request request = Request::parse(line);
    EXPECT_EQ(request.key(), line);
    recorded.insert(request.operation);
  }
  for (const Operation* operation : operations()) known.emplace(operation->name());
  EXPECT_EQ(recorded, known);
}

}  // namespace
}  // namespace kiln::recorded_calls_test
