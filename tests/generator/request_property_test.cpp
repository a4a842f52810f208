// parse(print(r)) == r over random requests of every operation.
#include <gtest/gtest.h>

#include <random>

#include "kiln/base/error.h"
#include "kiln/generator/operations/activation.h"
#include "kiln/generator/operations/conv_forward.h"
#include "kiln/generator/operations/gemm.h"
#include "kiln/generator/operations/pool_forward.h"
#include "kiln/generator/operations/softmax_backward.h"
#include "kiln/generator/operations/tensor_ops.h"

namespace kiln::request_property_test {
namespace {

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int64_t between(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine_); }
  template <class T>
  T one_of(std::vector<T> values) {
    return values[static_cast<size_t>(between(0, static_cast<int64_t>(values.size()) - 1))];
  }
  bool flip() { return between(0, 1) == 1; }

 private:
  std::mt19937 engine_;
};

DType random_dtype(Random& random) {
  return random.one_of<DType>({DType::f32, DType::f16, DType::bf16});
}
Scale random_scale(Random& random) {
  return random.one_of<Scale>({Scale::zero, Scale::one, Scale::any});
}

TensorSpec random_spec(Random& random, std::vector<int64_t> extents) {
  if (random.flip()) {
    std::string order(dimension_letters(static_cast<int>(extents.size())));
    if (random.flip()) order = "n" + order.substr(2) + "c";
    return TensorSpec::packed(random_dtype(random), std::move(extents), order, random.one_of<int>({4, 8, 16, 256}));
  }
  // A sub-region: every stride a little larger than what lies inside it needs.
  TensorSpec spec{random_dtype(random), std::move(extents), {}, default_alignment};
  spec.strides.resize(spec.extents.size());
  int64_t stride = random.between(1, 3);
  for (size_t i = spec.extents.size(); i-- > 0;) {
    spec.strides[i] = stride;
    stride = stride * std::max<int64_t>(spec.extents[i], 1) + random.between(0, 5);
  }
  return spec;
}

Request random_conv(Random& random) {
  ConvForward conv;
  conv.groups = random.between(1, 3);
  const int64_t c = conv.groups * random.between(1, 5), k = conv.groups * random.between(1, 5);
  const int64_t axes = random.between(1, 3);
  std::vector<int64_t> x{random.between(0, 5), c}, w{k, c / conv.groups};
  for (int64_t i = 0; i < axes; ++i) {
    x.push_back(random.between(6, 12));
    w.push_back(random.between(1, 3));
    conv.pad_begin.push_back(random.between(0, 3));
    conv.pad_end.push_back(random.between(0, 3));
    conv.stride.push_back(random.between(1, 3));
    conv.dilation.push_back(random.between(1, 2));
  }
  conv.x = random_spec(random, std::move(x));
  conv.w = random_spec(random, std::move(w));
  conv.mirrored = random.flip();
  conv.arithmetic = {random.flip(), random.flip(), random.flip()};
  conv.blend = {random_scale(random), random_scale(random)};
  if (random.flip()) conv.epilogue.push_back(EpilogueStage::bias);
  if (random.flip()) conv.epilogue.push_back(EpilogueStage::add);
  if (random.flip()) conv.epilogue.push_back(EpilogueStage::relu);
  if (random.flip()) conv.epilogue.push_back(EpilogueStage::clip);
  conv.dynamic_batch = random.flip();
  return conv.request();
}

Request random_pool(Random& random) {
  PoolForward pool;
  std::vector<int64_t> x{random.between(0, 5), random.between(1, 9)};
  pool.mode = random.one_of<PoolMode>({PoolMode::max, PoolMode::avg, PoolMode::avg_padded});
  const int64_t axes = random.between(1, 3);
  for (int64_t i = 0; i < axes; ++i) {
    x.push_back(random.between(6, 12));
    pool.window.push_back(random.between(1, 3));
    pool.pad_begin.push_back(random.between(0, 4));
    pool.pad_end.push_back(random.between(0, 4));
    pool.stride.push_back(random.between(1, 3));
    pool.dilation.push_back(random.between(1, 2));
  }
  pool.x = random_spec(random, std::move(x));
  pool.blend = {random_scale(random), random_scale(random)};
  pool.dynamic_batch = random.flip();
  return pool.request();
}

Request random_gemm(Random& random) {
  Gemm gemm;
  const int64_t m = random.between(0, 6), k = random.between(0, 6), n = random.between(0, 6);
  gemm.dynamic_batch = random.flip();
  std::vector<int64_t> a, b;
  for (int64_t i = gemm.dynamic_batch ? 0 : random.between(0, 3); i > 0; --i) {
    const int64_t extent = random.between(1, 4);
    a.push_back(random.flip() ? extent : 1);
    b.push_back(a.back() == 1 || random.flip() ? extent : 1);
  }
  a.insert(a.end(), {m, k});
  b.insert(b.end(), {k, n});
  gemm.a = random_spec(random, std::move(a));
  gemm.b = random_spec(random, std::move(b));
  gemm.arithmetic = {random.flip(), random.flip(), random.flip()};
  gemm.blend = {random_scale(random), random_scale(random)};
  if (random.flip()) gemm.epilogue.push_back(EpilogueStage::add);
  if (random.flip()) gemm.epilogue.push_back(EpilogueStage::bias);
  return gemm.request();
}

