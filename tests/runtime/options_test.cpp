// Permissions of a Context by itself: tune or not, and use what its options permit and nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "device_fixture.h"
#include "kiln/base/error.h"
#include "kiln/cache/database.h"
#include "kiln/cache/pack.h"
#include "kiln/context.h"
#include "kiln/softmax.h"
#include "kiln/templates/catalogue.h"

namespace kiln::options_test {
namespace {

using testing::HasSubstr;

const char* const softmax = "softmax_forward x=f32:4x37";
// Its split-K variants need workspace, others do not.
const char* const deep = "conv_forward x=f32:1x512x7x7 w=f32:64x512x3x3 pad=1";

class OptionsTest : public DeviceTest {
 protected:
  OptionsTest() {
    for (const std::string& file : {database_, pack_, kernels_}) std::filesystem::remove_all(file);
  }

  /// As the fixture's, with what the program says of itself: a pack is held against it on import.
  cache::Record record(const Request& request, const ExplainedCandidate& candidate, double seconds) const {
    const device::DeviceInfo& info = device_->device().info();
    const Target target{Arch::of(info.cc_major, info.cc_minor), 13, 0};
    const Choice choice{candidate.algorithm, Config::parse(candidate.config)};
    const Program program = make_catalogue(embedded_sources()).program(request, target, choice);
    cache::Record record = DeviceTest::record(request, candidate, seconds);
    record.workspace_bytes = program.workspace_bytes;
    record.deterministic = program.deterministic;
    return record;
  }

  static std::string name(const ExplainedCandidate& candidate) { return candidate.algorithm + " " + candidate.config; }

  ContextOptions tuning(TuningMode mode) const {
    ContextOptions tuned = options();
    tuned.cache = database_;
    tuned.kernel_store = kernels_;
    if (!tuned.environment->worker) tuned.environment->worker = KILN_PROGRAM;
    tuned.tuning = {mode, 120, 3};
    return tuned;
  }

