// A Context chooses, compiles and keeps plans.
#include "kiln/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "device_fixture.h"
#include "kiln/base/error.h"
#include "kiln/cache/database.h"
#include "kiln/cache/pack.h"
#include "kiln/templates/catalogue.h"

namespace kiln::context_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const char* const softmax_line = "softmax_forward x=f32:4x37";

class ContextTest : public DeviceTest {
 protected:
  std::string path(const std::string& name) const { return testing::TempDir() + "kiln_context_" + name; }

  static std::string contents(const std::string& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
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

TEST_F(ContextTest, PredictsFromWhatTheDeviceWasMeasuredToReach) {
  const Request request = Request::parse("pool_forward x=f32:8x64x56x56 mode=max window=2 stride=2");
  const Explanation assumed = Context(options()).explain(request);
  EXPECT_FALSE(assumed.calibrated);
  EXPECT_EQ(assumed.calibration, Calibration{}.print());
  const std::string file = path("calibrated.db");
  std::filesystem::remove(file);
  const auto explain_with = [&](const std::string& figures, bool locked) {
    cache::Database::open(file).put_calibration({entry().id, figures, 1});
    ContextOptions with_cache = options();
    with_cache.cache = file;
    with_cache.locked = locked;
    return Context(with_cache).explain(request);
  };
  Calibration slow;
  slow.copy_efficiency /= 3;
  const Explanation calibrated = explain_with(slow.print(), false);
  EXPECT_TRUE(calibrated.calibrated);
  EXPECT_EQ(calibrated.calibration, slow.print());
  ASSERT_TRUE(calibrated.chosen);
  EXPECT_GT(calibrated.chosen->seconds, assumed.chosen->seconds);
  EXPECT_EQ(calibrated.roofline_seconds, assumed.roofline_seconds) << "that is of the nominal figures";
  EXPECT_FALSE(explain_with(slow.print(), true).calibrated) << "locked: no database is opened";
  EXPECT_FALSE(explain_with("figures=of a newer Kiln", false).calibrated);
}

TEST_F(ContextTest, NamesPermissionsThatNoKernelMakesUseOf) {
  const Context context(options());
  const auto unused = [&](const std::string& permissions) {
    return context.explain(Request::parse("conv_forward x=f32:1x8x6x8 w=f32:8x8x3x3 pad=1" + permissions))
        .unused_permissions;
  };
  EXPECT_THAT(unused(""), IsEmpty());
  EXPECT_THAT(unused(" tf32"), IsEmpty()) << "tensor cores";
  EXPECT_THAT(unused(" fast"), IsEmpty()) << "Winograd's transforms";
  EXPECT_THAT(unused(" tf32 fast"), IsEmpty());
  EXPECT_THAT(context.explain(Request::parse("gemm a=f16:8x8 b=f16:8x8 tf32")).unused_permissions, ElementsAre("tf32"));
  EXPECT_THAT(context.explain(Request::parse("gemm a=f32:8x8 b=f32:8x8 fast")).unused_permissions, ElementsAre("fast"));
}

TEST_F(ContextTest, PassesOverAStoredChoiceThatTheLibraryCannotMake) {
  const Request request = Request::parse(softmax_line);
  const ExplainedCandidate best = *Context(options()).explain(request).chosen;
  cache::Record illegal = record(request, best, 1e-6);
  illegal.config = "LANES=7";
  cache::Record stale = record(request, best, 1e-6);
  stale.algorithm_digest = "of-an-older-template";
  const std::string file = path("stale.pack");
  cache::write_pack_file(file, cache::make_pack({entry()}, {illegal, stale}), "1");
  ContextOptions with_pack = options();
  with_pack.packs = {file};
  Context context(with_pack);
  EXPECT_EQ(context.plan(request).source(), "estimate");
  EXPECT_TRUE(context.explain(request).stored.empty());
}

TEST_F(ContextTest, BelievesTheLibraryAndNotAPackAboutWorkspaceAndReproducibility) {
  const Request request = Request::parse("conv_forward x=f32:1x512x7x7 w=f32:64x512x3x3 pad=1");
  const Catalogue catalogue = make_catalogue(embedded_sources());
  const Target target{Arch::of(entry().cc_major, entry().cc_minor), 13, 0};
  std::optional<ExplainedCandidate> needy;
  catalogue.find("conv_implicit_gemm_splitk")->on(request, target).for_each_legal([&](const Config& config) {
    if (catalogue.program(request, target, {"conv_implicit_gemm_splitk", config}).workspace_bytes == 0) return true;
    needy = ExplainedCandidate{"conv_implicit_gemm_splitk", config.print(), 0, ""};
    return false;
  });
  ASSERT_TRUE(needy);
  const cache::Record liar = record(request, *needy, 1e-6);  // says that it needs no workspace
  const std::string file = path("liar.pack");
  cache::write_pack_file(file, cache::make_pack({entry()}, {liar}), "1");
  ContextOptions limited = options();
  limited.packs = {file};
  EXPECT_EQ(Context(limited).explain(request).stored.size(), 1u);
  limited.workspace_limit = 0;
  EXPECT_TRUE(Context(limited).explain(request).stored.empty());
}

TEST_F(ContextTest, ReadsSystemPacksLast) {
  const Request request = Request::parse(softmax_line);
  const Explanation why = Context(options()).explain(request);
  ASSERT_GE(why.estimated.size(), 2u);
  const std::string share = path("share");
  std::filesystem::create_directories(share + "/kiln/packs");
  cache::write_pack_file(share + "/kiln/packs/machine.pack",
                         cache::make_pack({entry()}, {record(request, why.estimated[0], 1e-6)}), "1");
  ContextOptions with_packs = options();
  with_packs.environment->data_dirs = {share};
  EXPECT_THAT(Context(with_packs).explain(request).chosen->source, HasSubstr("from system pack " + share));
  const std::string mine = path("mine.pack");
  cache::write_pack_file(mine, cache::make_pack({entry()}, {record(request, why.estimated[1], 1e-3)}), "1");
  with_packs.packs = {mine};
  EXPECT_THAT(Context(with_packs).explain(request).chosen->source, HasSubstr("from pack " + mine));
  std::filesystem::remove_all(share);
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

TEST_F(ContextTest, AnnouncesABadLineOfAPackWithItsRequestAndAllOfThemWhereOneAsksWhy) {
  const std::vector<Request> requests = {Request::parse(softmax_line),
                                         Request::parse("softmax_forward x=f32:4x38 axis=0")};
  std::vector<cache::Record> records;
  for (const Request& request : requests) {
    records.push_back(record(request, *Context(options()).explain(request).chosen, 1e-5));
  }
  const std::string file = path("bad_lines.pack");
  cache::write_pack_file(file, cache::make_pack({entry()}, records), "1");
  std::string text = contents(file);
  const std::string kind = "\tm";  // "measured" or "modelled", by the device
  for (size_t at = text.find(kind); at != std::string::npos; at = text.find(kind)) text.replace(at + 1, 8, "guessed!");
  std::ofstream(file) << text;
  std::vector<std::string> announced;
  ContextOptions with_pack = options();
  with_pack.packs = {file};
  with_pack.announce = [&](std::string_view message) { announced.emplace_back(message); };
  Context context(with_pack);
  EXPECT_THAT(announced, IsEmpty());
  EXPECT_EQ(context.plan(requests[0]).source(), "estimate");
  EXPECT_THAT(announced, ElementsAre(HasSubstr(file + ": line 4: kind 'guessed!'")));
  const Explanation why = context.explain(requests[0]);
  EXPECT_THAT(why.stored, IsEmpty());
  EXPECT_THAT(announced, ElementsAre(HasSubstr("line 4"), HasSubstr("line 6")));
  EXPECT_EQ(context.plan(requests[1]).source(), "estimate");
  EXPECT_EQ(announced.size(), 2u) << "once";
}

TEST_F(ContextTest, SaysNothingWhereNobodyHasTunedYet) {
  ContextOptions fresh = options();  // its announcements are failures
  fresh.environment->cache.reset();
  fresh.environment->cache_home = path("fresh-home");
  std::filesystem::remove_all(fresh.environment->cache_home);
  Context context(fresh);
  EXPECT_FALSE(std::filesystem::exists(fresh.environment->cache_home)) << "nothing was compiled yet";
  EXPECT_EQ(context.plan(Request::parse(softmax_line)).source(), "estimate");
  EXPECT_FALSE(std::filesystem::exists(fresh.environment->cache_home + "/kiln/tuning.db")) << "nobody has tuned";
}

TEST_F(ContextTest, TakesKernelsThatAnEarlierContextCompiledFromTheStore) {
  const std::string folder = path("kernels");
  std::filesystem::remove_all(folder);
  ContextOptions storing = options();
  storing.kernel_store = folder;
  const Request request = Request::parse("softmax_forward x=f32:5x43");
  const auto entries = [&] {
    size_t count = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder)) count += file.path().extension() == ".entry";
    return count;
  };
  Context(storing).plan(request);
  ASSERT_EQ(entries(), 1U);
  // A hit marks its entry as used now.
  const auto file =
      std::find_if(begin(std::filesystem::directory_iterator(folder)), std::filesystem::directory_iterator(),
                   [](const auto& entry) { return entry.path().extension() == ".entry"; })
          ->path();
  const auto long_ago = std::filesystem::last_write_time(file) - std::chrono::hours(24);
  std::filesystem::last_write_time(file, long_ago);
  Context again(storing);
  expect_matches_reference(request, again.plan(request));
  EXPECT_EQ(entries(), 1U);
  EXPECT_GT(std::filesystem::last_write_time(file), long_ago);
}

TEST_F(ContextTest, AStoreThatCannotBeWrittenIsAnnouncedOnceAndFailsNothing) {
  const std::string file = path("not-a-folder");
  std::ofstream(file) << "a file stands where the folder should be";
  std::vector<std::string> announced;
  ContextOptions storing = options();
  storing.kernel_store = file;
  storing.announce = [&](std::string_view message) { announced.emplace_back(message); };
  Context context(storing);
  expect_matches_reference(Request::parse(softmax_line), context.plan(Request::parse(softmax_line)));
  context.plan(Request::parse("softmax_forward x=f32:4x38"));
  ASSERT_EQ(announced.size(), 1u);
  EXPECT_THAT(announced[0], HasSubstr(file));
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
  const Explanation why = Context(options()).explain(request);
  const auto splits = std::find_if(why.estimated.begin(), why.estimated.end(), [](const ExplainedCandidate& candidate) {
    return candidate.algorithm == "conv_implicit_gemm_splitk";
  });
  ASSERT_NE(splits, why.estimated.end());
  cache::Record winner = record(request, *splits, 1e-6);
  winner.workspace_bytes = 401408;
  winner.deterministic = false;  // this one is, but a record says what was found
  const std::string file = path("filter.pack");
  cache::write_pack_file(file, cache::make_pack({entry()}, {winner}), "1");
  ContextOptions unlimited = options();
  unlimited.packs = {file};
  Context free(unlimited);
  EXPECT_GT(free.plan(request).workspace_bytes(), 0);
  EXPECT_EQ(free.explain(request).stored.size(), 1U);

  ContextOptions limited = unlimited;
  limited.workspace_limit = 0;
  Context small(limited);
  EXPECT_EQ(small.plan(request).workspace_bytes(), 0);
  EXPECT_TRUE(small.explain(request).stored.empty());

  ContextOptions reproducible = unlimited;
  reproducible.deterministic = true;
  Context strict(reproducible);
  EXPECT_TRUE(strict.plan(request).deterministic());
  EXPECT_TRUE(strict.explain(request).stored.empty());
}

TEST_F(ContextTest, ThreadsThatAskForTheSamePlanShareOne) {
  Context context(options());
  const Request request = Request::parse("softmax_forward x=f32:3x41");
  std::vector<const Request*> requests(4);  // what belongs to the plan itself
  {
    std::vector<std::jthread> threads;
    for (const Request*& mine : requests) threads.emplace_back([&] { mine = &context.plan(request).request(); });
  }
  EXPECT_THAT(requests, testing::Each(&context.plan(request).request())) << "it was made more than once";
}

TEST_F(ContextTest, PrepareTriesAllAndReportsTheFirstThatFails) {
  const std::string file = path("prepared.txt");
  std::filesystem::remove(file);
  ContextOptions recording = options();
  recording.environment->record = file;
  Context context(recording);
  EXPECT_NO_THROW(context.prepare({}));
  Request first_unserved = Request::parse(softmax_line), second_unserved = first_unserved;
  first_unserved.operation = "first_unserved";
  second_unserved.operation = "second_unserved";
  const std::vector<Request> requests = {Request::parse(softmax_line), first_unserved,
                                         Request::parse("pool_forward x=f32:1x2x6x6 mode=avg window=2"),
                                         second_unserved, Request::parse("softmax_forward x=f32:5x11")};
  try {
    context.prepare(requests);
    ADD_FAILURE() << "nothing serves the second request";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("first_unserved"));
  }
  const std::string tried = contents(file);
  for (const size_t i : {0, 2, 4}) EXPECT_THAT(tried, HasSubstr(requests[i].key() + "\n"));
}

