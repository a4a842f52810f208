#include "kiln/cache/winners.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>

#include "cache_fixtures.h"
#include "kiln/cache/pack.h"
#include "winner_table.h"

namespace kiln::cache::test::winners_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A record of request 1 whose config tells it apart.
Record candidate(const DeviceEntry& device, std::string_view config, double seconds) {
  Record r = timed_record(request_line(1), config, seconds);
  r.device = device.id;
  if (device.emulated) r.kind = TimeKind::modelled;
  return r;
}

Record prediction(const DeviceEntry& device, std::string_view config, double seconds) {
  Record r = candidate(device, config, seconds);
  r.kind = TimeKind::predicted;
  r.outcome = outcome::predicted;
  return r;
}

std::string chosen(const Winners& winners, const Filter& filter = {}) {
  const auto choice = winners.find(request_line(1), filter);
  return choice ? std::string(choice->config) : "none";
}

TEST(Winners, TellWhatIsKnownOfTheWinner) {
  Record r = candidate(h200(), "TILE=32", 1e-5);
  r.workspace_bytes = 4096;
  r.deterministic = false;
  const Database db = database_of({r});
  Winners winners(h200());
  winners.load(db);
  const auto choice = winners.find(request_line(1));
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->algorithm, r.algorithm);
  EXPECT_EQ(choice->algorithm_digest, r.algorithm_digest);
  EXPECT_EQ(choice->config, r.config);
  EXPECT_EQ(choice->seconds, r.seconds);
  EXPECT_EQ(choice->workspace_bytes, 4096);
  EXPECT_FALSE(choice->deterministic);
  EXPECT_EQ(choice->kind, TimeKind::measured);
  EXPECT_EQ(choice->standing, Standing::measured_here);
  EXPECT_EQ(choice->origin, Origin::user_database);
  EXPECT_EQ(choice->device, h200().id);
  EXPECT_EQ(winners.find(request_line(2)), std::nullopt);
}

TEST(Winners, NameTheDatabaseOrPackThatTheyAreFrom) {
  const ScratchFolder folder;
  Winners winners(h200());
  const auto source = [&] { return std::string(winners.find(request_line(1))->source); };
  const std::array<std::string, 2> paths = {folder.file("a.db"), folder.file("b.db")};
  for (const std::string& path : paths) {
    Database db = with_devices(Database::open(path));
    Record r = candidate(h200(), path == paths[0] ? "slow" : "fast", path == paths[0] ? 2e-5 : 1e-5);
    r.request = request_line(path == paths[0] ? 1 : 2);
    db.insert(std::span(&r, 1));
    winners.load(db);
  }
  EXPECT_EQ(source(), paths[0]);
  EXPECT_EQ(winners.find(request_line(2))->source, paths[1]);
  Record packed = candidate(h200(), "packed", 1e-5);
  packed.request = request_line(3);
  winners.load_pack_text(pack_text_of({packed}), "a.pack");
  EXPECT_EQ(winners.find(request_line(3))->source, "a.pack");
}

TEST(Arena, NeverGivesMoreThanItsChunksHold) {
  constexpr std::size_t chunk = std::size_t{256} << 10;
  for (const std::size_t left : {1, 4, 7, 8}) {
    Arena arena;
    auto* first = static_cast<std::byte*>(arena.allocate(chunk - left, 1));
    auto* second = static_cast<std::byte*>(arena.allocate(left, 8));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second) % 8, 0U);
    EXPECT_EQ(second >= first && second < first + chunk + 8, left == 8) << left << " bytes are left, not all aligned";
  }
  Arena arena;
  void* const large = arena.allocate(2 * chunk, 64);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large) % 64, 0U);
  std::memset(large, 1, 2 * chunk);
}

TEST(Winners, APlaceInTheOrderOfPrecedenceBeatsAnyTime) {
  DeviceEntry far = h100();
  far.id = "far", far.sms = 66;
  Database db = with_devices(Database::in_memory());
  db.put_device(far);
  const auto insert = [&](const Record& r) { db.insert(std::span(&r, 1)); };
  const auto choose_now = [&] {
    Winners winners(h200());
    winners.load(db);
    return chosen(winners);
  };
  EXPECT_EQ(choose_now(), "none");
  insert(candidate(rtx4090(), "other architecture", 1e-9));
  insert(candidate(emulated(), "emulated", 1e-9));
  EXPECT_EQ(choose_now(), "none");
  insert(prediction(h200(), "predicted", 1e-8));
  EXPECT_EQ(choose_now(), "predicted");
  Record distant = candidate(h200(), "distant", 1e-7);
  distant.device = far.id;
  insert(distant);
  EXPECT_EQ(choose_now(), "distant");
  insert(candidate(h100(), "near", 1e-6));
  EXPECT_EQ(choose_now(), "near");
  insert(candidate(h200(), "here", 1e-5));
  EXPECT_EQ(choose_now(), "here");
}