  std::string database_ = testing::TempDir() + "kiln_options.db";
  std::string pack_ = testing::TempDir() + "kiln_options.pack";
  std::string kernels_ = testing::TempDir() + "kiln_options_kernels";
};

TEST_F(OptionsTest, WithinABudgetARequestIsTunedBeforeItIsServed) {
  const Request request = Request::parse(softmax);
  {
    Context context(tuning(TuningMode::within_budget));
    const Plan plan = context.plan(request);
    EXPECT_THAT(plan.source(), HasSubstr("on this device"));
    expect_matches_reference(request, plan);
  }
  ContextOptions later = options();
  later.cache = database_;
  EXPECT_THAT(Context(later).plan(request).source(), HasSubstr("on this device")) << "what was tuned is kept";
}

TEST_F(OptionsTest, WithinABudgetPrepareTunesAllRequestsInOneSession) {
  Context context(tuning(TuningMode::within_budget));
  const std::vector<Request> requests = {Request::parse(softmax), Request::parse("softmax_forward x=f32:3x41")};
  context.prepare(requests);
  for (const Request& request : requests) EXPECT_THAT(context.plan(request).source(), HasSubstr("on this device"));
  const auto database = cache::Database::open(database_, {.mode = cache::OpenMode::read_only});
  EXPECT_EQ(database.sessions().size(), 1U);
}

TEST_F(OptionsTest, ASpentBudgetLeavesTheEstimate) {
  ContextOptions spent = tuning(TuningMode::within_budget);
  spent.tuning.budget_seconds = 1e-9;
  Context context(spent);
  EXPECT_EQ(context.plan(Request::parse(softmax)).source(), "estimate");
}

TEST_F(OptionsTest, TuningStopsWhenItIsToldTo) {
  const Request request = Request::parse("conv_forward x=f32:2x16x20x20 w=f32:16x16x3x3");
  ContextOptions unbounded = tuning(TuningMode::within_budget);
  unbounded.tuning.budget_seconds = 1e6;
  unbounded.tuning.candidates = 100'000;
  std::atomic<int> asked = 0;
  unbounded.tuning.stop_wanted = [&] { return ++asked > 3; };  // of some thousand variants three may have been tried
  {
    Context context(unbounded);
    expect_matches_reference(request, context.plan(request));
    EXPECT_GT(asked, 3);
  }
  const auto database = cache::Database::open(database_, {.mode = cache::OpenMode::read_only});
  EXPECT_EQ(database.sessions().size(), 1U);
}

TEST_F(OptionsTest, ARequestThatHadItsSessionWaitsForNoOther) {
  const Request first = Request::parse("conv_forward x=f32:2x16x20x20 w=f32:16x16x3x3");
  ContextOptions unbounded = tuning(TuningMode::within_budget);
  unbounded.tuning.budget_seconds = 1e6;
  std::atomic<bool> waits = false;
  std::promise<void> begun, go_on;
  const std::shared_future<void> may_go_on = go_on.get_future().share();
  std::atomic<bool> has_begun = false;
  unbounded.tuning.stop_wanted = [&] {
    if (!waits) return true;
    if (!has_begun.exchange(true)) begun.set_value();
    may_go_on.wait();
    return true;
  };
  Context context(unbounded);
  ASSERT_EQ(context.plan(first).source(), "estimate") << "its session ended before anything had a time";
  waits = true;
  std::jthread other([&] { (void)context.plan(Request::parse(softmax)); });
  begun.get_future().wait();
  const auto prepared = std::async(std::launch::async, [&] { context.prepare({&first, 1}); });
  EXPECT_EQ(prepared.wait_for(std::chrono::seconds(30)), std::future_status::ready) << "it waits for the other session";
  go_on.set_value();
}

TEST_F(OptionsTest, WaitingForTheBackgroundStopsWhenItIsToldTo) {
  ContextOptions unbounded = tuning(TuningMode::in_background);
  unbounded.tuning.budget_seconds = 1e6;
  unbounded.tuning.candidates = 100'000;
  std::atomic<bool> stop = false;
  unbounded.tuning.stop_wanted = [&] { return stop.load(); };
  Context context(unbounded);
  (void)context.plan(Request::parse("conv_forward x=f32:2x16x20x20 w=f32:16x16x3x3"));
  stop = true;
  context.wait_until_tuned();
}

TEST_F(OptionsTest, InTheBackgroundTheBetterVariantTakesOverWhenItIsKnown) {
  const Request request = Request::parse(softmax);
  Context context(tuning(TuningMode::in_background));
  const Plan first = context.plan(request);
  EXPECT_EQ(first.source(), "estimate") << "nothing waits for the tuner";
  context.wait_until_tuned();
  const Plan second = context.plan(request);
  const auto tuned = context.explain(request).chosen;
  ASSERT_TRUE(tuned);
  EXPECT_THAT(tuned->source, HasSubstr("on this device"));
  EXPECT_EQ(second.variant(), name(*tuned));
  expect_matches_reference(request, first);
  expect_matches_reference(request, second);
}

// The session is at work, and nothing is queued behind it.
TEST_F(OptionsTest, WaitingEndsWithTheSessionThatIsAtWork) {
  const Request request = Request::parse(softmax);
  Context context(tuning(TuningMode::in_background));
  EXPECT_EQ(context.plan(request).source(), "estimate");
  const auto sessions = [&] {
    return cache::Database::open(database_, {.mode = cache::OpenMode::read_only}).sessions().size();
  };
  for (int i = 0; i < 3000 && sessions() == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  context.wait_until_tuned();
  EXPECT_THAT(context.plan(request).source(), HasSubstr("on this device"));
}

// The table of the operation calls is swapped too: a call that was made before and one that comes after agree.
TEST_F(OptionsTest, InTheBackgroundCallsGoOnAndStayRight) {
  const Request request = Request::parse(softmax);
  const auto memory = std::vector<std::byte>(4 * 37 * sizeof(float), std::byte{0});
  const Tensor x(upload(memory), f32, {4, 37}, nc), y(upload(memory), f32, {4, 37}, nc);
  Context context(tuning(TuningMode::in_background));
  softmax_forward(context, x, y);
  std::jthread caller([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) softmax_forward(context, x, y);
  });
  context.wait_until_tuned();
  caller.request_stop();
  caller.join();
  softmax_forward(context, x, y);
  for (const float value : download<float>(y.data(), 4 * 37)) ASSERT_NEAR(value, 1.0f / 37, 1e-7f);
}

// Its tuner's thread does not exist there.
TEST_F(OptionsTest, AChildProcessEndsAContextThatTunesAtOnce) {
  std::optional<Context> context(tuning(TuningMode::in_background)), other{options()};
  (void)context->plan(Request::parse(softmax));
  context->wait_until_tuned();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // ends it where it hangs
    {
      Context moved = *std::move(context);
      moved = *std::move(other);
    }
    ::_exit(0);
  }
  ASSERT_GT(child, 0);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(context->plan(Request::parse(softmax)).source(), HasSubstr("on this device"));
}

TEST_F(OptionsTest, AContextThatEndsWhileItTunesEndsSoonAndCleanly) {
  Context context(tuning(TuningMode::in_background));
  context.plan(Request::parse(deep));
  // The destructor ends the session after the trial at work.
}

TEST_F(OptionsTest, TuningThatCannotStartIsAnnouncedAndTheEstimateServes) {
  std::vector<std::string> announced;
  ContextOptions broken = tuning(TuningMode::within_budget);
  broken.environment->worker = "/bin/true";  // ends at once
  broken.announce = [&](std::string_view message) { announced.emplace_back(message); };
  Context context(broken);
  EXPECT_EQ(context.plan(Request::parse(softmax)).source(), "estimate");
  EXPECT_EQ(context.plan(Request::parse("softmax_forward x=f32:3x41")).source(), "estimate");
  ASSERT_EQ(announced.size(), 1U);
  EXPECT_THAT(announced[0], HasSubstr("tuning has stopped"));
}

TEST_F(OptionsTest, TuningOptionsThatMakeNoSenseAreRefused) {
  ContextOptions no_worker = tuning(TuningMode::in_background);
  no_worker.environment->worker = "/nonexistent/kiln";
  EXPECT_THROW(Context{no_worker}, Error);
  ContextOptions no_time = tuning(TuningMode::within_budget);
  no_time.tuning.budget_seconds = 0;
  EXPECT_THROW(Context{no_time}, Error);
  ContextOptions both = tuning(TuningMode::within_budget);
  both.locked = true;
  EXPECT_THROW(Context{both}, Error);
}

TEST_F(OptionsTest, LockedUsesWhatAPackNamesAndNothingElse) {
  const Request request = Request::parse(softmax), other = Request::parse("softmax_forward x=f32:3x41");
  const Explanation why = Context(options()).explain(request);
  ASSERT_GE(why.estimated.size(), 2U);
  {
    auto database = cache::Database::open(database_);
    database.put_device(entry());
    const std::vector<cache::Record> records = {record(request, why.estimated[0], 1e-9),
                                                record(other, Context(options()).explain(other).estimated[0], 1e-9)};
    database.insert(records);
  }
  cache::write_pack_file(pack_, cache::make_pack({entry()}, {record(request, why.estimated[1], 1e-5)}), "1");
  ContextOptions locked = options();
  locked.locked = true;
  locked.cache = database_;
  locked.packs = {pack_};
  Context context(locked);
  EXPECT_EQ(context.plan(request).variant(), name(why.estimated[1])) << "not what the database says is faster";
  EXPECT_THAT(context.plan(request).source(), HasSubstr(pack_));
  try {
    context.plan(other);
    ADD_FAILURE() << "it used what no pack names";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.what(), HasSubstr(other.key()));
    EXPECT_THAT(error.what(), HasSubstr("locked"));
  }
  EXPECT_FALSE(context.explain(other).chosen);
}

