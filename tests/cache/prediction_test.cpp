// Which modelled times predict those of another device, and what they may decide there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "cache_fixtures.h"
#include "kiln/cache/machine_clock.h"
#include "kiln/cache/pack.h"
#include "kiln/cache/winners.h"

namespace kiln::cache::test::prediction_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

DeviceEntry device(const std::string& name, bool emulated, int sms = 132, int minor = 0) {
  return {"name=\"" + name + "\" cc=9.0", name, 9, minor, sms, emulated};
}

const DeviceEntry real = device("NVIDIA H200", false);
const DeviceEntry clock_1 = device("Kiln emulated NVIDIA H200 (machine-code clock 1)", true);
const DeviceEntry clock_2 = device("Kiln emulated NVIDIA H200 (machine-code clock 2)", true);
const DeviceEntry by_ptx = device("Kiln emulated NVIDIA H200", true);

Record candidate(const DeviceEntry& device, std::string_view config, double seconds) {
  Record r = timed_record(request_line(1), config, seconds);
  r.device = device.id;
  r.kind = device.emulated ? TimeKind::modelled : TimeKind::measured;
  return r;
}

Record wrong(const DeviceEntry& device, std::string_view config) {
  Record r = candidate(device, config, 0);
  r.outcome = outcome::wrong_result;
  r.source_digest = "source of " + std::string(config);
  return r;
}

Pack pack_of(const std::vector<Record>& records) {
  return make_pack({real, clock_1, clock_2, by_ptx, h100()}, records);
}

std::string pack_text(const std::vector<Record>& records) {
  return print_pack(pack_of(records), "1");
}

std::vector<std::string> configs(const Winners& winners) {
  std::vector<std::string> result;
  for (const Choice& choice : winners.all(request_line(1))) result.emplace_back(choice.config);
  return result;
}

std::vector<std::string> offered(const DeviceEntry& to, const std::vector<Record>& records) {
  Winners winners(to);
  winners.load_pack_text(pack_text(records), "a.pack");
  EXPECT_THAT(winners.problems(), IsEmpty());
  return configs(winners);
}

TEST(MachineClock, IsReadFromTheNameOfADevice) {
  const auto clock = machine_clock_of("Kiln emulated NVIDIA A100 (machine-code clock 12)");
  ASSERT_TRUE(clock);
  EXPECT_EQ(clock->card, "NVIDIA A100");
  EXPECT_EQ(clock->text, "machine-code clock 12");
  EXPECT_EQ(clock->version, 12);
  const auto of_user = machine_clock_of("Kiln emulated NVIDIA A100 (machine-code clock 1 of my_a100)");
  ASSERT_TRUE(of_user);
  EXPECT_EQ(of_user->text, "machine-code clock 1 of my_a100");
  EXPECT_EQ(of_user->version, 1);
  const auto in_line = machine_clock_of(
      "name=\"Kiln emulated NVIDIA A100 (machine-code clock 1)\" cc=8.0 sms=108 memory=80GiB emulated=yes");
  ASSERT_TRUE(in_line);
  EXPECT_EQ(in_line->text, "machine-code clock 1");
  for (const char* name :
       {"", "NVIDIA A100", "Kiln emulated NVIDIA A100", "NVIDIA A100 (machine-code clock 1)",
        "Kiln emulated NVIDIA A100 (machine-code clock )", "Kiln emulated NVIDIA A100 (machine-code clock x)",
        "Kiln emulated NVIDIA A100 (machine-code clock 0)", "Kiln emulated NVIDIA A100 (machine-code clock 1x)",
        "Kiln emulated NVIDIA A100 (machine-code clock 1", "Kiln emulated NVIDIA A100 (some clock 1)",
        "Kiln emulated NVIDIA A100 (machine-code clock 99999999999)", "Kiln emulated  (machine-code clock 1)",
        "Kiln emulated )", "name=\"Kiln emulated NVIDIA A100 (machine-code clock 1"}) {
    EXPECT_FALSE(machine_clock_of(name)) << name;
  }
}

