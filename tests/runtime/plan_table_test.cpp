#include "plan_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "epochs.h"

namespace kiln::plan_table_test {
namespace {

// The table never looks into a plan: any address will do.
const LoadedPlan* plan_number(uintptr_t i) {
  return reinterpret_cast<const LoadedPlan*>(i + 1);
}

CallKey key_number(int64_t i) {
  CallKey key;
  key.add(i);
  return key;
}

TEST(PlanTable, FindsWhatWasInsertedAndNothingElse) {
  PlanTable table;
  for (int64_t i = 0; i < 1000; ++i) {
    const CallKey key = key_number(i);
    EXPECT_EQ(table.find(key, key.hash()), nullptr);
    table.insert(key, key.hash(), plan_number(static_cast<uintptr_t>(i)));
  }
  for (int64_t i = 0; i < 1000; ++i) {
    const CallKey key = key_number(i);
    EXPECT_EQ(table.find(key, key.hash()), plan_number(static_cast<uintptr_t>(i)));
  }
}

TEST(PlanTable, TakesTheLongestKeys) {
  PlanTable table;
  const auto key_of = [](char letter) {
    CallKey key;
    const Tensor wide(nullptr, f32, {1, 1, 1, 1, 1, 1}, {int64_t{1} << 40, 1, 1, 1, 1, 1});
    for (int i = 0; i < 20; ++i) key.add(wide);
    key.add(std::string(CallKey::max_text, letter));
    return key;
  };
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    table.insert(key_of(letter), key_of(letter).hash(), plan_number(static_cast<uintptr_t>(letter)));
  }
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    EXPECT_EQ(table.find(key_of(letter), key_of(letter).hash()), plan_number(static_cast<uintptr_t>(letter)));
  }
}

TEST(PlanTable, TellsKeysOfOneHashApart) {
  PlanTable table;
  for (int64_t i = 0; i < 300; ++i) table.insert(key_number(i), 7, plan_number(static_cast<uintptr_t>(i)));
  for (int64_t i = 0; i < 300; ++i) {
    EXPECT_EQ(table.find(key_number(i), 7), plan_number(static_cast<uintptr_t>(i)));
  }
  EXPECT_EQ(table.find(key_number(300), 7), nullptr);
  CallKey longer = key_number(299);
  longer.add(int64_t{0});
  EXPECT_EQ(table.find(longer, 7), nullptr);
  table.insert(longer, 7, plan_number(301));
  EXPECT_EQ(table.find(longer, 7), plan_number(301));
  EXPECT_EQ(table.find(key_number(299), 7), plan_number(299));
}

TEST(PlanTable, KeepsTheFirstPlanOfAKey) {
  PlanTable table;
  const CallKey key = key_number(1);
  table.insert(key, key.hash(), plan_number(1));
  table.insert(key, key.hash(), plan_number(2));
  EXPECT_EQ(table.find(key, key.hash()), plan_number(1));
}

TEST(PlanTable, WithdrawsAPlanUntilThereIsAnother) {
  PlanTable table;
  const auto wrong = plan_number(1), other = plan_number(2), better = plan_number(3);
  for (int64_t i = 0; i < 3; ++i) table.insert(key_number(i), key_number(i).hash(), i == 1 ? other : wrong);
  table.withdraw({wrong});
  EXPECT_EQ(table.find(key_number(0), key_number(0).hash()), nullptr);
  EXPECT_EQ(table.find(key_number(1), key_number(1).hash()), other);
  table.insert(key_number(2), key_number(2).hash(), wrong);  // by a thread that got it before it was withdrawn
  EXPECT_EQ(table.find(key_number(2), key_number(2).hash()), nullptr);
  table.insert(key_number(2), key_number(2).hash(), better);
  EXPECT_EQ(table.find(key_number(2), key_number(2).hash()), better);
}