TEST_F(OptionsTest, LockedSaysThatThePackIsOfOtherAlgorithms) {
  const Request request = Request::parse(softmax);
  cache::Record stale = record(request, *Context(options()).explain(request).chosen, 1e-5);
  stale.algorithm_digest = "of-an-older-template";
  cache::write_pack_file(pack_, cache::make_pack({entry()}, {stale}), "1");
  ContextOptions locked = options();
  locked.locked = true;
  locked.packs = {pack_};
  Context context(locked);
  try {
    context.plan(request);
    ADD_FAILURE() << "it used a stale choice";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("1 variants in them are of algorithms that have changed"));
  }
}

// All candidates stay stored; the limit of the Context chooses among them.
TEST_F(OptionsTest, TheWorkspaceLimitChoosesAmongWhatIsStored) {
  const Request request = Request::parse(deep);
  const Catalogue catalogue = make_catalogue(embedded_sources());
  const Target target{Arch::of(9, 0), 13, 0};
  std::optional<ExplainedCandidate> with, without;
  for (const Candidate& candidate : catalogue.candidates(request, target, {132, 1.98e9, 4.8e12, 50 << 20}).ranked) {
    const bool needs = catalogue.program(request, target, candidate.choice).workspace_bytes > 0;
    auto& found = needs ? with : without;
    if (!found) found = {candidate.choice.algorithm, candidate.choice.config.print(), 0, ""};
  }
  ASSERT_TRUE(with && without);
  cache::Record lying = record(request, *with, 5e-7);
  lying.workspace_bytes = 0;  // a pack is text from outside
  cache::write_pack_file(
      pack_, cache::make_pack({entry()}, {record(request, *with, 1e-6), record(request, *without, 1e-5)}), "1");
  ContextOptions unlimited = options();
  unlimited.packs = {pack_};
  Context free(unlimited);
  EXPECT_EQ(free.plan(request).variant(), name(*with));
  ContextOptions limited = unlimited;
  limited.workspace_limit = free.plan(request).workspace_bytes() - 1;
  EXPECT_EQ(Context(limited).plan(request).variant(), name(*without));
  cache::write_pack_file(pack_, cache::make_pack({entry()}, {lying, record(request, *without, 1e-5)}), "1");
  EXPECT_EQ(Context(limited).plan(request).variant(), name(*without)) << "the program decides, not the pack";
}

// Nothing that Kiln generates is irreproducible today; a record may be, of an algorithm to come or by mistake.
TEST_F(OptionsTest, DeterministicLeavesOutWhatIsStoredAsIrreproducible) {
  const Request request = Request::parse(softmax);
  const Explanation why = Context(options()).explain(request);
  cache::Record fast = record(request, why.estimated[1], 1e-6);
  fast.deterministic = false;
  cache::write_pack_file(pack_, cache::make_pack({entry()}, {fast, record(request, why.estimated[0], 1e-5)}), "1");
  ContextOptions any = options();
  any.packs = {pack_};
  EXPECT_EQ(Context(any).plan(request).variant(), name(why.estimated[1]));
  ContextOptions reproducible = any;
  reproducible.deterministic = true;
  EXPECT_EQ(Context(reproducible).plan(request).variant(), name(why.estimated[0]));
}

}  // namespace
}  // namespace kiln::options_test
