#include "kiln/tuner/work_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fakes.h"
#include "kiln/base/error.h"

namespace kiln::tuner::work_list_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

std::vector<Work> work(const std::vector<double>& seconds) {
  std::vector<Work> made;
  for (const double each : seconds) made.push_back({{fakes::toy_request(static_cast<int>(made.size()) + 1), 1}, each});
  return made;
}

std::vector<size_t> indices(const std::vector<WorkList::Item>& items) {
  std::vector<size_t> found;
  for (const WorkList::Item& item : items) found.push_back(item.index);
  return found;
}

TEST(WorkList, HandsOutTheLongestFirstOneByOne) {
  WorkList list(work({1, 3, 2}), 2);
  EXPECT_THAT(indices(list.take()), ElementsAre(1));
  EXPECT_THAT(indices(list.take()), ElementsAre(2));
  EXPECT_EQ(list.waiting(), 1u);
  EXPECT_THAT(indices(list.take()), ElementsAre(0));
  EXPECT_THAT(list.take(), IsEmpty());
}

TEST(WorkList, HandsAllToTheOnlySessionThatIsLeft) {
  WorkList list(work({1, 3, 2}), 2);
  const std::vector<WorkList::Item> first = list.take();
  list.leave(first);
  EXPECT_THAT(indices(list.take()), ElementsAre(1, 2, 0)) << "what was left is in its place again";
}

TEST(WorkList, KeepsItsOrderWhoeverLeavesFirst) {
  WorkList list(work({1, 3, 2}), 3);
  const std::vector<WorkList::Item> longest = list.take(), next = list.take();
  list.leave(longest);
  list.leave(next);
  EXPECT_THAT(indices(list.take()), ElementsAre(1, 2, 0));
}

TEST(WorkList, NamesItsJobsInTheOrderGiven) {
  const std::vector<Work> given = work({1, 3, 2});
  const std::vector<Job> jobs = WorkList(given, 2).jobs();
  ASSERT_THAT(jobs, SizeIs(3));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(jobs[i].request, given[i].job.request);
}

TEST(WorkList, HandsOutWhatIsEquallyLongInTheOrderGiven) {
  WorkList list(work({1, 2, 1, 2, 1}), 1);
  EXPECT_THAT(indices(list.take()), ElementsAre(1, 3, 0, 2, 4));
}

TEST(WorkList, WaitsForWhatOthersMayLeave) {
  WorkList list(work({1}), 2);
  const std::vector<WorkList::Item> taken = list.take();
  EXPECT_TRUE(list.wait(0.001)) << "the other session may fail";
  list.deliver(taken.front(), {});
  EXPECT_FALSE(list.wait(60));
}

// One that waits hears of it at once, not when its time is over.
TEST(WorkList, WakesThoseThatWait) {
  for (const bool leaves : {true, false}) {
    WorkList list(work({1}), 2);
    const std::vector<WorkList::Item> taken = list.take();
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      leaves ? list.leave(taken) : list.deliver(taken.front(), {});
    });
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(list.wait(60), leaves) << "what was left is to be taken";
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
    other.join();
  }
}

TEST(WorkList, GivesResultsInTheOrderGivenAndSaysWhyThereIsNone) {
  std::vector<Work> given = work({1, 2});
  given[1].job.count = 3;
  WorkList list(given, 1);
  const std::vector<WorkList::Item> taken = list.take();
  ASSERT_THAT(indices(taken), ElementsAre(1, 0));
  JobResult result;
  result.request = taken[1].job.request;
  result.roofline_seconds = 7;
  list.deliver(taken[1], result);
  list.leave({taken[0]});
  const std::vector<JobResult> results = list.take_results("its device was lost");
  ASSERT_THAT(results, SizeIs(2));
  EXPECT_EQ(results[0].roofline_seconds, 7);
  EXPECT_EQ(results[1].status, JobStatus::failed);
  EXPECT_EQ(results[1].error, "its device was lost");
  EXPECT_EQ(results[1].count, 3);
  EXPECT_EQ(results[1].request, fakes::toy_request(2));
}

