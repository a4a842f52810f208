#include "kiln/cache/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "cache_fixtures.h"

namespace kiln::cache::test::diff_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Pack pack_of(std::vector<Record> records, std::vector<DeviceEntry> devices = {h200(), h100()}) {
  return make_pack(std::move(devices), std::move(records));
}

Record record(int request, std::string_view config, double seconds) {
  return timed_record(request_line(request), config, seconds);
}

TEST(WinnerAmong, FollowsTheTieRuleAndPassesOverWhatCannotWin) {
  Record fast = record(1, "fast", 1e-5), tied = record(1, "tied", 1.008e-5), slow = record(1, "slow", 2e-5);
  fast.workspace_bytes = 4096;
  Record crashed = record(1, "crashed", 1e-9);
  crashed.outcome = outcome::crashed;
  Record predicted = record(1, "predicted", 1e-9);
  predicted.kind = TimeKind::predicted;
  predicted.outcome = outcome::predicted;
  Record stale = record(1, "stale", 1e-9);
  stale.algorithm_digest = "old";
  const std::vector<Record> all = {crashed, fast, predicted, slow, stale, tied};
  const auto current = [](std::string_view, std::string_view digest) { return digest != "old"; };
  EXPECT_EQ(winner_among(all, current)->config, "tied") << "less workspace within 2%";
  EXPECT_EQ(winner_among(all)->config, "stale");
  EXPECT_EQ(winner_among(std::vector{crashed, predicted}, current)->config, "predicted");
  EXPECT_EQ(winner_among(std::vector{crashed, stale}, current), nullptr);
  EXPECT_EQ(winner_among({}), nullptr);
}

TEST(Diff, OfEqualPacksIsEmpty) {
  std::mt19937_64 random(31);
  std::vector<Record> records;
  for (int i = 0; i < 30; ++i) records.push_back(random_record(random, {h200(), h100()}));
  const Pack pack = pack_of(records);
  const Diff same = diff(pack, pack);
  EXPECT_THAT(same.changes, IsEmpty());
  EXPECT_THAT(same.devices_added, IsEmpty());
  EXPECT_GT(same.unchanged, 0);
}

TEST(Diff, NamesWhatBecameOfEachRequest) {
  const Pack before = pack_of({record(1, "a", 2e-5), record(2, "a", 1e-5), record(3, "a", 1e-5), record(4, "a", 1e-5),
                               record(5, "a", 1e-5), record(6, "a", 1e-5)});
  const Pack after =
      pack_of({record(1, "a", 2e-5), record(1, "b", 1e-5), record(2, "a", 1.5e-5), record(3, "a", 1.005e-5),
               record(5, "a", 1e-5), record(6, "a", 1e-5), record(6, "slow", 1e-3), record(7, "a", 1e-5)});
  const Diff difference = diff(before, after);
  EXPECT_EQ(difference.unchanged, 2) << "request 5, and request 3, whose times are a tie";
  ASSERT_THAT(difference.changes, SizeIs(5));
  std::vector<Change> kinds;
  for (const RequestChange& change : difference.changes) kinds.push_back(change.change);
  EXPECT_THAT(kinds, ElementsAre(Change::winner, Change::time, Change::removed, Change::records, Change::added));

  const RequestChange& first = difference.changes[0];
  EXPECT_EQ(first.request, request_line(1));
  EXPECT_EQ(first.before->config, "a");
  EXPECT_EQ(first.after->config, "b");
  EXPECT_DOUBLE_EQ(*first.speedup(), 2);
  EXPECT_EQ(first.records_added, 1);
  EXPECT_EQ(difference.changes[1].records_changed, 1);
  EXPECT_EQ(difference.changes[2].records_removed, 1);
  EXPECT_EQ(difference.changes[2].speedup(), std::nullopt);
}

