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
#include "worker_pool.h"

namespace kiln::tuner {
namespace {

using testing::HasSubstr;

// Softmax of 4 rows of 100, one thread a row.
constexpr const char* softmax_start = R"(
extern "C" __global__ void k(const float* x, float* y) {
  x += threadIdx.x * 100;
  y += threadIdx.x * 100;
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

WorkerPoolOptions options() {
  WorkerPoolOptions made;
  made.worker = KILN_REAL_WORKER;
  made.arguments = {};
  made.driver = "emulator";
  made.run_limit = 3;
  return made;
}

class EmulatedTest : public testing::Test {
 protected:
  CheckReport check(const std::string& rest) {
    const SpecimenId id = next_id++;
    pool.submit(id, program(rest));
    std::optional<CompileReport> compiled;
    while (!compiled) compiled = pool.collect(10);
    EXPECT_FALSE(compiled->failure) << compiled->failure->error;
    return pool.check(id);
  }
  void SetUp() override {
    ASSERT_FALSE(pool.begin(Request::parse("softmax_forward x=f32:4x100:nc"), std::nullopt).failure);
  }

  WorkerPool pool{options()};
  SpecimenId next_id = 1;
};

TEST_F(EmulatedTest, PassesARightKernelAndModelsItsTime) {
  const CheckReport report = check("");
  ASSERT_FALSE(report.failure) << report.failure->error;
  EXPECT_THAT(report.verdict, HasSubstr("largest error"));
  EXPECT_GT(report.seconds, 0);
  EXPECT_EQ(check("").seconds, report.seconds) << "modelled time is deterministic";
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

TEST_F(EmulatedTest, CatchesARunawayKernelAndGoesOn) {
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
    EXPECT_GT(result.best->median, 0);
    for (const Trial& trial : result.trials) {
      EXPECT_EQ(trial.outcome, Outcome::timed)
          << result.request.key() << "\n"
          << trial.choice.algorithm << " " << trial.choice.config.print() << ": " << trial.error;
    }
  }
  EXPECT_GE(sunk.size(), 3U);
}

}  // namespace
}  // namespace kiln::tuner
