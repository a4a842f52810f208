// The pool of workers with real processes that crash, hang and talk nonsense as told (scripted_worker.cpp).
#include "worker_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "kiln/base/error.h"

namespace kiln::tuner::worker_pool_test {
namespace {

using testing::HasSubstr;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Program program(const std::string& script) {
  Program made;
  made.sources = {script};
  return made;
}

bool is_running(pid_t pid) {
  return ::kill(pid, 0) == 0;
}

bool ends_within(pid_t pid, double seconds) {
  const double start = now();
  while (is_running(pid) && now() - start < seconds) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return !is_running(pid);
}

class WorkerPoolTest : public testing::Test {
 protected:
  static WorkerPoolOptions options() {
    WorkerPoolOptions made;
    made.worker = KILN_SCRIPTED_WORKER;
    made.arguments = {};
    made.compile_lanes = 2;
    made.compile_limit = 0.5;
    made.run_limit = 0.5;
    return made;
  }

  CompileReport compile(SpecimenId id, const std::string& script) {
    pool.submit(id, {program(script)});
    return collect_one();
  }
  CompileReport collect_one() {
    const double give_up = now() + 20;
    while (now() < give_up) {
      if (const auto report = pool.collect(1)) return *report;
    }
    ADD_FAILURE() << "no compile came back";
    return {};
  }
  CheckReport check_new(SpecimenId id, const std::string& script) {
    EXPECT_FALSE(compile(id, script).failure);
    return pool.check(id);
  }
  void begin() { EXPECT_FALSE(pool.begin({Request::parse("softmax_forward x=f32:1x10:nc")}, std::nullopt).failure); }