TEST(Winners, OfEmulatedDevicesWithoutAClockThatPredictsNeverMixWithRealOnes) {
  const Database db = database_of({candidate(h200(), "real", 1e-6), candidate(emulated(), "emulated", 1e-5),
                                   prediction(h200(), "predicted for real", 1e-7)});
  Winners on_emulated(emulated());
  on_emulated.load(db);
  EXPECT_EQ(chosen(on_emulated), "emulated");
  EXPECT_EQ(on_emulated.all(request_line(1)).size(), 1u);
}

TEST(Winners, ALayerWinsWhateverTheOrderOfLoading) {
  Winners winners(h200());
  winners.load_pack_text(pack_text_of({candidate(h200(), "system", 6e-7)}), "s.pack", Origin::system_pack);
  EXPECT_EQ(winners.find(request_line(1))->origin, Origin::system_pack);
  winners.load_pack_text(pack_text_of({candidate(h200(), "application", 1e-6)}), "a.pack");
  EXPECT_EQ(chosen(winners), "application");
  winners.load(database_of({candidate(h200(), "user", 1e-5)}));
  EXPECT_EQ(chosen(winners), "user");
  winners.load_pack_text(pack_text_of({candidate(h200(), "late system", 3e-7)}), "t.pack", Origin::system_pack);
  std::vector<std::string> order;
  for (const Choice& c : winners.all(request_line(1))) order.emplace_back(c.config);
  EXPECT_THAT(order, ElementsAre("user", "application", "system", "late system"));
}

TEST(Winners, WithinAStandingTheUsersDatabaseWinsThenTheEarlierPack) {
  const Database db = database_of({candidate(h100(), "db near", 5e-5)});
  Winners winners(h200());
  winners.load_pack_text(pack_text_of({candidate(h100(), "pack near", 1e-5)}), "first.pack");
  winners.load_pack_text(pack_text_of({candidate(h100(), "late pack near", 1e-6)}), "second.pack");
  EXPECT_EQ(chosen(winners), "pack near");
  winners.load(db);
  EXPECT_EQ(chosen(winners), "db near");
  winners.load_pack_text(pack_text_of({candidate(h200(), "pack here", 9e-5)}), "third.pack");
  EXPECT_EQ(chosen(winners), "pack here") << "but a better standing comes first";
  const auto choice = winners.find(request_line(1));
  EXPECT_EQ(choice->origin, Origin::pack);
  EXPECT_EQ(choice->source, "third.pack");
  EXPECT_EQ(choice->standing, Standing::measured_here);
  std::vector<std::string> order;
  for (const Choice& c : winners.all(request_line(1))) order.emplace_back(c.config);
  EXPECT_THAT(order, ElementsAre("pack here", "db near", "pack near", "late pack near"));
}

TEST(Winners, OfAnEarlierPackBeatThoseOfALaterOneWhoseDeviceIsNearer) {
  DeviceEntry far = h100();
  far.id = "far", far.sms = 66;
  const auto pack = [&](const DeviceEntry& device, std::string_view config) {
    return print_pack(make_pack({device}, {candidate(device, config, 1e-5)}), "0.1.0");
  };
  Winners winners(h200());
  winners.load_pack_text(pack(far, "far"), "first.pack");
  winners.load_pack_text(pack(h100(), "near"), "second.pack");
  EXPECT_EQ(chosen(winners), "far");
  // In one pack, the nearer device wins.
  Winners of_one(h200());
  of_one.load_pack_text(
      print_pack(make_pack({far, h100()}, {candidate(far, "far", 1e-6), candidate(h100(), "near", 1e-5)}), "0.1.0"),
      "both.pack");
  EXPECT_EQ(chosen(of_one), "near");
}