Request random_softmax_backward(Random& random) {
  SoftmaxBackward softmax;
  softmax.y = random_spec(random, {random.between(0, 5), random.between(1, 9), random.between(1, 4), 3});
  if (random.flip()) softmax.dx = random_spec(random, softmax.y.extents);
  softmax.axis = random.between(1, 3);
  softmax.mode = random.flip() ? SoftmaxMode::log : SoftmaxMode::accurate;
  softmax.blend = {random_scale(random), random_scale(random)};
  softmax.dynamic_batch = random.flip();
  return softmax.request();
}

Request random_softmax(Random& random) {
  SoftmaxForward softmax;
  softmax.x =
      random_spec(random, {random.between(0, 5), random.between(1, 9), random.between(1, 4), random.between(1, 4)});
  softmax.axis = random.between(1, 3);
  softmax.mode = random.flip() ? SoftmaxMode::log : SoftmaxMode::accurate;
  softmax.dynamic_batch = random.flip();
  return softmax.request();
}

Request random_activation(Random& random) {
  const std::vector<int64_t> extents{random.between(0, 5), random.between(1, 9), random.between(1, 4)};
  const auto mode = random.one_of(activation_modes());
  const Blend blend{random_scale(random), random_scale(random)};
  const bool dynamic_batch = random.flip();
  if (random.flip()) {
    return ActivationForward{random_spec(random, extents), {}, mode, blend, dynamic_batch}.request();
  }
  ActivationBackward backward;
  (has_derivative_from_y(mode) && random.flip() ? backward.y : backward.x) = random_spec(random, extents);
  backward.dy = random_spec(random, extents);
  backward.mode = mode;
  backward.blend = blend;
  backward.dynamic_batch = dynamic_batch;
  return backward.request();
}

Request random_tensor_function(Random& random) {
  const std::vector<int64_t> extents{random.between(1, 5), random.between(1, 9), random.between(1, 4)};
  const Blend blend{random_scale(random), random_scale(random)};
  if (random.flip()) {
    TensorTransform transform;
    transform.x = random_spec(random, extents);
    if (random.flip()) {
      for (int i = 0; i < 3; ++i) transform.pad_begin.push_back(random.between(0, 3));
      for (int i = 0; i < 3; ++i) transform.pad_end.push_back(random.between(0, 3));
    }
    transform.blend = blend;
    return transform.request();
  }
  TensorOp op;
  op.mode = random.one_of(tensor_op_modes());
  op.a = random_spec(random, extents);
  if (inputs_of(op.mode) > 1) op.b = random_spec(random, {1, extents[1], extents[2]});
  if (inputs_of(op.mode) > 2) op.c = random_spec(random, {extents[0], 1, 1});
  op.blend = blend;
  return op.request();
}

TEST(RequestProperty, ParsingThePrintedLineGivesBackTheRequest) {
  Random random(1);
  for (int i = 0; i < 3000; ++i) {
    const Request request = i % 7 == 0   ? random_conv(random)
                            : i % 7 == 1 ? random_pool(random)
                            : i % 7 == 2 ? random_softmax(random)
                            : i % 7 == 3 ? random_softmax_backward(random)
                            : i % 7 == 4 ? random_activation(random)
                            : i % 7 == 5 ? random_gemm(random)
                                         : random_tensor_function(random);
    const std::string line = request.key();
    const Request parsed = Request::parse(line);
    ASSERT_EQ(parsed, request) << line << "\n" << parsed.key();
    ASSERT_EQ(parsed.key(), line);
  }
}

TEST(RequestProperty, TypedViewsGiveBackTheRequest) {
  Random random(2);
  for (int i = 0; i < 500; ++i) {
    const Request conv = random_conv(random), pool = random_pool(random), softmax = random_softmax(random);
    ASSERT_EQ(ConvForward::of(conv).request(), conv);
    ASSERT_EQ(PoolForward::of(pool).request(), pool);
    ASSERT_EQ(SoftmaxForward::of(softmax).request(), softmax);
    const Request gradient = random_softmax_backward(random);
    ASSERT_EQ(SoftmaxBackward::of(gradient).request(), gradient);
    const Request product = random_gemm(random);
    ASSERT_EQ(Gemm::of(product).request(), product);
  }
}

TEST(RequestProperty, DamagedLinesAreRefusedOrUnderstoodButNeverCrash) {
  Random random(3);
  const std::string alphabet = "xwyf0123456789:,=@*#? -nchw\t\xff";
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string line = i % 2 == 0 ? "conv_forward x=f32:1x3x9x9:nchw w=f32:4x3x3x3 pad=1 epilogue=bias+relu n=?"
                                  : "pool_forward x=f32:1x3x9x9 mode=max window=3,3 stride=2 alpha=any beta=1";
    for (int64_t edits = random.between(1, 3); edits > 0; --edits) {
      const auto at = static_cast<size_t>(random.between(0, static_cast<int64_t>(line.size()) - 1));
      const auto with = static_cast<size_t>(random.between(0, static_cast<int64_t>(alphabet.size()) - 1));
      line[at] = alphabet[with];
    }
    try {
      const Request request = Request::parse(line);
      ASSERT_EQ(Request::parse(request.key()), request) << line;
    } catch (const Error& error) {
      ASSERT_NE(error.code(), ErrorCode::internal) << line << ": " << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 10000);
}

}  // namespace
}  // namespace kiln::request_property_test
