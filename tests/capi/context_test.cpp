// Contexts, plans and texts of the C API.
#include <gmock/gmock.h>
#include <pthread.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fixture.h"

namespace kiln::capi::context_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST_F(CApi, SaysWhatDeviceAContextHas) {
  kiln_context_info info = kiln_context_info_default();
  ASSERT_EQ(kiln_context_get_info(context_, &info), KILN_OK);
  EXPECT_THAT(info.device_description, HasSubstr("compute capability"));
  EXPECT_STRNE(info.device_id, "");
  EXPECT_EQ(info.size, sizeof info);
}

TEST_F(CApi, KeepsAsManyPlansAsItIsTold) {
  kiln_context_options limited = options();
  limited.kept_plans = 2;
  kiln_context* context = nullptr;
  ASSERT_EQ(kiln_context_create(&limited, &context), KILN_OK) << kiln_last_error();
  for (const char* request : {"tensor_set y=f32:7", "tensor_set y=f32:8", "tensor_set y=f32:9"}) {
    ASSERT_EQ(kiln_context_prepare(context, request), KILN_OK) << kiln_last_error();
  }
  kiln_context_info info = kiln_context_info_default();
  ASSERT_EQ(kiln_context_get_info(context, &info), KILN_OK);
  EXPECT_EQ(info.given_up_plans, 1);
  EXPECT_GE(info.plans, 2);
  EXPECT_GT(info.plan_bytes, 0);
  EXPECT_EQ(info.held_plans, info.plans - 2);
  kiln_context_destroy(context);
}

TEST_F(CApi, ExplainsARequestAsJson) {
  char* text = nullptr;
  ASSERT_EQ(kiln_context_explain(context_, "conv_forward x=f32:1x8x6x6 w=f32:4x8x3x3", &text), KILN_OK);
  const auto why = nlohmann::json::parse(text);
  kiln_string_destroy(text);
  EXPECT_THAT(why["request"].get<std::string>(), HasSubstr("conv_forward x=f32:1x8x6x6:nchw"));
  kiln_context_info info = kiln_context_info_default();
  ASSERT_EQ(kiln_context_get_info(context_, &info), KILN_OK);
  EXPECT_EQ(why["device"], info.device_id);
  EXPECT_GT(why["roofline_seconds"].get<double>(), 0);
  EXPECT_EQ(why["calibrated"], false);
  EXPECT_THAT(why["calibration"].get<std::string>(), HasSubstr("copy_efficiency=0.9"));
  EXPECT_TRUE(why["stored"].empty()) << "no cache was opened";
  ASSERT_FALSE(why["estimated"].empty());
  EXPECT_EQ(why["chosen"], why["estimated"][0]);
  for (const char* field : {"algorithm", "config", "seconds", "source"}) EXPECT_TRUE(why["chosen"].contains(field));
  ASSERT_FALSE(why["refused"].empty());
  EXPECT_FALSE(why["refused"][0]["reason"].get<std::string>().empty());
}

TEST_F(CApi, PreparesTheLinesOfARequestsFile) {
  EXPECT_EQ(kiln_context_prepare(context_, "# two layers\nsoftmax_forward x=f32:2x4\n\nsoftmax_forward x=f32:3x4 *7\n"),
            KILN_OK)
      << kiln_last_error();
  EXPECT_EQ(kiln_context_prepare(context_, ""), KILN_OK);
  EXPECT_EQ(kiln_context_prepare(context_, "softmax_forward x=f32:2x4\nsoftmax_forward x=f99:3x4\n"), KILN_PARSE_ERROR);
  EXPECT_THAT(kiln_last_error(), HasSubstr("line 2"));
}

