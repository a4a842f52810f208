#include "context_peers.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <optional>
#include <thread>

#include "fakes.h"

namespace kiln::context_peers_test {
namespace {

using namespace std::chrono_literals;

constexpr auto nothing = [](const cache::Database&, const Request&) {};

class ContextPeersTest : public testing::Test {
 protected:
  void tell(const ContextPeers& teller) { teller.tell(database_, tuner::fakes::toy_request()); }

  const cache::Database database_ = cache::Database::in_memory();
};

TEST_F(ContextPeersTest, ToldAreTheOthersOfTheDatabaseAndDevice) {
  int self = 0, other = 0, elsewhere = 0;
  const auto count = [](int& calls) { return [&](const cache::Database&, const Request&) { ++calls; }; };
  const ContextPeers teller("a", "gpu", count(self)), told("a", "gpu", count(other));
  const ContextPeers of_device("a", "cpu", count(elsewhere)), of_database("b", "gpu", count(elsewhere));
  tell(teller);
  EXPECT_EQ(self, 0);
  EXPECT_EQ(other, 1);
  EXPECT_EQ(elsewhere, 0);
}

// Compiling takes seconds, and what announces it is the user's.
TEST_F(ContextPeersTest, OthersComeAndGoWhileOneLearns) {
  bool waited = true;
  std::future<void> other;
  const ContextPeers teller("a", "gpu", nothing);
  const ContextPeers told("a", "gpu", [&](const cache::Database&, const Request&) {
    other = std::async(std::launch::async, [] { const ContextPeers brief("a", "gpu", nothing); });
    waited = other.wait_for(10s) != std::future_status::ready;
  });
  tell(teller);
  EXPECT_FALSE(waited) << "a Context is not made and destroyed before another one has learned";
}

TEST_F(ContextPeersTest, TheDestructorWaitsForItsOwnCall) {
  std::promise<void> begun;
  bool has_learned = false;
  const ContextPeers teller("a", "gpu", nothing);
  std::optional<ContextPeers> told;
  told.emplace("a", "gpu", [&](const cache::Database&, const Request&) {
    begun.set_value();
    std::this_thread::sleep_for(50ms);
    has_learned = true;
  });
  const std::jthread telling([&] { tell(teller); });
  begun.get_future().wait();
  told.reset();
  EXPECT_TRUE(has_learned);
}

}  // namespace
}  // namespace kiln::context_peers_test
