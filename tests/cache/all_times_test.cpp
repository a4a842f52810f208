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
  EXPECT_THAT(announced, ElementsAre(HasSubstr("a.pack"))) << "whoever asks first is told";
  EXPECT_THAT(winners.times(request_line(1)), IsEmpty());
  EXPECT_THAT(announced, ElementsAre(HasSubstr("a.pack")));
}

TEST(AllTimes, OfARequestInPiecesAreOfAllPieces) {
  const auto of = [](const Record& r) { return print_pack(make_pack({h200()}, {r}), "1"); };
  std::string text = of(record_of(h200(), 1, "A=1", 1e-5));
  const std::string other = of(record_of(h200(), 1, "A=2", 2e-5));
  const auto piece = [](const std::string& pack) {
    const auto begin = pack.find("\nrequest\t") + 1;
    return pack.substr(begin, pack.rfind("end\n") - begin);
  };
  text.insert(text.rfind("end\n"), piece(other));
  Winners winners(h200());
  winners.load_pack_text(text, "a pack");
  EXPECT_THAT(configs(winners.times(request_line(1))), ElementsAre("A=1", "A=2"));
}

TEST(AllTimes, OfASourceWithoutOneThatCountsGiveWay) {
  Record changed = record_of(h200(), 1, "A=5", 1e-7);
  changed.algorithm_digest = "changed";
  for (const bool pack_first : {true, false}) {
    Winners winners(h200(), [](std::string_view, std::string_view digest) { return digest != "changed"; });
    const auto pack = [&] { winners.load_pack_text(pack_text_of({record_of(h200(), 1, "A=1", 1e-5)}), "a pack"); };
    if (pack_first) pack();
    winners.load(database_of({changed}));
    if (!pack_first) pack();
    EXPECT_THAT(configs(winners.times(request_line(1))), ElementsAre("A=1"));
  }
}

TEST(AllTimes, AreOfTheDeviceWithTheNearestNumberOfMultiprocessors) {
  DeviceEntry far = h100();
  far.id = "A far one";  // before the others by its id
  far.sms = 50;
  const std::vector<Record> records{record_of(far, 1, "A=1", 1e-6), record_of(h100(), 1, "A=2", 2e-6)};
  Winners winners(h200());
  winners.load_pack_text(print_pack(make_pack({far, h100()}, records), "1"), "a pack");
  EXPECT_THAT(configs(winners.times(request_line(1))), ElementsAre("A=2"));
}

TEST(AllTimes, AreOfTheFirstOfTwoPacks) {
  Winners winners(h200());
  winners.load_pack_text(pack_text_of({record_of(h200(), 1, "A=1", 1e-5)}), "a pack");
  winners.load_pack_text(pack_text_of({record_of(h200(), 1, "A=2", 1e-6)}), "another");
  EXPECT_THAT(configs(winners.times(request_line(1))), ElementsAre("A=1"));
}

TEST(AllTimes, HaveAllRequestsOfALargePack) {
  std::vector<Record> records;
  for (int i = 0; i < 3000; ++i) records.push_back(record_of(h200(), i, "A=1", 1e-5));
  const std::string text = pack_text_of(records);
  ASSERT_GT(text.size(), std::size_t{600} << 10) << "several blocks of a PackReader";
  Winners winners(h200());
  winners.load_pack_text(text, "a pack");
  EXPECT_EQ(winners.requests().size(), records.size());
}

TEST(AllTimes, HaveRequestsWithoutEscapes) {
  Record r = record_of(h200(), 1, "A=1", 1e-5);
  r.request = "a\\b";
  std::string text = pack_text_of({r, record_of(h200(), 2, "A=1", 1e-5)});
  const std::string line = request_line(2);
  text.replace(text.find(line), 1, "\xff");
  Winners winners(h200());
  winners.load_pack_text(text, "a pack");
  EXPECT_THAT(winners.requests(), ElementsAre(r.request)) << "bytes that are no UTF-8 are none";
}

TEST(AllTimes, LeaveOutWhatHasNoTime) {
  Record failed = record_of(h200(), 1, "A=2", 0);
  failed.outcome = outcome::compile_failed;
  Winners winners(h200());
  winners.load(database_of({record_of(h200(), 1, "A=1", 1e-5), failed}));
  EXPECT_THAT(configs(winners.times(request_line(1))), ElementsAre("A=1"));
}

TEST(AllTimes, AreNotBarredByAFailureOfAnotherVersion) {
  Record old = that_failed(record_of(h200(), 1, "A=1", 0));
  old.algorithm_digest = "changed";
  Winners winners(h200(), [](std::string_view, std::string_view digest) { return digest != "changed"; });
  winners.load(database_of({record_of(h200(), 1, "A=1", 1e-5), old}));
  EXPECT_TRUE(winners.find(request_line(1), {}));
  EXPECT_THAT(configs(winners.times(request_line(1))), ElementsAre("A=1"));
}

TEST(AllTimes, OfPredictionsAreThoseOfTheNewestClock) {
  const auto clock = [](int version) {
    const std::string name = "Kiln emulated NVIDIA H200 (machine-code clock " + std::to_string(version) + ")";
    return DeviceEntry{name + " id", name, 9, 0, 132, true};
  };
  const std::vector<Record> records{record_of(clock(1), 1, "A=1", 1e-6), record_of(clock(2), 1, "A=2", 2e-6)};
  Winners winners(h200());
  winners.load_pack_text(print_pack(make_pack({clock(1), clock(2)}, records), "1"), "a pack");
  EXPECT_EQ(winners.find(request_line(1), {})->config, "A=2");
  EXPECT_THAT(configs(winners.times(request_line(1))), ElementsAre("A=2"));
}

}  // namespace
}  // namespace kiln::cache::test::all_times_test
