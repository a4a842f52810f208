// Every function of the C API with every kind of bad argument.
#include <gmock/gmock.h>

#include <functional>
#include <limits>

#include "fixture.h"

namespace kiln::capi {
namespace {

using testing::HasSubstr;

struct Case {
  const char* what;
  std::function<kiln_status()> call;
  kiln_status status = KILN_INVALID_ARGUMENT;
};

class CApiArguments : public CApi {
 protected:
  // `what` has to be a part of the message.
  static void expect_refused(const std::vector<Case>& cases) {
    for (const Case& bad : cases) {
      EXPECT_EQ(bad.call(), bad.status) << bad.what;
      EXPECT_THAT(kiln_last_error(), HasSubstr(bad.what));
    }
  }

  // A copy of `value` that `edit` has spoilt.
  template <class Value, class Edit>
  static Value with(Value value, const Edit& edit) {
    edit(value);
    return value;
  }
};

TEST_F(CApiArguments, ContextCreation) {
  kiln_context* context = nullptr;
  const char* nothing = nullptr;
  const auto create = [&](const auto& edit) {
    return [&context, edit] {
      const kiln_context_options spoilt = with(options(), edit);
      return kiln_context_create(&spoilt, &context);
    };
  };
  expect_refused({
      {"kiln_context_create: context is NULL", [] { return kiln_context_create(nullptr, nullptr); }},
      {"size is 3, expected 144", create([](auto& o) { o.size = 3; })},
      {"size is 143, expected 144", create([](auto& o) { o.size = 143; })},
      {"size is 4294967295, expected 144", create([](auto& o) { o.size = UINT32_MAX; })},
      {"device", create([](auto& o) { o.device = 99; })},
      {"device", create([](auto& o) { o.device = -1; })},
      {"deterministic is 2, expected 0 or 1", create([](auto& o) { o.deterministic = 2; })},
      {"reserved is 1, expected 0", create([](auto& o) { o.reserved = 1; })},
      {"packs is NULL", create([](auto& o) { o.pack_count = 1; })},
      {"one of packs is NULL", create([&](auto& o) { o.packs = &nothing, o.pack_count = 1; })},
      {"user_templates is NULL", create([](auto& o) { o.user_template_count = 1; })},
      {"bundles is NULL", create([](auto& o) { o.bundle_count = 1; })},
      {"locked is 2, expected 0 or 1", create([](auto& o) { o.locked = 2; })},
      {"the tuning mode is 3", create([](auto& o) { o.tuning_mode = 3; })},
      {"the tuning mode is -1", create([](auto& o) { o.tuning_mode = -1; })},
      {"environment is NULL", create([](auto& o) { o.environment_count = 1; })},
  });
  EXPECT_EQ(context, nullptr);
}

TEST_F(CApiArguments, ContextCalls) {
  kiln_context_info info = kiln_context_info_default(), small = info;
  small.size = 8;
  char* text = nullptr;
  const char* request = "softmax_forward x=f32:2x4";
  expect_refused({
      {"kiln_context_get_info: context is NULL", [&] { return kiln_context_get_info(nullptr, &info); }},
      {"kiln_context_get_info: info is NULL", [&] { return kiln_context_get_info(context_, nullptr); }},
      {"size is 8, expected 24", [&] { return kiln_context_get_info(context_, &small); }},
      {"kiln_context_prepare: context is NULL", [&] { return kiln_context_prepare(nullptr, request); }},
      {"kiln_context_prepare: the text of the requests is NULL",
       [&] { return kiln_context_prepare(context_, nullptr); }},
      {"kiln_context_wait_until_tuned: context is NULL", [] { return kiln_context_wait_until_tuned(nullptr); }},
      {"kiln_context_explain: context is NULL", [&] { return kiln_context_explain(nullptr, request, &text); }},
      {"kiln_context_explain: the text of the requests is NULL",
       [&] { return kiln_context_explain(context_, nullptr, &text); }},
      {"kiln_context_explain: json is NULL", [&] { return kiln_context_explain(context_, request, nullptr); }},
      {"unknown operation", [&] { return kiln_context_explain(context_, "blur x=f32:1", &text); }, KILN_PARSE_ERROR},
      {"kiln_request_key: the text of the requests is NULL", [&] { return kiln_request_key(nullptr, &text); }},
      {"kiln_request_key: key is NULL", [&] { return kiln_request_key(request, nullptr); }},
      {"column", [&] { return kiln_request_key("softmax_forward x=f32:2x", &text); }, KILN_PARSE_ERROR},
  });
  expect_refused({
      {"kiln_request_key: 0 requests were given, expected 1", [&] { return kiln_request_key("# none\n", &text); }},
      {"kiln_plan_create: 2 requests were given, expected 1",
       [&] {
         kiln_plan* plan = nullptr;
         return kiln_plan_create(context_, "softmax_forward x=f32:2x4\nsoftmax_forward x=f32:3x4", &plan);
       }},
  });
  EXPECT_EQ(text, nullptr);
  EXPECT_EQ(small.device_id, nullptr);
}

TEST_F(CApiArguments, Tensors) {
  kiln_tensor out = {};
  const int64_t extents[] = {2, 4, 1, 1, 1, 1};
  const auto packed = [&](kiln_tensor* t, kiln_dtype dtype, int32_t rank, const int64_t* e, const char* layout) {
    return [=] { return kiln_tensor_packed(t, nullptr, dtype, rank, e, layout); };
  };
  expect_refused({
      {"kiln_tensor_packed: tensor is NULL", packed(nullptr, KILN_F32, 2, extents, nullptr)},
      {"kiln_tensor_packed: extents is NULL", packed(&out, KILN_F32, 2, nullptr, nullptr)},
      {"the dtype of tensor is 99", packed(&out, 99, 2, extents, nullptr)},
      {"the dtype of tensor is -1", packed(&out, -1, 2, extents, nullptr)},
      {"the rank of tensor is 0, expected 1 to 5", packed(&out, KILN_F32, 0, extents, nullptr)},
      {"the rank of tensor is -2147483648, expected 1 to 5", packed(&out, KILN_F32, INT32_MIN, extents, nullptr)},
      {"the rank of tensor is 6, expected 1 to 5", packed(&out, KILN_F32, 6, extents, nullptr)},
      {"layout 'nhwc' does not fit 2 extents", packed(&out, KILN_F32, 2, extents, "nhwc")},
      {"layout 'nn' does not fit 2 extents", packed(&out, KILN_F32, 2, extents, "nn")},
  });
  EXPECT_EQ(out.rank, 0) << "left as it was";
}

TEST_F(CApiArguments, Memory) {
  kiln_memory* memory = nullptr;
  float value = 0;
  expect_refused({
      {"kiln_memory_create: context is NULL", [&] { return kiln_memory_create(nullptr, 4, &memory); }},
      {"kiln_memory_create: memory is NULL", [&] { return kiln_memory_create(context_, 4, nullptr); }},
      {"", [&] { return kiln_memory_create(context_, SIZE_MAX / 2, &memory); }, KILN_OUT_OF_MEMORY},
      {"kiln_memory_upload: memory is NULL", [&] { return kiln_memory_upload(nullptr, &value, 4); }},
      {"kiln_memory_download: memory is NULL", [&] { return kiln_memory_download(nullptr, &value, 4); }},
  });
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(kiln_memory_data(nullptr), nullptr);
  ASSERT_EQ(kiln_memory_create(context_, 4, &memory), KILN_OK);
  expect_refused({
      {"kiln_memory_upload: host is NULL", [&] { return kiln_memory_upload(memory, nullptr, 4); }},
      {"8 bytes do not fit", [&] { return kiln_memory_upload(memory, &value, 8); }},
      {"kiln_memory_download: host is NULL", [&] { return kiln_memory_download(memory, nullptr, 4); }},
      {"8 bytes do not fit", [&] { return kiln_memory_download(memory, &value, 8); }},
  });
  EXPECT_EQ(kiln_memory_upload(memory, nullptr, 0), KILN_OK);
  kiln_memory_destroy(memory);
}

TEST_F(CApiArguments, Epilogues) {
  kiln_epilogue* epilogue = nullptr;
  ASSERT_EQ(kiln_epilogue_create(&epilogue), KILN_OK);
  const kiln_tensor good = tensor(upload({1, 2}), {2}), bad = with(good, [](auto&t) { t.rank = 0; });
  expect_refused({
      {"kiln_epilogue_create: epilogue is NULL", [] { return kiln_epilogue_create(nullptr); }},
      {"kiln_epilogue_bias: epilogue is NULL", [&] { return kiln_epilogue_bias(nullptr, &good); }},
      {"kiln_epilogue_bias: values is NULL", [&] { return kiln_epilogue_bias(epilogue, nullptr); }},
      {"the rank of values is 0", [&] { return kiln_epilogue_bias(epilogue, &bad); }},
      {"kiln_epilogue_add: epilogue is NULL", [&] { return kiln_epilogue_add(nullptr, &good); }},
      {"kiln_epilogue_add: residual is NULL", [&] { return kiln_epilogue_add(epilogue, nullptr); }},
      {"kiln_epilogue_relu: epilogue is NULL", [] { return kiln_epilogue_relu(nullptr); }},
      {"kiln_epilogue_clip: epilogue is NULL", [] { return kiln_epilogue_clip(nullptr, 0, 1); }},
      {"clip", [&] { return kiln_epilogue_clip(epilogue, 1, 0); }},
      {"clip", [&] { return kiln_epilogue_clip(epilogue, std::numeric_limits<float>::quiet_NaN(), 0); }},
  });
  const kiln_named_tensor nameless = {nullptr, &good}, no_tensor = {"b", nullptr}, named = {"b", &good};
  const kiln_named_scalar anonymous = {nullptr, 1, 0}, spoilt = {"s", 1, 1};
  const auto expression = [&](const char* text, const kiln_named_tensor* t, size_t tensors, const kiln_named_scalar* s,
                              size_t scalars) {
    return [=] { return kiln_epilogue_expression(epilogue, text, t, tensors, s, scalars); };
  };
  expect_refused({
      {"epilogue is NULL", [] { return kiln_epilogue_expression(nullptr, "acc", nullptr, 0, nullptr, 0); }},
      {"kiln_epilogue_expression: text is NULL", expression(nullptr, nullptr, 0, nullptr, 0)},
      {"kiln_epilogue_expression: tensors is NULL", expression("acc", nullptr, 1, nullptr, 0)},
      {"kiln_epilogue_expression: scalars is NULL", expression("acc", nullptr, 0, nullptr, 1)},
      {"the name of a tensor is NULL", expression("acc", &nameless, 1, nullptr, 0)},
      {"the name of a scalar is NULL", expression("acc", nullptr, 0, &anonymous, 1)},
      {"kiln_epilogue_expression: b is NULL", expression("acc", &no_tensor, 1, nullptr, 0)},
      {"reserved is 1, expected 0", expression("acc", nullptr, 0, &spoilt, 1)},
  });
  EXPECT_EQ(expression("(acc", nullptr, 0, nullptr, 0)(), KILN_PARSE_ERROR);
  EXPECT_EQ(kiln_epilogue_relu(epilogue), KILN_OK);
  expect_refused({{"stands alone", expression("acc + b", &named, 1, nullptr, 0)}});
  expect_refused({{"relu", [&] { return kiln_epilogue_relu(epilogue); }}});
  kiln_epilogue_destroy(epilogue);
}

TEST_F(CApiArguments, Convolution) {
  const std::vector<float> untouched(4 * 6 * 6, 7.0f);
  const void* y_data = upload(untouched);
  const kiln_tensor x = tensor(upload(wave(4 * 8 * 8)), {1, 4, 8, 8}),
                    w = tensor(upload(wave(4 * 4 * 9)), {4, 4, 3, 3});
  const kiln_tensor y = tensor(y_data, {1, 4, 6, 6});
  const auto tensors = [&](const kiln_tensor* x_, const kiln_tensor* w_, const kiln_tensor* y_) {
    return [this, x_, w_, y_] { return kiln_conv_forward(context_, x_, w_, y_, nullptr, nullptr); };
  };
  const auto spoilt = [&](const auto& edit) {
    return [this, &x, &w, &y, edit] {
      const kiln_conv_options options = with(kiln_conv_options_default(), edit);
      return kiln_conv_forward(context_, &x, &w, &y, &options, nullptr);
    };
  };
  const kiln_tensor bad_dtype = with(x, [](auto&t) { t.dtype = 6; }), bad_rank = with(w, [](auto&t) { t.rank = 9; });
  const kiln_tensor small = tensor(y_data, {1, 4, 5, 6}), none = with(x, [](auto&t) { t.data = nullptr; });
  const kiln_tensor overlapping = with(y, [&](auto& t) { t.data = x.data; });
  const kiln_tensor negative = with(x, [](auto& t) { t.extents[2] = -8; });
  expect_refused({
      {"context is NULL", [&] { return kiln_conv_forward(nullptr, &x, &w, &y, nullptr, nullptr); }},
      {"kiln_conv_forward: x is NULL", tensors(nullptr, &w, &y)},
      {"kiln_conv_forward: w is NULL", tensors(&x, nullptr, &y)},
      {"kiln_conv_forward: y is NULL", tensors(&x, &w, nullptr)},
      {"kiln_conv_forward: the dtype of x is 6", tensors(&bad_dtype, &w, &y)},
      {"kiln_conv_forward: the rank of w is 9, expected 1 to 5", tensors(&x, &bad_rank, &y)},
      {"y has extents 1x4x5x6, expected 1x4x6x6", tensors(&x, &w, &small)},
      {"x is a null pointer", tensors(&none, &w, &y)},
      {"the memory of y and x overlaps", tensors(&x, &w, &overlapping)},
      {"-8", tensors(&negative, &w, &y)},
      {"size is 143, expected 144", spoilt([](auto& o) { o.size = 143; })},
      {"mirrored is 2, expected 0 or 1", spoilt([](auto& o) { o.mirrored = 2; })},
      {"tf32 is -1, expected 0 or 1", spoilt([](auto& o) { o.tf32 = -1; })},
      {"fast is 2, expected 0 or 1", spoilt([](auto& o) { o.fast = 2; })},
      {"deterministic is 3, expected 0 or 1", spoilt([](auto& o) { o.deterministic = 3; })},
      {"dynamic_batch is 4, expected 0 or 1", spoilt([](auto& o) { o.dynamic_batch = 4; })},
      {"the stride of h is 0", spoilt([](auto& o) { o.stride[0] = 0; })},
      {"the dilation of w is -1", spoilt([](auto& o) { o.dilation[1] = -1; })},
      {"groups", spoilt([](auto& o) { o.groups = 3; })},
  });
  EXPECT_EQ(download(y_data), untouched);
}

TEST_F(CApiArguments, PoolingAndSoftmax) {
  const std::vector<float> untouched(4 * 4, 7.0f);
  const void* y_data = upload(untouched);
  const kiln_tensor x = tensor(upload(wave(16)), {1, 1, 4, 4}), y = tensor(y_data, {1, 1, 4, 4});
  const auto pool = [&](const auto& edit) {
    return [this, &x, &y, edit] {
      const kiln_pool_options options = with(kiln_pool_options_default(), edit);
      return kiln_pool_forward(context_, &x, &y, &options, nullptr);
    };
  };
  const auto softmax = [&](const auto& edit) {
    return [this, &x, &y, edit] {
      const kiln_softmax_options options = with(kiln_softmax_options_default(), edit);
      return kiln_softmax_forward(context_, &x, &y, &options, nullptr);
    };
  };
  expect_refused({
      {"kiln_pool_forward: context is NULL", [&] { return kiln_pool_forward(nullptr, &x, &y, nullptr, nullptr); }},
      {"kiln_pool_forward: x is NULL", [&] { return kiln_pool_forward(context_, nullptr, &y, nullptr, nullptr); }},
      {"kiln_pool_forward: y is NULL", [&] { return kiln_pool_forward(context_, &x, nullptr, nullptr, nullptr); }},
      {"kiln_pool_forward: the mode is 3", pool([](auto& o) { o.mode = 3; })},
      {"kiln_pool_backward: context is NULL",
       [&] { return kiln_pool_backward(nullptr, &y, &x, &x, nullptr, nullptr); }},
      {"kiln_pool_backward: dy is NULL",
       [&] { return kiln_pool_backward(context_, nullptr, &x, &x, nullptr, nullptr); }},
      {"kiln_pool_backward: x is NULL",
       [&] { return kiln_pool_backward(context_, &y, nullptr, &x, nullptr, nullptr); }},
      {"kiln_pool_backward: dx is NULL",
       [&] { return kiln_pool_backward(context_, &y, &x, nullptr, nullptr, nullptr); }},
      {"kiln_pool_forward: the mode is -1", pool([](auto& o) { o.mode = -1; })},
      {"size is 0, expected 152", pool([](auto& o) { o.size = 0; })},
      {"dynamic_batch is 2, expected 0 or 1", pool([](auto& o) { o.dynamic_batch = 2; })},
      {"reserved is 5, expected 0", pool([](auto& o) { o.reserved = 5; })},
      {"y has extent", pool([](auto&) {})},
      {"kiln_softmax_forward: context is NULL",
       [&] { return kiln_softmax_forward(nullptr, &x, &y, nullptr, nullptr); }},
      {"kiln_softmax_forward: x is NULL",
       [&] { return kiln_softmax_forward(context_, nullptr, &y, nullptr, nullptr); }},
      {"kiln_softmax_forward: y is NULL",
       [&] { return kiln_softmax_forward(context_, &x, nullptr, nullptr, nullptr); }},
      {"kiln_pool_forward_with_indices: context is NULL",
       [&] { return kiln_pool_forward_with_indices(nullptr, &x, &y, &y, nullptr, nullptr); }},
      {"kiln_pool_forward_with_indices: indices is NULL",
       [&] { return kiln_pool_forward_with_indices(context_, &x, &y, nullptr, nullptr, nullptr); }},
      {"kiln_pool_backward_from_indices: context is NULL",
       [&] { return kiln_pool_backward_from_indices(nullptr, &y, &y, &x, nullptr, nullptr); }},
      {"kiln_pool_backward_from_indices: indices is NULL",
       [&] { return kiln_pool_backward_from_indices(context_, &y, nullptr, &x, nullptr, nullptr); }},
      {"kiln_unpool_forward: context is NULL",
       [&] { return kiln_unpool_forward(nullptr, &y, &y, &x, nullptr, nullptr); }},
      {"kiln_unpool_forward: y is NULL",
       [&] { return kiln_unpool_forward(context_, &y, &y, nullptr, nullptr, nullptr); }},
      {"kiln_softmax_backward: context is NULL",
       [&] { return kiln_softmax_backward(nullptr, &y, &y, &y, nullptr, nullptr); }},
      {"kiln_softmax_backward: y is NULL",
       [&] { return kiln_softmax_backward(context_, nullptr, &y, &y, nullptr, nullptr); }},
      {"kiln_softmax_backward: dy is NULL",
       [&] { return kiln_softmax_backward(context_, &y, nullptr, &y, nullptr, nullptr); }},
      {"kiln_softmax_backward: dx is NULL",
       [&] { return kiln_softmax_backward(context_, &y, &y, nullptr, nullptr, nullptr); }},
      {"kiln_softmax_forward: the mode is 2", softmax([](auto& o) { o.mode = 2; })},
      {"size is 39, expected 40", softmax([](auto& o) { o.size = 39; })},
      {"axis", softmax([](auto& o) { o.axis = 4; })},
      {"dynamic_batch is 2, expected 0 or 1", softmax([](auto& o) { o.dynamic_batch = 2; })},
      {"reserved is -1, expected 0", softmax([](auto& o) { o.reserved = -1; })},
  });
  EXPECT_EQ(download(y_data), untouched);
}

TEST_F(CApiArguments, Plans) {
  kiln_plan* none = nullptr;
  const char* request = "conv_forward x=f32:1x4x8x8 w=f32:4x4x3x3 epilogue=bias";
  expect_refused({
      {"kiln_plan_create: context is NULL", [&] { return kiln_plan_create(nullptr, request, &none); }},
      {"kiln_plan_create: the text of the requests is NULL",
       [&] { return kiln_plan_create(context_, nullptr, &none); }},
      {"kiln_plan_create: plan is NULL", [&] { return kiln_plan_create(context_, request, nullptr); }},
      {"column", [&] { return kiln_plan_create(context_, "conv_forward x=f32:", &none); }, KILN_PARSE_ERROR},
      {"channels", [&] { return kiln_plan_create(context_, "conv_forward x=f32:1x4x8x8 w=f32:4x3x3x3", &none); }},
  });
  EXPECT_EQ(none, nullptr);
}

TEST_F(CApiArguments, Runs) {
  kiln_plan* plan = nullptr;
  ASSERT_EQ(kiln_plan_create(context_, "conv_forward x=f32:1x4x8x8 w=f32:4x4x3x3 epilogue=bias", &plan), KILN_OK);
  kiln_plan_info info = kiln_plan_info_default();
  kiln_plan_info small = with(info, [](auto& i) { i.size = 47; });
  const std::vector<float> untouched(4 * 6 * 6, 7.0f);
  void *x = upload(wave(4 * 8 * 8)), *w = upload(wave(4 * 4 * 9)), *y = upload(untouched), *b = upload(wave(4));
  const void *good[] = {x, w, y, b}, *missing[] = {x, nullptr, y, b};
  const void* misaligned[] = {static_cast<char*>(x) + 4, w, y, b};
  const std::vector<const void*> many(100, x);
  const auto run = [&](const void* const* operands, size_t count) {
    return [plan, operands, count] { return kiln_plan_run(plan, nullptr, operands, count, nullptr, nullptr); };
  };
  const auto valued = [&](const auto& edit) {
    return [plan, &good, edit] {
      const kiln_run_values values = with(kiln_run_values_default(), edit);
      return kiln_plan_run(plan, nullptr, good, 4, nullptr, &values);
    };
  };
  expect_refused({
      {"kiln_plan_get_info: plan is NULL", [&] { return kiln_plan_get_info(nullptr, &info); }},
      {"kiln_plan_get_info: info is NULL", [&] { return kiln_plan_get_info(plan, nullptr); }},
      {"size is 47, expected 48", [&] { return kiln_plan_get_info(plan, &small); }},
      {"kiln_plan_run: plan is NULL", [&] { return kiln_plan_run(nullptr, nullptr, good, 4, nullptr, nullptr); }},
      {"kiln_plan_run: operands is NULL", run(nullptr, 4)},
      {"3 operands were given, expected 4", run(good, 3)},
      {"100 operands were given, expected 4", run(many.data(), many.size())},
      {"w is a null pointer", run(missing, 4)},
      {"which is not a multiple of 16 bytes", run(misaligned, 4)},
      {"size is 4, expected 64", valued([](auto& v) { v.size = 4; })},
      {"reserved is 1, expected 0", valued([](auto& v) { v.reserved = 1; })},
      {"alpha is 2", valued([](auto& v) { v.alpha = 2; })},
      {"beta is 1", valued([](auto& v) { v.beta = 1; })},
      {"n is 2", valued([](auto& v) { v.n = 2; })},
      {"9 scalars were given", valued([](auto& v) { v.scalar_count = 9; })},
      {"scalars is NULL", valued([](auto& v) { v.scalar_count = 1; })},
      {"7 operation_scalars were given", valued([](auto& v) { v.operation_scalar_count = 7; })},
      {"operation_scalars is NULL", valued([](auto& v) { v.operation_scalar_count = 1; })},
  });
  EXPECT_EQ(download(y), untouched);
  kiln_plan_destroy(plan);
}

TEST_F(CApiArguments, DestroyingNothingIsFine) {
  kiln_context_destroy(nullptr);
  kiln_memory_destroy(nullptr);
  kiln_epilogue_destroy(nullptr);
  kiln_plan_destroy(nullptr);
  kiln_string_destroy(nullptr);
}

}  // namespace
}  // namespace kiln::capi
