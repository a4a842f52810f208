// Contexts and bundles that are shipped with what the clock of an emulated device has predicted.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "device_fixture.h"
#include "kiln/cache/pack.h"
#include "kiln/context.h"
#include "kiln/runtime/bundling.h"
#include "kiln/templates/catalogue.h"

namespace kiln::predicted_test {
namespace {

class ShippedPrediction : public DeviceTest {
 protected:
  // The same card as the device at hand, emulated with a clock that no build has.
  cache::DeviceEntry model() const {
    cache::DeviceEntry device = entry();
    const std::string prefix = "Kiln emulated ";
    std::string card = device.name.starts_with(prefix) ? device.name.substr(prefix.size()) : device.name;
    device.name = fmt::format("{}{} (machine-code clock 10)", prefix, card.substr(0, card.find(" (")));
    device.id = fmt::format("name=\"{}\" cc={}.{}", device.name, device.cc_major, device.cc_minor);
    device.emulated = true;
    return device;
  }

  cache::Record predicted(const ExplainedCandidate& candidate, double seconds) const {
    cache::Record result = record(request_, candidate, seconds);
    result.device = model().id;
    result.kind = cache::TimeKind::modelled;
    return result;
  }

  void write(const std::vector<cache::Record>& records) const {
    cache::write_pack_file(pack_, cache::make_pack({entry(), model()}, records), "1");
  }

  ContextOptions with_pack() const {
    ContextOptions result = options();
    result.packs = {pack_};
    return result;
  }

  static std::string variant(const ExplainedCandidate& candidate) {
    return candidate.algorithm + " " + candidate.config;
  }

  const Request request_ = Request::parse("softmax_forward x=f32:4x37");
  const std::string pack_ = testing::TempDir() + "kiln_predicted.pack";
  const std::string source_ = "predicted by machine-code clock 10, from pack " + pack_;
};

TEST_F(ShippedPrediction, ServesARequestUntilSomethingIsMeasured) {
  const std::vector<ExplainedCandidate> estimates = Context(options()).explain(request_).estimated;
  ASSERT_GE(estimates.size(), 3U);
  write({predicted(estimates[2], 1e-5)});
  Context context(with_pack());
  const Plan plan = context.plan(request_);
  EXPECT_EQ(plan.source(), source_);
  EXPECT_EQ(plan.variant(), variant(estimates[2])) << "not the best estimate";
  expect_matches_reference(request_, plan);
  const Explanation why = context.explain(request_);
  ASSERT_EQ(why.stored.size(), 1U);
  EXPECT_EQ(why.chosen->source, source_);
  EXPECT_EQ(why.chosen->config, estimates[2].config);

  write({predicted(estimates[2], 1e-5), record(request_, estimates[1], 1e-3)});
  Context measured(with_pack());
  EXPECT_EQ(measured.plan(request_).variant(), variant(estimates[1])) << "slower, but timed on this device";
  EXPECT_EQ(measured.explain(request_).stored.at(1).source, source_);

  ContextOptions locked = with_pack();
  locked.locked = true;
  write({predicted(estimates[2], 1e-5)});
  EXPECT_EQ(Context(locked).plan(request_).source(), source_) << "the pack names it";
}

TEST_F(ShippedPrediction, GoesIntoABundleForTheRealCardWhereNothingWasMeasured) {
  const device::DeviceInfo& info = device_->device().info();
  const auto nvrtc = device::Nvrtc::open({options().environment->nvrtc});
  const Catalogue catalogue = make_catalogue(embedded_sources());
  const std::vector<ExplainedCandidate> estimates = Context(options()).explain(request_).estimated;
  BundleOptions what;
  what.archs = {Arch::of(info.cc_major, info.cc_minor)};
  const auto plan = [&] {
    return plan_bundle(std::vector{request_}, catalogue, *nvrtc, cache::Database::in_memory(), {pack_}, what);
  };
  write({predicted(estimates[2], 1e-5)});
  ASSERT_EQ(plan().choices.size(), 1U);
  EXPECT_EQ(plan().choices[0].choice.config.print(), estimates[2].config);
  EXPECT_EQ(plan().choices[0].source, source_);
  EXPECT_EQ(plan().choices[0].device, model().id) << "by which Contexts know that it is a prediction";

  cache::DeviceEntry real = entry();
  real.id = "a real one", real.name = "NVIDIA Other", real.emulated = false;
  cache::Record measured = record(request_, estimates[1], 1e-3);
  measured.device = real.id;
  measured.kind = cache::TimeKind::measured;
  cache::write_pack_file(pack_, cache::make_pack({real, model()}, {predicted(estimates[2], 1e-5), measured}), "1");
  ASSERT_EQ(plan().choices.size(), 1U);
  EXPECT_EQ(plan().choices[0].choice.config.print(), estimates[1].config);
}

}  // namespace
}  // namespace kiln::predicted_test
