// Plans that CurrentPlans gives up, and when they are freed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "current_plans.h"
#include "epochs.h"
#include "fake_driver.h"

namespace kiln::plan_limits_test {
namespace {

constexpr auto nothing = [] {};

Request layer(int64_t length) {
  return Request::parse("softmax_forward x=f32:4x" + std::to_string(length));
}

// A program whose one image has `bytes` bytes.
execution::CompiledProgram program_of(size_t bytes) {
  execution::CompiledProgram compiled;
  if (bytes == 0) return compiled;
  compiled.program.sources.emplace_back();
  compiled.images.push_back({.ptx = std::string(bytes, 'p'), .cubin = {}, .resources = {}});
  return compiled;
}

CallKey key_of(int64_t length) {
  CallKey key;
  key.add(length);
  return key;
}

class PlanLimitsTest : public testing::Test {
 protected:
  explicit PlanLimitsTest(PlanLimits limits = {{4, 1'000'000}, {}})
      : context_(with_modules(fake_)),
        plans(table, limits,
              {[this](const KeyedRequest& request) { return make(request); },
               [this](const KeyedRequest& request) { return make(request); },
               [](const LoadedPlan&) { return std::nullopt; }, [](const std::string&) {}}) {}

  CurrentPlans::Shared make(const KeyedRequest& request) {
    ++made;
    return std::make_shared<const LoadedPlan>(request, Choice{algorithm, {}}, "a test", "digest",
                                              execution::Executable(context_, program_of(image_bytes), {"x", "y"}));
  }

  std::weak_ptr<const LoadedPlan> use(int64_t length) { return plans.get(layer(length), nothing); }
  bool is_there(int64_t length) { return plans.find(layer(length).key()) != nullptr; }
  std::vector<int64_t> there(int64_t last) {
    std::vector<int64_t> lengths;
    for (int64_t length = 1; length <= last; ++length) {
      if (is_there(length)) lengths.push_back(length);
    }
    return lengths;
  }

  static inline bool is_capturing = false;  // entry points have no other way to the test
  static void capture(const LoadedPlan& plan) {
    is_capturing = true;
    plan.executable.run(nullptr, std::vector<cuda_abi::CUdeviceptr>{0, 0}, {}, 1, 0);
    is_capturing = false;
  }

 private:
  static std::shared_ptr<const device::ContextHandle> with_modules(device::FakeDriver& fake) {
    fake.table.cuModuleLoadDataEx = [](cuda_abi::CUmodule* module, const void*, unsigned, cuda_abi::CUjit_option*,
                                       void**) {
      *module = reinterpret_cast<cuda_abi::CUmodule>(4096);
      return cuda_abi::CUDA_SUCCESS;
    };
    fake.table.cuStreamIsCapturing = [](cuda_abi::CUstream, cuda_abi::CUstreamCaptureStatus* status) {
      *status = is_capturing ? cuda_abi::CU_STREAM_CAPTURE_STATUS_ACTIVE : cuda_abi::CU_STREAM_CAPTURE_STATUS_NONE;
      return cuda_abi::CUDA_SUCCESS;
    };
    fake.table.cuModuleUnload = [](cuda_abi::CUmodule) { return device::note("unload"); };
    return fake.context();
  }

  device::FakeDriver fake_;  // first: plans need it to the end

