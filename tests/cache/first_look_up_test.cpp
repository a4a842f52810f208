// Records of a request are read when it is first asked for: what that shows, whom it concerns, and many threads at
// once.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <thread>

#include "cache_fixtures.h"
#include "kiln/cache/pack.h"
#include "kiln/cache/winners.h"
#include "pack_index.h"

namespace kiln::cache::test::first_look_up_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A request a line pair, TILE=<index> for request <index>: lines 3 and 4 are of request 0, 5 and 6 of request 1.
std::string pack_of(int requests) {
  std::vector<Record> records;
  for (int i = 0; i < requests; ++i) records.push_back(timed_record(request_line(i), fmt::format("TILE={}", i), 1e-5));
  return print_pack(make_pack({h200()}, records), "0.1.0");
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  text.replace(text.find(what), what.size(), by);
  return text;
}

std::string chosen(const Winners& winners, int request) {
  const auto choice = winners.find(request_line(request));
  return choice ? std::string(choice->config) : "none";
}

TEST(FirstLookUp, ABadLineOfAPackCostsItsOwnRequestOnly) {
  std::vector<std::string> announced;
  const Winners* asker = nullptr;
  Winners winners(h200(), {}, [&](const std::string& problem) {
    announced.push_back(problem);
    EXPECT_EQ(chosen(*asker, 2), "TILE=2") << "no lock is held";
  });
  asker = &winners;
  winners.load_pack_text(replaced(pack_of(4), "TILE=1", "TILE=\xff"), "p");
  EXPECT_EQ(chosen(winners, 0), "TILE=0");
  EXPECT_THAT(announced, IsEmpty());
  EXPECT_EQ(chosen(winners, 1), "none");
  EXPECT_THAT(announced, ElementsAre("p: line 6: is not valid UTF-8"));
  EXPECT_EQ(chosen(winners, 1), "none");
  EXPECT_EQ(chosen(winners, 3), "TILE=3");
  EXPECT_THAT(winners.problems(), SizeIs(1)) << "said once";
}

TEST(FirstLookUp, CheckingAPackNamesEachBadLineOnceWhoeverAskedBefore) {
  std::string text = pack_of(30);
  for (const int bad : {1, 2, 25}) text = replaced(text, fmt::format("TILE={}\t", bad), "TILE=\xff\t");
  Winners winners(h200());
  winners.load_pack_text(text, "p");
  EXPECT_EQ(chosen(winners, 2), "none");
  EXPECT_THAT(winners.problems(), SizeIs(1));
  for (int times = 0; times < 2; ++times) {
    winners.check_packs();
    EXPECT_THAT(winners.problems(), SizeIs(3));
  }
  EXPECT_EQ(chosen(winners, 25), "none");
  EXPECT_THAT(winners.problems(), SizeIs(3));
  EXPECT_EQ(chosen(winners, 29), "TILE=29");
}

TEST(FirstLookUp, ManyBadLinesAreCountedNotListed) {
  std::string text = pack_of(40);
  for (std::size_t at = text.find("TILE="); at != std::string::npos; at = text.find("TILE=", at + 5)) text[at] = '\xff';
  Winners winners(h200());
  winners.load_pack_text(text, "p");
  winners.check_packs();
  EXPECT_THAT(winners.problems(), SizeIs(max_pack_problems + 1));
  EXPECT_EQ(winners.problems().back(), "p: and 20 more lines so far");
}

TEST(FirstLookUp, AllThatAPackSaysOfARequestIsFoundWhereverItStands) {
  std::string text = pack_of(2);
  const std::string again = text.substr(text.find("request\t"), text.find("request\t", 200) - text.find("request\t"));
  text = replaced(text, "end\n", "# a comment\r\n\n" + replaced(again, "TILE=0", "TILE=9") + "end\n");
  Winners winners(h200());
  winners.load_pack_text(text, "p");
  std::vector<std::string> configs;
  for (const Choice& choice : winners.all(request_line(0))) configs.emplace_back(choice.config);
  EXPECT_THAT(configs, ElementsAre("TILE=0", "TILE=9"));
  EXPECT_THAT(winners.problems(), IsEmpty());
}

TEST(FirstLookUp, APackOfMoreRecordsThanTheLimitIsReadUpToIt) {
  std::string text = "kiln-pack\t1\t0.1.0\n";
  for (std::size_t i = 0; i <= max_pack_records; ++i) text += "record\n";
  Winners winners(h200());
  winners.load_pack_text(text + "end\n", "p");
  EXPECT_THAT(winners.problems(), ElementsAre(HasSubstr("line 1048578: the pack has more than 1048576 records")));
}

TEST(FirstLookUp, APackThatAnotherTakesThePlaceOfIsReadOn) {
  const ScratchFolder folder;
  write_file(folder.file("a.pack"), pack_of(3));
  write_file(folder.file("b.pack"), "another");
  Winners winners(h200());
  winners.load_pack(folder.file("a.pack"));
  EXPECT_EQ(chosen(winners, 0), "TILE=0");
  std::filesystem::rename(folder.file("b.pack"), folder.file("a.pack"));
  EXPECT_EQ(chosen(winners, 1), "TILE=1");
  std::filesystem::remove(folder.file("a.pack"));
  EXPECT_EQ(chosen(winners, 2), "TILE=2");
  EXPECT_THAT(winners.problems(), IsEmpty());
}

