#include "current_plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <mutex>
#include <new>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fake_driver.h"
#include "kiln/base/error.h"

namespace kiln::current_plans_test {
namespace {

using testing::HasSubstr;
using Reason = CurrentPlans::Reason;

constexpr auto nothing = [] {};

// Plans of an empty program. Variants are taken in turn: the first that is not known to fail.
class CurrentPlansTest : public testing::Test {
 private:
  device::FakeDriver fake_;  // first: plans need it to the end
  std::shared_ptr<const device::ContextHandle> context_ = fake_.context();

 protected:
  CurrentPlans::Shared make() {
    CurrentPlans::Shared plan = chosen();
    once(while_making);
    return plan;
  }

  CurrentPlans::Shared chosen() {
    const std::lock_guard lock(mutex_);
    for (const std::string& name : variants) {
      if (wrong_.contains(name)) continue;
      auto plan = std::make_shared<LoadedPlan>(request, Choice{name, {}}, "a test", "digest",
                                               execution::Executable(context_, {}, {"x", "y"}));
      plan->open = name.starts_with("open");
      return plan;
    }
    throw Error(failure, "nothing is left that may serve it");
  }

  std::optional<std::string> known_failure_of(const LoadedPlan& plan) {
    std::optional<std::string> known;
    {
      const std::lock_guard lock(mutex_);
      if (wrong_.contains(plan.choice.algorithm)) known = "it is wrong";
    }
    once(after_asking_for_failures);
    return known;
  }

  // As a tuner does that finds `name` wrong: first its record, then a look at the plan.
  void find_wrong(const std::string& name, Reason reason = Reason::may_be_wrong) {
    {
      const std::lock_guard lock(mutex_);
      wrong_.insert(name);
    }
    plans.look_again(request, reason);
  }

  std::string served() { return plans.get(request, nothing)->choice.algorithm; }

  static void once(std::function<void()>& hook) {
    if (!hook) return;
    const auto body = std::exchange(hook, nullptr);
    body();
  }

  const Request request = Request::parse("softmax_forward x=f32:4x37");
  std::vector<std::string> variants = {"first", "second", "third"};
  ErrorCode failure = ErrorCode::unsupported;
  std::function<void()> while_making, after_asking_for_failures;
  std::vector<std::string> announced;
  PlanTable table;
  CurrentPlans plans{table,
                     {.kept = {.plans = 100, .bytes = 1'000'000}, .grace = {}},
                     {[this](const KeyedRequest&) { return make(); }, [this](const KeyedRequest&) { return make(); },
                      [this](const LoadedPlan& plan) { return known_failure_of(plan); },
                      [this](const std::string& message) {
                        const std::lock_guard lock(mutex_);
                        announced.push_back(message);
                      }}};