TEST(MachineClock, PredictsTheCardsOfItsName) {
  const auto on = [](const std::string& model, const std::string& name, int sms = 132, int minor = 0) {
    return predicts(device("Kiln emulated " + model + " (machine-code clock 1)", true),
                    device(name, false, sms, minor));
  };
  EXPECT_TRUE(on("NVIDIA A100", "NVIDIA A100"));
  EXPECT_TRUE(on("NVIDIA A100", "NVIDIA A100-SXM4-80GB"));
  EXPECT_TRUE(on("NVIDIA A100", "NVIDIA A100 80GB PCIe"));
  EXPECT_TRUE(on("NVIDIA T4", "Tesla T4"));
  EXPECT_TRUE(on("NVIDIA GeForce RTX 5090", "NVIDIA GeForce RTX 5090"));
  EXPECT_FALSE(on("NVIDIA A10", "NVIDIA A100"));
  EXPECT_FALSE(on("NVIDIA A10", "NVIDIA A10G"));
  EXPECT_FALSE(on("NVIDIA A100", "NVIDIA A10"));
  EXPECT_FALSE(on("NVIDIA H200", "NVIDIA H100"));
  EXPECT_FALSE(on("NVIDIA H100", "NVIDIA H100 PCIe", 114)) << "another number of multiprocessors";
  EXPECT_FALSE(on("NVIDIA H100", "NVIDIA H100", 132, 1)) << "another compute capability";
  EXPECT_FALSE(predicts(by_ptx, real)) << "a clock that sees PTX alone";
  EXPECT_FALSE(predicts(real, real));
  EXPECT_TRUE(predicts(clock_1, by_ptx));
  EXPECT_TRUE(predicts(clock_1, clock_2));
  EXPECT_FALSE(predicts(by_ptx, clock_1));
  const DeviceEntry of_user = device("Kiln emulated NVIDIA H200 (machine-code clock 1 of mine 1a2b3c4d)", true);
  EXPECT_TRUE(predicts(clock_1, of_user)) << "a user's figures are another clock";
  EXPECT_TRUE(predicts(of_user, clock_1));
  DeviceEntry twin = clock_1;
  twin.id += " memory=1GiB";
  EXPECT_FALSE(predicts(clock_1, twin)) << "the same clock is no prediction";
}

TEST(Predictions, AreBelowAnythingThatWasTimedAndAboveEstimates) {
  Record estimated = candidate(real, "estimated", 1e-6);
  estimated.kind = TimeKind::predicted;
  estimated.outcome = outcome::predicted;
  EXPECT_THAT(offered(real, {candidate(clock_1, "predicted", 1e-6), candidate(real, "here", 1e-3),
                             candidate(h100(), "same architecture", 1e-4), estimated}),
              ElementsAre("here", "same architecture", "predicted", "estimated"));
  // An estimate for the emulated device is none for the card.
  estimated.device = clock_1.id;
  EXPECT_THAT(offered(real, {candidate(clock_1, "predicted", 1e-6), estimated}), ElementsAre("predicted"));
  // In whatever layer they are.
  Winners winners(real);
  winners.load_pack_text(pack_text({candidate(h100(), "measured", 1e-3)}), "s.pack", Origin::system_pack);
  winners.load_pack_text(pack_text({candidate(clock_1, "predicted", 1e-6)}), "a.pack");
  EXPECT_THAT(configs(winners), ElementsAre("measured", "predicted"));
  const std::vector<Choice> all = winners.all(request_line(1));
  EXPECT_EQ(all[1].standing, Standing::predicted);
  EXPECT_EQ(all[1].clock, "machine-code clock 1");
  EXPECT_EQ(all[1].device, clock_1.id);
  EXPECT_EQ(all[1].kind, TimeKind::modelled) << "what it is stays what it is";
  EXPECT_EQ(all[0].clock, "");
}