TEST(PlanTable, ReplacesAPlanUnderAllItsKeys) {
  PlanTable table;
  const auto old = plan_number(1), other = plan_number(2), better = plan_number(3), best = plan_number(4);
  for (int64_t i = 0; i < 3; ++i) table.insert(key_number(i), key_number(i).hash(), i == 1 ? other : old);
  table.replace(old, better);
  EXPECT_EQ(table.find(key_number(0), key_number(0).hash()), better);
  EXPECT_EQ(table.find(key_number(1), key_number(1).hash()), other);
  EXPECT_EQ(table.find(key_number(2), key_number(2).hash()), better);
  table.replace(better, best);
  table.insert(key_number(9), key_number(9).hash(), old);  // by a thread that got it before it was replaced
  EXPECT_EQ(table.find(key_number(9), key_number(9).hash()), best);
}

TEST(PlanTable, ForgetsAPlanWhoseAddressBecomesAnothers) {
  PlanTable table;
  const auto old = plan_number(1), better = plan_number(2), oldest = plan_number(3);
  table.insert(key_number(0), key_number(0).hash(), oldest);
  table.replace(oldest, old);
  table.replace(old, better);
  table.forget(old);
  table.insert(key_number(1), key_number(1).hash(), old);
  EXPECT_EQ(table.find(key_number(1), key_number(1).hash()), old);
  EXPECT_EQ(table.find(key_number(0), key_number(0).hash()), better);
  // The oldest had the forgotten one as its successor, and has none any more.
  table.insert(key_number(2), key_number(2).hash(), oldest);
  EXPECT_EQ(table.find(key_number(2), key_number(2).hash()), nullptr);
}

TEST(PlanTable, StaysSmallHoweverManyKeysComeAndGo) {
  PlanTable table;
  constexpr uintptr_t plans = 100'000, kept = 100;
  for (uintptr_t i = 0; i < plans; ++i) {
    const CallKey key = key_number(static_cast<int64_t>(i));
    table.insert(key, key.hash(), plan_number(i));
    if (i < kept) continue;
    table.withdraw({plan_number(i - kept)});
    table.forget(plan_number(i - kept));
  }
  EXPECT_LE(table.slots(), 16 * kept);
  for (uintptr_t i = plans - 2 * kept; i < plans; ++i) {
    const CallKey key = key_number(static_cast<int64_t>(i));
    EXPECT_EQ(table.find(key, key.hash()), i < plans - kept ? nullptr : plan_number(i)) << i;
  }
}

TEST(PlanTable, KeepsOutgrownTablesAsLongAsSomebodyMayReadThem) {
  PlanTable table;
  int64_t keys = 0;
  const auto grow = [&] {
    for (const size_t before = table.slots(); table.slots() == before; ++keys) {
      table.insert(key_number(keys), key_number(keys).hash(), plan_number(1));
    }
  };
  {
    const epochs::Reading reading;
    for (int i = 0; i < 3; ++i) grow();
    EXPECT_EQ(table.outgrown(), 3U);
  }
  grow();
  EXPECT_EQ(table.outgrown(), 1U);
}

TEST(PlanTable, IsReadWhilePlansAreReplaced) {
  PlanTable table;
  const CallKey key = key_number(1);
  constexpr uintptr_t versions = 2000;
  table.insert(key, key.hash(), plan_number(0));
  std::jthread writer([&] {
    for (uintptr_t i = 0; i + 1 < versions; ++i) table.replace(plan_number(i), plan_number(i + 1));
  });
  uintptr_t last = 0;
  while (last != versions) {
    const epochs::Reading reading;
    const auto seen = reinterpret_cast<uintptr_t>(table.find(key, key.hash()));
    ASSERT_GE(seen, last) << "an older plan came back";
    last = seen;
  }
}

TEST(PlanTable, IsReadWhileItGrows) {
  PlanTable table;
  constexpr int64_t keys = 3000;
  std::jthread writer([&] {
    for (int64_t i = 0; i < keys; ++i) {
      table.insert(key_number(i), key_number(i).hash(), plan_number(static_cast<uintptr_t>(i)));
    }
  });
  for (int64_t i = 0; i < keys; ++i) {
    const CallKey key = key_number(i);
    const LoadedPlan* found = nullptr;
    const epochs::Reading reading;
    while (found == nullptr) found = table.find(key, key.hash());
    ASSERT_EQ(found, plan_number(static_cast<uintptr_t>(i)));
  }
}

