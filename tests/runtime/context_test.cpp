// A Context chooses, compiles and keeps plans.
#include "kiln/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "device_fixture.h"
#include "kiln/base/error.h"
#include "kiln/cache/database.h"
#include "kiln/cache/pack.h"
#include "kiln/templates/catalogue.h"

namespace kiln {
namespace {

using testing::HasSubstr;

const char* const softmax_line = "softmax_forward x=f32:4x37";

class ContextTest : public DeviceTest {
 protected:
  std::string path(const std::string& name) const { return testing::TempDir() + "kiln_context_" + name; }
};

TEST_F(ContextTest, UsesTheBestEstimateWhereNothingIsStored) {
  Context context(options());
  const Request request = Request::parse(softmax_line);
  const Plan plan = context.plan(request);
  EXPECT_EQ(plan.source(), "estimate");
  EXPECT_EQ(plan.request(), request);
  const Explanation why = context.explain(request);
  ASSERT_TRUE(why.chosen);
  EXPECT_EQ(plan.variant(), why.chosen->algorithm + " " + why.chosen->config);
  EXPECT_GT(why.roofline_seconds, 0);
  EXPECT_TRUE(why.stored.empty());
  expect_matches_reference(request, plan);
}

TEST_F(ContextTest, UsesTheStoredWinnerOfTheDatabase) {
  const Request request = Request::parse(softmax_line);
  const std::string file = path("winner.db");
  std::filesystem::remove(file);
  const Explanation why = Context(options()).explain(request);
  ASSERT_GE(why.estimated.size(), 2u);
  const ExplainedCandidate second = why.estimated[1];
  {
    auto database = cache::Database::open(file);
    database.put_device(entry());
    const std::vector<cache::Record> records = {record(request, why.estimated[0], 2e-5), record(request, second, 1e-5)};
    database.insert(records);
  }
  ContextOptions with_cache = options();
  with_cache.cache = file;
  Context context(with_cache);
  const Plan plan = context.plan(request);
  EXPECT_EQ(plan.variant(), second.algorithm + " " + second.config);
  EXPECT_THAT(plan.source(), HasSubstr("on this device"));
  EXPECT_EQ(context.explain(request).stored.size(), 1u) << "the other one can win under no limit";
  expect_matches_reference(request, plan);
}

TEST_F(ContextTest, PassesOverAStoredChoiceThatTheLibraryCannotMake) {
  const Request request = Request::parse(softmax_line);
  const ExplainedCandidate best = *Context(options()).explain(request).chosen;
  cache::Record illegal = record(request, best, 1e-9);
  illegal.config = "LANES=7";
  cache::Record stale = record(request, best, 1e-9);
  stale.algorithm_digest = "of-an-older-template";
  const std::string file = path("stale.pack");
  cache::write_pack_file(file, cache::make_pack({entry()}, {illegal, stale}), "1");
  ContextOptions with_pack = options();
  with_pack.packs = {file};
  Context context(with_pack);
  EXPECT_EQ(context.plan(request).source(), "estimate");
  EXPECT_TRUE(context.explain(request).stored.empty());
}

TEST_F(ContextTest, AnnouncesADatabaseThatCannotBeUsedAndGoesOn) {
  const std::string file = path("garbage.db");
  std::ofstream(file) << "this is not a database, and long enough to be taken for one: " << std::string(4096, 'x');
  std::vector<std::string> announced;
  ContextOptions with_garbage = options();
  with_garbage.cache = file;
  with_garbage.announce = [&](std::string_view message) { announced.emplace_back(message); };
  Context context(with_garbage);
  EXPECT_EQ(context.plan(Request::parse(softmax_line)).source(), "estimate");
  ASSERT_EQ(announced.size(), 1u);
  EXPECT_THAT(announced[0], HasSubstr(file));
}

TEST_F(ContextTest, SaysNothingWhereNobodyHasTunedYet) {
  ContextOptions fresh = options();  // its announcements are failures
  fresh.environment->cache.reset();
  fresh.environment->cache_home = path("fresh-home");
  Context context(fresh);
  EXPECT_EQ(context.plan(Request::parse(softmax_line)).source(), "estimate");
  EXPECT_FALSE(std::filesystem::exists(fresh.environment->cache_home)) << "an application must not create folders";
}

TEST_F(ContextTest, AnnouncesAPackThatCannotBeRead) {
  std::vector<std::string> announced;
  ContextOptions with_pack = options();
  with_pack.packs = {"/nonexistent.pack"};
  with_pack.announce = [&](std::string_view message) { announced.emplace_back(message); };
  Context context(with_pack);
  ASSERT_EQ(announced.size(), 1u);
  EXPECT_THAT(announced[0], HasSubstr("/nonexistent.pack"));
}

TEST_F(ContextTest, WorkspaceLimitAndDeterminismFilterTheCandidates) {
  const Request request = Request::parse("conv_forward x=f32:1x512x7x7 w=f32:64x512x3x3 pad=1");
  ContextOptions limited = options();
  limited.workspace_limit = 0;
  limited.deterministic = true;
  const Plan plan = Context(limited).plan(request);
  EXPECT_EQ(plan.workspace_bytes(), 0);
  EXPECT_TRUE(plan.deterministic());
}

TEST_F(ContextTest, ThreadsThatAskForTheSamePlanShareOne) {
  Context context(options());
  const Request request = Request::parse("softmax_forward x=f32:3x41");
  std::vector<std::string> variants(4);
  {
    std::vector<std::jthread> threads;
    for (std::string& variant : variants) threads.emplace_back([&] { variant = context.plan(request).variant(); });
  }
  for (const std::string& variant : variants) EXPECT_EQ(variant, variants.front());
}

TEST_F(ContextTest, PrepareTriesAllAndReportsTheFirstThatFails) {
  Context context(options());
  std::vector<Request> requests = {Request::parse(softmax_line),
                                   Request::parse("pool_forward x=f32:1x2x6x6 mode=avg window=2")};
  EXPECT_NO_THROW(context.prepare(requests));
  EXPECT_NO_THROW(context.prepare({}));
}

TEST_F(ContextTest, RecordsTheRequestsThatAnApplicationMakes) {
  const std::string file = path("record.txt");
  std::filesystem::remove(file);
  ContextOptions recording = options();
  recording.environment->record = file;
  Context context(recording);
  const Request request = Request::parse(softmax_line);
  context.plan(request);
  context.plan(request);
  std::ifstream stream(file);
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  const auto lines = parse_requests(text);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].request, request);
}