TEST(Predictions, OfDatabasesCountToo) {
  Database db = Database::in_memory();
  for (const DeviceEntry& one : {real, clock_1}) db.put_device(one);
  const Record predicted = candidate(clock_1, "predicted", 1e-6);
  db.insert(std::span(&predicted, 1));
  Winners winners(real);
  winners.load(db);
  EXPECT_THAT(configs(winners), ElementsAre("predicted"));
  EXPECT_FALSE(winners.has_passed(request_line(1), predicted.algorithm, "predicted")) << "the card ran nothing";
  const Record measured = candidate(real, "measured", 1e-3);
  db.insert(std::span(&measured, 1));
  winners.refresh(db, request_line(1));
  EXPECT_THAT(configs(winners), ElementsAre("measured", "predicted"));
  EXPECT_TRUE(winners.has_passed(request_line(1), measured.algorithm, "measured"));
  EXPECT_FALSE(winners.has_passed(request_line(1), predicted.algorithm, "predicted"));
}

TEST(Predictions, OfANewerClockComeFirstWithinALayer) {
  EXPECT_THAT(offered(real, {candidate(clock_1, "old", 1e-6), candidate(clock_2, "new", 1e-5)}),
              ElementsAre("new", "old"));
  Winners winners(real);
  winners.load_pack_text(pack_text({candidate(clock_1, "old", 1e-6)}), "first.pack");
  winners.load_pack_text(pack_text({candidate(clock_2, "new", 1e-6)}), "second.pack");
  EXPECT_THAT(configs(winners), ElementsAre("old", "new")) << "the earlier layer";
}

TEST(Predictions, ServeEmulatedDevicesWithAnotherClock) {
  const std::vector<Record> both = {candidate(clock_1, "clock 1", 1e-5), candidate(by_ptx, "PTX", 1e-6)};
  EXPECT_THAT(offered(by_ptx, both), ElementsAre("PTX", "clock 1"));
  EXPECT_THAT(offered(clock_1, both), ElementsAre("clock 1")) << "PTX predicts nothing";
  EXPECT_THAT(offered(clock_2, both), ElementsAre("clock 1"));
  EXPECT_THAT(offered(real, both), ElementsAre("clock 1"));
  EXPECT_THAT(offered(h100(), both), IsEmpty()) << "another card";
  DeviceEntry other_card = device("Kiln emulated NVIDIA H100 (machine-code clock 1)", true);
  EXPECT_THAT(offered(other_card, both), ElementsAre("clock 1")) << "modelled on the same architecture by one clock";
}

TEST(Predictions, AreBarredByWhatWasFoundWrongOnTheDeviceOrInTheEmulation) {
  Record predicted = candidate(clock_1, "X", 1e-6);
  const Record other = candidate(clock_1, "Y", 1e-5);
  predicted.workspace_bytes = other.workspace_bytes + 1;  // both may be chosen under some limit
  EXPECT_THAT(offered(real, {predicted, other, wrong(real, "X")}), ElementsAre("Y"));
  EXPECT_THAT(offered(real, {predicted, other, wrong(clock_2, "X")}), ElementsAre("Y"));
}

TEST(Predictions, AndWhatIsWrongInTheEmulationBarNothingThatWasMeasured) {
  Winners winners(real);
  const Record bar = wrong(clock_1, "Z");
  winners.load_pack_text(pack_text({candidate(real, "X", 1e-4), wrong(clock_1, "X"), bar}), "a.pack");
  EXPECT_THAT(configs(winners), ElementsAre("X"));
  EXPECT_FALSE(winners.bar(request_line(1), bar.algorithm, "Z")) << "an estimate may still name it";
  EXPECT_FALSE(winners.bars_program(request_line(1), "source of Z"));
}

TEST(Predictions, BarAnEmulatedDeviceWhateverItsClock) {
  EXPECT_THAT(offered(by_ptx, {candidate(by_ptx, "Y", 1e-5), candidate(clock_2, "X", 1e-6), wrong(clock_1, "X")}),
              ElementsAre("Y"));
  Winners winners(by_ptx);
  const Record bar = wrong(clock_1, "X");
  winners.load_pack_text(pack_text({bar}), "a.pack");
  EXPECT_TRUE(winners.bar(request_line(1), bar.algorithm, "X"));
}

