// Bad arguments of the C API beyond those that every_function_test.cpp makes of each one alone: texts, numbers, arrays
// with their counts, and what contradicts something else.
#include <malloc.h>

#include <cstring>
#include <limits>

#include "argument_rows.h"
#include "fixture.h"

namespace kiln::capi::arguments_test {
namespace {

class CApiArguments : public CApi {};

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

TEST_F(CApiArguments, ContextCreation) {
  kiln_context* context = nullptr;
  const char *nothing = nullptr, *no_value = "KILN_CACHE", *unknown_name = "KILN_COLOUR=red";
  const auto create = [&](const auto& edit) {
    return [&context, edit] {
      const kiln_context_options spoilt = with(options(), edit);
      return kiln_context_create(&spoilt, &context);
    };
  };
  expect_refused({
      {"size is 143, expected 200", create([](auto& o) { o.size = 143; })},
      {"there is no device 99", create([](auto& o) { o.device = 99; })},
      {"there is no device -1", create([](auto& o) { o.device = -1; })},
      {"packs is NULL", create([](auto& o) { o.pack_count = 1; })},
      {"one of packs is NULL", create([&](auto& o) { o.packs = &nothing, o.pack_count = 1; })},
      {"user_templates is NULL", create([](auto& o) { o.user_template_count = 1; })},
      {"one of user_templates is NULL",
       create([&](auto& o) { o.user_templates = &nothing, o.user_template_count = 1; })},
      {"bundles is NULL", create([](auto& o) { o.bundle_count = 1; })},
      {"one of bundles is NULL", create([&](auto& o) { o.bundles = &nothing, o.bundle_count = 1; })},
      {"the workspace limit is -1 bytes", create([](auto& o) { o.workspace_limit = -1; })},
      {"kept_plans is -1", create([](auto& o) { o.kept_plans = -1; })},
      {"kept_plan_bytes is -1", create([](auto& o) { o.kept_plan_bytes = -1; })},
      {"a tuning budget of no time",
       create([](auto& o) { o.tuning_mode = KILN_TUNING_WITHIN_BUDGET, o.tuning_budget_seconds = 0; })},
      {"a tuning budget of no time",
       create([](auto& o) { o.tuning_mode = KILN_TUNING_IN_BACKGROUND, o.tuning_budget_seconds = nan; })},
      {"no candidates", create([](auto& o) { o.tuning_mode = KILN_TUNING_WITHIN_BUDGET, o.tuning_candidates = 0; })},
      {"cannot tune", create([](auto& o) { o.tuning_mode = KILN_TUNING_WITHIN_BUDGET, o.locked = 1; })},
      {"first_call is 3", create([](auto& o) { o.first_call = 3; })},
      {"batch_invariant is 2", create([](auto& o) { o.batch_invariant = 2; })},
      {"the tuning mode is 3", create([](auto& o) { o.tuning_mode = 3; })},
      {"the tuning mode is -1", create([](auto& o) { o.tuning_mode = -1; })},
      {"environment is NULL", create([](auto& o) { o.environment_count = 1; })},
      {"the setting '' has no name", create([&](auto& o) { o.environment = &nothing, o.environment_count = 1; })},
      {"the setting 'KILN_CACHE' has no name or no value",
       create([&](auto& o) { o.environment = &no_value, o.environment_count = 1; })},
      {"unknown setting KILN_COLOUR", create([&](auto& o) { o.environment = &unknown_name, o.environment_count = 1; })},
  });
  EXPECT_EQ(context, nullptr);
}

TEST_F(CApiArguments, TextsOfRequests) {
  char* text = nullptr;
  kiln_plan* plan = nullptr;
  const auto explain = [&](const char* request) {
    return [this, &text, request] { return kiln_context_explain(context_, request, &text); };
  };
  const auto key = [&](const char* request) { return [&text, request] { return kiln_request_key(request, &text); }; };
  const auto create = [&](const char* request) {
    return [this, &plan, request] { return kiln_plan_create(context_, request, &plan); };
  };
  const char *cut = "pool_forward x=f32:1x", *two = "softmax_forward x=f32:2x4\nsoftmax_forward x=f32:3x4";
  const char* misfit = "conv_forward x=f32:1x4x8x8 w=f32:4x3x3x3";
  const char* broken = "softmax_forward x=f32:2x4 \xff\xfe";
  expect_refused({
      {"unknown operation", explain("blur x=f32:1"), KILN_PARSE_ERROR},
      {"column", explain(cut), KILN_PARSE_ERROR},
      {"kiln_context_explain: 2 requests were given, expected 1", explain(two)},
      {"w has 3 channels per filter, expected 4", explain(misfit)},
      {"column", key(cut), KILN_PARSE_ERROR},
      {"column", key(broken), KILN_PARSE_ERROR},
      {"kiln_request_key: 0 requests were given, expected 1", key("# none\n")},
      {"kiln_request_key: 0 requests were given, expected 1", key("")},
      {"w has 3 channels per filter, expected 4", key(misfit)},
      {"column", create(cut), KILN_PARSE_ERROR},
      {"kiln_plan_create: 2 requests were given, expected 1", create(two)},
      {"w has 3 channels per filter, expected 4", create(misfit)},
      {"column", [&] { return kiln_context_prepare(context_, cut); }, KILN_PARSE_ERROR},
      {"w has 3 channels per filter", [&] { return kiln_context_prepare(context_, misfit); }},
  });
  EXPECT_EQ(text, nullptr);
  EXPECT_EQ(plan, nullptr);
}

TEST_F(CApiArguments, StringsForTheCallerHaveRoomForTheirEnd) {
  for (int64_t extent = 1; extent < 1'000'000'000; extent *= 10) {
    const std::string request = "softmax_forward x=f32:" + std::to_string(extent) + "x4";
    for (const char* padding : {"", " beta=any"}) {
      char* key = nullptr;
      ASSERT_EQ(kiln_request_key((request + padding).c_str(), &key), KILN_OK) << kiln_last_error();
      EXPECT_GT(malloc_usable_size(key), std::strlen(key)) << key;
      kiln_string_destroy(key);
    }
  }
}

TEST_F(CApiArguments, Tensors) {
  kiln_tensor out = {};
  const int64_t extents[] = {2, 4, 1, 1, 1, 1, 1}, negative[] = {2, -4}, many[] = {INT64_MAX, INT64_MAX};
  const auto packed = [&](kiln_dtype dtype, int32_t rank, const int64_t* e, const char* layout) {
    return [&out, dtype, rank, e, layout] { return kiln_tensor_packed(&out, nullptr, dtype, rank, e, layout); };
  };
  expect_refused({
      {"the dtype of tensor is 99", packed(99, 2, extents, nullptr)},
      {"the dtype of tensor is -1", packed(-1, 2, extents, nullptr)},
      {"the rank of tensor is 0, expected 1 to 6", packed(KILN_F32, 0, extents, nullptr)},
      {"the rank of tensor is -2147483648, expected 1 to 6", packed(KILN_F32, INT32_MIN, extents, nullptr)},
      {"the rank of tensor is 7, expected 1 to 6", packed(KILN_F32, 7, extents, nullptr)},
      {"the negative extent -4", packed(KILN_F32, 2, negative, nullptr)},
      {"more than 2^58 elements", packed(KILN_F32, 2, many, nullptr)},
      {"layout 'nhwc' does not fit 2 extents", packed(KILN_F32, 2, extents, "nhwc")},
      {"layout 'nn' does not fit 2 extents", packed(KILN_F32, 2, extents, "nn")},
  });
  EXPECT_EQ(out.rank, 0) << "left as it was";
  EXPECT_EQ(packed(99, 2, extents, nullptr)(), KILN_INVALID_ARGUMENT);
  EXPECT_STREQ(kiln_last_hint(),
               "use one of KILN_F32, KILN_F16, KILN_BF16, KILN_I32, KILN_I8, KILN_U8, KILN_F8E4M3, KILN_F8E5M2");
}

TEST_F(CApiArguments, Memory) {
  kiln_memory* memory = nullptr;
  float value = 0;
  expect_refused(
      {{"out of memory", [&] { return kiln_memory_create(context_, SIZE_MAX / 2, &memory); }, KILN_OUT_OF_MEMORY}});
  EXPECT_EQ(memory, nullptr);
  ASSERT_EQ(kiln_memory_create(context_, 4, &memory), KILN_OK);
  expect_refused({
      {"8 bytes do not fit device memory of 4 bytes", [&] { return kiln_memory_upload(memory, &value, 8); }},
      {"8 bytes do not fit device memory of 4 bytes", [&] { return kiln_memory_download(memory, &value, 8); }},
  });
  EXPECT_EQ(kiln_memory_upload(memory, nullptr, 0), KILN_OK);
  EXPECT_EQ(kiln_memory_download(memory, nullptr, 0), KILN_OK);
  kiln_memory_destroy(memory);
}

TEST_F(CApiArguments, Epilogues) {
  kiln_epilogue* epilogue = nullptr;
  ASSERT_EQ(kiln_epilogue_create(&epilogue), KILN_OK);
  const kiln_tensor good = tensor(upload({1, 2}), {2}), no_rank = with(good, [](auto&t) { t.rank = 0; });
  const kiln_named_tensor nameless = {nullptr, &good}, no_tensor = {"b", nullptr}, b = {"b", &good},
                          bad = {"b", &no_rank}, twice[] = {b, b};
  const kiln_named_scalar anonymous = {nullptr, 1, 0}, spoilt = {"s", 1, 1}, s = {"s", 1, 0}, keyword = {"for", 1, 0};
  const auto expression = [&](const char* text, const kiln_named_tensor* t, size_t tensors, const kiln_named_scalar* n,
                              size_t scalars) {
    return [=] { return kiln_epilogue_expression(epilogue, text, t, tensors, n, scalars); };
  };
  const std::vector<kiln_named_scalar> many(64, s);
  expect_refused({
      {"clip(1, 0) is an empty range", [&] { return kiln_epilogue_clip(epilogue, 1, 0); }},
      {"clip(nan, 0) is an empty range", [&] { return kiln_epilogue_clip(epilogue, nan, 0); }},
      {"clip(0, nan) is an empty range", [&] { return kiln_epilogue_clip(epilogue, 0, nan); }},
      {"the name of a tensor is NULL", expression("acc", &nameless, 1, nullptr, 0)},
      {"the name of a scalar is NULL", expression("acc", nullptr, 0, &anonymous, 1)},
      {"kiln_epilogue_expression: b is NULL", expression("acc", &no_tensor, 1, nullptr, 0)},
      {"kiln_epilogue_expression: the rank of b is 0", expression("acc", &bad, 1, nullptr, 0)},
      {"reserved is 1, expected 0", expression("acc", nullptr, 0, &spoilt, 1)},
      {"two values are called 'b'", expression("acc + b", twice, 2, nullptr, 0)},
      {"the name 'for' is taken", expression("acc", nullptr, 0, &keyword, 1)},
      {"64 scalars", expression("acc", nullptr, 0, many.data(), many.size())},
      {"user code is empty", expression("", nullptr, 0, nullptr, 0), KILN_PARSE_ERROR},
      {"line 1", expression("(acc", nullptr, 0, nullptr, 0), KILN_PARSE_ERROR},
  });
  EXPECT_EQ(kiln_epilogue_relu(epilogue), KILN_OK);
  expect_refused({
      {"user code stands alone", expression("acc + b", &b, 1, nullptr, 0)},
      {"epilogue stage relu stands twice", [&] { return kiln_epilogue_relu(epilogue); }},
  });
  kiln_epilogue_destroy(epilogue);
}

TEST_F(CApiArguments, Runs) {
  kiln_plan* plan = nullptr;
  ASSERT_EQ(kiln_plan_create(context_, "conv_forward x=f32:1x4x8x8 w=f32:4x4x3x3 epilogue=bias+clip", &plan), KILN_OK);
  const std::vector<float> untouched(4 * 6 * 6, 7.0f);
  void *x = upload(wave(4 * 8 * 8)), *w = upload(wave(4 * 4 * 9)), *y = upload(untouched), *b = upload(wave(4));
  const void *good[] = {x, w, y, b}, *missing[] = {x, nullptr, y, b};
  const void* misaligned[] = {static_cast<char*>(x) + 4, w, y, b};
  const void *last = static_cast<char*>(x) + 1008, *beyond[] = {last, w, y, b};  // of 1024 bytes
  const std::vector<const void*> many(100, x);
  const auto run = [&](const void* const* operands, size_t count) {
    return [plan, operands, count] { return kiln_plan_run(plan, nullptr, operands, count, nullptr, nullptr); };
  };
  const float four[] = {1, 1, 1, 1};
  const auto valued = [&](const auto& edit) {
    return [plan, &good, edit] {
      const kiln_run_values values = with(kiln_run_values_default(), edit);
      return kiln_plan_run(plan, nullptr, good, 4, nullptr, &values);
    };
  };
  expect_refused({
      {"0 operands were given, expected 4", run(good, 0)},
      {"3 operands were given, expected 4", run(good, 3)},
      {"100 operands were given, expected 4", run(many.data(), many.size())},
      {"w is a null pointer", run(missing, 4)},
      {"which is not a multiple of 16 bytes", run(misaligned, 4)},
      {fmt::format("conv_forward: x takes 1024 bytes, from {} to {}, and only 16 of them are there: its memory is an "
                   "allocation of 1024 bytes at {}",
                   last, static_cast<const void*>(static_cast<const char*>(last) + 1023), x),
       run(beyond, 4)},
      {"clip_lo is 1 and clip_hi 0", valued([](auto& v) { v.clip_lo = 1, v.clip_hi = 0; })},
      {"alpha is 2", valued([](auto& v) { v.alpha = 2; })},
      {"beta is 1", valued([](auto& v) { v.beta = 1; })},
      {"n is 2", valued([](auto& v) { v.n = 2; })},
      {"kiln_plan_run: 1 scalars were given, a request without user code takes none",
       valued([&](auto& v) { v.scalars = four, v.scalar_count = 1; })},
      {"kiln_plan_run: 4 operation_scalars were given, conv_forward takes none",
       valued([&](auto& v) { v.operation_scalars = four, v.operation_scalar_count = 4; })},
      {"kiln_plan_run: 1 operation_integers were given, conv_forward takes none",
       valued([](auto& v) { v.operation_integer_count = 1; })},
  });
  EXPECT_EQ(download(y), untouched);
  kiln_plan_destroy(plan);
}

TEST_F(CApiArguments, StreamsThatThereAreNot) {
  const auto none = reinterpret_cast<kiln_stream>(uintptr_t{0x1234560});
  expect_refused({
      {"cuEventRecord", [&] { return kiln_order(context_, none, nullptr); }, KILN_DRIVER_ERROR},
      {"cuStreamWaitEvent", [&] { return kiln_order(context_, nullptr, none); }, KILN_DRIVER_ERROR},
  });
  EXPECT_EQ(kiln_order(context_, none, none), KILN_OK) << "one stream needs no order";
}

TEST_F(CApiArguments, NothingIsFineToDestroyAndToAskForItsAddress) {
  kiln_context_destroy(nullptr);
  kiln_memory_destroy(nullptr);
  kiln_epilogue_destroy(nullptr);
  kiln_plan_destroy(nullptr);
  kiln_string_destroy(nullptr);
  EXPECT_EQ(kiln_memory_data(nullptr), nullptr);
}

}  // namespace
}  // namespace kiln::capi::arguments_test