TEST_F(CApi, PreparesOpenKernels) {
  kiln_context_options options = kiln_context_options_default();
  options.first_call = KILN_FIRST_CALL_AT_ONCE;
  options.cache = "off";
  kiln_context* at_once = nullptr;
  ASSERT_EQ(kiln_context_create(&options, &at_once), KILN_OK) << kiln_last_error();
  EXPECT_EQ(kiln_context_prepare_open(at_once, "# rows\nsoftmax_forward x=f32:?8x?40 *3\n"), KILN_OK)
      << kiln_last_error();
  kiln_plan* plan = nullptr;
  ASSERT_EQ(kiln_plan_create(at_once, "softmax_forward x=f32:3x29", &plan), KILN_OK) << kiln_last_error();
  kiln_plan_info info = kiln_plan_info_default();
  EXPECT_EQ(kiln_plan_get_info(plan, &info), KILN_OK);
  EXPECT_STREQ(info.source, "open kernel");
  kiln_plan_destroy(plan);
  EXPECT_EQ(kiln_context_prepare_open(at_once, "softmax_forward x=f32:?8x?40 axis=9"), KILN_INVALID_ARGUMENT);
  EXPECT_EQ(kiln_context_prepare_open(at_once, "local_conv_forward x=f32:?x4x6x6 w=f32:16x4x3x3 pad=1 grid=2"),
            KILN_UNSUPPORTED);
  EXPECT_THAT(kiln_last_hint(), HasSubstr("kiln_context_prepare()"));
  EXPECT_EQ(kiln_context_prepare_open(at_once, nullptr), KILN_INVALID_ARGUMENT);
  EXPECT_EQ(kiln_context_prepare_open(nullptr, "softmax_forward x=f32:?8x?40"), KILN_INVALID_ARGUMENT);
  kiln_context_destroy(at_once);
  EXPECT_EQ(kiln_context_prepare_open(context_, "softmax_forward x=f32:?8x?40"), KILN_UNSUPPORTED);
  EXPECT_THAT(kiln_last_hint(), HasSubstr("kiln_context_options.first_call to KILN_FIRST_CALL_AT_ONCE"));
}

TEST_F(CApi, RefusesRequestsThatDefineUserCodeWhereItIsAskedTo) {
  const std::string request = "softmax_forward x=f32:2x4 epilogue=user:twice\n";
  const std::string code = "# a layer\nexpression twice\n2.0f * acc\nend expression\n" + request;
  EXPECT_EQ(kiln_requests_require_no_code(code.c_str()), KILN_INVALID_ARGUMENT);
  EXPECT_THAT(kiln_last_error(), AllOf(HasSubstr("line 2"), HasSubstr("expression twice")));
  EXPECT_THAT(kiln_last_hint(), HasSubstr("call kiln_requests_require_no_code() only for"));
  EXPECT_EQ(kiln_requests_require_no_code(request.c_str()), KILN_OK) << "it names code, and holds none";
  EXPECT_EQ(kiln_context_prepare(context_, code.c_str()), KILN_OK) << kiln_last_error();
}

TEST_F(CApi, PlansAndMemoryOutliveTheirContext) {
  kiln_context* context = nullptr;
  const kiln_context_options given = options();
  ASSERT_EQ(kiln_context_create(&given, &context), KILN_OK);
  kiln_plan* plan = nullptr;
  ASSERT_EQ(kiln_plan_create(context, "softmax_forward x=f32:1x4", &plan), KILN_OK);
  kiln_memory* memory = nullptr;
  const std::vector<float> ones(8, 1.0f);
  ASSERT_EQ(kiln_memory_create(context, 32, &memory), KILN_OK);
  ASSERT_EQ(kiln_memory_upload(memory, ones.data(), 32), KILN_OK);
  kiln_context_destroy(context);

  auto* const data = static_cast<float*>(kiln_memory_data(memory));
  const void* operands[] = {data, data + 4};
  EXPECT_EQ(kiln_plan_run(plan, nullptr, operands, 2, nullptr, nullptr), KILN_OK) << kiln_last_error();
  std::vector<float> result(8);
  EXPECT_EQ(kiln_memory_download(memory, result.data(), 32), KILN_OK);
  EXPECT_EQ(result[7], 0.25f);
  kiln_plan_destroy(plan);
  kiln_memory_destroy(memory);
}

