#include "kiln/base/parallel.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace kiln::parallel_test {
namespace {

TEST(ForEachIndex, DoesAllAndThrowsWhatTheFirstHasThrown) {
  std::vector<std::atomic<int>> visits(100);
  try {
    for_each_index(visits.size(), [&](size_t i) {
      ++visits[i];
      if (i % 30 == 20) throw std::runtime_error(std::to_string(i));
    });
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "20");
  }
  for (const auto& visited : visits) EXPECT_EQ(visited, 1);
}

// Each of as many calls as there are processors waits for all others: they meet only on as many threads.
TEST(ForEachIndex, UsesAsManyThreadsAsTheMachineHas) {
  const size_t processors = std::max(1U, std::thread::hardware_concurrency());
  std::mutex mutex;
  std::set<std::thread::id> threads;
  const auto enter = [&] {
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
    return threads.size();
  };
  for_each_index(processors, [&](size_t) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (enter() < processors && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  });
  EXPECT_EQ(threads.size(), processors);
  EXPECT_TRUE(threads.contains(std::this_thread::get_id())) << "this one waits for the others while it could work";
  threads.clear();
  for_each_index(20 * processors, [&](size_t) {
    enter();
    std::this_thread::yield();
  });
  EXPECT_LE(threads.size(), processors);
}

// Cancellation unwinds the stack as an exception does, but ends the process if it is kept.
TEST(ForEachIndex, AThreadThatIsCancelledDoesAllOfItFirst) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer of GCC 12 takes its own end of a cancelled thread for an overflow (sigaltstack)";
#endif
  std::atomic<int> done{0};
  pthread_t thread{};
  const auto body = [](void* counter) -> void* {
    ::pthread_cancel(::pthread_self());
    for_each_index(10, [&](size_t) {
      ::pthread_testcancel();
      ++*static_cast<std::atomic<int>*>(counter);
    });
    ::pthread_testcancel();
    return nullptr;
  };
  ASSERT_EQ(::pthread_create(&thread, nullptr, body, &done), 0);
  void* end = nullptr;
  ASSERT_EQ(::pthread_join(thread, &end), 0);
  EXPECT_EQ(end, PTHREAD_CANCELED);
  EXPECT_EQ(done, 10);
}

TEST(ForEachPart, CoversEachElementOnce) {
  for (const size_t count : {0, 1, 4, 5, 63, 64, 65, 129, 1000}) {
    for (const size_t least : {1, 5, 100}) {
      std::vector<std::atomic<int>> visits(count);
      for_each_part(count, least, [&](size_t begin, size_t end) {
        EXPECT_LT(begin, end);
        EXPECT_TRUE(end - begin >= least || end == count) << count << " in parts of " << least;
        for (size_t i = begin; i < end; ++i) ++visits[i];
      });
      for (const auto& visited : visits) EXPECT_EQ(visited, 1) << count << " in parts of " << least;
    }
  }
}

}  // namespace
}  // namespace kiln::parallel_test
