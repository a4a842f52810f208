#include "selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fakes.h"
#include "kiln/cache/pack.h"
#include "kiln/device/arch.h"

namespace kiln::selection_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using tuner::fakes::toy;

TEST(Selector, OffersWhatVariesOnlyWhereNobodyDemandsOtherwise) {
  const Catalogue catalogue =
      tuner::fakes::toy_catalogue({toy("varies", {1}, 1e-3, {.deterministic = false}), toy("repeats", {1}, 2e-3)});
  const cache::Winners winners({"fake", "Fake", 9, 0, 132, true},
                               [](std::string_view, std::string_view) { return true; });
  const tuner::fakes::FakeLaboratory laboratory;
  const Target& target = laboratory.apparatus().target;
  const DeviceFigures& figures = laboratory.apparatus().figures;
  const auto best = [&](const cache::Filter& filter, const Request& request) {
    const Bundles none({}, {}, {});
    Variants variants = catalogue.on(request, target);
    const Selector selector{variants, winners, none, figures, filter};
    return selector.estimated(selector.candidates(), 1).at(0).choice.algorithm;
  };
  cache::Filter reproducible;
  reproducible.deterministic_only = true;
  const Request request = tuner::fakes::toy_request();
  Request demanding = request;
  demanding.arithmetic.deterministic = true;
  EXPECT_EQ(best({}, request), "varies");
  EXPECT_EQ(best(reproducible, request), "repeats") << "the Context demands it";
  EXPECT_EQ(best({}, demanding), "repeats") << "the request demands it";
}

TEST(Selector, OffersWhatNeedsExactlyTheLimitOfTheWorkspace) {
  const Catalogue catalogue =
      tuner::fakes::toy_catalogue({toy("needy", {1}, 1e-3, {.workspace = 256}), toy("lean", {1}, 2e-3)});
  const cache::Winners winners({"fake", "Fake", 9, 0, 132, true},
                               [](std::string_view, std::string_view) { return true; });
  const tuner::fakes::FakeLaboratory laboratory;
  const Bundles none({}, {}, {});
  const Request request = tuner::fakes::toy_request();
  for (const int64_t limit : {int64_t{0}, int64_t{255}, int64_t{256}, int64_t{257}}) {
    for (const bool reproducible : {false, true}) {
      Variants variants = catalogue.on(request, laboratory.apparatus().target);
      const Selector selector{variants, winners, none, laboratory.apparatus().figures, {limit, reproducible}};
      const auto best = selector.estimated(selector.candidates(), 1).at(0).choice.algorithm;
      EXPECT_EQ(best, limit >= 256 ? "needy" : "lean") << limit;
    }
  }
}

// A selector over two quick algorithms, the quicker of which is a user's, and what a database says of them.
class Withholding : public testing::Test {
 protected:
  cache::Record record(const std::string& algorithm, std::string_view outcome, double seconds,
                       cache::TimeKind kind = cache::TimeKind::modelled) const {
    cache::Record r;
    r.request = request.key();
    r.device = device.id;
    r.algorithm = algorithm;
    r.algorithm_digest = catalogue.digest(algorithm).value();
    r.config = "TILE=1";
    r.outcome = outcome;
    r.kind = kind;
    r.seconds = seconds;
    r.session = "of this database";
    return r;
  }

  /// The same as somebody else says it: in a pack, or in a database that was merged.
  cache::Record of_others(const std::string& algorithm, std::string_view outcome, double seconds) const {
    cache::Record r = record(algorithm, outcome, seconds);
    r.session.clear();
    r.source_digest =
        catalogue.program(request, laboratory.apparatus().target, {algorithm, Config::parse("TILE=1")}).digest();
    return r;
  }

  /// Variants that are tried last, because others bar them.
  std::vector<std::string> doubted() const {
    std::vector<std::string> names;
    for (const Selection& one : selector().doubted()) names.push_back("stored " + one.choice.algorithm);
    for (const Selection& one : selector().doubted(selector().candidates(), 8))
      names.push_back(one.choice.algorithm + ": " + one.source);
    return names;
  }

  /// The algorithms in the order in which a plan would try them; `pack`: of others.
  std::vector<std::string> tried(const std::vector<cache::Record>& records, const Permissions& permissions = {},
                                 const std::vector<cache::Record>& pack = {}) {
    cache::Database database = cache::Database::in_memory();
    database.put_device(device);
    database.insert(records);
    for (const cache::Quarantine& entry : quarantine) database.add_quarantine(entry);
    winners = std::make_unique<cache::Winners>(device);
    winners->load(database);
    if (!pack.empty()) winners->load_pack_text(cache::print_pack(cache::make_pack({device}, pack), "0.1.0"), "p");
    std::vector<std::string> names;
    const Selector selector = this->selector(permissions);
    for (const Selection& one : selector.stored()) names.push_back("stored " + one.choice.algorithm);
    for (const Selection& one : selector.estimated(selector.candidates(), 8)) names.push_back(one.choice.algorithm);
    return names;
  }