// To close a file or to wait is where a thread is cancelled, and calls do both, in destructors, too.
TEST_F(CApi, AThreadThatIsCancelledEndsAfterTheCall) {
  struct Work {
    kiln_context_options options;
    kiln_status created = KILN_INTERNAL, prepared = KILN_INTERNAL;
    bool destroyed = false;
  } work{options()};
  const auto body = [](void* given) -> void* {
    auto* const of = static_cast<Work*>(given);
    ::pthread_cancel(::pthread_self());
    kiln_context* context = nullptr;
    of->created = kiln_context_create(&of->options, &context);
    of->prepared = kiln_context_prepare(context, "softmax_forward x=f32:5x7");
    kiln_context_destroy(context);
    of->destroyed = true;
    ::pthread_testcancel();
    return nullptr;
  };
  pthread_t thread{};
  ASSERT_EQ(::pthread_create(&thread, nullptr, body, &work), 0);
  void* end = nullptr;
  ASSERT_EQ(::pthread_join(thread, &end), 0);
  EXPECT_EQ(end, PTHREAD_CANCELED);
  EXPECT_EQ(work.created, KILN_OK);
  EXPECT_EQ(work.prepared, KILN_OK);
  EXPECT_TRUE(work.destroyed);
}

// A callback that ends its thread is no exception either.
TEST_F(CApi, AThreadMayEndInAnAllocator) {
  kiln_context_options given = options();
  given.workspace_allocate = [](void*, size_t, void*) -> void* { ::pthread_exit(nullptr); };
  given.workspace_release = [](void*, void*, size_t, void*) {};
  struct Work {
    kiln_context* context = nullptr;
    kiln_tensor x, w, y;
    kiln_status status = KILN_INTERNAL;
  } work{nullptr, tensor(upload(wave(512 * 49)), {1, 512, 7, 7}), tensor(upload(wave(64 * 512 * 9)), {64, 512, 3, 3}),
         tensor(upload(wave(64 * 25)), {1, 64, 5, 5})};
  ASSERT_EQ(kiln_context_create(&given, &work.context), KILN_OK) << kiln_last_error();
  const auto body = [](void* with) -> void* {
    auto* const of = static_cast<Work*>(with);
    of->status = kiln_conv_forward(of->context, &of->x, &of->w, &of->y, nullptr, nullptr);
    return of;
  };
  pthread_t thread{};
  ASSERT_EQ(::pthread_create(&thread, nullptr, body, &work), 0);
  void* end = nullptr;
  ASSERT_EQ(::pthread_join(thread, &end), 0);
  EXPECT_EQ(end, nullptr) << "no workspace was asked for: " << work.status;
  kiln_context_destroy(work.context);
}