TEST_F(ContextTest, GoesOnWhenRequestsCanNoLongerBeRecorded) {
  std::vector<std::string> announced;
  ContextOptions recording = options();
  recording.environment->record = "/dev/full";
  recording.announce = [&](std::string_view message) { announced.emplace_back(message); };
  Context context(recording);
  expect_matches_reference(Request::parse(softmax_line), context.plan(Request::parse(softmax_line)));
  EXPECT_NO_THROW(context.plan(Request::parse("softmax_forward x=f32:5x11")));
  ASSERT_EQ(announced.size(), 1U) << "once";
  EXPECT_THAT(announced[0], HasSubstr("no more requests are recorded to /dev/full: No space left"));
}

TEST_F(ContextTest, WhatAListenerThrowsIsDropped) {
  int told = 0;
  ContextOptions options = this->options();
  options.environment->record = "/dev/full";
  options.announce = [&](std::string_view) {
    ++told;
    throw std::runtime_error("a listener's");
  };
  Context context(options);
  EXPECT_NO_THROW(context.plan(Request::parse(softmax_line)));
  EXPECT_EQ(told, 1);
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
  const auto lines = parse_requests(contents(file));
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
      {dynamic, {"no batch of a dynamic request", {x, y}, {}, "n is not given, and"}},
      {dynamic, {"a batch beyond the bucket", {x, y}, n5, "n is 5, and the request serves batches of 0 to 4"}},
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
}  // namespace kiln::context_test