  WorkerPool pool{options()};
};

TEST_F(WorkerPoolTest, ReportsTheDeviceAndTheVersions) {
  EXPECT_EQ(pool.apparatus().device.name, "Scripted");
  EXPECT_EQ(pool.apparatus().nvrtc_version, "13.0");
  EXPECT_EQ(pool.apparatus().target.arch.major, 9);
  EXPECT_TRUE(pool.apparatus().deterministic_time);
}

TEST_F(WorkerPoolTest, CompilesChecksAndTimes) {
  const CompileReport report = compile(1, "good");
  EXPECT_EQ(report.id, 1U);
  EXPECT_FALSE(report.failure);
  EXPECT_EQ(report.resources.registers, 7);
  begin();
  EXPECT_FALSE(pool.check(1).failure);
  EXPECT_THAT(pool.sample(1, 3).seconds, testing::ElementsAre(0.25, 0.25, 0.25));
}

TEST_F(WorkerPoolTest, TellsWhatTheTrustedVariantGaveWhenARequestBegins) {
  const CheckReport report = pool.begin({Request::parse("softmax_forward x=f32:1x10:nc")}, std::nullopt);
  EXPECT_FALSE(report.failure);
  EXPECT_EQ(report.verdict, "begun");
}

TEST_F(WorkerPoolTest, KeepsBothLanesBusy) {
  compile(8, "good");  // compilers are started
  compile(9, "good");
  const double start = now();
  for (SpecimenId id = 1; id <= 4; ++id) pool.submit(id, {program("slow")});
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(collect_one().failure);
  EXPECT_LT(now() - start, 1.1) << "four compiles of 0.3 s on two lanes";
}

TEST_F(WorkerPoolTest, GoesOnCompilingWhileTheDeviceMeasures) {
  compile(1, "check-hang");
  begin();
  pool.submit(2, {program("slow")});
  pool.submit(3, {program("slow")});
  pool.submit(4, {program("good")});
  EXPECT_TRUE(pool.check(1).failure);  // takes half a second, in which all three are compiled
  for (int i = 0; i < 3; ++i) {
    const auto report = pool.collect(0);
    ASSERT_TRUE(report) << i;
    EXPECT_FALSE(report->failure);
  }
}

TEST_F(WorkerPoolTest, ReportsACompileError) {
  const CompileReport report = compile(1, "compile-error");
  ASSERT_TRUE(report.failure);
  EXPECT_EQ(report.failure->outcome, Outcome::compile_failed);
  EXPECT_EQ(report.failure->error, "no such type");
}

TEST_F(WorkerPoolTest, KillsACompilerThatHangsAndStartsAnother) {
  const CompileReport report = compile(1, "compile-hang");
  ASSERT_TRUE(report.failure);
  EXPECT_EQ(report.failure->outcome, Outcome::timed_out);
  EXPECT_THAT(report.failure->error, HasSubstr("0.5 s"));
  EXPECT_FALSE(compile(2, "good").failure);
}

TEST_F(WorkerPoolTest, ReportsHowACompilerDiedAndStartsAnother) {
  const CompileReport report = compile(1, "compile-crash");
  ASSERT_TRUE(report.failure);
  EXPECT_EQ(report.failure->outcome, Outcome::crashed);
  EXPECT_THAT(report.failure->error, HasSubstr("signal 11"));
  EXPECT_FALSE(compile(2, "good").failure);
}

TEST_F(WorkerPoolTest, TakesGarbageForACrash) {
  const CompileReport report = compile(1, "compile-garbage");
  ASSERT_TRUE(report.failure);
  EXPECT_EQ(report.failure->outcome, Outcome::crashed);
  EXPECT_THAT(report.failure->error, HasSubstr("Segmentation fault"));
  EXPECT_FALSE(compile(2, "good").failure);
}

TEST_F(WorkerPoolTest, ServesTheNextCallWithAFreshProcessAfterACrashAHangAndALostDevice) {
  begin();
  EXPECT_FALSE(check_new(1, "good").failure);
  const std::map<std::string, Outcome> scripts{
      {"check-crash", Outcome::crashed}, {"check-hang", Outcome::timed_out}, {"check-lost", Outcome::crashed}};
  SpecimenId id = 2;
  for (const auto& [script, outcome] : scripts) {
    const pid_t before = pool.processes().front();
    const CheckReport failed = check_new(id++, script);
    ASSERT_TRUE(failed.failure) << script;
    EXPECT_EQ(failed.failure->outcome, outcome) << script;
    EXPECT_TRUE(ends_within(before, 2)) << script;
    // Specimens loaded before are loaded again, and begin() repeated, without being asked.
    EXPECT_FALSE(pool.check(1).failure) << script;
    EXPECT_NE(pool.processes().front(), before) << script;
  }
}

TEST_F(WorkerPoolTest, ReplacesAWorkerThatExhaustsMemoryFloodsOrGoesDeaf) {
  begin();
  const std::vector<std::pair<std::string, Outcome>> scripts{
      {"check-killed", Outcome::out_of_memory}, {"check-flood", Outcome::crashed}, {"check-deaf", Outcome::crashed}};
  SpecimenId id = 1;
  for (const auto& [script, outcome] : scripts) {
    const pid_t before = pool.processes().front();
    const CheckReport failed = check_new(id++, script);
    ASSERT_TRUE(failed.failure) << script;
    EXPECT_EQ(failed.failure->outcome, outcome) << script << ": " << failed.failure->error;
    EXPECT_TRUE(ends_within(before, 3)) << script;
    EXPECT_FALSE(check_new(id++, "good").failure) << script;
  }
}

TEST_F(WorkerPoolTest, ReplacesAWorkerThatAllocatesUntilItDies) {
  begin();
  const CheckReport failed = check_new(1, "check-exhaust");
  ASSERT_TRUE(failed.failure);
  // How soon it dies depends on how busy the machine is: of its memory, or of its time limit.
  EXPECT_THAT(failed.failure->outcome, testing::AnyOf(Outcome::crashed, Outcome::timed_out)) << failed.failure->error;
  EXPECT_FALSE(check_new(2, "good").failure);
}

TEST_F(WorkerPoolTest, NeverTakesALateSecondAnswerForTheNextOne) {
  begin();
  EXPECT_FALSE(compile(1, "check-twice").failure);
  EXPECT_FALSE(compile(2, "check-wrong").failure);
  pool.check(1);
  if (!pool.check(2).failure) ADD_FAILURE() << "the second answer to the first check was taken";
  EXPECT_EQ(pool.check(2).failure->outcome, Outcome::wrong_result) << "in a fresh process";
}

// Whatever a worker answers, it is either a sensible answer or counts as its crash: never an exception, never a time.
TEST_F(WorkerPoolTest, TakesAnAnswerThatCannotBeOneForACrash) {
  begin();
  const std::vector<std::string> answers{R"({})",
                                         R"({"verdict": 7})",
                                         R"({"verdict": null})",
                                         R"({"verdict": ["fine"]})",
                                         R"({"failure": "crashed"})",
                                         R"({"failure": {"outcome": "timed", "error": ""}})",
                                         R"({"failure": {"outcome": "crashed"}})",
                                         R"({"failure": {"outcome": "wrong_result", "error": ""}, "verdict": 7})",
                                         R"({"error": 3})",
                                         R"({"error": "x", "hint": {}})",
                                         R"({"error": "x", "code": 99})",
                                         R"({"error": "x", "code": "io"})"};
  SpecimenId id = 1;
  for (const std::string& answer : answers) {
    const CheckReport report = check_new(id++, "check-says " + answer);
    ASSERT_TRUE(report.failure) << answer;
    EXPECT_EQ(report.failure->outcome, Outcome::crashed) << answer;
    EXPECT_THAT(report.failure->error, HasSubstr("garbage")) << answer;
  }
  for (const char* samples : {R"({})", R"({"samples": [1, 1, null]})", R"({"samples": [1, 1, [1]]})",
                              R"({"samples": 3})", R"({"samples": [0.1, 0.1]})", R"({"samples": [1, 1, -1]})",
                              R"({"samples": [1, 1, "1"]})", R"({"samples": [1, 1, 1, 1]})"}) {
    EXPECT_FALSE(check_new(id, std::string("sample-says ") + samples).failure);
    const SampleReport report = pool.sample(id++, 3);
    ASSERT_TRUE(report.failure) << samples;
    EXPECT_EQ(report.failure->outcome, Outcome::crashed) << samples;
  }
  for (const char* compiled : {R"({})", R"({"seconds": 1})", R"({"seconds": 1, "resources": []})",
                               R"({"seconds": 1, "resources": {"name": "k"}})"}) {
    const CompileReport report = compile(id++, std::string("compile-says ") + compiled);
    ASSERT_TRUE(report.failure) << compiled;
    EXPECT_EQ(report.failure->outcome, Outcome::crashed) << compiled;
  }
}

TEST_F(WorkerPoolTest, SaysSoWhenTheDeviceIsGoneForGood) {
  const std::string gone = testing::TempDir() + "kiln_device_gone_" + std::to_string(::getpid());
  WorkerPoolOptions with_device = options();
  with_device.arguments = {gone};
  WorkerPool fragile(with_device);
  fragile.submit(1, {program("check-gone")});
  while (!fragile.collect(1)) {
  }
  EXPECT_FALSE(fragile.begin({Request::parse("softmax_forward x=f32:1x10:nc")}, std::nullopt).failure);
  EXPECT_EQ(fragile.check(1).failure->outcome, Outcome::crashed) << "the variant may be to blame, so far";
  try {
    fragile.check(1);
    ADD_FAILURE() << "there is no device to check it on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::driver_error);
    EXPECT_THAT(error.what(), HasSubstr("no device"));
    EXPECT_EQ(error.hint(), "look at the cables");
  }
  std::filesystem::remove(gone);
}

TEST_F(WorkerPoolTest, BlamesNoVariantForADeviceThatCrashesWhenItIsOpenedAgain) {
  const std::string broken = testing::TempDir() + "kiln_device_broken_" + std::to_string(::getpid());
  for (const bool for_good : {false, true}) {
    std::filesystem::remove(broken);
    WorkerPoolOptions with_device = options();
    with_device.arguments = {broken};
    WorkerPool fragile(with_device);
    fragile.submit(1, {program(for_good ? "check-crash-open" : "check-crash-open-once")});
    fragile.submit(2, {program("good")});
    for (int compiled = 0; compiled < 2;) compiled += fragile.collect(1) ? 1 : 0;
    EXPECT_FALSE(fragile.begin({Request::parse("softmax_forward x=f32:1x10:nc")}, std::nullopt).failure);
    EXPECT_EQ(fragile.check(1).failure->outcome, Outcome::crashed);
    if (!for_good) {
      EXPECT_FALSE(fragile.check(2).failure) << "it opens the second time";
      continue;
    }
    try {
      fragile.check(2);
      ADD_FAILURE() << "there is no device to check it on";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::driver_error);
      EXPECT_THAT(error.what(), HasSubstr("the device cannot be opened any more: the worker process died"));
    }
  }
  std::filesystem::remove(broken);
}

TEST_F(WorkerPoolTest, RefusesToGoOnOnAnotherDevice) {
  const std::string swapped = testing::TempDir() + "kiln_device_swapped_" + std::to_string(::getpid());
  for (const auto& [source, other] : {std::pair("check-swapped", "Another"), std::pair("check-moved", "GPU-1")}) {
    std::filesystem::remove(swapped);
    WorkerPoolOptions with_device = options();
    with_device.arguments = {swapped};
    WorkerPool fragile(with_device);
    fragile.submit(1, {program(source)});
    while (!fragile.collect(1)) {
    }
    EXPECT_FALSE(fragile.begin({Request::parse("softmax_forward x=f32:1x10:nc")}, std::nullopt).failure);
    EXPECT_EQ(fragile.check(1).failure->outcome, Outcome::crashed);
    try {
      fragile.check(1);
      ADD_FAILURE() << "its time would be kept as another device's, or another session works on it";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::driver_error);
      EXPECT_THAT(error.what(), HasSubstr("changed from"));
      EXPECT_THAT(error.what(), HasSubstr(other));
    }
  }
  std::filesystem::remove(swapped);
}

