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
    if (made_.empty()) {
      begun_.set_value();
      go_on_.get_future().wait();
    }
    made_.push_back(kind + std::to_string(request->at("x").extents[1]));
    if (throws) throw std::runtime_error("a listener's");
  }

  // Enqueues the first plan; until go_on() the thread is at work on that.
  void begin() {
    maker.enqueue_plan(layer(1));
    begun_.get_future().wait();
  }
  void go_on() { go_on_.set_value(); }

  bool throws = false;
  std::promise<void> begun_, go_on_;
  std::vector<std::string> made_;
  BackgroundMaker maker{[this](const KeyedRequest& request) { make("plan ", request); },
                        [this](const KeyedRequest& request) { make("open ", request); }};
};

TEST_F(BackgroundMakerTest, PlansAndOpenKernelsAreMadeInTurnsTheLatestFirst) {
  begin();
  for (size_t length = 2; length <= 4; ++length) maker.enqueue_plan(layer(length));
  maker.enqueue_plan(layer(4));
  for (size_t length = 5; length <= 6; ++length) maker.enqueue_open_kernel(layer(length));
  go_on();
  maker.wait_until_idle();
  EXPECT_THAT(made_, testing::ElementsAre("plan 1", "open 6", "plan 4", "open 5", "plan 3", "plan 2"));
  maker.wait_until_idle();
}

TEST_F(BackgroundMakerTest, WhatIsThrownEndsNothing) {
  throws = true;
  begin();
  go_on();
  maker.enqueue_open_kernel(layer(1));
  maker.wait_until_idle();
  EXPECT_THAT(made_, testing::ElementsAre("plan 1", "open 1"));
}

TEST_F(BackgroundMakerTest, OfTooManyTheFirstAreForgotten) {
  constexpr size_t most = BackgroundMaker::most_waiting;
  begin();
  for (size_t length = 2; length <= most + 10; ++length) maker.enqueue_plan(layer(length));
  go_on();
  maker.wait_until_idle();
  ASSERT_EQ(made_.size(), most + 1);
  EXPECT_EQ(made_[1], "plan " + std::to_string(most + 10));
  EXPECT_EQ(made_.back(), "plan 11");
}

TEST_F(BackgroundMakerTest, WhatWasForgottenMayComeAgain) {
  constexpr size_t most = BackgroundMaker::most_waiting;
  begin();
  for (size_t length = 2; length <= most + 10; ++length) maker.enqueue_plan(layer(length));
  go_on();
  maker.wait_until_idle();
  maker.enqueue_plan(layer(2));
  maker.wait_until_idle();
  EXPECT_EQ(made_.back(), "plan 2");
}

}  // namespace
}  // namespace kiln::background_maker_test