 protected:
  std::shared_ptr<const device::ContextHandle> context_;
  std::atomic<int> made = 0;
  size_t image_bytes = 100;
  std::string algorithm = "first";
  PlanTable table;
  CurrentPlans plans;
};

TEST_F(PlanLimitsTest, TheLeastRecentlyUsedIsGivenUpAndFreed) {
  for (int64_t length = 1; length <= 4; ++length) use(length);
  use(1);
  const std::weak_ptr<const LoadedPlan> second = use(2);
  use(5);
  EXPECT_THAT(there(5), testing::ElementsAre(1, 2, 4, 5));
  EXPECT_FALSE(second.expired());
  use(6);
  use(7);
  use(8);
  EXPECT_TRUE(second.expired());
  EXPECT_THAT(there(8), testing::ElementsAre(5, 6, 7, 8));
  const PlanCount count = plans.count();
  EXPECT_EQ(count.plans, 4);
  EXPECT_EQ(count.bytes, 400);
  EXPECT_EQ(count.held, 0);
  EXPECT_EQ(count.given_up, 4);
  EXPECT_EQ(made, 8);
  use(2);
  EXPECT_EQ(made, 9) << "it is made anew";
}

TEST_F(PlanLimitsTest, ACallAfterTheLastPlanWasMadeIsALaterUseThanItsMaking) {
  for (int64_t length = 1; length <= 4; ++length) use(length);
  for (int64_t length = 1; length <= 3; ++length) use(length);
  use(5);
  EXPECT_THAT(there(5), testing::ElementsAre(1, 2, 3, 5));
}

TEST_F(PlanLimitsTest, WhatWasHeldUntilNowWasUsedUntilNow) {
  CurrentPlans::Shared held = plans.get(layer(1), nothing);
  for (int64_t length = 2; length <= 6; ++length) use(length);
  held.reset();
  use(7);
  EXPECT_TRUE(is_there(1));
}

TEST_F(PlanLimitsTest, ACallOfAPlanInTheTableIsAUse) {
  for (int64_t length = 1; length <= 4; ++length) {
    table.insert(key_of(length), key_of(length).hash(), use(length).lock().get());
  }
  use(5);  // gives up the first: all were made at different times
  EXPECT_FALSE(is_there(1));
  {
    const epochs::Reading reading;
    plans.note_use(*table.find(key_of(2), key_of(2).hash()));
  }
  use(6);
  EXPECT_THAT(there(6), testing::ElementsAre(2, 4, 5, 6));
  const epochs::Reading reading;
  EXPECT_EQ(table.find(key_of(1), key_of(1).hash()), nullptr);
  EXPECT_EQ(table.find(key_of(3), key_of(3).hash()), nullptr);
  EXPECT_NE(table.find(key_of(2), key_of(2).hash()), nullptr);
}

TEST_F(PlanLimitsTest, WhatSomebodyHoldsStaysAndLeavesRoomForOthers) {
  std::vector<CurrentPlans::Shared> held;
  for (int64_t length = 1; length <= 6; ++length) held.push_back(plans.get(layer(length), nothing));
  for (int64_t length = 7; length <= 12; ++length) use(length);
  EXPECT_THAT(there(12), testing::ElementsAre(1, 2, 3, 4, 5, 6, 9, 10, 11, 12));
  EXPECT_EQ(plans.count().held, 6);
  held.clear();
  use(13);
  EXPECT_THAT(there(13), testing::AllOf(testing::SizeIs(4), testing::Contains(13)));
}

TEST_F(PlanLimitsTest, WhatAThreadReadsIsFreedWhenItHasEnded) {
  const std::weak_ptr<const LoadedPlan> first = use(1);
  table.insert(key_of(1), key_of(1).hash(), first.lock().get());
  {
    const epochs::Reading reading;
    const LoadedPlan* const found = table.find(key_of(1), key_of(1).hash());
    for (int64_t length = 2; length <= 9; ++length) use(length);
    EXPECT_EQ(table.find(key_of(1), key_of(1).hash()), nullptr);
    ASSERT_FALSE(first.expired());
    EXPECT_EQ(found->key, layer(1).key());
    EXPECT_EQ(plans.count().held, 5) << "given up, and not free yet";
  }
  use(10);
  EXPECT_TRUE(first.expired());
}

// A thread has got its plan, and is about to enter it into the table, when it is given up.
TEST_F(PlanLimitsTest, APlanThatWasGivenUpIsNotEnteredIntoTheTable) {
  const epochs::Reading reading;
  const std::weak_ptr<const LoadedPlan> first = use(1);
  const LoadedPlan* const raw = first.lock().get();
  for (int64_t length = 2; length <= 9; ++length) use(length);
  table.insert(key_of(1), key_of(1).hash(), raw);
  EXPECT_EQ(table.find(key_of(1), key_of(1).hash()), nullptr);
}

TEST_F(PlanLimitsTest, AReplacedPlanIsFreedAndItsReplacementCounts) {
  const std::weak_ptr<const LoadedPlan> first = use(1);
  algorithm = "second";
  image_bytes = 30;
  plans.look_again(layer(1), CurrentPlans::Reason::was_tuned);
  EXPECT_TRUE(first.expired());
  EXPECT_EQ(plans.count().bytes, 30);
  use(2);
  EXPECT_EQ(plans.count().plans, 2);
  EXPECT_EQ(plans.count().bytes, 60);
  EXPECT_EQ(plans.count().given_up, 0);
}

class PlanBytesTest : public PlanLimitsTest {
 protected:
  PlanBytesTest() : PlanLimitsTest({{1000, 1000}, {}}) {}
};

TEST_F(PlanBytesTest, BytesOfCodeAreLimitedAsWell) {
  image_bytes = 300;
  for (int64_t length = 1; length <= 4; ++length) use(length);
  EXPECT_THAT(there(4), testing::ElementsAre(2, 3, 4));
  image_bytes = 5000;
  use(5);
  EXPECT_THAT(there(5), testing::ElementsAre(5)) << "it serves its caller, however large it is";
  image_bytes = 10;
  use(6);
  EXPECT_THAT(there(6), testing::ElementsAre(6));
}

TEST_F(PlanLimitsTest, APlanThatIsHeldAfterItWasReplacedKeepsItsReplacement) {
  const CurrentPlans::Shared held = plans.get(layer(1), nothing);
  algorithm = "second";
  plans.look_again(layer(1), CurrentPlans::Reason::was_tuned);
  use(2);  // looks for what is free
  table.insert(key_of(1), key_of(1).hash(), held.get());
  const epochs::Reading reading;
  ASSERT_NE(table.find(key_of(1), key_of(1).hash()), nullptr);
  EXPECT_EQ(table.find(key_of(1), key_of(1).hash())->choice.algorithm, "second");
}

// Who holds a plan may ask for its replacement: where that went with the others, open kernels would serve for ever.
TEST_F(PlanLimitsTest, TheReplacementOfAPlanThatIsHeldStays) {
  CurrentPlans::Shared held = plans.get(layer(1), nothing);
  algorithm = "second";
  plans.look_again(layer(1), CurrentPlans::Reason::was_tuned);
  const int made_by_now = made;
  for (int64_t length = 2; length <= 9; ++length) use(length);
  EXPECT_TRUE(is_there(1));
  EXPECT_EQ(plans.get(layer(1), nothing)->choice.algorithm, "second");
  EXPECT_EQ(made, made_by_now + 8);
  held.reset();
  for (int64_t length = 2; length <= 9; ++length) use(length);
  EXPECT_FALSE(is_there(1));
}

TEST_F(PlanLimitsTest, OfSeveralReplacementsTheLatestAloneStays) {
  const CurrentPlans::Shared held = plans.get(layer(1), nothing);
  algorithm = "second";
  plans.look_again(layer(1), CurrentPlans::Reason::was_tuned);
  const std::weak_ptr<const LoadedPlan> between = plans.get(layer(1), nothing);
  algorithm = "third";
  plans.look_again(layer(1), CurrentPlans::Reason::was_tuned);
  EXPECT_TRUE(between.expired());
  for (int64_t length = 2; length <= 9; ++length) use(length);
  EXPECT_EQ(plans.get(layer(1), nothing)->choice.algorithm, "third");
}

TEST_F(PlanLimitsTest, ACapturedPlanDoesNotKeepItsReplacement) {
  CurrentPlans::Shared held = plans.get(layer(1), nothing);
  capture(*held);
  algorithm = "second";
  plans.look_again(layer(1), CurrentPlans::Reason::was_tuned);
  const std::weak_ptr<const LoadedPlan> first = held, second = plans.get(layer(1), nothing);
  held.reset();
  for (int64_t length = 2; length <= 9; ++length) use(length);
  EXPECT_FALSE(first.expired());
  EXPECT_TRUE(second.expired());
}

TEST_F(PlanLimitsTest, APlanThatOutlivesItsContextDoesNotKeepItsReplacement) {
  auto others = std::make_unique<CurrentPlans>(
      table, PlanLimits{{4, 1'000'000}, {}},
      CurrentPlans::Tools{[this](const KeyedRequest& request) { return make(request); },
                          [this](const KeyedRequest& request) { return make(request); },
                          [](const LoadedPlan&) { return std::nullopt; }, [](const std::string&) {}});
  const CurrentPlans::Shared held = others->get(layer(1), nothing);
  algorithm = "second";
  others->look_again(layer(1), CurrentPlans::Reason::was_tuned);
  const std::weak_ptr<const LoadedPlan> second = others->get(layer(1), nothing);
  others.reset();
  EXPECT_TRUE(second.expired());
  EXPECT_EQ(held->choice.algorithm, "first");
}

TEST_F(PlanLimitsTest, APlanThatIsCapturedAfterItWasGivenUpStays) {
  const std::weak_ptr<const LoadedPlan> first = use(1);
  table.insert(key_of(1), key_of(1).hash(), first.lock().get());
  {
    const epochs::Reading reading;
    const LoadedPlan* const found = table.find(key_of(1), key_of(1).hash());
    for (int64_t length = 2; length <= 6; ++length) use(length);
    EXPECT_FALSE(is_there(1));
    capture(*found);
  }
  use(7);
  EXPECT_FALSE(first.expired());
}

TEST_F(PlanBytesTest, BytesAreLookedAtHoweverManyPlansMayBeKept) {
  image_bytes = 900;
  const CurrentPlans::Shared held = plans.get(layer(1), nothing);
  image_bytes = 200;
  use(2);
  image_bytes = 300;
  for (int64_t length = 3; length <= 9; ++length) use(length);
  EXPECT_LE(plans.count().bytes, 900 + 1000 + 300);
}

class PlanGraceTest : public PlanLimitsTest {
 protected:
  PlanGraceTest() : PlanLimitsTest({{4, 1'000'000}, std::chrono::hours(1)}) {}
};

// The time counts from when nobody has it any more, not from when it was replaced.
class ShortGraceTest : public PlanLimitsTest {
 protected:
  ShortGraceTest() : PlanLimitsTest({{4, 1'000'000}, std::chrono::milliseconds(150)}) {}
};

TEST_F(ShortGraceTest, WhatWasHeldStaysLoadedForAWhileAfterwards) {
  CurrentPlans::Shared held = plans.get(layer(1), nothing);
  const std::weak_ptr<const LoadedPlan> first = held;
  algorithm = "second";
  plans.look_again(layer(1), CurrentPlans::Reason::was_tuned);
  use(2);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  held.reset();
  use(3);
  EXPECT_FALSE(first.expired()) << "its kernels may be queued";
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  use(4);
  EXPECT_TRUE(first.expired());
}

TEST_F(PlanGraceTest, WhatWasGivenUpStaysLoadedForAWhile) {
  const std::weak_ptr<const LoadedPlan> first = use(1);
  for (int64_t length = 2; length <= 9; ++length) use(length);
  EXPECT_FALSE(is_there(1));
  EXPECT_FALSE(first.expired());
  EXPECT_EQ(plans.count().plans, 9);
  EXPECT_EQ(plans.count().held, 5);
}

// Eight threads call layers of twelve sizes while there is room for four. What a thread finds must be its own size's,
// and alive: the sanitizers say if it is not.
TEST_F(PlanLimitsTest, EveryThreadGetsItsOwnPlansWhileOthersAreGivenUp) {
  constexpr int threads = 8, calls = 2000, sizes = 12;
  image_bytes = 0;  // the fake driver loads on one thread only
  std::vector<Request> layers;
  for (int64_t length = 0; length < sizes; ++length) layers.push_back(layer(length + 1));
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> running;
    for (unsigned t = 0; t < threads; ++t) {
      running.emplace_back([&, random = std::mt19937(t)]() mutable {
        for (int call = 0; call < calls; ++call) {
          const size_t i = random() % sizes;
          const CallKey key = key_of(static_cast<int64_t>(i));
          const epochs::Reading reading;
          const LoadedPlan* plan = table.find(key, key.hash());
          if (plan == nullptr) {
            const CurrentPlans::Shared got = plans.get(layers[i], nothing);
            table.insert(key, key.hash(), got.get());
            plan = got.get();
          }
          plans.note_use(*plan);
          std::this_thread::yield();
          if (plan->key != layers[i].key()) ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  use(100);
  EXPECT_LE(plans.count().plans, 5);
  EXPECT_GT(plans.count().given_up, 0);
}

// Holders have their plans replaced while other threads make so many that all but the held ones are given up: who then
// asks for the plan of the request gets the replacement, not one that is made as for a first call.
TEST_F(PlanLimitsTest, HoldersGetTheReplacementHoweverManyPlansAreMadeMeanwhile) {
  constexpr int64_t holders = 4, rounds = 300, others = 1'000'000;
  image_bytes = 0;  // the fake driver loads on one thread only
  const auto make_by = [this](const std::string& name) {
    return [this, name](const KeyedRequest& request) {
      return std::make_shared<const LoadedPlan>(request, Choice{name, {}}, "a test", "digest",
                                                execution::Executable(context_, program_of(0), {"x", "y"}));
    };
  };
  CurrentPlans raced(
      table, {{4, 1'000'000}, {}},
      {make_by("first"), make_by("own"), [](const LoadedPlan&) { return std::nullopt; }, [](const std::string&) {}});
  std::atomic<int64_t> at_work = holders;
  std::array<std::atomic<int64_t>, holders> lengths{};  // of the layer that each holds
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> running;
    for (int64_t h = 0; h < holders; ++h) {
      running.emplace_back([&, h] {
        for (int64_t round = 0; round < rounds; ++round) {
          const int64_t length = 1 + round * holders + h;
          const CurrentPlans::Shared held = raced.get(layer(length), nothing);
          lengths[static_cast<size_t>(h)] = length;
          while (!held->superseded.load(std::memory_order_acquire)) std::this_thread::yield();
          for (int64_t i = 0; i < 8; ++i) raced.get(layer(others * (h + 1) + round * 8 + i), nothing);
          if (raced.get(layer(length), nothing)->choice.algorithm != "own") ++wrong;
        }
        --at_work;
      });
    }
    running.emplace_back([&] {  // a tuner
      for (size_t i = 0; at_work > 0; ++i) {
        const int64_t length = lengths[i % holders];
        if (length > 0) raced.look_again(layer(length), CurrentPlans::Reason::was_tuned);
      }
    });
    running.emplace_back([&] {
      for (int64_t i = 1; at_work > 0; ++i) raced.get(layer(others * (holders + 1) + i), nothing);
    });
  }
  EXPECT_EQ(wrong, 0);
  raced.get(layer(others), nothing);
  EXPECT_LE(raced.count().plans, 5) << "what nobody holds any more is freed, with its replacement";
}

}  // namespace
}  // namespace kiln::plan_limits_test