TEST_F(WorkerPoolTest, EndsAStepThatItsWatcherWantsNoMore) {
  WorkerPoolOptions patient = options();
  patient.run_limit = 600;
  WorkerPool watched(patient);
  for (const SpecimenId id : {1, 2}) watched.submit(id, {program(id == 1 ? "check-hang" : "good")});
  for (int compiled = 0; compiled < 2;) compiled += watched.collect(1) ? 1 : 0;
  EXPECT_FALSE(watched.begin({Request::parse("softmax_forward x=f32:1x10:nc")}, std::nullopt).failure);
  const pid_t before = watched.processes().front();
  int asked = 0;
  watched.watch([&] { return ++asked < 2; });
  const CheckReport report = watched.check(1);
  ASSERT_TRUE(report.failure);
  EXPECT_EQ(report.failure->outcome, Outcome::timed_out);
  EXPECT_EQ(asked, 2);
  EXPECT_TRUE(ends_within(before, 2));
  watched.watch({});
  EXPECT_FALSE(watched.check(2).failure);
}

// A measuring process that ends at what comes before a sample: its operands, or loading the program.
TEST_F(WorkerPoolTest, ReportsWhyASampleCouldNotBegin) {
  begin();
  EXPECT_FALSE(compile(1, "load-crash").failure);
  EXPECT_FALSE(compile(2, "good").failure);
  for (const bool checks : {true, false}) {
    const auto failure = checks ? pool.check(1).failure : pool.sample(1, 3).failure;
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->outcome, Outcome::crashed) << failure->error;
    EXPECT_THAT(failure->error, HasSubstr("died"));
    EXPECT_THAT(pool.sample(2, 3).seconds, testing::SizeIs(3)) << "in a fresh process";
  }
}