  Selector selector(const Permissions& permissions = {}) const {
    return {variants, *winners, none, laboratory.apparatus().figures, {}, permissions};
  }

  std::vector<Withheld> withheld() const { return selector().withheld(selector().candidates(), 10); }

  const Catalogue catalogue =
      tuner::fakes::toy_catalogue({toy("ours", {1}, 2e-3), tuner::fakes::user_toy("theirs", {1}, 1e-3)});
  const cache::DeviceEntry device = {"fake", "Fake", 9, 0, 132, true};
  const tuner::fakes::FakeLaboratory laboratory;
  const Request request = tuner::fakes::toy_request();
  mutable Variants variants = catalogue.on(request, laboratory.apparatus().target);
  const Bundles none{{}, {}, {}};
  std::vector<cache::Quarantine> quarantine;
  std::unique_ptr<cache::Winners> winners;
};

TEST_F(Withholding, OfUserTemplatesUntilACheckHasPassed) {
  EXPECT_THAT(tried({}), ElementsAre("ours", "trusted"));
  EXPECT_THAT(withheld().at(0).reason, HasSubstr("no check has passed"));
  EXPECT_THAT(tried({record("theirs", "timed", 1e-3)}), ElementsAre("stored theirs", "theirs", "ours", "trusted"));
  EXPECT_THAT(tried({record("theirs", "predicted", 1e-3, cache::TimeKind::predicted)}), ElementsAre("ours", "trusted"))
      << "a prediction is no check";
  EXPECT_THAT(tried({}, {.unchecked_templates = true}), ElementsAre("theirs", "ours", "trusted"));
}

TEST_F(Withholding, OfWhatWasFoundWrongHungOrCrashed) {
  for (const char* outcome : {"wrong_result", "timed_out", "crashed"}) {
    EXPECT_THAT(tried({record("ours", outcome, 0)}), ElementsAre("trusted"));
    EXPECT_THAT(tried({record("theirs", outcome, 0)}, {.unchecked_templates = true}), ElementsAre("ours", "trusted"));
  }
  EXPECT_THAT(withheld().at(0).reason, HasSubstr("it crashed on fake, says memory"));
  EXPECT_THAT(tried({record("ours", "wrong_result", 0)}, {.failed_variants = true}), ElementsAre("ours", "trusted"));
  EXPECT_THAT(tried({record("ours", "wrong_result", 0), record("trusted", "crashed", 0)}), IsEmpty());
  EXPECT_EQ(withheld().size(), 3u);
}

TEST_F(Withholding, NobodyElseVouchesForAUserTemplate) {
  EXPECT_THAT(tried({}, {}, {of_others("theirs", "timed", 1e-3)}), ElementsAre("ours", "trusted")) << "a pack";
  EXPECT_THAT(tried({of_others("theirs", "timed", 1e-3)}), ElementsAre("ours", "trusted")) << "merged";
  EXPECT_THAT(withheld().at(0).reason, HasSubstr("no check has passed"));
  EXPECT_THAT(tried({record("theirs", "timed", 1e-3)}, {}, {of_others("theirs", "wrong_result", 0)}),
              ElementsAre("stored theirs", "theirs", "ours", "trusted"))
      << "and nobody else takes that back";
}

TEST_F(Withholding, OthersBarsReorderAndTakeNothingAway) {
  const std::vector<cache::Record> all = {of_others("ours", "wrong_result", 0), of_others("trusted", "crashed", 0)};
  EXPECT_THAT(tried({}, {}, {all[0]}), ElementsAre("trusted"));
  EXPECT_THAT(doubted(), ElementsAre("ours: estimate, for want of another: it gave a wrong result on fake, says p"));
  for (const bool merged : {false, true}) {
    if (merged) {
      EXPECT_THAT(tried(all), IsEmpty());
    } else {
      EXPECT_THAT(tried({}, {}, all), IsEmpty());
    }
    EXPECT_THAT(doubted(),
                ElementsAre(HasSubstr("ours: estimate, for want"), HasSubstr("trusted: estimate, for want")));
    EXPECT_EQ(withheld().size(), 3u);
  }
  EXPECT_THAT(tried({record("ours", "timed", 1e-3)}, {}, all), ElementsAre("stored ours", "ours"))
      << "what this database has tried itself it believes";
  tried({of_others("ours", "timed", 1e-3)}, {}, {});
  EXPECT_THAT(doubted(), IsEmpty());
}