TEST(Winners, KeepCandidatesForAWorkspaceLimitAndForDeterminism) {
  Record fast = candidate(h200(), "fast", 1e-5);
  fast.workspace_bytes = 1000;
  fast.deterministic = false;
  Record exact = candidate(h200(), "exact", 2e-5);
  exact.workspace_bytes = 100;
  Record small = candidate(h200(), "small", 3e-5);
  small.deterministic = false;
  Record slow = candidate(h200(), "slow", 4e-5);
  slow.outcome = outcome::rejected_early;
  const Database db = database_of({fast, exact, small, slow});
  Winners winners(h200());
  winners.load(db);
  EXPECT_EQ(chosen(winners), "fast");
  EXPECT_EQ(chosen(winners, {1000, false}), "fast");
  EXPECT_EQ(chosen(winners, {999, false}), "exact");
  EXPECT_EQ(chosen(winners, {99, false}), "small");
  EXPECT_EQ(chosen(winners, {1000, true}), "exact");
  EXPECT_EQ(chosen(winners, {0, true}), "slow");
}

TEST(Winners, TiesAreSettledByWorkspaceDeterminismAndName) {
  Record fastest = candidate(h200(), "z", 1.00e-5);
  fastest.workspace_bytes = 10;
  Record varies = candidate(h200(), "y", 1.005e-5);
  varies.deterministic = false;
  const Record late = candidate(h200(), "x", 1.009e-5);
  const Record early = candidate(h200(), "w", 1.01e-5);
  const Record beyond = candidate(h200(), "a", 1.011e-5);
  const auto winner_of = [](const std::vector<Record>& records) {
    const Database db = database_of(records);
    Winners winners(h200());
    winners.load(db);
    return chosen(winners);
  };
  EXPECT_EQ(winner_of({fastest}), "z");
  EXPECT_EQ(winner_of({fastest, varies}), "y");
  EXPECT_EQ(winner_of({fastest, varies, late}), "x");
  EXPECT_EQ(winner_of({fastest, varies, late, early}), "w");
  EXPECT_EQ(winner_of({fastest, varies, late, early, beyond}), "w");
}

TEST(Winners, StaleRecordsAreCountedAndNotUsed) {
  Record stale = candidate(h200(), "stale", 1e-6);
  stale.algorithm_digest = "old";
  const Record current = candidate(h200(), "current", 1e-5);
  const Database db = database_of({stale, current});
  int asked = 0;
  Winners winners(h200(), [&](std::string_view algorithm, std::string_view digest) {
    ++asked;
    EXPECT_EQ(algorithm, "conv_implicit_gemm");
    return digest != "old";
  });
  winners.load(db);
  winners.load_pack_text(pack_text_of({stale}), "old.pack");
  EXPECT_EQ(chosen(winners), "current");
  EXPECT_EQ(winners.stale(request_line(1)), 2) << "of database and pack";
  EXPECT_EQ(winners.stale(request_line(2)), 0);
  EXPECT_EQ(asked, 2) << "once per algorithm and digest";
  winners.load(db);
  EXPECT_EQ(winners.stale(request_line(1)), 2) << "loading again does not count twice";
}

TEST(Winners, ARefreshShowsWhatWasInsertedAndOnlyThat) {
  Database db = database_of({candidate(h200(), "old", 2e-5)});
  Winners winners(h200());
  winners.load(db);
  winners.load_pack_text(pack_text_of({candidate(h200(), "pack", 9e-5)}), "a.pack");
  const auto before = winners.find(request_line(1));
  Record better = candidate(h200(), "new", 1e-5);
  db.insert(std::span(&better, 1));
  EXPECT_EQ(chosen(winners), "old");
  winners.refresh(db, request_line(1));
  EXPECT_EQ(chosen(winners), "new");
  EXPECT_EQ(before->config, "old") << "what find() returned stays readable";

  std::vector<Record> failed = {better, candidate(h200(), "old", 2e-5)};
  for (Record& r : failed) r.outcome = outcome::wrong_result;
  db.insert(failed);
  winners.refresh(db, request_line(1));
  EXPECT_EQ(chosen(winners), "pack");
  EXPECT_EQ(winners.all(request_line(1)).size(), 1u);
  winners.refresh(db, request_line(77));
  EXPECT_EQ(winners.find(request_line(77)), std::nullopt);
}

