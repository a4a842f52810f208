// Bad options of the operations of the C API, and tensors that do not fit one another. Faults of one tensor or
// structure alone stand in every_function_test.cpp.
#include "argument_rows.h"
#include "fixture.h"

namespace kiln::capi::operation_arguments_test {
namespace {

// All calls write to one piece of memory, which has to stay as it was.
class CApiOperationArguments : public CApi {
 protected:
  ~CApiOperationArguments() override {
    EXPECT_EQ(download(result_), untouched_) << "something ran";
    for (kiln_epilogue* epilogue : epilogues_) kiln_epilogue_destroy(epilogue);
  }

  kiln_tensor result(std::initializer_list<int64_t> extents) const { return tensor(result_, extents); }

  kiln_tensor moved(const kiln_tensor& t, ptrdiff_t bytes) const {
    return with(t, [&](auto& m) { m.data = static_cast<const char*>(t.data) + bytes; });
  }

  // An epilogue of relu, or of a bias.
  const kiln_epilogue* relu() {
    epilogues_.push_back(nullptr);
    EXPECT_EQ(kiln_epilogue_create(&epilogues_.back()), KILN_OK);
    EXPECT_EQ(kiln_epilogue_relu(epilogues_.back()), KILN_OK);
    return epilogues_.back();
  }
  const kiln_epilogue* bias(const kiln_tensor& values) {
    epilogues_.push_back(nullptr);
    EXPECT_EQ(kiln_epilogue_create(&epilogues_.back()), KILN_OK);
    EXPECT_EQ(kiln_epilogue_bias(epilogues_.back(), &values), KILN_OK);
    return epilogues_.back();
  }

  const std::vector<float> untouched_ = std::vector<float>(4 * 6 * 6, 7.0f);
  const void* const result_ = upload(untouched_);

