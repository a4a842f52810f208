// BackgroundMaker: what is made when, and what ends it.
#include "background_maker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace kiln::background_maker_test {
namespace {

class BackgroundMakerTest : public testing::Test {
 protected:
  static KeyedRequest layer(size_t length) {
    return Request::parse("softmax_forward x=f32:1x" + std::to_string(length));
  }
  void make(const std::string& kind, const KeyedRequest& request) {
    if (made_.empty()) begin_.get_future().wait();
    made_.push_back(kind + std::to_string(request->at("x").extents[1]));
    if (throws) throw std::runtime_error("a listener's");
  }

  bool throws = false;
  std::promise<void> begin_;  // of the first
  std::vector<std::string> made_;
  BackgroundMaker maker{[this](const KeyedRequest& request) { make("plan ", request); },
                        [this](const KeyedRequest& request) { make("open ", request); }};
};

TEST_F(BackgroundMakerTest, PlansAndOpenKernelsAreMadeInTurnsTheLatestFirst) {
  maker.enqueue_plan(layer(1));  // begins at once, or a moment later with one of the others
  for (size_t length = 2; length <= 4; ++length) maker.enqueue_plan(layer(length));
  maker.enqueue_plan(layer(4));
  for (size_t length = 5; length <= 6; ++length) maker.enqueue_open_kernel(layer(length));
  begin_.set_value();
  maker.wait_until_idle();
  ASSERT_EQ(made_.size(), 6U);
  EXPECT_THAT(made_, testing::UnorderedElementsAre("plan 1", "plan 2", "plan 3", "plan 4", "open 5", "open 6"));
  EXPECT_EQ(made_[1], "open 6");
  EXPECT_EQ(made_[3], "open 5");
  maker.wait_until_idle();
}

TEST_F(BackgroundMakerTest, WhatIsThrownEndsNothing) {
  throws = true;
  begin_.set_value();
  maker.enqueue_plan(layer(1));
  maker.enqueue_open_kernel(layer(1));
  maker.wait_until_idle();
  EXPECT_EQ(made_.size(), 2U);
}

TEST_F(BackgroundMakerTest, OfTooManyTheFirstAreForgotten) {
  constexpr size_t most = BackgroundMaker::most_waiting;
  maker.enqueue_plan(layer(1));
  for (size_t length = 2; length <= most + 10; ++length) maker.enqueue_plan(layer(length));
  begin_.set_value();
  maker.wait_until_idle();
  EXPECT_GE(made_.size(), most);
  EXPECT_LE(made_.size(), most + 1);
  EXPECT_THAT(made_, testing::Contains("plan " + std::to_string(most + 10)));
  EXPECT_THAT(made_, testing::Not(testing::Contains("plan 2")));
}

}  // namespace
}  // namespace kiln::background_maker_test