// Sessions in threads, each with a laboratory of its own.
class SharedWork : public testing::Test {
 protected:
  // How often each request's trials came out, by device; what a session threw is in `thrown`.
  void run(WorkList& list, std::vector<fakes::FakeLaboratory*> laboratories,
           double budget = std::numeric_limits<double>::infinity()) {
    std::vector<std::thread> threads;
    for (fakes::FakeLaboratory* laboratory : laboratories) {
      threads.emplace_back([&, laboratory] {
        SessionOptions options;
        options.clock = laboratory->clock();
        options.budget_seconds = budget;
        SessionCallbacks callbacks;
        callbacks.sink = [&](const Trial& trial) {
          const std::lock_guard lock(mutex);
          ++sunk[trial.request + " " + trial.choice.algorithm];
        };
        callbacks.progress = [&](const Progress& now) {
          const std::lock_guard lock(mutex);
          told.push_back(now);
        };
        callbacks.idle = [&](std::optional<double> remaining) {
          const std::lock_guard lock(mutex);
          idle.push_back(remaining);
        };
        Session session(catalogue, *laboratory, options, std::move(callbacks));
        try {
          session.run(list);
        } catch (const Error& error) {
          const std::lock_guard lock(mutex);
          thrown.push_back(error.message());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  Catalogue catalogue = fakes::toy_catalogue({fakes::toy("first", {1}, 1e-3), fakes::toy("second", {1}, 2e-3)});
  std::mutex mutex;
  std::map<std::string, int> sunk;
  std::vector<Progress> told;
  std::vector<std::optional<double>> idle;
  std::vector<std::string> thrown;
};

TEST_F(SharedWork, EveryJobIsTunedOnceByOneOfTheSessions) {
  fakes::FakeLaboratory one, other;
  one.on_check = other.on_check = [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  WorkList list(work(std::vector<double>(20, 1.0)), 2);
  run(list, {&one, &other});
  EXPECT_THAT(thrown, IsEmpty());
  EXPECT_THAT(sunk, SizeIs(40)) << "20 requests, two algorithms each";
  for (const auto& [trial, count] : sunk) EXPECT_EQ(count, 1) << trial;
  EXPECT_GE(one.count("begin"), 3u);
  EXPECT_GE(other.count("begin"), 3u);
  EXPECT_EQ(one.count("begin") + other.count("begin"), 20u) << "no job is on two devices";
  for (const JobResult& result : list.take_results()) EXPECT_EQ(result.status, JobStatus::finished);
}

TEST_F(SharedWork, WhatAFailedSessionLeavesIsTunedByTheOthers) {
  fakes::FakeLaboratory good, lost;
  good.on_check = [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
  int checks = 0;
  lost.on_check = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (++checks == 5) throw Error(ErrorCode::driver_error, "cuInit: no device");
  };
  WorkList list(work(std::vector<double>(10, 1.0)), 2);
  run(list, {&good, &lost});
  EXPECT_THAT(thrown, ElementsAre("cuInit: no device"));
  for (const JobResult& result : list.take_results("nobody was left")) {
    EXPECT_EQ(result.status, JobStatus::finished) << result.error;
  }
  EXPECT_THAT(sunk, SizeIs(20));
}

TEST_F(SharedWork, ProgressIsOfTheWholeListAndKnowsItFromTheStart) {
  fakes::FakeLaboratory one, other;
  one.on_check = other.on_check = [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
  std::vector<Work> twenty = work(std::vector<double>(20, 1.0));
  for (Work& each : twenty) each.planned = 2;
  WorkList list(twenty, 2);
  run(list, {&one, &other});
  ASSERT_THAT(told, Not(IsEmpty()));
  for (const Progress& now : told) EXPECT_EQ(now.all_planned, 40u) << "also what nobody has taken yet";
  EXPECT_EQ(list.counts().tried, 40u);
  const auto begun =
      std::find_if(told.begin(), told.end(), [](const Progress& now) { return now.all_candidates == 10; });
  ASSERT_NE(begun, told.end());
  ASSERT_TRUE(begun->remaining.has_value());
  EXPECT_NEAR(*begun->remaining, 3 * begun->elapsed, 1e-6) << "of the three quarters that are left to both";
}

TEST_F(SharedWork, ASessionThatHasNothingToDoSaysThatItIsThere) {
  fakes::FakeLaboratory busy, idler;
  busy.on_check = [] { std::this_thread::sleep_for(std::chrono::milliseconds(300)); };
  WorkList list(work({1.0}), 2);
  SessionOptions options;
  double now = 0;
  options.clock = [&] { return now += 0.6; };
  SessionCallbacks callbacks;
  callbacks.idle = [&](std::optional<double> remaining) { idle.push_back(remaining); };
  std::thread other([&] { run(list, {&busy}); });
  while (list.waiting() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  Session(catalogue, idler, options, std::move(callbacks)).run(list);
  other.join();
  EXPECT_THAT(idle, Not(IsEmpty()));
}

TEST_F(SharedWork, JobsFailOnlyIfEverySessionDid) {
  fakes::FakeLaboratory one, other;
  one.on_check = other.on_check = [] { throw Error(ErrorCode::driver_error, "gone"); };
  WorkList list(work({1, 2, 3}), 2);
  run(list, {&one, &other});
  EXPECT_THAT(thrown, ElementsAre("gone", "gone"));
  for (const JobResult& result : list.take_results("nobody was left")) {
    EXPECT_EQ(result.status, JobStatus::failed);
    EXPECT_EQ(result.error, "nobody was left");
  }
}

TEST_F(SharedWork, ABudgetGivesEveryJobItsDefaultBeforeAnyGetsMore) {
  fakes::FakeLaboratory one, other;
  one.check_cost = other.check_cost = 1;
  one.on_check = other.on_check = [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); };
  WorkList list(work(std::vector<double>(8, 1.0)), 2);
  run(list, {&one, &other}, 5.5);  // of eight defaults and eight more: five or six checks each
  const std::vector<JobResult> results = list.take_results();
  for (const JobResult& result : results) {
    EXPECT_EQ(result.status, JobStatus::out_of_time);
    EXPECT_TRUE(result.heuristic.has_value()) << result.request.key();
  }
}

}  // namespace
}  // namespace kiln::tuner::work_list_test