TEST_F(CApi, TakesWorkspaceFromTheCallersAllocator) {
  struct Lender {
    void* memory;
    size_t bytes = 0;
    int lent = 0, returned = 0;
  } lender{upload(std::vector<float>(1 << 20))};
  kiln_context_options given = options();
  given.workspace_data = &lender;
  given.workspace_allocate = [](void* data, size_t bytes, void*) {
    auto* const from = static_cast<Lender*>(data);
    ++from->lent;
    from->bytes = bytes;
    return from->memory;
  };
  kiln_context* context = nullptr;
  EXPECT_EQ(kiln_context_create(&given, &context), KILN_INVALID_ARGUMENT) << "one function of two";
  given.workspace_release = [](void* data, void* memory, size_t bytes, void*) {
    auto* const from = static_cast<Lender*>(data);
    ++from->returned;
    EXPECT_EQ(memory, from->memory);
    EXPECT_EQ(bytes, from->bytes);
  };
  ASSERT_EQ(kiln_context_create(&given, &context), KILN_OK) << kiln_last_error();
  kiln_plan* plan = nullptr;
  ASSERT_EQ(kiln_plan_create(context, "conv_forward x=f32:1x512x7x7 w=f32:64x512x3x3 pad=1", &plan), KILN_OK);
  kiln_plan_info info = kiln_plan_info_default();
  ASSERT_EQ(kiln_plan_get_info(plan, &info), KILN_OK);
  const kiln_tensor x = tensor(upload(wave(512 * 49)), {1, 512, 7, 7}),
                    w = tensor(upload(wave(64 * 512 * 9)), {64, 512, 3, 3}),
                    y = tensor(upload(wave(64 * 49)), {1, 64, 7, 7});
  kiln_conv_options conv = kiln_conv_options_default();
  conv.pad_begin[0] = conv.pad_begin[1] = conv.pad_end[0] = conv.pad_end[1] = 1;
  EXPECT_EQ(kiln_conv_forward(context, &x, &w, &y, &conv, nullptr), KILN_OK) << kiln_last_error();
  EXPECT_EQ(lender.lent, info.workspace_bytes > 0 ? 1 : 0);
  EXPECT_EQ(lender.returned, lender.lent);
  EXPECT_EQ(static_cast<int64_t>(lender.bytes), info.workspace_bytes);
  EXPECT_EQ(download(y.data).size(), size_t{64 * 49}) << "the device has finished with the memory";
  kiln_plan_destroy(plan);
  kiln_context_destroy(context);
}

TEST_F(CApi, AnnouncesAPackThatCannotBeUsed) {
  const std::string path = testing::TempDir() + "/broken.pack";
  std::ofstream(path) << "this is no pack\n";
  const char* packs[] = {path.c_str()};
  std::vector<std::string> announced;
  kiln_context_options given = options();
  given.packs = packs;
  given.pack_count = 1;
  given.announce = [](void* data, const char* message) {
    static_cast<std::vector<std::string>*>(data)->emplace_back(message);
  };
  given.announce_data = &announced;
  kiln_context* context = nullptr;
  EXPECT_EQ(kiln_context_create(&given, &context), KILN_OK);
  EXPECT_THAT(announced, testing::Contains(HasSubstr("broken.pack")));
  kiln_context_destroy(context);
}

TEST_F(CApi, SettingsMayTakeThePlaceOfTheEnvironment) {
  const auto failure = [](const char* setting, kiln_status expected) {
    kiln_context_options given = options();
    given.environment = &setting;
    given.environment_count = 1;
    kiln_context* context = nullptr;
    EXPECT_EQ(kiln_context_create(&given, &context), expected);
    EXPECT_EQ(context, nullptr);
    return std::string(kiln_last_error());
  };
  EXPECT_THAT(failure("KILN_DRIVER=/no/such/driver.so", KILN_MISSING_LIBRARY), HasSubstr("/no/such/driver.so"));
  EXPECT_THAT(failure("KILN_DRIVE=cuda", KILN_INVALID_ARGUMENT), HasSubstr("unknown setting KILN_DRIVE"));
  EXPECT_THAT(failure("KILN_LOG=maybe", KILN_INVALID_ARGUMENT), HasSubstr("KILN_LOG"));
  for (const char* malformed : {"KILN_LOG", "=1", ""}) {
    EXPECT_THAT(failure(malformed, KILN_INVALID_ARGUMENT), HasSubstr("no name or no value"));
  }
  EXPECT_THAT(failure(nullptr, KILN_INVALID_ARGUMENT), HasSubstr("no name or no value"));
}