TEST(Diff, ComparesResultsAndNotWhenTheyWereMade) {
  const Record before = record(1, "a", 1e-5);
  Record after = before;
  after.created_ms += 86'400'000;
  after.session = "another";
  after.driver_version = "14.0";
  after.kiln_version = "9.9";
  after.samples = {1e-5, 1.1e-5};
  after.seconds = 1.005e-5;
  EXPECT_EQ(diff(pack_of({before}), pack_of({after})).unchanged, 1);
  for (const auto& differ : std::vector<void (*)(Record&)>{
           [](Record& r) { r.outcome = outcome::rejected_early; }, [](Record& r) { r.seconds = 1.1e-5; },
           [](Record& r) { r.workspace_bytes += 4; }, [](Record& r) { r.deterministic = !r.deterministic; },
           [](Record& r) { r.resources.registers += 1; }}) {
    Record other = before;
    differ(other);
    EXPECT_EQ(diff(pack_of({before}), pack_of({other})).unchanged, 0);
  }
}

TEST(Diff, SeesAWinnerThatChangesThoughEveryTimeIsATie) {
  const Diff difference = diff(pack_of({record(1, "a", 1.008e-5), record(1, "b", 1e-5)}),
                               pack_of({record(1, "a", 1.025e-5), record(1, "b", 1e-5)}));
  ASSERT_THAT(difference.changes, SizeIs(1));
  EXPECT_EQ(difference.changes[0].change, Change::winner);
}

TEST(Diff, TellsDevicesThatCameWentOrAreDescribedDifferently) {
  DeviceEntry renamed = h100();
  renamed.name = "another name";
  const Diff difference = diff(pack_of({}, {h200(), h100()}), pack_of({}, {renamed, rtx4090()}));
  EXPECT_THAT(difference.devices_removed, ElementsAre(h200()));
  EXPECT_THAT(difference.devices_added, ElementsAre(rtx4090()));
  EXPECT_THAT(difference.devices_changed, ElementsAre(renamed));
}

TEST(Diff, SeesAnAlgorithmThatWasEditedAndARequestThatLostItsWinner) {
  Record edited = record(1, "a", 1e-5);
  edited.algorithm_digest = "edited";
  Record failed = record(2, "a", 0);
  failed.outcome = outcome::wrong_result;
  const Diff difference = diff(pack_of({record(1, "a", 1e-5), record(2, "a", 1e-5)}), pack_of({edited, failed}));
  ASSERT_THAT(difference.changes, SizeIs(2));
  EXPECT_EQ(difference.changes[0].change, Change::winner);
  EXPECT_EQ(difference.changes[1].change, Change::winner);
  EXPECT_FALSE(difference.changes[1].after.has_value());
}

// Whatever the packs, the changes account for every request once, and both ways round they mirror each other.
TEST(Diff, CountsEveryRequestOnceAndMirrors) {
  std::mt19937_64 random(33);
  for (int i = 0; i < 200; ++i) {
    const std::vector<DeviceEntry> devices = {h200(), h100(), emulated()};
    std::vector<Record> a, b;
    for (auto n = random() % 20; n > 0; --n) a.push_back(random_record(random, devices));
    for (auto n = random() % 20; n > 0; --n) b.push_back(random_record(random, devices));
    b.insert(b.end(), a.begin(), a.begin() + static_cast<std::ptrdiff_t>(random() % (a.size() + 1)));
    const Pack before = make_pack(devices, a), after = make_pack(devices, b);
    std::set<std::pair<std::string, std::string>> requests;
    for (const Pack* pack : {&before, &after}) {
      for (const Record& r : pack->records) requests.emplace(r.device, r.request);
    }
    const Diff there = diff(before, after), back = diff(after, before);
    ASSERT_EQ(there.changes.size() + static_cast<std::size_t>(there.unchanged), requests.size());
    ASSERT_EQ(there.changes.size(), back.changes.size());
    for (std::size_t c = 0; c < there.changes.size(); ++c) {
      ASSERT_EQ(there.changes[c].before, back.changes[c].after);
      ASSERT_EQ(there.changes[c].records_added, back.changes[c].records_removed);
      ASSERT_EQ(there.changes[c].change == Change::added, back.changes[c].change == Change::removed);
    }
  }
}

}  // namespace
}  // namespace kiln::cache::test::diff_test
