#include "epochs.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace kiln::epochs::epochs_test {
namespace {

TEST(Epochs, AnEpochIsSafeOnceEveryReadingBeforeItHasEnded) {
  auto first = std::make_unique<Reading>();
  const uint64_t epoch = retire();
  EXPECT_LT(safe_epoch(), epoch);
  first.reset();
  EXPECT_GE(safe_epoch(), epoch);
  const Reading later;
  EXPECT_GE(safe_epoch(), epoch) << "a Reading that began after it cannot know what was retired";
  EXPECT_LT(safe_epoch(), retire());
}

TEST(Epochs, ReadingsWithinEachOtherLastUntilTheOutermostEnds) {
  auto outer = std::make_unique<Reading>();
  const uint64_t epoch = retire();
  { const Reading inner; }
  EXPECT_LT(safe_epoch(), epoch);
  {
    const Reading inner;  // begins late, and does not end the outer one's claim
    EXPECT_LT(safe_epoch(), epoch);
  }
  outer.reset();
  EXPECT_GE(safe_epoch(), epoch);
}

TEST(Epochs, OtherThreadsReadingsCountUntilTheyEnd) {
  std::promise<void> is_reading, may_end;
  std::jthread reader([&] {
    const Reading reading;
    is_reading.set_value();
    may_end.get_future().wait();
  });
  is_reading.get_future().wait();
  const uint64_t epoch = retire();
  EXPECT_LT(safe_epoch(), epoch);
  may_end.set_value();
  reader.join();
  EXPECT_GE(safe_epoch(), epoch);
}

// The parent's other thread may hold the list's lock, and is in a Reading for ever to the child.
TEST(Epochs, AChildOfForkReadsAndFreesWhateverThreadsDidInTheParent) {
  std::promise<void> is_reading, may_end;
  std::jthread reader([&] {
    const Reading reading;
    is_reading.set_value();
    may_end.get_future().wait();
  });
  is_reading.get_future().wait();
  std::atomic<bool> done = false;
  std::jthread locks([&] {
    while (!done) safe_epoch();
  });
  for (int round = 0; round < 20; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(10);
      { const Reading reading; }
      ::_exit(safe_epoch() >= retire() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "it hung";
    EXPECT_EQ(WEXITSTATUS(status), 0) << "the parent's reader keeps what is the child's";
  }
  done = true;
  may_end.set_value();
}

TEST(Epochs, ThreadsThatEndLeaveTheirSlotsToOthers) {
  ReaderSlot* first = nullptr;
  std::thread([&] {
    const Reading reading;
    first = this_reader;
  }).join();
  bool is_used_again = false;
  // Threads of other tests may have ended too, and left theirs.
  for (int i = 0; i < 8; ++i) {
    std::thread([&] {
      const Reading reading;
      is_used_again = is_used_again || this_reader == first;
    }).join();
  }
  EXPECT_TRUE(is_used_again);
}

struct Object {
  std::atomic<int> alive = 1;
};

// Readers look at an object that a writer replaces and frees. A thread that has it must see it alive; the sanitizers
// see a use after its end as well.
void expect_that_nothing_is_freed_too_early() {
  std::atomic<Object*> shared = new Object;
  std::atomic<bool> done = false;
  std::array<std::atomic<int>, 3> dead{};
  {
    std::vector<std::jthread> readers;
    for (auto& count : dead) {
      readers.emplace_back([&] {
        while (!done) {
          const Reading reading;
          const Object* const object = shared.load(std::memory_order_acquire);
          for (int look = 0; look < 3; ++look) count += object->alive == 1 ? 0 : 1;
        }
      });
    }
    std::vector<std::pair<Object*, uint64_t>> retired;
    const auto free_what_is_safe = [&] {
      const uint64_t safe = safe_epoch();
      std::erase_if(retired, [&](const auto& one) {
        if (one.second > safe) return false;
        one.first->alive = 0;
        delete one.first;
        return true;
      });
    };
    for (int i = 0; i < 20'000; ++i) {
      Object* const old = shared.exchange(new Object, std::memory_order_acq_rel);
      retired.emplace_back(old, retire());
      free_what_is_safe();
    }
    done = true;
    readers.clear();
    free_what_is_safe();
    EXPECT_TRUE(retired.empty());
  }
  delete shared.load();
  for (const auto& count : dead) EXPECT_EQ(count, 0);
}

TEST(Epochs, NothingIsFreedThatAReaderHas) {
  expect_that_nothing_is_freed_too_early();
}

// As where the kernel refuses membarrier(2).
TEST(Epochs, NothingIsFreedThatAReaderHasWhereReadersFenceThemselves) {
  { const Reading registers; }
  const bool must_fence = readers_must_fence.exchange(true);
  expect_that_nothing_is_freed_too_early();
  readers_must_fence = must_fence;
}

}  // namespace
}  // namespace kiln::epochs::epochs_test
