// A variant that was found wrong, or that nobody has checked, does not serve an application unless it asks for that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "device_fixture.h"
#include "kiln/base/error.h"
#include "kiln/cache/database.h"
#include "kiln/cache/pack.h"
#include "kiln/context.h"
#include "kiln/device/nvrtc.h"
#include "kiln/runtime/bundling.h"
#include "kiln/softmax.h"
#include "kiln/templates/catalogue.h"

namespace kiln::withheld_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

class WithheldTest : public DeviceTest {
 protected:
  WithheldTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    // Promises to be as fast as can be, and doubles what a softmax is.
    std::ofstream(folder_ + "/doubled.json") << R"({
      "kiln_template": 1, "operation": "softmax_forward", "efficiency": 100,
      "applies": {"plain rows": "CONTIGUOUS_ROWS && !LOG && !USER_CODE && ALPHA == 1 && BETA == 0"},
      "launches": [{"kernel": "doubled", "grid": ["ROWS"], "block": [1], "arguments": ["x", "y"]}]})";
    std::ofstream(folder_ + "/doubled.cu") << R"(
extern "C" __global__ void doubled(const TX* x, TY* y) {
  x += blockIdx.x * X_ROW_STRIDE;
  y += blockIdx.x * Y_ROW_STRIDE;
  float sum = 0;
  for (int i = 0; i < ROW; ++i) sum += expf(x[i]);
  for (int i = 0; i < ROW; ++i) y[i] = 2 * expf(x[i]) / sum;
})";
  }

  ContextOptions with_template() const {
    ContextOptions result = options();
    result.user_templates = {folder_};
    return result;
  }

  ContextOptions tuning(TuningMode mode) const {
    ContextOptions tuned = with_template();
    tuned.cache = folder_ + "/tuning.db";
    if (!tuned.environment->worker) tuned.environment->worker = KILN_PROGRAM;
    tuned.tuning = {mode, 120, 3};
    return tuned;
  }

  /// Result of softmax_forward() for zeros.
  float result(Context& context) {
    const std::vector<float> zeros(4 * 37, 0.0f);
    const Tensor x(upload(zeros), f32, {4, 37}, nc), y(upload(zeros), f32, {4, 37}, nc);
    softmax_forward(context, x, y);
    return download<float>(y.data(), 1).front();
  }

  /// A record of each candidate that bars it: somebody else's, without a session.
  std::vector<cache::Record> bars_of_all(std::string_view outcome) const {
    const Catalogue catalogue = make_catalogue(embedded_sources());
    const device::DeviceInfo& info = device_->device().info();
    const Target target{Arch::of(info.cc_major, info.cc_minor), 13, 0};
    std::vector<cache::Record> records;
    for (const Candidate& candidate : catalogue.candidates(request_, target, {132, 1.98e9, 4.8e12, 50 << 20}).ranked) {
      records.push_back(record(request_, {candidate.choice.algorithm, candidate.choice.config.print(), 0, ""}, 0));
      records.back().outcome = outcome;
    }
    return records;
  }

  static constexpr float right = 1.0f / 37;
  const Request request_ = Request::parse("softmax_forward x=f32:4x37");
  const std::string folder_ = testing::TempDir() + "kiln_withheld";
};

TEST_F(WithheldTest, AUserTemplateThatNoCheckHasPassedServesWhoAsksForIt) {
  Context context(with_template());
  EXPECT_NEAR(result(context), right, 1e-6f);
  const Explanation why = context.explain(request_);
  ASSERT_EQ(why.withheld.size(), 1U);
  EXPECT_EQ(why.withheld[0].algorithm, "doubled");
  EXPECT_THAT(why.withheld[0].reason, HasSubstr("no check has passed for this request"));
  ContextOptions asking = with_template();
  asking.allow_unchecked_templates = true;
  Context asked(asking);
  EXPECT_NEAR(result(asked), 2 * right, 1e-6f);
}

TEST_F(WithheldTest, WhatTuningFindsWrongServesNobody) {
  Context tuned(tuning(TuningMode::within_budget));
  EXPECT_NEAR(result(tuned), right, 1e-6f);
  EXPECT_THAT(tuned.explain(request_).withheld[0].reason, HasSubstr("it gave a wrong result on"));

  ContextOptions later = with_template();
  later.cache = folder_ + "/tuning.db";
  later.allow_unchecked_templates = true;
  Context context(later);
  EXPECT_NEAR(result(context), right, 1e-6f) << "another process knows it from the database";
  later.allow_failed_variants = true;
  EXPECT_THAT(Context(later).explain(request_).estimated[0].algorithm, "doubled");
}