// Readers look a key up that nobody inserts, at the slots where the writer inserts the others. A wrong plan may be seen
// between two stores, or by loads before one store and after it, for nanoseconds, or until a thread that was
// interrupted goes on: one insertion in some 50,000 shows it. So the rounds are many, and end with the first plan
// found.
void expect_no_plan_of_an_absent_key(uint64_t (*hash_of)(int64_t key), int64_t keys, int rounds) {
  const CallKey absent = key_number(-1);
  std::atomic<uintptr_t> found = 0;
  for (int round = 0; round < rounds && found == 0; ++round) {
    PlanTable table;
    std::atomic<int64_t> inserting = 0;
    std::vector<std::jthread> readers;
    for (int reader = 0; reader < 3; ++reader) {
      readers.emplace_back([&] {
        for (int64_t i = inserting; i < keys; i = inserting) {
          const epochs::Reading reading;
          if (const LoadedPlan* plan = table.find(absent, hash_of(i))) found = reinterpret_cast<uintptr_t>(plan);
        }
      });
    }
    for (int64_t i = 0; i < keys; ++i) {
      inserting = i;
      table.insert(key_number(i), hash_of(i), plan_number(static_cast<uintptr_t>(i)));
    }
    inserting = keys;
  }
  EXPECT_EQ(found, 0U) << "a key that nobody inserted was given the plan of another one";
}

TEST(PlanTable, HasNoPlanForAKeyInWhoseSlotAnotherIsInserted) {
  expect_no_plan_of_an_absent_key([](int64_t key) { return static_cast<uint64_t>(key); }, 4000, 100);
}

TEST(PlanTable, HasNoPlanForAKeyAtTheEndOfAChainThatGrows) {
  expect_no_plan_of_an_absent_key([](int64_t) { return uint64_t{7}; }, 200, 300);
}

// Says in its memory whose plan it is: a reader that may see the plan must see that too, and the sanitizer for threads
// reports it where it need not.
struct MarkedPlan {
  int64_t key;
  int64_t version;  ///< A later plan of the key has a larger one.
};

std::shared_ptr<const LoadedPlan> marked_plan(int64_t key, int64_t version) {
  // A freed plan says so itself, where no sanitizer does.
  std::shared_ptr<MarkedPlan> plan(new MarkedPlan{key, version}, [](MarkedPlan* old) {
    old->key = -1;
    delete old;
  });
  return {plan, reinterpret_cast<const LoadedPlan*>(plan.get())};
}

const MarkedPlan* find_marked(const PlanTable& table, int64_t key, uint64_t hash) {
  return reinterpret_cast<const MarkedPlan*>(table.find(key_number(key), hash));
}