TEST(FirstLookUp, APackThatIsChangedInPlaceIsAnnouncedAndLeft) {
  const ScratchFolder folder;
  for (const std::string& change : {std::string("short"), pack_of(2), replaced(pack_of(3), "TILE=1", "TILE=7")}) {
    write_file(folder.file("a.pack"), pack_of(3));
    std::filesystem::last_write_time(folder.file("a.pack"), std::filesystem::file_time_type());
    Winners winners(h200());
    winners.load_pack(folder.file("a.pack"));
    EXPECT_EQ(chosen(winners, 0), "TILE=0");
    write_file(folder.file("a.pack"), change);
    EXPECT_EQ(chosen(winners, 1), "none");
    EXPECT_EQ(chosen(winners, 2), "none");
    EXPECT_THAT(winners.problems(), ElementsAre(HasSubstr("was changed while it was in use")));
    EXPECT_EQ(chosen(winners, 0), "TILE=0") << "what was read stays";
  }
}

TEST(FirstLookUp, SeesWhatWasStoredSinceOpening) {
  Database db = database_of({timed_record(request_line(1), "TILE=1", 1e-5)});
  Winners winners(h200());
  winners.load(db);
  EXPECT_EQ(chosen(winners, 2), "none");
  for (const int request : {2, 3}) {
    const Record r = timed_record(request_line(request), fmt::format("TILE={}", request), 1e-5);
    db.insert(std::span(&r, 1));
  }
  EXPECT_EQ(chosen(winners, 3), "TILE=3");
  EXPECT_EQ(chosen(winners, 2), "none") << "it was asked for before";
  winners.refresh(db, request_line(2));
  EXPECT_EQ(chosen(winners, 2), "TILE=2");
}

TEST(FirstLookUp, KeepsTheDatabaseOpenThatItsOwnerHasLet) {
  const ScratchFolder folder;
  Winners winners(h200());
  {
    Database db = with_devices(Database::open(folder.file("a.db")));
    const Record r = timed_record(request_line(1), "TILE=1", 1e-5);
    db.insert(std::span(&r, 1));
    winners.load(db);
  }
  EXPECT_EQ(chosen(winners, 1), "TILE=1");
}

// An algorithm's row may be deleted and its number given to another.
TEST(FirstLookUp, TakesAnAlgorithmForWhatItIsNow) {
  Database db = database_of({timed_record(request_line(1), "TILE=1", 1e-5)});
  Winners winners(h200(), [](std::string_view, std::string_view digest) { return digest == "new"; });
  winners.load(db);
  EXPECT_EQ(chosen(winners, 1), "none");
  PruneOptions old;
  old.before_ms = utc_now_ms() + 1'000'000;
  EXPECT_EQ(db.prune(old).records, 1);
  Record r = timed_record(request_line(2), "TILE=2", 1e-5);
  r.algorithm_digest = "new";
  db.insert(std::span(&r, 1));
  EXPECT_EQ(chosen(winners, 2), "TILE=2");
}

// Records of a request are shown as a whole: never a pack's choice that the database bars, or beats.
TEST(FirstLookUp, OfManyThreadsAtOnceGivesEachTheWholeAnswer) {
  constexpr int requests = 300, threads = 8;
  std::vector<Record> in_pack, in_database;
  for (int i = 0; i < requests; ++i) {
    in_pack.push_back(timed_record(request_line(i), fmt::format("PACK={}", i), 1e-6));
    Record r = timed_record(request_line(i), fmt::format("PACK={}", i), 0);
    r.outcome = outcome::wrong_result;
    r.samples.clear();
    if (i % 3 == 0) in_database.push_back(r);
    if (i % 3 == 1) in_database.push_back(timed_record(request_line(i), fmt::format("DB={}", i), 1e-5));
  }
  const auto expected = [](int i) {
    return i % 3 == 0 ? std::string("none") : fmt::format("{}={}", i % 3 == 1 ? "DB" : "PACK", i);
  };
  Database db = database_of(in_database);
  Winners winners(h200());
  winners.load_pack_text(pack_text_of(in_pack), "p");
  winners.load(db);
  std::barrier start(threads);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> askers;
  for (int t = 0; t < threads; ++t) {
    askers.emplace_back([&, t] {
      start.arrive_and_wait();
      for (int step = 0; step < requests; ++step) {
        const int i = t % 2 == 0 ? step : (step * 7 + t) % requests;
        if (t == 7 && step % 10 == 0) winners.refresh(db, request_line(i));
        if (t == 5) winners.bar(request_line(i), "conv_implicit_gemm", fmt::format("PACK={}", i));
        if (chosen(winners, i) != expected(i)) ++wrong;
        if (winners.find(request_line(i + 2 * requests))) ++wrong;
      }
    });
  }
  for (std::thread& asker : askers) asker.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace kiln::cache::test::first_look_up_test