TEST_F(WithheldTest, WhatOneContextFindsWrongTheOthersOfTheProcessTakeBack) {
  ContextOptions trusting = with_template();
  trusting.cache = folder_ + "/tuning.db";
  trusting.allow_unchecked_templates = true;
  std::vector<std::string> announced;
  trusting.announce = [&](std::string_view message) { announced.emplace_back(message); };
  Context serving(trusting), idle(trusting);
  EXPECT_NEAR(result(serving), 2 * right, 1e-6f);

  ContextOptions tuning_too = tuning(TuningMode::within_budget);
  tuning_too.allow_unchecked_templates = true;
  Context tuned(tuning_too);
  EXPECT_NEAR(result(tuned), right, 1e-6f);
  EXPECT_NEAR(result(serving), right, 1e-6f) << "a plan that was in use";
  EXPECT_NEAR(result(idle), right, 1e-6f) << "a plan that was not made yet";
  EXPECT_THAT(announced, Contains(HasSubstr("was served by doubled - until now")));
}

TEST_F(WithheldTest, InTheBackgroundWhatIsFoundWrongIsTakenBack) {
  std::vector<std::string> announced;
  ContextOptions trusting = tuning(TuningMode::in_background);
  trusting.allow_unchecked_templates = true;
  trusting.announce = [&](std::string_view message) { announced.emplace_back(message); };
  Context context(trusting);
  EXPECT_NEAR(result(context), 2 * right, 1e-6f);
  context.wait_until_tuned();
  EXPECT_NEAR(result(context), right, 1e-6f);
  EXPECT_THAT(announced, Contains(HasSubstr("was served by doubled - until now, and tuning has found that it gave a "
                                            "wrong result")));
}

// Behind the wrong template one crashes, and the worker that takes over finds another device.
TEST_F(WithheldTest, InTheBackgroundASessionThatFailsTakesBackWhatItHadFoundWrong) {
  if (!entry().emulated) GTEST_SKIP() << "a real device does not change";
  std::ofstream(folder_ + "/fatal.json") << R"({
      "kiln_template": 1, "operation": "softmax_forward", "efficiency": 1,
      "launches": [{"kernel": "fatal", "grid": [1], "block": [1], "arguments": ["y"]}]})";
  std::ofstream(folder_ + "/fatal.cu")
      << R"(extern "C" __global__ void fatal(TY*) { *reinterpret_cast<TY*>(16) = 1; })";
  ContextOptions trusting = tuning(TuningMode::in_background);
  const std::string worker = folder_ + "/worker",
                    other = entry().name.find("A100") == std::string::npos ? "a100" : "t4";
  std::ofstream(worker) << "#!/bin/sh\ncat '" << *trusting.cache << "'* | grep -q doubled && export "
                        << "KILN_EMULATOR_DEVICE=" << other << "\nexec '" << *trusting.environment->worker
                        << "' \"$@\"\n";
  std::filesystem::permissions(worker, std::filesystem::perms::owner_all);
  trusting.environment->worker = worker;
  trusting.allow_unchecked_templates = true;
  std::vector<std::string> announced;
  trusting.announce = [&](std::string_view message) { announced.emplace_back(message); };
  Context context(trusting);
  EXPECT_NEAR(result(context), 2 * right, 1e-6f);
  context.wait_until_tuned();
  EXPECT_NEAR(result(context), right, 1e-6f);
  EXPECT_THAT(announced, Contains(HasSubstr("tuning has stopped")));
  EXPECT_THAT(announced, Contains(HasSubstr("was served by doubled")));
}

// A record claims 2 GiB in a microsecond: who says that has not run it.
TEST_F(WithheldTest, ATimeThatCannotBeIsNoCheckThatATemplateHasPassed) {
  const Request large = Request::parse("softmax_forward x=f32:65536x4096");
  cache::Record lie = record(large, *Context(options()).explain(large).chosen, 1e-6);
  lie.algorithm = "doubled";
  lie.algorithm_digest = make_catalogue(embedded_sources(), {folder_}).digest("doubled").value();
  lie.config = Config().print();
  const std::string pack = folder_ + "/lie.pack";
  cache::write_pack_file(pack, cache::make_pack({entry()}, {lie}), "1");
  ContextOptions packed = with_template();
  packed.packs = {pack};
  const Explanation why = Context(packed).explain(large);
  ASSERT_EQ(why.withheld.size(), 1U);
  EXPECT_THAT(why.withheld[0].reason, HasSubstr("no check has passed for this request"));
  EXPECT_EQ(why.not_believed.size(), 1U);
}