// Keys are inserted, and the table grows, while keys that are there get better plans, lose them and get others, and the
// old ones are freed. Half of the keys have one hash. Plans of every third key are never withdrawn.
TEST(PlanTable, GivesEveryKeyItsOwnPlansInTheirOrderWhateverIsWritten) {
  constexpr int64_t keys = 400, changes_per_key = 30;
  const auto hash_of = [](int64_t key) { return key % 2 == 0 ? uint64_t{7} : key_number(key).hash(); };
  const auto may_be_withdrawn = [](int64_t key) { return key % 3 != 0; };
  PlanTable table;
  std::vector<std::shared_ptr<const LoadedPlan>> current(keys);  // key `i` is for the thread that changes once it is in
  // Outlives the threads: none may be given the address of a plan that was not forgotten.
  std::vector<std::pair<std::shared_ptr<const LoadedPlan>, uint64_t>> retired;
  std::atomic<int64_t> inserted = 0;
  std::atomic<int64_t> changed = 0;  // relaxed: a reader must not owe to it what the table itself has to order

  std::jthread inserts([&] {
    for (int64_t key = 0; key < keys; ++key) {
      while (changed.load(std::memory_order_relaxed) < (key - 10) * changes_per_key) std::this_thread::yield();
      current[static_cast<size_t>(key)] = marked_plan(key, 0);
      table.insert(key_number(key), hash_of(key), current[static_cast<size_t>(key)].get());
      inserted.store(key + 1, std::memory_order_release);
    }
  });
  std::jthread changes([&] {
    std::mt19937 random(1);
    while (inserted.load(std::memory_order_acquire) == 0) std::this_thread::yield();
    for (int64_t version = 1; version <= keys * changes_per_key; ++version) {
      changed.store(version, std::memory_order_relaxed);
      const int64_t key = static_cast<int64_t>(random()) % inserted.load(std::memory_order_acquire);
      std::shared_ptr<const LoadedPlan>& old = current[static_cast<size_t>(key)];
      std::shared_ptr<const LoadedPlan> plan;
      if (may_be_withdrawn(key) && random() % 2 == 0) {
        table.withdraw({old.get()});
        table.insert(key_number(key), hash_of(key), old.get());  // by a thread that got it before
        plan = marked_plan(key, version);
        table.insert(key_number(key), hash_of(key), plan.get());
      } else {
        plan = marked_plan(key, version);
        table.replace(old.get(), plan.get());
      }
      retired.push_back({std::exchange(old, plan), epochs::retire()});
      if (version % 16 != 0) continue;
      const uint64_t safe = epochs::safe_epoch();
      std::erase_if(retired, [&](const auto& one) {
        if (one.second > safe) return false;
        table.forget(one.first.get());
        return true;
      });
    }
  });
  std::array<std::string, 2> faults;
  {
    std::vector<std::jthread> readers;
    for (size_t reader = 0; reader < faults.size(); ++reader) {
      readers.emplace_back(
          [&, &fault = faults[reader], random = std::mt19937(static_cast<unsigned>(reader))]() mutable {
            std::vector<int64_t> seen(keys, 0);
            while (changed.load(std::memory_order_relaxed) < keys * changes_per_key && fault.empty()) {
              const int64_t there = inserted.load(std::memory_order_acquire);
              const auto key = static_cast<int64_t>(random() % keys);
              const epochs::Reading reading;
              const MarkedPlan* const plan = find_marked(table, key, hash_of(key));
              if (plan == nullptr) {
                if (key < there && !may_be_withdrawn(key)) fault = "the plan of a key is gone";
              } else if (plan->key != key) {
                fault = "a key was given the plan of another one";
              } else if (plan->version < seen[static_cast<size_t>(key)]) {
                fault = "an older plan came back";
              } else {
                seen[static_cast<size_t>(key)] = plan->version;
              }
            }
          });
    }
  }
  for (const std::string& fault : faults) EXPECT_EQ(fault, "");
  inserts.join();
  changes.join();
  for (int64_t key = 0; key < keys; ++key) {
    EXPECT_EQ(table.find(key_number(key), hash_of(key)), current[static_cast<size_t>(key)].get()) << key;
  }
}

TEST(CallKey, TellsTensorsApartByEverythingThatShapesARequest) {
  const auto hash = [](const Tensor& tensor) {
    CallKey key;
    key.add(tensor);
    return key.hash();
  };
  const auto address = reinterpret_cast<const void*>(4096);
  const uint64_t base = hash(Tensor(address, f32, {2, 3}, {3, 1}));
  EXPECT_EQ(base, hash(Tensor(reinterpret_cast<const void*>(8192), f32, {2, 3}, {3, 1})));
  EXPECT_NE(base, hash(Tensor(address, f16, {2, 3}, {3, 1})));
  EXPECT_NE(base, hash(Tensor(address, f32, {3, 2}, {3, 1})));
  EXPECT_NE(base, hash(Tensor(address, f32, {2, 3}, {4, 1})));
  EXPECT_NE(base, hash(Tensor(reinterpret_cast<const void*>(4100), f32, {2, 3}, {3, 1})));
}