TEST_F(WorkerPoolTest, WaitsNoLongerThanItIsAskedTo) {
  pool.submit(1, {program("compile-hang")});
  const double begun = now();
  EXPECT_FALSE(pool.collect(0.01));
  EXPECT_LT(now() - begun, 0.4) << "the compiler's limit is 0.5 s";
}

TEST_F(WorkerPoolTest, ForgivesACrashThatDoesNotRepeat) {
  const std::string file = testing::TempDir() + "kiln_crash_once_" + std::to_string(::getpid());
  begin();
  compile(1, "check-crash-once " + file);
  EXPECT_TRUE(pool.check(1).failure);
  EXPECT_FALSE(pool.check(1).failure);
  std::filesystem::remove(file);
}

TEST_F(WorkerPoolTest, KeepsItsProcessAfterAWrongResultAndWithoutMemory) {
  begin();
  const pid_t before = pool.processes().front();
  EXPECT_EQ(check_new(1, "check-wrong").failure->outcome, Outcome::wrong_result);
  EXPECT_EQ(check_new(2, "check-memory").failure->outcome, Outcome::out_of_memory);
  EXPECT_EQ(pool.processes().front(), before);
}

TEST_F(WorkerPoolTest, SurvivesThatItsIdleProcessesAreKilled) {
  begin();
  compile(1, "good");
  for (const pid_t pid : pool.processes()) {
    if (pid > 0) ::kill(pid, SIGKILL);
  }
  EXPECT_EQ(pool.check(1).failure->outcome, Outcome::out_of_memory) << "nobody here sent that signal";
  EXPECT_FALSE(pool.check(1).failure);
  EXPECT_EQ(compile(2, "good").failure->outcome, Outcome::out_of_memory);
  EXPECT_FALSE(compile(3, "good").failure);
}