// Whoever has the bundle need not have the template that it was made of.
TEST_F(WithheldTest, AProgramInABundleWhoseAlgorithmIsNotHereIsBarredByWhatItIs) {
  const device::DeviceInfo& info = device_->device().info();
  const auto nvrtc = device::Nvrtc::open({options().environment->nvrtc});
  const Catalogue theirs = make_catalogue(embedded_sources(), {folder_});
  BundleOptions what;
  what.archs = {Arch::of(info.cc_major, info.cc_minor)};
  what.emulated = info.emulated;
  what.untuned = what.unchecked_templates = true;
  const BundlePlan plan = plan_bundle(std::vector{request_}, theirs, *nvrtc, cache::Database::in_memory(), {}, what);
  const auto entries = compile_bundle(plan, theirs, *nvrtc, info.emulated, nullptr);
  ASSERT_EQ(entries.at(0).variant.algorithm, "doubled");
  const std::string bundle = folder_ + "/app.kiln", database = folder_ + "/barred.db";
  execution::write_bundle(bundle, entries, "1", "13.0");

  ContextOptions bundled = options();
  bundled.bundles = {bundle};
  {
    Context context(bundled);
    EXPECT_NEAR(result(context), 2 * right, 1e-6f) << "a bundle is code of the application";
  }
  cache::Record barred = record(request_, *Context(options()).explain(request_).chosen, 0);
  barred.algorithm = entries[0].variant.algorithm;
  barred.algorithm_digest = theirs.digest("doubled").value();
  barred.config = entries[0].variant.config;
  barred.outcome = cache::outcome::wrong_result;
  barred.source_digest = entries[0].variant.program;
  barred.session = "of this database";
  {
    auto db = cache::Database::open(database);
    db.put_device(entry());
    db.insert(std::array{barred});
  }
  bundled.cache = database;
  {
    Context context(bundled);
    EXPECT_NEAR(result(context), right, 1e-6f);
    EXPECT_EQ(context.plan(request_).source(), "estimate");
  }
  ContextOptions nothing_else = bundled;
  nothing_else.environment->nvrtc = "/nonexistent/libnvrtc.so";
  const std::string variant = "doubled " + entries[0].variant.config,
                    why = "in bundle " + bundle + ": this very program";
  const auto planned = [&](ContextOptions wanted) { Context(wanted).plan(request_); };
  EXPECT_THAT(refusal_of([&] { planned(nothing_else); }, ErrorCode::unsupported),
              AllOf(HasSubstr("nothing can be compiled here"), HasSubstr(variant + ": " + why)));
  const Explanation explanation = Context(nothing_else).explain(request_);
  ASSERT_EQ(explanation.withheld.size(), 1U);
  EXPECT_THAT(explanation.withheld[0].reason, HasSubstr(why));
  nothing_else.allow_failed_variants = true;
  EXPECT_EQ(Context(nothing_else).plan(request_).source(), "bundle " + bundle);
}

// A pack may lie about all of it, and takes nothing away.
TEST_F(WithheldTest, APackThatBarsEverythingMakesALayerSlowAtTheMost) {
  const std::vector<cache::Record> records = bars_of_all(cache::outcome::wrong_result);
  const std::string pack = folder_ + "/lie.pack";
  cache::write_pack_file(pack, cache::make_pack({entry()}, records), "1");
  ContextOptions packed = options();
  packed.packs = {pack};
  Context context(packed);
  EXPECT_NEAR(result(context), right, 1e-6f);
  EXPECT_THAT(context.plan(request_).source(), HasSubstr("estimate, for want of another: it gave a wrong result on"));
  const Explanation why = context.explain(request_);
  ASSERT_TRUE(why.chosen);
  EXPECT_THAT(why.chosen->source, HasSubstr("says " + pack));
  EXPECT_FALSE(why.withheld.empty());
}

TEST_F(WithheldTest, WhereNothingIsLeftThatIsAnErrorWhichSaysWhy) {
  std::vector<cache::Record> records = bars_of_all(cache::outcome::crashed);
  for (cache::Record& each : records) each.session = "of this database";
  const std::string path = folder_ + "/crashed.db";
  {
    auto database = cache::Database::open(path);
    database.put_device(entry());
    database.insert(records);
  }
  ContextOptions barred = options();
  barred.cache = path;
  Context context(barred);
  const std::string refusal = refusal_of([&] { context.plan(request_); }, ErrorCode::unsupported);
  EXPECT_THAT(refusal, HasSubstr("nothing is left that may serve " + request_.key()));
  EXPECT_THAT(refusal, HasSubstr(records[0].algorithm + " " + records[0].config));
  EXPECT_THAT(refusal, HasSubstr("it crashed on " + entry().id + ", says " + path));
  EXPECT_FALSE(context.explain(request_).chosen);
  barred.allow_failed_variants = true;
  EXPECT_NO_THROW(Context(barred).plan(request_));
}

}  // namespace
}  // namespace kiln::withheld_test