TEST(Winners, AKeyThatLostItsLastCandidateDoesNotHideOthers) {
  Database db = with_devices(Database::in_memory());
  std::vector<Record> records;
  for (int i = 0; i < 3000; ++i) records.push_back(timed_record(request_line(i), "TILE=32", 1e-5));
  db.insert(records);
  Winners winners(h200());
  winners.load(db);
  for (Record& r : records) r.outcome = outcome::crashed;
  db.insert(std::span(records).subspan(0, 1500));
  for (int i = 0; i < 1500; ++i) winners.refresh(db, request_line(i));
  for (int i = 0; i < 3000; ++i) EXPECT_EQ(winners.find(request_line(i)).has_value(), i >= 1500) << i;
}

TEST(Winners, AreReadWithoutALockWhileTheyGrow) {
  Database db = with_devices(Database::in_memory());
  Winners winners(h200());
  constexpr int requests = 1500;  // beyond the table's first size
  std::atomic<int> inserted = 0;
  std::atomic<bool> wrong = false;
  std::vector<std::thread> readers;
  for (int t = 0; t < 2; ++t) {
    readers.emplace_back([&] {
      for (int round = 0; inserted < requests; ++round) {
        const int known = inserted.load();
        if (known == 0) continue;
        const int asked = round % known;
        const auto choice = winners.find(request_line(asked));
        if (!choice || choice->config != fmt::format("TILE={}", asked)) wrong = true;
      }
    });
  }
  for (int i = 0; i < requests; ++i) {
    const Record r = timed_record(request_line(i), fmt::format("TILE={}", i), 1e-5);
    db.insert(std::span(&r, 1));
    winners.refresh(db, r.request);
    inserted = i + 1;
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_FALSE(wrong);
}

TEST(Winners, APackThatCannotBeUsedIsReportedAndTheRestGoesOn) {
  const ScratchFolder folder;
  Winners winners(h200());
  winners.load_pack(folder.file("missing.pack"));
  winners.load_pack(folder.path());
  winners.load_pack_text("no pack", "a");
  winners.load_pack_text("kiln-pack\t999\t9.9.9\nend\n", "b");
  winners.load_pack_text("", "c");
  EXPECT_THAT(winners.problems(), ElementsAre(HasSubstr("missing.pack"), HasSubstr(folder.path()),
                                              HasSubstr("a: line 1"), HasSubstr("format 999"), HasSubstr("c: line 1")));
  std::string text = pack_text_of({candidate(h200(), "good", 1e-5), candidate(h200(), "spoilt", 1e-6)});
  text.replace(text.find("1e-06"), 5, "nan");
  winners.load_pack_text(text, "d");
  EXPECT_EQ(winners.problems().size(), 5u) << "lines are read when their request is asked for";
  EXPECT_EQ(chosen(winners), "good");
  EXPECT_THAT(winners.problems().back(), HasSubstr("seconds 'nan'"));
  winners.load_pack_text(pack_text_of({}).substr(0, 40), "e");
  EXPECT_THAT(winners.problems().back(), HasSubstr("cut off"));
}

TEST(Winners, FromAPackChooseAsFromTheDatabaseThatWroteIt) {
  std::mt19937_64 random(11);
  const std::vector<DeviceEntry> devices = {h200(), h100(), emulated()};
  for (int round = 0; round < 30; ++round) {
    Database db = with_devices(Database::in_memory());
    std::vector<Record> records;
    for (int i = 0; i < 40; ++i) records.push_back(random_record(random, devices));
    db.insert(records);
    for (const bool winners_only : {false, true}) {
      ExportOptions options;
      options.winners_only = winners_only;
      const std::string text = print_pack(export_pack(db, options), "0.1.0");
      const auto current = [](std::string_view, std::string_view digest) { return digest == "d1"; };
      Winners from_db(h200(), current);
      Winners from_pack(h200(), current);
      from_db.load(db);
      from_pack.load_pack_text(text, "p");
      EXPECT_THAT(from_pack.problems(), IsEmpty());
      for (int request = 0; request < 3; ++request) {
        for (const std::int64_t limit : {std::int64_t{0}, std::numeric_limits<std::int64_t>::max()}) {
          for (const bool deterministic : {false, true}) {
            const auto a = from_db.find(request_line(request), {limit, deterministic});
            const auto b = from_pack.find(request_line(request), {limit, deterministic});
            ASSERT_EQ(a.has_value(), b.has_value());
            if (!a) continue;
            EXPECT_EQ(a->algorithm, b->algorithm);
            EXPECT_EQ(a->config, b->config);
            EXPECT_EQ(a->seconds, b->seconds);
            EXPECT_EQ(a->device, b->device);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace kiln::cache::test::winners_test