TEST_F(CApi, AWorkspaceLimitAndDeterminismReachTheSelection) {
  kiln_context_options given = options();
  given.workspace_limit = 0;
  given.deterministic = 1;
  kiln_context* context = nullptr;
  ASSERT_EQ(kiln_context_create(&given, &context), KILN_OK);
  kiln_plan* plan = nullptr;
  ASSERT_EQ(kiln_plan_create(context, "conv_forward x=f32:1x64x7x7 w=f32:32x64x3x3 pad=1", &plan), KILN_OK);
  kiln_plan_info info = kiln_plan_info_default();
  ASSERT_EQ(kiln_plan_get_info(plan, &info), KILN_OK);
  EXPECT_EQ(info.workspace_bytes, 0);
  EXPECT_EQ(info.deterministic, 1);
  kiln_plan_destroy(plan);
  kiln_context_destroy(context);
}

TEST_F(CApi, ALockedContextServesOnlyWhatIsShipped) {
  kiln_context_options given = options();
  given.locked = 1;
  kiln_context* context = nullptr;
  ASSERT_EQ(kiln_context_create(&given, &context), KILN_OK) << kiln_last_error();
  kiln_plan* plan = nullptr;
  EXPECT_EQ(kiln_plan_create(context, "softmax_forward x=f32:1x4", &plan), KILN_UNSUPPORTED);
  EXPECT_EQ(plan, nullptr);
  kiln_context_destroy(context);
}

TEST_F(CApi, TunesWithinABudgetAndInTheBackground) {
  for (kiln_tuning_mode mode : {KILN_TUNING_WITHIN_BUDGET, KILN_TUNING_IN_BACKGROUND}) {
    kiln_context_options given = options();
    const std::string folder = testing::TempDir() + "kiln_capi_tuning_" + std::to_string(mode);
    std::filesystem::remove_all(folder);
    const std::string database = folder + "/tuning.db";
    std::filesystem::create_directories(folder);
    given.cache = database.c_str();
    given.tuning_mode = mode;
    given.tuning_candidates = 2;
    kiln_context* context = nullptr;
    ASSERT_EQ(kiln_context_create(&given, &context), KILN_OK) << kiln_last_error();
    const char* request = "softmax_forward x=f32:2x4";
    EXPECT_EQ(kiln_context_prepare(context, request), KILN_OK) << kiln_last_error();
    EXPECT_EQ(kiln_context_wait_until_tuned(context), KILN_OK) << kiln_last_error();
    kiln_plan* plan = nullptr;
    ASSERT_EQ(kiln_plan_create(context, request, &plan), KILN_OK) << kiln_last_error();
    kiln_plan_info info = kiln_plan_info_default();
    EXPECT_EQ(kiln_plan_get_info(plan, &info), KILN_OK);
    EXPECT_THAT(info.source, HasSubstr("this device"));
    kiln_plan_destroy(plan);
    kiln_context_destroy(context);
    std::filesystem::remove_all(folder);
  }
}

TEST_F(CApi, StructuresOfALaterVersionAreReadAsFarAsTheyAreKnown) {
  struct Later {
    kiln_softmax_options known;
    int64_t added;
  };
  const std::vector<float> equal(4, 1.0f);
  const void *x = upload(equal), *y = upload(equal);
  const kiln_tensor cx = tensor(x, {1, 4}), cy = tensor(y, {1, 4});
  Later later = {kiln_softmax_options_default(), 0};
  later.known.size = sizeof later;
  EXPECT_EQ(kiln_softmax_forward(context_, &cx, &cy, &later.known, nullptr), KILN_OK) << "what was added is not used";
  EXPECT_EQ(download(y)[0], 0.25f);
  later.added = 1;
  EXPECT_EQ(kiln_softmax_forward(context_, &cx, &cy, &later.known, nullptr), KILN_INVALID_ARGUMENT);
  EXPECT_THAT(kiln_last_error(), HasSubstr("a field that this library does not have"));
  EXPECT_THAT(kiln_last_hint(), HasSubstr(kiln_version()));
}

}  // namespace
}  // namespace kiln::capi::context_test