TEST(Predictions, StayApartFromWhatWasMeasuredWhenPacksAreMerged) {
  const Pack measured = pack_of({candidate(real, "X", 1e-3)}), modelled = pack_of({candidate(clock_1, "X", 1e-6)});
  const Pack both = merge(modelled, measured);
  ASSERT_EQ(both.records.size(), 2u);
  for (const Record& r : both.records) EXPECT_EQ(r.kind == TimeKind::measured, r.device == real.id);
  Winners winners(real);
  winners.load_pack_text(print_pack(both, "1"), "both.pack");
  const auto best = winners.find(request_line(1));
  ASSERT_TRUE(best);
  EXPECT_EQ(best->seconds, 1e-3) << "the same variant, with the time that was measured";
  EXPECT_EQ(best->standing, Standing::measured_here);
}

TEST(PredictionMarks, StandBelowTheDeviceWithItsClockAndHowWellThatOneDoes) {
  Pack pack = make_pack({real, clock_1, by_ptx}, {candidate(clock_1, "X", 1e-6)});
  pack.accuracies[clock_1.id] = "rank correlation 0.84";
  const std::string text = print_pack(pack, "1");
  EXPECT_THAT(text, StartsWith("kiln-pack\t2\t1\n"));
  EXPECT_THAT(text, HasSubstr("\t132\temulated\npredicted\tmachine-code clock 1\trank correlation 0.84\nrequest\t"));
  EXPECT_EQ(text.find("predicted\t"), text.rfind("predicted\t")) << "neither the real one nor that by PTX has one";
  EXPECT_EQ(require_complete(parse_pack(text)), pack);
  EXPECT_THAT(print_pack(make_pack({real, by_ptx}, {}), "1"), StartsWith("kiln-pack\t1\t1\n")) << "as before";
  pack.accuracies.clear();
  EXPECT_THAT(print_pack(pack, "1"), HasSubstr("predicted\tmachine-code clock 1\t\n"));
}

TEST(PredictionMarks, AreKeptByMergingPacks) {
  Pack one = make_pack({clock_1}, {}), other = make_pack({clock_2}, {});
  one.accuracies[clock_1.id] = "well";
  other.accuracies[clock_2.id] = "better";
  const Pack both = merge(one, other);
  EXPECT_EQ(both, merge(other, one));
  EXPECT_EQ(both.accuracies, (std::map<std::string, std::string>{{clock_1.id, "well"}, {clock_2.id, "better"}}));
  EXPECT_EQ(merge(both, both), both);
}

TEST(PredictionMarks, ThatDoNotFitTheirDeviceAreRefusedAndTheRestIsRead) {
  const std::string good = pack_text({candidate(clock_1, "X", 1e-6)});
  const std::string mark = "predicted\tmachine-code clock 1\t\n";
  const auto with = [&](const std::string& line) {
    std::string text = good;
    return text.replace(text.find(mark), mark.size(), line);
  };
  const auto expect_refused = [&](const std::string& text, std::string_view why) {
    const ParsedPack parsed = parse_pack(text);
    ASSERT_EQ(parsed.refused.size(), 1u) << text;
    EXPECT_THAT(parsed.refused[0].reason, HasSubstr(why));
    EXPECT_EQ(parsed.pack.records.size(), 1u);
    Winners winners(real);
    winners.load_pack_text(text, "a.pack");
    EXPECT_THAT(configs(winners), ElementsAre("X"));
    EXPECT_THAT(winners.problems(), ElementsAre(HasSubstr(why)));
  };
  expect_refused(with("predicted\tmachine-code clock 2\t\n"), "is not that of the device");
  expect_refused(with("predicted\tmachine-code clock 1\n"), "the field accuracy is missing");
  expect_refused(with("predicted\tmachine-code clock 1\twell\tmore\n"), "after its last field");
  expect_refused(with("predicted\tmachine-code clock 1\twe\\nll\n"), "control or hidden character");
  expect_refused(with("predicted\tmachine-code clock 1\t" + std::string(5000, 'x') + "\n"), "too long");
  EXPECT_TRUE(parse_pack(with("")).refused.empty()) << "packs of before have none";
  const ParsedPack early = parse_pack("kiln-pack\t2\t1\n" + mark + "end\n");
  ASSERT_EQ(early.refused.size(), 1u);
  EXPECT_THAT(early.refused[0].reason, HasSubstr("no device line before it"));
}

}  // namespace
}  // namespace kiln::cache::test::prediction_test
