// The whole way on the emulated device: real workers, NVRTC, kernels that are right, wrong, run away or out of bounds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "kiln/templates/catalogue.h"
#include "kiln/tuner/session.h"
#include "kiln/tuner/worker.h"
#include "time_limits.h"
#include "worker_pool.h"

namespace kiln::tuner::emulated_test {
namespace {

using testing::HasSubstr;

// Softmax of 4 rows of 100, one thread a row.
constexpr const char* softmax_start = R"(
extern "C" __global__ void k(const float* x, float* y) {
  x += threadIdx.x * 100;
  y += threadIdx.x * 100;
  x += blockIdx.x * 400;
  y += blockIdx.x * 400;
  float most = x[0], sum = 0;
  for (int i = 1; i < 100; ++i) most = fmaxf(most, x[i]);
  for (int i = 0; i < 100; ++i) sum += expf(x[i] - most);
  for (int i = 0; i < 100; ++i) y[i] = expf(x[i] - most) / sum;
)";

Program program(const std::string& rest) {
  Program made;
  made.sources = {softmax_start + rest + "}"};
  Launch launch;
  launch.entry = "k";
  launch.block = {4, 1, 1};
  launch.arguments = {OperandArgument{"x"}, OperandArgument{"y"}};
  made.steps = {launch};
  return made;
}

/// `run_limit`: seconds in a release build. Ordinary kernels have the time that WorkerPoolOptions gives by default.
WorkerPoolOptions options(double run_limit = WorkerPoolOptions().run_limit) {
  WorkerPoolOptions made;
  made.worker = KILN_REAL_WORKER;
  made.arguments = {};
  made.driver = "emulator";
  made.run_limit = run_limit;
  for (double* const limit : {&made.open_limit, &made.compile_limit, &made.run_limit, &made.begin_limit}) {
    *limit = testing_support::limit_in_this_build(*limit);
  }
  return made;
}

class EmulatedTest : public testing::Test {
 protected:
  explicit EmulatedTest(const WorkerPoolOptions& how = options()) : pool(how) {}

  CheckReport check(const std::string& rest) {
    const SpecimenId id = next_id++;
    pool.submit(id, {program(rest)});
    std::optional<CompileReport> compiled;
    while (!compiled) compiled = pool.collect(10);
    EXPECT_FALSE(compiled->failure) << compiled->failure->error;
    return pool.check(id);
  }
  std::vector<double> sample(int count) { return pool.sample(next_id - 1, count).seconds; }
  void SetUp() override {
    ASSERT_FALSE(pool.begin({Request::parse("softmax_forward x=f32:4x100:nc")}, std::nullopt).failure);
  }

