// Everything that a Winners knows of other sizes: which requests there are, and all times of one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cache_fixtures.h"
#include "kiln/cache/pack.h"
#include "kiln/cache/winners.h"

namespace kiln::cache::test::all_times_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

Record record_of(const DeviceEntry& device, int request, std::string_view config, double seconds) {
  Record r = timed_record(request_line(request), config, seconds);
  r.device = device.id;
  if (device.emulated) r.kind = TimeKind::modelled;
  return r;
}

Record that_failed(Record r) {
  r.outcome = outcome::wrong_result;
  r.seconds = 0;
  return r;
}

std::vector<std::string> configs(const std::vector<TimedVariant>& times) {
  std::vector<std::string> result;
  for (const TimedVariant& time : times) result.push_back(time.config);
  return result;
}

TEST(AllTimes, HaveThoseThatCouldNeverWin) {
  const std::vector<Record> records{record_of(h200(), 1, "A=1", 3e-5), record_of(h200(), 1, "A=2", 1e-5),
                                    record_of(h200(), 1, "A=3", 2e-5), record_of(h200(), 2, "A=4", 1e-6)};
  Winners of_database(h200()), of_pack(h200());
  of_database.load(database_of(records));
  of_pack.load_pack_text(pack_text_of(records), "a pack");
  for (const Winners* winners : {&of_database, &of_pack}) {
    const std::vector<TimedVariant> times = winners->times(request_line(1));
    EXPECT_THAT(configs(times), ElementsAre("A=2", "A=3", "A=1"));
    EXPECT_EQ(times[0].seconds, 1e-5);
    EXPECT_EQ(times[0].algorithm, records[0].algorithm);
    EXPECT_EQ(times[0].device, h200().id);
    EXPECT_EQ(times[0].of_pack, winners == &of_pack);
    EXPECT_THAT(winners->requests(), UnorderedElementsAre(request_line(1), request_line(2)));
    EXPECT_THAT(winners->times(request_line(3)), IsEmpty());
  }
}

TEST(AllTimes, AreThoseOfTheFirstSourceInPrecedence) {
  Winners winners(h200());
  winners.load_pack_text(pack_text_of({record_of(h200(), 1, "A=1", 1e-6), record_of(h200(), 2, "A=1", 1e-6)}),
                         "a pack");
  winners.load(database_of({record_of(h100(), 1, "A=2", 2e-6), record_of(h200(), 1, "A=3", 3e-6),
                            record_of(h100(), 3, "A=4", 1e-6), record_of(rtx4090(), 4, "A=5", 1e-6)}));
  EXPECT_THAT(configs(winners.times(request_line(1))), ElementsAre("A=3")) << "of this device, of the user";
  EXPECT_THAT(configs(winners.times(request_line(2))), ElementsAre("A=1"));
  EXPECT_THAT(configs(winners.times(request_line(3))), ElementsAre("A=4")) << "of the same architecture";
  EXPECT_EQ(winners.times(request_line(3))[0].standing, Standing::same_architecture);
  EXPECT_THAT(winners.times(request_line(4)), IsEmpty()) << "of another";
  const std::vector<std::string> requests = winners.requests();
  ASSERT_EQ(requests.size(), 5U);
  EXPECT_THAT(std::vector(requests.begin() + 3, requests.end()), ElementsAre(request_line(1), request_line(2)))
      << "of the pack, after those of the database";
  for (const int known : {1, 2, 3}) EXPECT_THAT(requests, testing::Contains(request_line(known)));
  EXPECT_THAT(requests, testing::Not(testing::Contains(request_line(4))));
}

TEST(AllTimes, LeaveOutWhatFailedHasChangedOrDidNotRun) {
  Record predicted = record_of(h200(), 1, "A=4", 1e-7);
  predicted.kind = TimeKind::predicted;
  predicted.outcome = outcome::predicted;
  Record changed = record_of(h200(), 1, "A=5", 1e-7);
  changed.algorithm_digest = "changed";
  Winners winners(h200(), [](std::string_view, std::string_view digest) { return digest != "changed"; });
  winners.load(database_of({record_of(h200(), 1, "A=1", 1e-5), record_of(h200(), 1, "A=2", 2e-5), predicted, changed}));
  winners.load_pack_text(pack_text_of({that_failed(record_of(h100(), 1, "A=2", 0))}), "a pack that warns");
  EXPECT_THAT(configs(winners.times(request_line(1))), ElementsAre("A=1"));
}

TEST(AllTimes, AreReadAnew) {
  Database database = database_of({record_of(h200(), 1, "A=1", 1e-5)});
  Winners winners(h200());
  winners.load(database);
  EXPECT_THAT(configs(winners.times(request_line(1))), ElementsAre("A=1"));
  database.insert(std::vector{record_of(h200(), 1, "A=2", 1e-6), record_of(h200(), 2, "A=1", 1e-6)});
  EXPECT_THAT(configs(winners.times(request_line(1))), ElementsAre("A=2", "A=1"));
  EXPECT_THAT(winners.requests(), UnorderedElementsAre(request_line(1), request_line(2)));
}

TEST(AllTimes, OfAPackThatIsGoneAreNone) {
  const ScratchFolder folder;
  const std::string path = folder.file("a.pack");
  write_file(path, pack_text_of({record_of(h200(), 1, "A=1", 1e-5)}));
  std::vector<std::string> announced;
  Winners winners(h200(), {}, [&](const std::string& problem) { announced.push_back(problem); });
  winners.load_pack(path);
  write_file(path, "something else");
  EXPECT_THAT(winners.requests(), IsEmpty());
  EXPECT_THAT(winners.times(request_line(1)), IsEmpty());
  EXPECT_THAT(announced, ElementsAre(HasSubstr("a.pack")));
}

}  // namespace
}  // namespace kiln::cache::test::all_times_test
