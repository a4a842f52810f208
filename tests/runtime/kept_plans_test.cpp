// Plans that a Context gives up: results stay right, and what is needed stays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "device_fixture.h"
#include "kiln/base/error.h"
#include "kiln/context.h"
#include "kiln/cuda_graph.h"
#include "kiln/device/stream.h"
#include "kiln/softmax.h"

namespace kiln::kept_plans_test {
namespace {

class KeptPlansTest : public DeviceTest {
 protected:
  ContextOptions limited_to(int64_t plans) const {
    ContextOptions limited = options();
    limited.kept_plans = plans;
    return limited;
  }

  // A softmax over `length` equal numbers, and its result: 1 / length.
  struct Layer {
    int64_t length;
    void* x;
    void* y;
  };
  Layer layer(int64_t length) {
    const std::vector<float> ones(static_cast<size_t>(length), 1);
    return {length, upload(ones), upload(ones)};
  }
  static void call(Context& context, const Layer& layer, Stream stream = nullptr) {
    softmax_forward(context, Tensor(layer.x, f32, {1, layer.length}, nc), Tensor(layer.y, f32, {1, layer.length}, nc),
                    {}, stream);
  }
  bool is_right(const Layer& layer) const {
    const auto y = download<float>(layer.y, static_cast<size_t>(layer.length));
    return std::ranges::all_of(y, [&](float value) { return std::abs(value * layer.length - 1) < 1e-5F; });
  }
  void clear(const Layer& layer) {
    const std::vector<float> zeros(static_cast<size_t>(layer.length));
    device::copy_to_device(*device_, reinterpret_cast<cuda_abi::CUdeviceptr>(layer.y), zeros.data(),
                           zeros.size() * sizeof(float));
  }
};

TEST_F(KeptPlansTest, PlansLeaveWhenThereAreMoreAndComeBack) {
  Context context(limited_to(3));
  for (int round = 0; round < 2; ++round) {
    for (int64_t length = 2; length < 9; ++length) {
      const Layer called = layer(length);
      call(context, called);
      EXPECT_TRUE(is_right(called)) << length;
    }
  }
  const PlanCount count = context.plan_count();
  EXPECT_EQ(count.given_up, 14 - 3);
  if (context.is_emulated()) {
    EXPECT_EQ(count.plans, 3);
    EXPECT_EQ(count.held, 0);
  }
  EXPECT_GT(count.bytes, 0);
}

TEST_F(KeptPlansTest, ThreadsThatShareAContextGetRightResultsWhilePlansLeave) {
  constexpr int threads = 8, calls = 60;
  constexpr int64_t sizes = 12;
  Context context(limited_to(4));
  std::vector<std::vector<Layer>> layers(threads);
  for (auto& own : layers) {
    for (int64_t length = 2; length < 2 + sizes; ++length) own.push_back(layer(length));
  }
  std::vector<std::string> faults(threads);
  {
    std::vector<std::jthread> running;
    for (size_t t = 0; t < threads; ++t) {
      running.emplace_back([&, t, random = std::mt19937(static_cast<unsigned>(t))]() mutable {
        const device::Stream stream(device_);
        try {
          for (int i = 0; i < calls; ++i) {
            const Layer& called = layers[t][random() % sizes];
            call(context, called, stream.raw());
            stream.synchronize();
            if (!is_right(called)) faults[t] = "a result is wrong";
          }
        } catch (const std::exception& error) {
          faults[t] = error.what();
        }
      });
    }
  }
  EXPECT_THAT(faults, testing::Each(""));
  EXPECT_GT(context.plan_count().given_up, 0);
}

TEST_F(KeptPlansTest, WhatAnApplicationHoldsStays) {
  Context context(limited_to(1));
  const Layer held = layer(5);
  const Plan plan = context.plan(Request::parse("softmax_forward x=f32:1x5"));
  for (int64_t length = 6; length < 12; ++length) call(context, layer(length));
  EXPECT_EQ(context.plan_count().held, context.is_emulated() ? 1 : context.plan_count().plans - 1);
  const std::vector<Address> operands = {Address(held.x), Address(held.y)};
  plan.run(nullptr, operands, nullptr);
  EXPECT_TRUE(is_right(held));
}

// The emulated device launches a graph also if its module is gone; a GPU's driver may not.
TEST_F(KeptPlansTest, WhatACudaGraphHasStays) {
  Context context(limited_to(1));
  const device::Stream stream(device_);
  const Layer captured = layer(5);
  call(context, captured, stream.raw());  // makes its plan
  stream.synchronize();
  clear(captured);
  CudaGraph graph(context, [&](Stream on) { call(context, captured, on); });
  for (int64_t length = 6; length < 12; ++length) call(context, layer(length), stream.raw());
  const PlanCount count = context.plan_count();
  if (context.is_emulated()) {
    EXPECT_EQ(count.plans, 2);
    EXPECT_EQ(count.held, 1);
  }
  EXPECT_FALSE(is_right(captured)) << "a capture runs nothing";
  graph.launch(stream.raw());
  stream.synchronize();
  EXPECT_TRUE(is_right(captured));
}

TEST_F(KeptPlansTest, LimitsHaveToLeaveRoom) {
  EXPECT_THAT(refusal_of([&] { Context context(limited_to(0)); }), testing::HasSubstr("kept_plans is 0"));
  ContextOptions without_bytes = options();
  without_bytes.kept_plan_bytes = -1;
  EXPECT_THAT(refusal_of([&] { Context context(without_bytes); }), testing::HasSubstr("kept_plan_bytes is -1"));
}

TEST_F(KeptPlansTest, TheEnvironmentHasLimitsToo) {
  ContextOptions limited = options();
  limited.environment->kept_plans = 2;
  Context context(limited);
  for (int64_t length = 2; length < 9; ++length) call(context, layer(length));
  EXPECT_EQ(context.plan_count().given_up, 5);
  limited.kept_plans = 4;
  Context other(limited);
  for (int64_t length = 2; length < 9; ++length) call(other, layer(length));
  EXPECT_EQ(other.plan_count().given_up, 3) << "an option comes before the environment";
}

}  // namespace
}  // namespace kiln::kept_plans_test