bool are_equal(const CallKey& a, const CallKey& b) {
  return std::ranges::equal(a.words(), b.words());
}

TEST(CallKey, TellsNumbersOfAnySizeApart) {
  constexpr int64_t mark = 0xffffffff;
  const std::array<int64_t, 11> numbers = {
      0, 1, -1, mark, mark - 1, int64_t{1} << 31, int64_t{1} << 32, 1 - mark, INT64_MIN, INT64_MAX, (mark << 31) | 1};
  const auto single = [](int64_t number) {
    CallKey made;
    made.add(number);
    made.add(int64_t{1});
    return made;
  };
  const auto of_four = [](int64_t number) {
    CallKey made;
    made.add(0, 1, number, 2);
    made.add(int64_t{1});
    return made;
  };
  for (size_t i = 0; i < numbers.size(); ++i) {
    for (size_t j = 0; j < numbers.size(); ++j) {
      EXPECT_EQ(are_equal(single(numbers[i]), single(numbers[j])), i == j) << numbers[i] << " " << numbers[j];
      EXPECT_EQ(are_equal(of_four(numbers[i]), of_four(numbers[j])), i == j) << numbers[i] << " " << numbers[j];
    }
  }
}

// A group of small numbers is half as many words as one with a large number, so both begin with what tells them apart.
TEST(CallKey, TellsApartWhichOfItsGroupsAreWide) {
  constexpr int64_t small = 0x7fffffff, all = -1;
  const auto key = [](int64_t a, int64_t b, std::initializer_list<int64_t> words) {
    CallKey made;
    made.add(a, b);
    for (const int64_t word : words) made.add(word);
    return made;
  };
  const auto pair = [](int64_t low, int64_t high) { return high << 32 | low; };
  EXPECT_TRUE(are_equal(key(1, 2, {3}), key(1, 2, {3})));
  EXPECT_FALSE(are_equal(key(small, small, {1, 2}), key(1, 2, {})));
  EXPECT_FALSE(are_equal(key(0xffffffff, 0xffffffff, {}), key(small + 1, small + 1, {})));
  EXPECT_FALSE(are_equal(key(0xffffffff, 0xffffffff, {}), key(all, all, {})));
  EXPECT_FALSE(are_equal(key(pair(1, 2), 3, {}), key(1, 2, {3})));
}

TEST(CallKey, TellsWideTensorsApart) {
  const auto key = [](std::initializer_list<int64_t> extents, std::initializer_list<int64_t> strides) {
    CallKey made;
    made.add(Tensor(nullptr, f32, extents, strides));
    made.add(int64_t{1});
    return made;
  };
  constexpr int64_t wide = int64_t{1} << 40;
  const std::array<CallKey, 8> keys = {key({2}, {1}),          key({2}, {wide}),       key({wide}, {2}),
                                       key({2}, {wide + 1}),   key({2, 1}, {wide, 1}), key({2, 1}, {1, wide}),
                                       key({1, 2}, {wide, 1}), key({2, 1}, {1, 1})};
  for (size_t i = 0; i < keys.size(); ++i) {
    for (size_t j = 0; j < keys.size(); ++j) EXPECT_EQ(are_equal(keys[i], keys[j]), i == j) << i << " " << j;
  }
}

TEST(CallKey, TellsTextsApart) {
  const auto key = [](std::string_view text) {
    CallKey made;
    made.add(text);
    made.add(int64_t{7});
    return made;
  };
  const std::array<std::string_view, 8> texts = {"",          "a",         "b",        "gemm n=?",
                                                 "gemm n=?a", "gemm n=?b", "aaaaaaaa", "aaaaaaa"};
  for (size_t i = 0; i < texts.size(); ++i) {
    for (size_t j = 0; j < texts.size(); ++j) EXPECT_EQ(are_equal(key(texts[i]), key(texts[j])), i == j) << texts[i];
  }
  const std::string longest(CallKey::max_text, 'x');
  EXPECT_TRUE(are_equal(key(longest), key(longest)));
}

}  // namespace
}  // namespace kiln::plan_table_test