 private:
  std::mutex mutex_;
  std::set<std::string> wrong_;
};

TEST_F(CurrentPlansTest, APlanIsMadeOnce) {
  int made = 0;
  const auto plan = plans.get(request, [&] { ++made; });
  EXPECT_EQ(plans.get(request, [&] { ++made; }), plan);
  EXPECT_EQ(plans.find(request.key()), plan);
  EXPECT_EQ(made, 1);
}

TEST_F(CurrentPlansTest, WhatIsFoundWrongWhileItIsMadeIsNotServed) {
  while_making = [&] { find_wrong("first"); };
  EXPECT_EQ(served(), "second");
  EXPECT_THAT(announced, testing::IsEmpty()) << "nobody had it";
}

// The narrowest place: get() has looked, and the plan is not to be seen yet.
TEST_F(CurrentPlansTest, WhatIsFoundWrongBetweenTheLookAndThePublicationIsNotServed) {
  after_asking_for_failures = [&] { find_wrong("first"); };
  EXPECT_EQ(served(), "second");
  EXPECT_EQ(served(), "second");
}

TEST_F(CurrentPlansTest, WhatIsFoundWrongWhileItReplacesAnotherIsReplacedAsWell) {
  EXPECT_EQ(served(), "first");
  variants = {"faster", "first"};
  while_making = [&] { find_wrong("faster"); };  // the finder sees the first one's plan, which is right
  plans.look_again(request, Reason::was_tuned);
  EXPECT_EQ(served(), "first");
}

TEST_F(CurrentPlansTest, OfTwoTunersTheOneWithLessKnowledgeReplacesNothing) {
  EXPECT_EQ(served(), "first");
  while_making = [&] { find_wrong("second"); };  // both look at the first one's plan; this one is through before
  find_wrong("first", Reason::was_tuned);
  EXPECT_EQ(served(), "third");
}

TEST_F(CurrentPlansTest, APlanThatAnotherTunerWithdrewMeanwhileIsNoErrorOfItsOwn) {
  variants = {"first", "second"};
  EXPECT_EQ(served(), "first");
  while_making = [&] {
    variants = {"first"};
    plans.look_again(request, Reason::may_be_wrong);  // nothing is left: withdraws the plan
    EXPECT_EQ(plans.find(request.key()), nullptr);
    variants = {"first", "second"};
  };
  find_wrong("first");
  ASSERT_EQ(announced.size(), 2u);
  EXPECT_THAT(announced[0], HasSubstr("was served by first"));
  EXPECT_THAT(announced[1], HasSubstr("nothing is left that may serve it"));
  EXPECT_EQ(served(), "second");
}

TEST_F(CurrentPlansTest, AWithdrawalLeavesAPlanThatIsBeingMadeInItsPlace) {
  EXPECT_EQ(served(), "first");
  bool is_new = false;
  while_making = [&] {
    find_wrong("second");  // the other tuner: replaces the plan by the third
    variants = {"first"};
    find_wrong("third");  // and withdraws that
    variants = {"fourth"};
    plans.get(request, [&] { is_new = true; });
    variants = {"first"};
    throw Error(ErrorCode::out_of_memory, "out of memory");
  };
  find_wrong("first");
  EXPECT_TRUE(is_new);
  ASSERT_NE(plans.find(request.key()), nullptr) << "the plan of somebody else was withdrawn";
  EXPECT_EQ(served(), "fourth");
}

TEST_F(CurrentPlansTest, ATunerNeverWaitsForAPlanThatIsBeingMade) {
  while_making = [&] {  // on the thread that makes it: to wait would never end
    plans.look_again(request, Reason::was_tuned);
    plans.look_again(request, Reason::may_be_wrong);
  };
  EXPECT_EQ(served(), "first");
}

TEST_F(CurrentPlansTest, AfterAFailureTheNextCallTriesAgain) {
  variants = {};
  EXPECT_THROW(plans.get(request, nothing), Error);
  variants = {"first"};
  EXPECT_EQ(served(), "first");
}

// Callers and tuners on threads of their own: whatever the order, nothing wrong is left at the end.
TEST_F(CurrentPlansTest, CallersAndTunersMayRaceAndNothingWrongIsLeft) {
  constexpr int rounds = 200, count = 12;
  for (int round = 0; round < rounds; ++round) {
    variants.clear();
    for (int i = 0; i < count; ++i) variants.push_back(std::to_string(round) + "." + std::to_string(i));
    {
      std::vector<std::jthread> threads;
      for (int caller = 0; caller < 2; ++caller) threads.emplace_back([&] { plans.get(request, nothing); });
      for (int tuner = 0; tuner < 2; ++tuner) {
        threads.emplace_back([&, tuner] {
          for (int i = tuner; i < count - 1; i += 2) find_wrong(variants[static_cast<size_t>(i)]);
        });
      }
    }
    ASSERT_EQ(served(), variants.back());
    variants.clear();
    find_wrong(served());  // withdrawn: the next round begins with nothing
    ASSERT_EQ(plans.find(request.key()), nullptr);
  }
}

// Holders ask without the lock while the plan is replaced again and again, found wrong, and withdrawn in the end.
TEST_F(CurrentPlansTest, WhoSeesThatAPlanIsSupersededGetsAnother) {
  constexpr int rounds = 50, count = 40;
  for (int round = 0; round < rounds; ++round) {
    variants.clear();
    for (int i = 0; i < count; ++i) variants.push_back(std::to_string(round) + "." + std::to_string(i));
    {
      std::vector<std::jthread> threads;
      for (int holder = 0; holder < 3; ++holder) {
        threads.emplace_back([&] {
          for (CurrentPlans::Shared held = plans.get(request, nothing); held->choice.algorithm != variants.back();) {
            const bool was_superseded = held->superseded.load(std::memory_order_acquire);
            const CurrentPlans::Shared now = plans.get(request, nothing);
            EXPECT_TRUE(!was_superseded || now != held);
            EXPECT_TRUE(now == held || held->superseded.load(std::memory_order_acquire));
            held = now;
          }
        });
      }
      threads.emplace_back([&] {
        for (size_t i = 0; i + 1 < variants.size(); ++i) find_wrong(variants[i], Reason::was_tuned);
      });
    }
    const CurrentPlans::Shared last = plans.get(request, nothing);
    EXPECT_FALSE(last->superseded.load());
    variants.clear();
    find_wrong(served());
    EXPECT_TRUE(last->superseded.load()) << "withdrawn";
  }
}

TEST_F(CurrentPlansTest, AnOpenKernelIsFinalOnceNothingElseCanBeMade) {
  variants = {"open"};
  const CurrentPlans::Shared plan = plans.get(request, nothing);
  EXPECT_TRUE(plan->stands_in());
  variants = {};
  for (const ErrorCode passing : {ErrorCode::out_of_memory, ErrorCode::io_error, ErrorCode::driver_error}) {
    failure = passing;
    plans.look_again(request, Reason::is_open);
    EXPECT_TRUE(plan->stands_in()) << "it may be possible later";
  }
  failure = ErrorCode::compile_failed;
  plans.look_again(request, Reason::is_open);
  EXPECT_FALSE(plan->stands_in());
  variants = {"tuned"};
  plans.look_again(request, Reason::was_tuned);
  EXPECT_EQ(served(), "tuned") << "tuning replaces it all the same";
  EXPECT_FALSE(plans.get(request, nothing)->stands_in());
}

TEST_F(CurrentPlansTest, WhatOthersFindReplacesAnOpenKernelAndNoOther) {
  variants = {"open"};
  const CurrentPlans::Shared plan = plans.get(request, nothing);
  plan->is_final = true;
  variants = {"found"};
  plans.look_again(request, Reason::may_be_wrong);
  EXPECT_EQ(served(), "found");
  variants = {"better"};
  plans.look_again(request, Reason::may_be_wrong);
  EXPECT_EQ(served(), "found");
}

TEST_F(CurrentPlansTest, AnOpenKernelThatIsMadeAgainIsFinal) {
  variants = {"open"};
  const CurrentPlans::Shared plan = plans.get(request, nothing);
  plans.look_again(request, Reason::is_open);
  EXPECT_FALSE(plan->stands_in());
  EXPECT_EQ(plans.get(request, nothing), plan);
}

// Captured calls ask whether the plan stands in, without the lock, and look again where it does, beside the background
// that looks again, another Context's tuner that replaces, and findings that withdraw.
TEST_F(CurrentPlansTest, CapturedCallsGetWhatStandsInForNothing) {
  constexpr int rounds = 100;
  for (int round = 0; round < rounds; ++round) {
    const std::string suffix = "." + std::to_string(round);
    variants = {"open" + suffix};
    (void)plans.get(request, nothing);
    variants = round % 3 == 0 ? std::vector{"open" + suffix} : std::vector{"own" + suffix, "tuned" + suffix};
    {
      std::vector<std::jthread> threads;
      for (int capture = 0; capture < 3; ++capture) {
        threads.emplace_back([&] {
          CurrentPlans::Shared plan = plans.find(request.key());
          if (plan && plan->stands_in()) {
            plans.look_again(request, Reason::is_open);
            plan = plans.find(request.key());
          }
          ASSERT_NE(plan, nullptr);
          EXPECT_FALSE(plan->stands_in());
          EXPECT_EQ(plan->open, round % 3 == 0);
        });
      }
      threads.emplace_back([&] { plans.look_again(request, Reason::is_open); });
      if (round % 3 == 1) threads.emplace_back([&] { find_wrong("own" + suffix); });
      if (round % 3 == 2) threads.emplace_back([&] { plans.look_again(request, Reason::was_tuned); });
    }
    variants.clear();
    find_wrong(served());  // withdrawn: the next round begins with nothing
    ASSERT_EQ(plans.find(request.key()), nullptr);
  }
}

TEST_F(CurrentPlansTest, EveryLastingFailureMakesAnOpenKernelFinalAndNoOtherDoes) {
  for (const ErrorCode lasting : {ErrorCode::compile_failed, ErrorCode::unsupported, ErrorCode::missing_library}) {
    variants = {"open " + std::to_string(static_cast<int>(lasting))};
    const CurrentPlans::Shared plan = plans.get(request, nothing);
    while_making = [] { throw std::bad_alloc(); };
    plans.look_again(request, Reason::is_open);
    EXPECT_TRUE(plan->stands_in()) << "host memory ran out";
    variants = {};
    failure = lasting;
    plans.look_again(request, Reason::is_open);
    EXPECT_FALSE(plan->stands_in());
    find_wrong(plan->choice.algorithm);  // withdrawn: the next round begins with nothing
  }
}

TEST_F(CurrentPlansTest, AFailureIsToldOnce) {
  EXPECT_EQ(served(), "first");
  after_asking_for_failures = [&] { after_asking_for_failures = [] { throw std::bad_alloc(); }; };
  find_wrong("first");
  EXPECT_EQ(announced.size(), 2U);
  EXPECT_EQ(served(), "second");
}

}  // namespace
}  // namespace kiln::current_plans_test
