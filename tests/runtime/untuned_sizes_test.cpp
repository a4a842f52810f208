// A Context serves a size that nobody tuned by what it knows of other sizes of the layer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "device_fixture.h"
#include "kiln/cache/database.h"
#include "kiln/cache/pack.h"
#include "kiln/context.h"
#include "kiln/runtime/bundling.h"
#include "kiln/templates/catalogue.h"

namespace kiln::untuned_sizes_test {
namespace {

class UntunedSizes : public DeviceTest {
 protected:
  UntunedSizes() { std::filesystem::remove(database_); }
  ~UntunedSizes() override { std::filesystem::remove(database_); }

  // Records that tuning would store of `tuned`, if of the best estimates there the third were much the fastest.
  std::vector<cache::Record> records(const Request& tuned) const {
    const std::vector<ExplainedCandidate> estimates = Context(options()).explain(tuned).estimated;
    std::vector<cache::Record> result;
    for (size_t i = 0; i < 3; ++i) {
      result.push_back(record(tuned, estimates[i], i == 2 ? 0.1 * estimates[i].seconds : 2 * estimates[i].seconds));
    }
    return result;
  }

  std::vector<cache::Record> records() const { return records(tuned_); }

  ContextOptions with_database() const { return with_database(tuned_); }
  ContextOptions with_database(const Request& tuned) const {
    cache::Database database = cache::Database::open(database_);
    database.put_device(entry());
    database.insert(records(tuned));
    ContextOptions result = options();
    result.cache = database_;
    return result;
  }

  static std::string variant(const cache::Record& record) {
    return record.config.empty() ? record.algorithm : record.algorithm + " " + record.config;
  }

  const Request tuned_ = Request::parse("softmax_forward x=f32:64x200");
  const Request untuned_ = Request::parse("softmax_forward x=f32:60x196");
  const std::string because_ = "from 1 neighbour, nearest x=64x200";
  const std::string database_ = testing::TempDir() + "kiln_untuned_sizes.db";
};

TEST_F(UntunedSizes, AreServedAsTheirNeighbours) {
  Context context(with_database());
  const Plan plan = context.plan(untuned_);
  EXPECT_EQ(plan.source(), because_);
  EXPECT_EQ(plan.variant(), variant(records()[2]));
  expect_matches_reference(untuned_, plan);
  const Explanation why = context.explain(untuned_);
  ASSERT_TRUE(why.chosen);
  EXPECT_EQ(why.chosen->source, because_);
  EXPECT_EQ(why.chosen->config, why.estimated.at(0).config);
  EXPECT_THAT(why.stored, testing::IsEmpty());
  EXPECT_THAT(context.plan(tuned_).source(), testing::HasSubstr("on this device"));
  EXPECT_EQ(context.plan(Request::parse("softmax_forward x=f16:60x196")).source(), "estimate") << "of another class";
}

TEST_F(UntunedSizes, AreServedByAPackOfAllTimes) {
  const std::string pack = testing::TempDir() + "kiln_untuned_sizes.pack";
  cache::write_pack_file(pack, cache::make_pack({entry()}, records()), "1");
  ContextOptions with_pack = options();
  with_pack.packs = {pack};
  EXPECT_EQ(Context(with_pack).plan(untuned_).source(), because_);
  with_pack.locked = true;
  EXPECT_THAT(refusal_of([&] { (void)Context(with_pack).plan(untuned_); }, ErrorCode::unsupported),
              testing::HasSubstr("locked"))
      << "the pack does not name it";
  std::filesystem::remove(pack);
}

TEST_F(UntunedSizes, AreServedLikewiseAtOnce) {
  ContextOptions at_once = with_database();
  at_once.first_call = FirstCall::at_once;
  Context context(at_once);
  (void)context.plan(untuned_);
  context.wait_until_tuned();
  EXPECT_EQ(context.plan(untuned_).source(), because_);
}

TEST_F(UntunedSizes, AreNotWhatTheTunerTakesForTuned) {
  ContextOptions options = with_database();
  options.deterministic = true;
  EXPECT_EQ(Context(options).plan(untuned_).source(), because_);
  options.workspace_limit = 0;
  expect_matches_reference(untuned_, Context(options).plan(untuned_));
}

TEST_F(UntunedSizes, LeaveWhatIsSaidOfPermissionsAsItIs) {
  const Request tuned = Request::parse("gemm a=f16:64x64 b=f16:64x64 tf32");
  const Request untuned = Request::parse("gemm a=f16:56x64 b=f16:64x64 tf32");
  Context context(with_database(tuned));
  const Explanation why = context.explain(untuned);
  EXPECT_EQ(why.chosen->source, "from 1 neighbour, nearest a=64x64");
  EXPECT_THAT(why.unused_permissions, testing::ElementsAre("tf32"));
}

TEST_F(UntunedSizes, GoIntoABundleThatTakesEstimates) {
  const ContextOptions options = with_database();
  const cache::Database database = cache::Database::open(database_, {.mode = cache::OpenMode::read_only});
  const device::DeviceInfo& info = device_->device().info();
  const auto nvrtc = device::Nvrtc::open({options.environment->nvrtc});
  const Catalogue catalogue = make_catalogue(embedded_sources());
  BundleOptions what;
  what.archs = {Arch::of(info.cc_major, info.cc_minor)};
  what.emulated = entry().emulated;
  what.untuned = true;
  const BundlePlan plan = plan_bundle({&untuned_, 1}, catalogue, *nvrtc, database, {}, what);
  ASSERT_EQ(plan.choices.size(), 1U);
  EXPECT_EQ(plan.choices[0].source, because_);
  EXPECT_EQ(plan.choices[0].choice.config.print(), records()[2].config);
}

}  // namespace
}  // namespace kiln::untuned_sizes_test