TEST_F(Withholding, ATimeOfOthersLiftsNoOwnBar) {
  cache::Record elsewhere = record("ours", "wrong_result", 0);
  elsewhere.device = "another";
  cache::Record here = of_others("ours", "timed", 1e-3);
  cache::Database database = cache::Database::in_memory();
  database.put_device(device);
  database.put_device({"another", "Fake", 9, 0, 100, true});
  const auto offered = [&](std::vector<cache::Record> records, const std::vector<cache::Record>& pack) {
    database.insert(records);
    winners = std::make_unique<cache::Winners>(device);
    winners->load(database);
    if (!pack.empty()) winners->load_pack_text(cache::print_pack(cache::make_pack({device}, pack), "0.1.0"), "p");
    return selector().stored().size();
  };
  EXPECT_EQ(offered({elsewhere}, {here}), 0u) << "of a pack";
  EXPECT_EQ(offered({here}, {}), 0u) << "merged";
  EXPECT_THAT(doubted(), IsEmpty());
  here.session = "of this database";
  EXPECT_EQ(offered({here}, {}), 1u) << "own";
}

// A first call makes the Program that it loads, and no other.
TEST(Selector, MakesNoProgramsBehindTheSelectionThatServes) {
  int programs = 0;
  const Catalogue catalogue = tuner::fakes::toy_catalogue(
      {describe<tuner::fakes::ToyParameters>("counted", "softmax_forward", "toy.cu")
           .param("TILE", &tuner::fakes::ToyParameters::tile, {1, 2, 4, 8})
           .program([&](const tuner::fakes::ToyParameters&, const Request&, const Target&, const Emitter&) {
             ++programs;
             return Program{};
           })
           .estimate([](const tuner::fakes::ToyParameters& p, const Request&, const Target&, const DeviceFigures&) {
             return Estimate{.seconds = 1.0 * p.tile};
           })});
  const cache::DeviceEntry device = {"fake", "Fake", 9, 0, 132, true};
  const Request request = tuner::fakes::toy_request();
  cache::Database database = cache::Database::in_memory();
  database.put_device(device);
  for (const int tile : {1, 2, 4, 8}) {
    cache::Record record;
    record.request = request.key();
    record.device = device.id;
    record.algorithm = "counted";
    record.algorithm_digest = catalogue.digest("counted").value();
    record.config = "TILE=" + std::to_string(tile);
    record.outcome = "timed";
    record.kind = cache::TimeKind::modelled;
    record.seconds = tile;
    record.workspace_bytes = 1024 / tile;  // a slower one is kept for its smaller workspace
    record.session = "of this database";
    const std::vector records = {record};
    database.insert(records);
  }
  cache::Winners winners(device);
  winners.load(database);
  const Bundles none({}, {}, {});
  const tuner::fakes::FakeLaboratory laboratory;
  Variants variants = catalogue.on(request, laboratory.apparatus().target);
  const Selector selector{variants, winners, none, laboratory.apparatus().figures, {}};
  std::vector<std::string> seen;
  const Visit take_second = [&](const Selection& selection) {
    seen.push_back(selection.choice.config.print());
    return seen.size() == 2;
  };
  EXPECT_TRUE(selector.visit_named(take_second));
  EXPECT_THAT(seen, ElementsAre("TILE=1", "TILE=2"));
  EXPECT_EQ(programs, 2);
  seen.clear();
  EXPECT_TRUE(selector.visit_estimated(selector.candidates(), 8, take_second));
  EXPECT_EQ(programs, 4);
  EXPECT_FALSE(selector.visit_estimated(selector.candidates(), 3, [](const Selection&) { return false; }));
  EXPECT_EQ(programs, 7) << "as many as were asked for";
}

TEST_F(Withholding, OfQuarantinedSources) {
  const Choice ours{"ours", Config::parse("TILE=1")};
  const std::string source = catalogue.program(request, laboratory.apparatus().target, ours).digest();
  quarantine = {{source, device.id, "an older driver", "13.0", "timed_out", 1}};
  EXPECT_THAT(tried({}), ElementsAre("trusted"));
  EXPECT_THAT(withheld().at(1).reason, HasSubstr("in quarantine"));
  EXPECT_THAT(tried({}, {.failed_variants = true}), ElementsAre("ours", "trusted"));
}

// A real card, and what an emulated one says of it.
class Predicted : public testing::Test {
 protected:
  static constexpr const char* model = "Kiln emulated Fake (machine-code clock 4)";

