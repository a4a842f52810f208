#include "front.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>

#include "cache_fixtures.h"
#include "checksum.h"
#include "kiln/base/tie.h"

namespace kiln::cache::test::front_test {
namespace {

struct Candidates {
  std::array<AlgorithmVersion, 3> versions = {AlgorithmVersion{1, "a", "d1"}, AlgorithmVersion{2, "a", "d2"},
                                              AlgorithmVersion{3, "b", "d1"}};
  std::array<std::string, 4> configs = {"", "TILE=16", "TILE=32", "größe=1"};
  std::vector<FrontEntry> entries;
};

// Times lie close together, so that ties, chains of ties and equal times all occur.
void fill(Candidates& c, std::mt19937_64& random, int count) {
  const auto pick = [&](int n) { return static_cast<std::size_t>(random() % static_cast<unsigned>(n)); };
  std::set<std::tuple<std::size_t, std::size_t>> taken;
  for (int i = 0; i < count; ++i) {
    const std::size_t version = pick(3), config = pick(4);
    if (!taken.emplace(version, config).second) continue;
    FrontEntry e;
    e.algorithm = &c.versions[version];
    e.config = c.configs[config];
    e.seconds = 1e-5 * (1 + 0.007 * static_cast<double>(pick(8)));
    e.workspace_bytes = static_cast<std::int64_t>(pick(3)) * 100;
    e.deterministic = pick(2) == 0;
    e.kind = pick(4) == 0 ? TimeKind::predicted : TimeKind::measured;
    c.entries.push_back(e);
  }
}

// The rule as it is written down, without any reduction.
const FrontEntry* choose_plainly(const std::vector<FrontEntry>& entries, const Filter& filter, unsigned versions,
                                 bool predicted) {
  std::vector<const FrontEntry*> passing;
  for (const FrontEntry& e : entries) {
    const bool current = (versions >> (e.algorithm->row - 1) & 1u) != 0;
    const bool fits = e.workspace_bytes <= filter.workspace_limit && (e.deterministic || !filter.deterministic_only);
    if (current && fits && (e.kind == TimeKind::predicted) == predicted) passing.push_back(&e);
  }
  const FrontEntry* best = nullptr;
  for (const FrontEntry* e : passing) {
    const bool tied = std::all_of(passing.begin(), passing.end(),
                                  [&](const FrontEntry* o) { return e->seconds <= tie_limit(o->seconds); });
    if (tied && (best == nullptr || tie_order(*e, *best))) best = e;
  }
  return best;
}

std::vector<FrontEntry> restricted(const std::vector<FrontEntry>& entries, unsigned versions, bool predicted) {
  std::vector<FrontEntry> result;
  for (const FrontEntry& e : entries) {
    if ((versions >> (e.algorithm->row - 1) & 1u) != 0 && (e.kind == TimeKind::predicted) == predicted)
      result.push_back(e);
  }
  return result;
}

TEST(Front, ReducingNeverChangesAChoice) {
  std::mt19937_64 random(3);
  std::size_t before = 0, after = 0;
  for (int round = 0; round < 3000; ++round) {
    Candidates c;
    fill(c, random, 1 + static_cast<int>(random() % 12));
    std::vector<FrontEntry> reduced = c.entries;
    reduce_to_front(reduced);
    before += c.entries.size();
    after += reduced.size();
    for (unsigned versions = 0; versions < 8; ++versions) {
      for (const bool predicted : {false, true}) {
        for (const std::int64_t limit : {0, 99, 100, 200}) {
          for (const bool deterministic : {false, true}) {
            const Filter filter = {limit, deterministic};
            const FrontEntry* expected = choose_plainly(c.entries, filter, versions, predicted);
            const auto candidates = restricted(reduced, versions, predicted);
            const FrontEntry* chosen = choose(candidates, filter);
            ASSERT_EQ(chosen == nullptr, expected == nullptr);
            if (chosen == nullptr) continue;
            ASSERT_EQ(chosen->algorithm, expected->algorithm);
            ASSERT_EQ(chosen->config, expected->config);
          }
        }
      }
    }
  }
  EXPECT_LT(after, before * 9 / 10) << "and it does drop candidates";
}

TEST(Front, OfEqualWorkspaceKeepsOneOfEqualTimesAndNoneThatIsNeverTied) {
  const AlgorithmVersion version{1, "a", "d"};
  const auto reduced = [&](double first, double second) {
    std::vector<FrontEntry> entries = {
        {.algorithm = &version, .config = "A=1", .seconds = first, .workspace_bytes = 64},
        {.algorithm = &version, .config = "A=2", .seconds = second, .workspace_bytes = 64}};
    reduce_to_front(entries);
    std::vector<std::string> configs;
    for (const FrontEntry& entry : entries) configs.emplace_back(entry.config);
    return configs;
  };
  EXPECT_EQ(reduced(1e-5, 1e-5), std::vector<std::string>{"A=1"});
  EXPECT_EQ(reduced(2e-5, 1e-5), std::vector<std::string>{"A=2"});
  EXPECT_EQ(reduced(1.005e-5, 1e-5), (std::vector<std::string>{"A=1", "A=2"})) << "a tie";
}

TEST(Front, IsTriedInTheOrderOfChoosingAgainAndAgain) {
  std::mt19937_64 random(47);
  for (int round = 0; round < 2000; ++round) {
    Candidates c;
    fill(c, random, 12);
    std::sort(c.entries.begin(), c.entries.end(), tie_order);
    const Filter filter{static_cast<std::int64_t>(random() % 4) * 100, random() % 2 == 0};
    std::vector<std::pair<std::string_view, std::string_view>> tried, chosen;
    for (const FrontEntry* entry : in_order(c.entries, filter))
      tried.emplace_back(entry->algorithm->digest, entry->config);
    std::vector<FrontEntry> left = c.entries;
    while (const FrontEntry* entry = choose(left, filter)) {
      chosen.emplace_back(entry->algorithm->digest, entry->config);
      left.erase(left.begin() + (entry - left.data()));
    }
    ASSERT_EQ(tried, chosen);
  }
}

TEST(Front, ComesBackFromItsStoredForm) {
  Candidates c;
  std::mt19937_64 random(5);
  fill(c, random, 12);
  reduce_to_front(c.entries);
  AlgorithmRows rows;
  for (const AlgorithmVersion& v : c.versions) rows[v.row] = v;
  const KeyHash key = hash_key("a request");
  const std::string bytes = encode_front(key, "a device", c.entries);
  KeyHash decoded_key;
  std::vector<FrontEntry> decoded;
  ASSERT_TRUE(decode_front(bytes, "a device", rows, decoded_key, decoded));
  EXPECT_EQ(decoded_key, key);
  ASSERT_EQ(decoded.size(), c.entries.size());
  for (std::size_t i = 0; i < decoded.size(); ++i) {
    EXPECT_EQ(decoded[i].algorithm->row, c.entries[i].algorithm->row);
    EXPECT_EQ(decoded[i].config, c.entries[i].config);
    EXPECT_EQ(decoded[i].seconds, c.entries[i].seconds);
    EXPECT_EQ(decoded[i].workspace_bytes, c.entries[i].workspace_bytes);
    EXPECT_EQ(decoded[i].kind, c.entries[i].kind);
    EXPECT_EQ(decoded[i].deterministic, c.entries[i].deterministic);
  }
}

TEST(Front, DamagedBytesAreRefusedWithoutReadingBeyondThem) {
  Candidates c;
  std::mt19937_64 random(5);
  fill(c, random, 6);
  AlgorithmRows rows;
  for (const AlgorithmVersion& v : c.versions) rows[v.row] = v;
  const std::string bytes = encode_front(hash_key("a request"), "a device", c.entries);
  KeyHash key;
  std::vector<FrontEntry> decoded;
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const std::string cut = bytes.substr(0, length);  // a copy: the sanitizer watches its end
    EXPECT_FALSE(decode_front(cut, "a device", rows, key, decoded));
  }
  for (int i = 0; i < 20'000; ++i) {
    std::string damaged = bytes;
    damaged[random() % damaged.size()] = static_cast<char>(random());
    EXPECT_EQ(decode_front(damaged, "a device", rows, key, decoded), damaged == bytes);
  }
  EXPECT_FALSE(decode_front(bytes, "another device", rows, key, decoded));
  // Too short for a key, with the checksum of what there is.
  for (const std::string& short_one : {std::string(), std::string(8, 'x'), std::string(15, 'x')}) {
    const std::int64_t sum = checksum_of_front(short_one, "a device", {});
    std::string sealed = short_one;
    sealed.append(reinterpret_cast<const char*>(&sum), sizeof(sum));
    EXPECT_FALSE(decode_front(sealed, "a device", rows, key, decoded)) << short_one.size();
  }
  rows.begin()->second.digest += "x";
  EXPECT_FALSE(decode_front(bytes, "a device", rows, key, decoded));
}

}  // namespace
}  // namespace kiln::cache::test::front_test