TEST_F(WorkerPoolTest, ForgetsADiscardedProgramWhereverItIs) {
  for (SpecimenId id = 1; id <= 4; ++id) pool.submit(id, {program("slow")});
  for (SpecimenId id = 1; id <= 4; ++id) pool.discard(id);
  EXPECT_EQ(compile(5, "good").id, 5U);
  EXPECT_FALSE(pool.collect(0.1));
}

TEST_F(WorkerPoolTest, LeavesNoProcessBehind) {
  std::vector<pid_t> pids;
  {
    WorkerPool other(options());
    other.submit(1, {program("compile-hang")});
    other.submit(2, {program("good")});
    while (!other.collect(1)) {
    }
    pids = other.processes();
  }
  EXPECT_EQ(pids.size(), 3U);
  for (const pid_t pid : pids) EXPECT_FALSE(is_running(pid));
}

TEST(WorkerPools, RefuseAWorkerThatIsNone) {
  WorkerPoolOptions options;
  options.worker = "/bin/cat";  // answers, but with our own words
  options.arguments = {};
  EXPECT_THROW(WorkerPool{options}, Error);
  options.worker = "/bin/true";  // ends at once
  try {
    const WorkerPool pool(options);
    ADD_FAILURE() << "there is nobody to open the device";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::driver_error) << "no broken invariant of Kiln's own";
    EXPECT_THAT(error.what(), HasSubstr("the device cannot be opened: the worker process died: exit code 0"));
  }
  options.worker = "/nowhere/kiln";
  EXPECT_THROW(WorkerPool{options}, Error);
}

TEST(WorkerPools, SayThatTheCompilerCannotBeLoaded) {
  const std::string file = testing::TempDir() + "/compiler-" + std::to_string(::getpid());
  WorkerPoolOptions options;
  options.worker = KILN_SCRIPTED_WORKER;
  options.arguments = {file};
  const std::map<std::string, std::string> messages{
      {"Compiler crash", "the compiler cannot be loaded: the worker process died: "},
      {"Compiler missing", "there is no libnvrtc"}};
  for (const auto& [state, message] : messages) {
    std::ofstream(file) << state;
    try {
      const WorkerPool pool(options);
      ADD_FAILURE() << "there is nobody to compile";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::missing_library) << error.what();
      EXPECT_THAT(error.message(), testing::StartsWith(message));
      EXPECT_FALSE(error.hint().empty());
    }
  }
  std::filesystem::remove(file);
}

// An application that ignores SIGCHLD.
TEST(WorkerPools, SayThatTheyDoNotKnowHowAWorkerEnded) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  WorkerPoolOptions options;
  options.worker = "/bin/true";
  options.arguments = {};
  try {
    const WorkerPool pool(options);
    ADD_FAILURE() << "there is nobody to open the device";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the worker process died: how is not known"));
    EXPECT_THAT(error.what(), HasSubstr("ignores SIGCHLD"));
  }
  std::signal(SIGCHLD, before);
}

TEST(FindWorker, TakesTheNamedProgramOrSaysWhereItLooked) {
  EXPECT_EQ(find_worker(std::string("/bin/sh")), "/bin/sh");
  EXPECT_THROW(find_worker(std::string("/nowhere/kiln")), Error);
  EXPECT_THROW(find_worker(std::string("/tmp")), Error);
}

}  // namespace
}  // namespace kiln::tuner::worker_pool_test