  WorkerPool pool;
  SpecimenId next_id = 1;
};

TEST_F(EmulatedTest, PassesARightKernelAndModelsItsTime) {
  const CheckReport report = check("");
  ASSERT_FALSE(report.failure) << report.failure->error;
  EXPECT_THAT(report.verdict, HasSubstr("largest error"));
  const std::vector<double> seconds = sample(2);
  ASSERT_THAT(seconds, testing::SizeIs(2));
  EXPECT_GT(seconds[0], 0);
  EXPECT_EQ(seconds[1], seconds[0]) << "modelled time is deterministic";
  check("");
  EXPECT_THAT(sample(1), testing::ElementsAre(seconds[0]));
}

TEST_F(EmulatedTest, FailsAWrongKernel) {
  const CheckReport report = check("if (threadIdx.x == 2) y[17] += 0.001f;");
  ASSERT_TRUE(report.failure);
  EXPECT_EQ(report.failure->outcome, Outcome::wrong_result);
  EXPECT_THAT(report.failure->error, HasSubstr("(2,17)"));
}

TEST_F(EmulatedTest, CatchesAWriteBeyondAllMemoryAndGoesOn) {
  const CheckReport report = check("if (threadIdx.x == 3) y[100000000] = 1;");
  ASSERT_TRUE(report.failure);
  EXPECT_EQ(report.failure->outcome, Outcome::crashed);
  EXPECT_FALSE(check("").failure);
}

TEST_F(EmulatedTest, CatchesAReadJustBeyondAnOperand) {
  const CheckReport report = check("if (threadIdx.x == 3 && x[100] == 12345.0f) y[0] = 1;");
  ASSERT_TRUE(report.failure) << "the element after the last one was read";
  EXPECT_FALSE(check("").failure);
}

class RunawayKernel : public EmulatedTest {
 protected:
  RunawayKernel() : EmulatedTest(options(3)) {}
};

TEST_F(RunawayKernel, IsCaughtAndTheNextOneServed) {
  const CheckReport report = check("volatile float* v = y; while (v[0] != 12345.0f) {}");
  ASSERT_TRUE(report.failure);
  EXPECT_THAT(report.failure->outcome, testing::AnyOf(Outcome::timed_out, Outcome::crashed));
  EXPECT_FALSE(check("").failure);
}

TEST_F(EmulatedTest, SurvivesThatTheMeasuringProcessIsKilled) {
  std::thread killer([pid = pool.processes().front()] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ::kill(pid, SIGKILL);
  });
  const CheckReport report = check("volatile float* v = y; while (v[0] != 12345.0f) {}");
  killer.join();
  ASSERT_TRUE(report.failure);
  EXPECT_THAT(report.failure->error, HasSubstr("signal 9"));
  EXPECT_FALSE(check("").failure);
}

TEST(EmulatedSession, TunesARequestOfEachOperation) {
  const Catalogue catalogue = make_catalogue(embedded_sources());
  WorkerPool pool(options());
  std::vector<Trial> sunk;
  SessionOptions how;
  how.search.candidates = 4;
  Session session(catalogue, pool, how, {.sink = [&](const Trial& trial) { sunk.push_back(trial); }});
  const std::vector<JobResult> results =
      session.run({{Request::parse("conv_forward x=f32:1x3x9x9 w=f32:4x3x3x3 pad=1"), 2},
                   {Request::parse("pool_forward x=f16:1x5x7x7:nhwc window=3,3 stride=2 mode=max"), 1},
                   {Request::parse("softmax_forward x=bf16:3x37"), 1}});
  for (const JobResult& result : results) {
    EXPECT_EQ(result.status, JobStatus::finished) << result.error;
    ASSERT_TRUE(result.best) << result.request.key();
    EXPECT_TRUE(result.best->modelled);
    EXPECT_GT(result.best->seconds, 0);
    for (const Trial& trial : result.trials) {
      EXPECT_EQ(trial.outcome, Outcome::timed)
          << result.request.key() << "\n"
          << trial.choice.algorithm << " " << trial.choice.config.print() << ": " << trial.error;
    }
  }
  EXPECT_GE(sunk.size(), 3U);
}

// A device whose clock reads machine code.
class LargeRequest : public testing::Test {
 protected:
  LargeRequest() {
    ::setenv("KILN_EMULATOR_CLOCK", "machine", 1);
    pool.emplace(options());
  }
  ~LargeRequest() override { ::setenv("KILN_EMULATOR_CLOCK", "ptx", 1); }

  // The check of a variant that is this program for `subject` and its stand-in, if it has one.
  CheckReport check(const Subject& subject, const std::string& rest, const std::string& rest_of_stand_in) {
    Programs programs{rows_program(subject.request, rest)};
    if (subject.stand_in) programs.stand_in = rows_program(*subject.stand_in, rest_of_stand_in);
    const SpecimenId id = next_id++;
    pool->submit(id, programs);
    std::optional<CompileReport> compiled;
    while (!compiled) compiled = pool->collect(10);
    EXPECT_FALSE(compiled->failure) << compiled->failure->error;
    const CheckReport begun = pool->begin(subject, std::nullopt);
    EXPECT_FALSE(begun.failure) << begun.failure->error;
    return pool->check(id);
  }
  // Time of the variant that was checked last.
  double seconds() {
    const SampleReport sampled = pool->sample(next_id - 1, 1);
    EXPECT_FALSE(sampled.failure) << sampled.failure->error;
    return sampled.failure ? 0 : sampled.seconds.at(0);
  }