  cache::Record record(const cache::DeviceEntry& device, const std::string& algorithm, double seconds) const {
    cache::Record r;
    r.request = request.key();
    r.device = device.id;
    r.algorithm = algorithm;
    r.algorithm_digest = catalogue.digest(algorithm).value();
    r.config = "TILE=1";
    r.outcome = "timed";
    r.kind = device.emulated ? cache::TimeKind::modelled : cache::TimeKind::measured;
    r.seconds = seconds;
    return r;
  }

  // A variant in a bundle for the card; `device`: the id line of what it was timed on, or nothing.
  execution::BundleEntry bundled(const std::string& algorithm, const std::string& device) const {
    execution::BundleEntry entry;
    entry.variant.request = request.key();
    entry.variant.algorithm = algorithm;
    entry.variant.config = "TILE=1";
    entry.variant.arch = device::real_arch(9, 0);
    entry.variant.device = device;
    entry.variant.sms = 132;
    entry.compiled.program.sources = {algorithm + device};
    entry.variant.program = entry.compiled.program.digest();
    entry.compiled.images = {{"ptx", "cubin", {}}};
    return entry;
  }

  // "ALGORITHM: SOURCE" of all that is named, in order.
  std::vector<std::string> named(const std::vector<cache::Record>& records,
                                 const std::vector<execution::BundleEntry>& variants = {}) {
    cache::Winners winners(real);
    winners.load_pack_text(cache::print_pack(cache::make_pack({real, another, modelled}, records), "1"), "a.pack");
    const std::string path = testing::TempDir() + "kiln_predicted.kiln";
    if (!variants.empty()) execution::write_bundle(path, variants, "1", "13.0");
    device::DeviceInfo info;
    info.name = real.name, info.cc_major = 9, info.sms = 132;
    const Bundles bundles(variants.empty() ? std::vector<std::string>{} : std::vector{path}, info, [](const auto&) {});
    Variants known = catalogue.on(request, laboratory.apparatus().target);
    const Selector selector{known, winners, bundles, laboratory.apparatus().figures, {}, {}};
    std::vector<std::string> result;
    for (const Selection& one : selector.named()) result.push_back(one.choice.algorithm + ": " + one.source);
    for (std::string& text : result) {
      if (const size_t at = text.find(path); at != std::string::npos) text.replace(at, path.size(), "a.kiln");
    }
    return result;
  }

  const Catalogue catalogue = tuner::fakes::toy_catalogue(
      {toy("a", {1}, 1e-3), toy("b", {1}, 2e-3), tuner::fakes::user_toy("user", {1}, 1e-4)});
  const cache::DeviceEntry real = {"fake", "Fake", 9, 0, 132, false};
  const cache::DeviceEntry another = {"another", "Another", 9, 0, 99, false};
  const cache::DeviceEntry modelled = {std::string("name=\"") + model + "\" cc=9.0", model, 9, 0, 132, true};
  const tuner::fakes::FakeLaboratory laboratory;
  const Request request = tuner::fakes::toy_request();
};

TEST_F(Predicted, ComesAfterEverythingThatWasMeasuredAndSaysByWhichClock) {
  EXPECT_THAT(named({record(modelled, "a", 1e-6)}),
              ElementsAre("a: predicted by machine-code clock 4, from pack a.pack"));
  EXPECT_THAT(named({record(modelled, "a", 1e-6), record(another, "b", 1)}),
              ElementsAre("b: measured on the same architecture, from pack a.pack",
                          "a: predicted by machine-code clock 4, from pack a.pack"));
}

TEST_F(Predicted, ComesAfterMeasuredBundlesAndBeforeThoseThatWereOnlyEstimated) {
  EXPECT_THAT(named({record(modelled, "a", 1e-6)},
                    {bundled("trusted", ""), bundled("b", modelled.id), bundled("b", another.id)}),
              ElementsAre("b: bundle a.kiln", "a: predicted by machine-code clock 4, from pack a.pack",
                          "b: predicted by machine-code clock 4, bundle a.kiln", "trusted: bundle a.kiln"));
}

TEST_F(Predicted, IsNoTimeOfThisDeviceAndNoCheckOfAUserTemplate) {
  EXPECT_THAT(named({record(modelled, "user", 1e-6)}), IsEmpty());
  cache::Winners winners(real);
  winners.load_pack_text(cache::print_pack(cache::make_pack({modelled}, {record(modelled, "a", 1e-6)}), "1"), "a.pack");
  const Bundles none({}, {}, {});
  Variants variants = catalogue.on(request, laboratory.apparatus().target);
  const Selector selector{variants, winners, none, laboratory.apparatus().figures, {}, {}};
  EXPECT_EQ(selector.stored().size(), 1u);
  EXPECT_FALSE(selector.is_timed()) << "tuning would still tell something";
}

}  // namespace
}  // namespace kiln::selection_test