 private:
  std::vector<kiln_epilogue*> epilogues_;
};

TEST_F(CApiOperationArguments, OfConvolution) {
  const kiln_tensor x = tensor(upload(wave(4 * 8 * 8)), {1, 4, 8, 8}),
                    w = tensor(upload(wave(4 * 4 * 9)), {4, 4, 3, 3}), y = result({1, 4, 6, 6});
  const auto tensors = [this](const kiln_tensor& a, const kiln_tensor& b, const kiln_tensor& c) {
    return [this, a, b, c] { return kiln_conv_forward(context_, &a, &b, &c, nullptr, nullptr); };
  };
  const auto options = [&](const auto& edit) {
    return [this, &x, &w, &y, edit] {
      const kiln_conv_options spoilt = with(kiln_conv_options_default(), edit);
      return kiln_conv_forward(context_, &x, &w, &y, &spoilt, nullptr);
    };
  };
  const kiln_tensor channels = tensor(w.data, {4, 3, 3, 3}), flat = tensor(w.data, {4, 36});
  const kiln_tensor over_w = with(y, [&](auto&t) { t.data = w.data; }), over_x = moved(x, 16);
  const kiln_epilogue* five = bias(tensor(upload(wave(5)), {5}));
  expect_refused({
      {"y has extents 1x4x5x6, expected 1x4x6x6", tensors(x, w, result({1, 4, 5, 6}))},
      {"w has 3 channels per filter, expected 4", tensors(x, channels, y)},
      {"dimensions", tensors(x, flat, y)},
      {"the memory of y and x overlaps",
       tensors(x, w, with(over_x, [&](auto& t) { t.extents[2] = t.extents[3] = 6; }))},
      {"the memory of y and w overlaps", tensors(x, w, over_w)},
      {"share memory", tensors(x, w, with(y, [](auto& t) { t.strides[1] = 0; }))},
      {"bias has extents 5, expected 4", options([&](auto& o) { o.epilogue = five; })},
      {"size is 143, expected 144", options([](auto& o) { o.size = 143; })},
      {"is -1", options([](auto& o) { o.pad_begin[0] = -1; })},
      {"is -2", options([](auto& o) { o.pad_end[1] = -2; })},
      {"the stride of h is 0", options([](auto& o) { o.stride[0] = 0; })},
      {"the dilation of w is -1", options([](auto& o) { o.dilation[1] = -1; })},
      {"groups=3 does not divide the 4 channels of x", options([](auto& o) { o.groups = 3; })},
      {"groups", options([](auto& o) { o.groups = -1; })},
  });
}

TEST_F(CApiOperationArguments, OfPooling) {
  const kiln_tensor x = tensor(upload(wave(16)), {1, 1, 4, 4}), y = result({1, 1, 4, 4});
  const kiln_tensor dy = tensor(upload(wave(4)), {1, 1, 2, 2});
  const auto forward = [&](const auto& edit) {
    return [this, &x, &y, edit] {
      const kiln_pool_options options = with(kiln_pool_options_default(), edit);
      return kiln_pool_forward(context_, &x, &y, &options, nullptr);
    };
  };
  const auto backward = [&](const auto& edit) {
    return [this, &x, &y, &dy, edit] {
      kiln_pool_options halves = kiln_pool_options_default();
      halves.window[0] = halves.window[1] = halves.stride[0] = halves.stride[1] = 2;
      const kiln_pool_options options = with(halves, edit);
      return kiln_pool_backward(context_, &dy, &x, &y, &options, nullptr);
    };
  };
  const kiln_epilogue* stage = relu();
  const auto window = [](auto& o, int64_t size) { o.window[0] = o.window[1] = size; };
  expect_refused({
      {"the mode is 3", forward([](auto& o) { o.mode = 3; })},
      {"size is 151, expected 152", forward([](auto& o) { o.size = 151; })},
      {"y has extent 4 along h, expected 1", forward([](auto&) {})},
      {"the window of h is -2", forward([&](auto& o) { window(o, -2); })},
      {"the stride of w is 0", forward([&](auto& o) { window(o, 2), o.stride[1] = 0; })},
      {"the dilation of h is -1", forward([&](auto& o) { window(o, 2), o.dilation[0] = -1; })},
      {"is -1", forward([&](auto& o) { window(o, 2), o.pad_begin[1] = -1; })},
      {"takes no epilogue of stages", forward([&](auto& o) { o.epilogue = stage; })},
      {"the mode is 3", backward([](auto& o) { o.mode = 3; })},
      {"dy has extent 2 along h, expected 1", backward([&](auto& o) { window(o, 4); })},
      {"the stride of h is 0", backward([](auto& o) { o.stride[0] = 0; })},
      {"the dilation of w is -1", backward([](auto& o) { o.dilation[1] = -1; })},
      {"is -1", backward([](auto& o) { o.pad_end[0] = -1; })},
      {"takes no epilogue of stages", backward([&](auto& o) { o.epilogue = stage; })},
      {"the memory of y and x overlaps", [&] { return kiln_pool_forward(context_, &y, &y, nullptr, nullptr); }},
      {"the memory of dx and x overlaps", [&] { return kiln_pool_backward(context_, &dy, &y, &y, nullptr, nullptr); }},
  });
}

TEST_F(CApiOperationArguments, OfSoftmax) {
  const kiln_tensor x = tensor(upload(wave(16)), {4, 4}), y = result({4, 4}), narrow = result({4, 3});
  const auto softmax = [&](const auto& edit) {
    return [this, &x, &y, edit] {
      const kiln_softmax_options options = with(kiln_softmax_options_default(), edit);
      return kiln_softmax_forward(context_, &x, &y, &options, nullptr);
    };
  };
  const auto backward = [&](const auto& edit) {
    return [this, &x, &y, edit] {
      const kiln_softmax_options options = with(kiln_softmax_options_default(), edit);
      return kiln_softmax_backward(context_, &x, &x, &y, &options, nullptr);
    };
  };
  const kiln_tensor shifted = moved(y, 4);
  const kiln_epilogue* stage = relu();
  expect_refused({
      {"the mode is 2", softmax([](auto& o) { o.mode = 2; })},
      {"size is 39, expected 40", softmax([](auto& o) { o.size = 39; })},
      {"axis 4 is outside the 2 dimensions of x", softmax([](auto& o) { o.axis = 4; })},
      {"axis -9223372036854775808 is outside the 2 dimensions of x", softmax([](auto& o) { o.axis = INT64_MIN; })},
      {"takes no epilogue of stages", softmax([&](auto& o) { o.epilogue = stage; })},
      {"the mode is 2", backward([](auto& o) { o.mode = 2; })},
      {"axis 4 is outside the 2 dimensions of y", backward([](auto& o) { o.axis = 4; })},
      {"takes no epilogue of stages", backward([&](auto& o) { o.epilogue = stage; })},
      {"the memory of y and x overlaps",
       [&] { return kiln_softmax_forward(context_, &shifted, &y, nullptr, nullptr); }},
      {"y has extents 4x3, expected 4x4",
       [&] { return kiln_softmax_forward(context_, &x, &narrow, nullptr, nullptr); }},
  });
}

TEST_F(CApiOperationArguments, OfActivations) {
  const kiln_tensor x = tensor(upload(wave(16)), {4, 4}), dy = tensor(upload(wave(16)), {4, 4}), y = result({4, 4}),
                    narrow = result({4, 3});
  const auto with_mode = [](kiln_activation_mode mode) { return kiln_activation_options_default(mode); };
  const auto call = [&](const auto& function, const kiln_activation_options& options) {
    return [this, &x, &dy, &y, &function, options] { return function(context_, &x, &dy, &y, &options, nullptr); };
  };
  const auto forward = [&](const kiln_tensor& to, const kiln_activation_options& options) {
    return [this, &x, to, options] { return kiln_activation_forward(context_, &x, &to, &options, nullptr); };
  };
  const kiln_activation_options staged = with(with_mode(KILN_ACTIVATION_RELU), [&](auto& o) { o.epilogue = relu(); });
  const kiln_activation_options relu = with_mode(KILN_ACTIVATION_RELU);
  expect_refused({
      {"the mode is 16", forward(y, with_mode(16))},
      {"y has extents 4x3, expected 4x4", forward(narrow, relu)},
      {"the memory of y and x overlaps", forward(moved(x, 16), relu)},
      {"takes no epilogue of stages", forward(y, staged)},
      {"the mode is 16", call(kiln_activation_backward, with_mode(16))},
      {"takes no epilogue of stages", call(kiln_activation_backward, staged)},
      {"the mode is 16", call(kiln_activation_backward_from_y, with_mode(16))},
      {"takes no epilogue of stages", call(kiln_activation_backward_from_y, staged)},
      {"the derivative of gelu cannot be told from y",
       call(kiln_activation_backward_from_y, with_mode(KILN_ACTIVATION_GELU))},
  });
}

TEST_F(CApiOperationArguments, OfTensorFunctions) {
  const kiln_tensor x = tensor(upload(wave(16)), {4, 4}), y = result({4, 4}), narrow = result({4, 3});
  const auto transform = [&](const auto& edit) {
    return [this, &x, &y, edit] {
      const kiln_transform_options options = with(kiln_transform_options_default(), edit);
      return kiln_tensor_transform(context_, &x, &y, &options, nullptr);
    };
  };
  const auto op = [&](kiln_tensor_op_mode mode, const kiln_tensor* b, const kiln_tensor* c, const kiln_tensor& to) {
    return [this, &x, mode, b, c, to] { return kiln_tensor_op(context_, mode, &x, b, c, &to, nullptr, nullptr); };
  };
  expect_refused({
      {"a pad is -1", transform([](auto& o) { o.pad_begin[1] = -1, o.pad_end[1] = 1; })},
      {"y has extents 4x4, expected 4x6", transform([](auto& o) { o.pad_end[1] = 2; })},
      {"y has extents 4x3, expected 4x4", [&] { return kiln_tensor_add(context_, &x, &narrow, 1, 1, nullptr); }},
      {"the mode is -1", op(-1, &x, nullptr, y)},
      {"the mode is 20", op(20, &x, nullptr, y)},
      {"kiln_tensor_op: b is NULL", op(KILN_TENSOR_ADD, nullptr, nullptr, y)},
      {"kiln_tensor_op: c is NULL", op(KILN_TENSOR_SELECT, &x, nullptr, y)},
      {"sqrt takes 1 inputs, more are given", op(KILN_TENSOR_SQRT, &x, nullptr, y)},
      {"add takes 2 inputs, more are given", op(KILN_TENSOR_ADD, &x, &x, y)},
      {"expected 4x3", op(KILN_TENSOR_ADD, &x, nullptr, narrow)},
      {"the memory of y and a overlaps", op(KILN_TENSOR_ADD, &x, nullptr, moved(x, 16))},
  });
}

TEST_F(CApiOperationArguments, OfGather) {
  const kiln_tensor x = tensor(upload(wave(16)), {1, 1, 4, 4}), y = result({1, 1, 6, 6});
  const kiln_tensor indices = with(tensor(upload(wave(6)), {1, 1, 6, 1}), [](auto& t) { t.dtype = KILN_I32; });
  const auto along = [&](int64_t axis) {
    return [this, &x, &indices, &y, axis] {
      const kiln_gather_options options = with(kiln_gather_options_default(), [&](auto& o) { o.axis = axis; });
      return kiln_gather(context_, &x, &indices, &y, &options, nullptr);
    };
  };
  expect_refused({{"axis 4 is outside the 4 dimensions of x", along(4)},
                  {"along dimension 2 x has extent 4 and indices 6", along(1)},
                  {"y has extents 1x1x6x6, expected 1x1x6x4", along(2)}});
}

TEST_F(CApiOperationArguments, OfResize) {
  const kiln_tensor x = tensor(upload(wave(16)), {1, 1, 4, 4}), y = result({1, 1, 6, 6});
  const auto resized = [&](const auto& edit) {
    return [this, &x, &y, edit] {
      const kiln_resize_options options = with(kiln_resize_options_default(), edit);
      return kiln_resize(context_, &x, &y, &options, nullptr);
    };
  };
  expect_refused({
      {"the mode is 3", resized([](auto& o) { o.mode = 3; })},
      {"the mode is -1", resized([](auto& o) { o.mode = -1; })},
      {"coordinates is 6", resized([](auto& o) { o.coordinates = 6; })},
      {"the rounding is 4", resized([](auto& o) { o.rounding = 4; })},
      {"exclude_outside is 2", resized([](auto& o) { o.exclude_outside = 2; })},
      {"the scale is 200", resized([](auto& o) { o.scale[1] = 200; })},
      {"y has extent 6 along w, expected 8", resized([](auto& o) { o.scale[1] = 2; })},
      {"cubic is 1", resized([](auto& o) { o.mode = KILN_RESIZE_CUBIC, o.cubic = 1; })},
  });
}

TEST_F(CApiOperationArguments, OfAttention) {
  const kiln_tensor q = tensor(upload(wave(24)), {1, 2, 3, 4}), k = tensor(upload(wave(20)), {1, 1, 5, 4}),
                    v = tensor(upload(wave(30)), {1, 1, 5, 6}), y = result({1, 2, 3, 6}), narrow = result({1, 2, 3, 4});
  const kiln_tensor lse = tensor(upload(wave(6)), {1, 2, 3}), dy = tensor(upload(wave(36)), {1, 2, 3, 6}),
                    dq = result({1, 2, 3, 4});
  const kiln_tensor wide = tensor(upload(wave(36)), {1, 2, 3, 6}), wide_keys = tensor(upload(wave(30)), {1, 1, 5, 6}),
                    narrow_values = tensor(upload(wave(20)), {1, 1, 5, 4});
  const auto forward = [&](const auto& edit) {
    return [this, &q, &k, &v, &y, edit] {
      const kiln_attention_options options = with(kiln_attention_options_default(), edit);
      return kiln_attention_forward(context_, &q, &k, &v, &y, &options, nullptr);
    };
  };
  const auto backward = [&](const auto& edit) {
    return [this, &dy, &q, &k, &v, &lse, &dq, edit] {
      const kiln_attention_backward_options options = with(kiln_attention_backward_options_default(), edit);
      return kiln_attention_backward(context_, &dy, &q, &k, &v, &dy, &lse, &dq, &options, nullptr);
    };
  };
  const kiln_epilogue* stage = relu();
  expect_refused({
      {"the align is 2", forward([](auto& o) { o.align = 2; })},
      {"the align is -1", forward([](auto& o) { o.align = -1; })},
      {"align=end without left or right", forward([](auto& o) { o.align = KILN_ATTENTION_END; })},
      {"left is -2", forward([](auto& o) { o.left = -2; })},
      {"right is 9223372036854775807", forward([](auto& o) { o.right = INT64_MAX; })},
      {"bias has extents 1x2x3x4, expected 1x2x3x5", forward([&](auto& o) { o.bias = &q; })},
      {"mask is f32", forward([&](auto& o) { o.mask = &q; })},
      {"lengths is f32", forward([&](auto& o) { o.lengths = &lse; })},
      {"lse has extents 1x2x3x6, expected 1x2x3", forward([&](auto& o) { o.lse = &wide; })},
      {"takes no epilogue of stages", forward([&](auto& o) { o.epilogue = stage; })},
      {"y has extents 1x2x3x4, expected 1x2x3x6",
       [&] { return kiln_attention_forward(context_, &q, &k, &v, &narrow, nullptr, nullptr); }},
      {"the memory of y and q overlaps",
       [&] {
         const kiln_tensor over_q = tensor(q.data, {1, 2, 3, 6});
         return kiln_attention_forward(context_, &q, &k, &v, &over_q, nullptr, nullptr);
       }},
      {"the align is 2", backward([](auto& o) { o.align = 2; })},
      {"right is -7", backward([](auto& o) { o.right = -7; })},
      {"dk has extents 1x1x5x6, expected 1x1x5x4", backward([&](auto& o) { o.dk = &wide_keys; })},
      {"dv has extents 1x1x5x4, expected 1x1x5x6", backward([&](auto& o) { o.dv = &narrow_values; })},
      {"the memory of dk and k overlaps", backward([&](auto& o) { o.dk = &k; })},
      {"takes no epilogue of stages", backward([&](auto& o) { o.epilogue = stage; })},
  });
}

TEST_F(CApiOperationArguments, OfNormalisations) {
  const kiln_tensor x = tensor(upload(wave(16)), {4, 4}), dy = tensor(upload(wave(16)), {4, 4}), y = result({4, 4}),
                    row = tensor(upload(wave(4)), {4, 1}), narrow = tensor(upload(wave(4)), {3, 1});
  const kiln_tensor other = tensor(upload(wave(16)), {4, 4});
  const kiln_activation_options unknown = kiln_activation_options_default(-1);
  const auto forward = [&](const auto& edit) {
    return [this, &x, &y, edit] {
      const kiln_norm_options options = with(kiln_norm_options_default(), edit);
      return kiln_norm_forward(context_, &x, &y, &options, nullptr);
    };
  };
  const kiln_tensor scale = result({4, 1});
  const auto affine = [&](const auto& edit) {
    return [this, &x, &scale, &row, edit] {
      const kiln_norm_affine_options options = with(kiln_norm_affine_options_default(), edit);
      return kiln_norm_affine(context_, &x, &scale, &row, &options, nullptr);
    };
  };
  const auto backward = [&](const kiln_tensor* mean, const auto& edit) {
    return [this, &x, &dy, &y, &row, mean, edit] {
      const kiln_norm_gradient_options options = with(kiln_norm_gradient_options_default(), edit);
      return kiln_norm_backward(context_, &dy, &x, mean, &row, &y, &options, nullptr);
    };
  };
  expect_refused({
      {"the mode is 2", forward([](auto& o) { o.mode = 2; })},
      {"axis_count is 0", forward([](auto& o) { o.axis_count = 0; })},
      {"axis_count is 7", forward([](auto& o) { o.axis_count = 7; })},
      {"an axis stands twice", forward([](auto& o) { o.axis_count = 6; })},
      {"axis 7 is outside the 2 dimensions of x", forward([](auto& o) { o.axes[0] = 7; })},
      {"size is 8, expected 120", forward([](auto& o) { o.size = 8; })},
      {"w has extents 3x1, expected 4x4", forward([&](auto& o) { o.w = &narrow; })},
      {"the mode is 2", affine([](auto& o) { o.mode = 2; })},
      {"axis_count is 7", affine([](auto& o) { o.axis_count = 7; })},
      {"epsilon is -1", affine([](auto& o) { o.epsilon = -1; })},
      {"reserved", affine([](auto& o) { o.reserved = 1; })},
      {"w has extents 3x1, expected 4x4", affine([&](auto& o) { o.w = &narrow; })},
      {"scale has extents 4x1, expected 4x4", affine([&](auto& o) { o.w = &other; })},
      {"mean is missing", backward(nullptr, [](auto&) {})},
      {"the mode is -1", forward([&](auto& o) { o.activation = &unknown; })},
      {"the mode is -1", backward(&row, [&](auto& o) { o.activation = &unknown; })},
      {"b is given, but there is no activation", backward(&row, [&](auto& o) { o.b = &other; })},
      {"mode=rms has no mean", backward(&row, [](auto& o) { o.mode = KILN_NORM_RMS; })},
      {"the memory of dresidual and x overlaps", backward(&row, [&](auto& o) { o.dresidual = &x; })},
  });
}

TEST_F(CApiOperationArguments, OfReductions) {
  const kiln_tensor x = tensor(upload(wave(16)), {4, 4}), y = result({4, 1}), narrow = result({3, 1}),
                    all = result({4, 4});
  const kiln_tensor indices = with(result({4, 1}), [](auto& t) { t.dtype = KILN_I32; });
  const auto reduce = [&](kiln_reduce_mode mode, const kiln_tensor& to, const kiln_tensor* at) {
    return [this, &x, mode, to, at] { return kiln_reduce(context_, mode, &x, &to, at, nullptr, nullptr); };
  };
  expect_refused({
      {"the mode is -1", reduce(-1, y, nullptr)},
      {"the mode is 9", reduce(9, y, nullptr)},
      {"y has no extent of 1", reduce(KILN_REDUCE_ADD, all, nullptr)},
      {"y has extents 3x1, expected 4x1", reduce(KILN_REDUCE_ADD, narrow, nullptr)},
      {"the memory of y and x overlaps", reduce(KILN_REDUCE_ADD, moved(x, 0), nullptr)},
      {"mode=norm2 has no indices", reduce(KILN_REDUCE_NORM2, moved(y, 64), &indices)},
      {"indices is f32", reduce(KILN_REDUCE_MAX, moved(y, 64), &y)},
      {"the memory of indices and y overlaps", reduce(KILN_REDUCE_MAX, y, &indices)},
  });
}

}  // namespace
}  // namespace kiln::capi::operation_arguments_test