  // Four rows a block.
  static Program rows_program(const Request& request, const std::string& rest) {
    Program made = program(rest);
    std::get<Launch>(made.steps.front()).grid[0] = Count{request.batch() / 4, 0, 1};
    return made;
  }

  const Request large = Request::parse("softmax_forward x=f32:2000x100:nc");
  const Subject by_stand_in{large, Request::parse("softmax_forward x=f32:16x100:nc")};
  SpecimenId next_id = 1;
  std::optional<WorkerPool> pool;
};

TEST_F(LargeRequest, HasTheTimeOfAWholeRun) {
  const CheckReport report = check(by_stand_in, "", "");
  ASSERT_FALSE(report.failure) << report.failure->error;
  EXPECT_THAT(report.verdict, HasSubstr(", with x of 16x100"));
  const std::vector<double> by_itself = pool->sample(next_id - 1, 2).seconds;
  ASSERT_FALSE(check({large}, "", "").failure);
  const double whole = seconds();
  EXPECT_THAT(by_itself, testing::ElementsAre(whole, whole));
}

TEST_F(LargeRequest, IsNotRun) {
  const CheckReport report = check(by_stand_in, "y[17] += 1;", "");
  EXPECT_FALSE(report.failure) << "nobody sees what it would have made";
  EXPECT_GT(seconds(), 0);
}

TEST_F(LargeRequest, IsWrongWhereItsStandInIs) {
  const CheckReport report = check(by_stand_in, "", "if (blockIdx.x == 3) y[17] += 0.001f;");
  ASSERT_TRUE(report.failure);
  EXPECT_EQ(report.failure->outcome, Outcome::wrong_result);
  EXPECT_THAT(report.failure->error, HasSubstr("(12,17)"));
}

TEST_F(LargeRequest, IsRunWhereDataDecideHowLongItTakes) {
  const std::string loop = "for (int i = 0; i < (int)(x[0] * 100); ++i) y[0] = __sinf(y[0]);";
  const CheckReport report = check(by_stand_in, loop, "");
  ASSERT_FALSE(report.failure) << report.failure->error;
  const double with_loop = seconds();
  ASSERT_FALSE(check(by_stand_in, "", "").failure);
  EXPECT_GT(with_loop, seconds());
}

TEST_F(LargeRequest, IsTunedByItsStandIn) {
  const Catalogue catalogue = make_catalogue(embedded_sources());
  SessionOptions how;
  how.search.candidates = 4;
  Session session(catalogue, *pool, how, {});
  const std::vector<JobResult> results = session.run(
      {{Request::parse("conv_forward x=f16:256x64x28x28:nhwc w=f16:64x64x3x3 pad=1 epilogue=bias+relu"), 1}});
  ASSERT_TRUE(results[0].stand_in);
  EXPECT_EQ(results[0].stand_in->batch(), 8);
  size_t timed = 0;
  for (const Trial& trial : results[0].trials) {
    if (trial.outcome == Outcome::spills) continue;  // others took their places
    ++timed;
    EXPECT_EQ(trial.outcome, Outcome::timed) << trial.error;
    EXPECT_GT(trial.seconds, 4e-5) << "256 images take tensor cores so long, 8 images a tenth";
    EXPECT_EQ(trial.request, results[0].request.key());
  }
  EXPECT_EQ(timed, 4U);
}

TEST_F(LargeRequest, IsRunWhereTheClockReadsNoMachineCode) {
  ::setenv("KILN_EMULATOR_CLOCK", "ptx", 1);
  const WorkerPool by_ptx(options());
  EXPECT_FALSE(by_ptx.apparatus().times_without_running);
  EXPECT_TRUE(pool->apparatus().times_without_running);
  const Request huge = Request::parse("softmax_forward x=f32:100000x100:nc");
  EXPECT_FALSE(by_ptx.stand_in(huge));
  EXPECT_TRUE(pool->stand_in(huge));
}

}  // namespace
}  // namespace kiln::tuner::emulated_test