TEST_F(ContextTest, RefusesADeviceThatIsNotThere) {
  ContextOptions wrong = options();
  wrong.device = 99;
  EXPECT_THROW(Context{wrong}, Error);
}

struct BadRun {
  std::string what;
  std::vector<uintptr_t> operands;
  RunValues values;
  std::string message;
};

TEST_F(ContextTest, PlanRefusesBadArgumentsBeforeAnyLaunch) {
  Context context(options());
  const Plan plan = context.plan(Request::parse(softmax_line));
  const Plan dynamic = context.plan(Request::parse("softmax_forward x=f32:4x37 n=?"));
  const auto x = reinterpret_cast<uintptr_t>(upload(std::vector<std::byte>(4096)));
  const uintptr_t y = x + 2048;
  RunValues half, n3, n5;
  half.alpha = 0.5f;
  n3.n = 3;
  n5.n = 5;
  const std::vector<std::pair<Plan, BadRun>> cases = {
      {plan, {"too few operands", {x}, {}, "1 operands were given, expected 2"}},
      {plan, {"a null operand", {x, 0}, {}, "y is a null pointer"}},
      {plan, {"a misaligned operand", {x + 4, y}, {}, "not a multiple of 16"}},
      {plan, {"a scale outside its class", {x, y}, half, "alpha is 0.5"}},
      {plan, {"a batch of a fixed request", {x, y}, n3, "fixed to 4"}},
      {dynamic, {"no batch of a dynamic request", {x, y}, {}, "outside the bucket"}},
      {dynamic, {"a batch beyond the bucket", {x, y}, n5, "outside the bucket"}},
  };
  for (const auto& [target, bad] : cases) {
    std::vector<Address> operands;
    for (uintptr_t address : bad.operands) operands.emplace_back(reinterpret_cast<const void*>(address));
    try {
      target.run(nullptr, operands, nullptr, bad.values);
      ADD_FAILURE() << bad.what << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << bad.what;
      EXPECT_THAT(error.what(), HasSubstr(bad.message)) << bad.what;
    }
  }
}

}  // namespace
}  // namespace kiln
