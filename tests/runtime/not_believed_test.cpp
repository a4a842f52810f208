// Claims of a pack that cannot be true are passed over, and told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "device_fixture.h"
#include "kiln/cache/pack.h"
#include "kiln/context.h"
#include "kiln/device/nvrtc.h"
#include "kiln/runtime/bundling.h"
#include "kiln/templates/catalogue.h"

namespace kiln::not_believed_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class NotBelieved : public DeviceTest {
 protected:
  NotBelieved() {
    std::vector<cache::Record> records;
    const Context context(options());
    for (const Request& request : {request_, other_}) {
      lies_.push_back(context.explain(request).estimated.at(1));
      records.push_back(record(request, lies_.back(), 1e-6));
    }
    cache::write_pack_file(pack_, cache::make_pack({entry()}, records), "1");
  }

  ContextOptions with_pack(std::vector<std::string>& announced) const {
    ContextOptions result = options();
    result.packs = {pack_};
    result.announce = [&](std::string_view message) { announced.emplace_back(message); };
    return result;
  }

  // 2 GiB of traffic each, which no card does in a microsecond.
  const Request request_ = Request::parse("softmax_forward x=f32:65536x4096");
  const Request other_ = Request::parse("softmax_forward x=f32:262144x1024");
  const std::string pack_ = testing::TempDir() + "kiln_not_believed.pack";
  std::vector<ExplainedCandidate> lies_;
};

TEST_F(NotBelieved, IsAnnouncedOnceForAPackAndExplainedForEachRequest) {
  std::vector<std::string> announced;
  Context context(with_pack(announced));
  EXPECT_TRUE(announced.empty()) << "nothing was asked for yet";
  EXPECT_EQ(context.plan(request_).source(), "estimate");
  ASSERT_EQ(announced.size(), 1U);
  EXPECT_THAT(announced[0], AllOf(HasSubstr(pack_ + " is not believed about " + lies_[0].algorithm + " " +
                                            lies_[0].config + " for " + request_.key()),
                                  HasSubstr("a time of 1e-06 s is impossible"), HasSubstr("kiln explain")));
  EXPECT_EQ(context.plan(other_).source(), "estimate");
  EXPECT_EQ(announced.size(), 1U);

  const Explanation why = context.explain(other_);
  EXPECT_TRUE(why.stored.empty());
  EXPECT_EQ(why.chosen->source, "estimate");
  ASSERT_EQ(why.not_believed.size(), 1U);
  EXPECT_EQ(why.not_believed[0].algorithm, lies_[1].algorithm);
  EXPECT_EQ(why.not_believed[0].config, lies_[1].config);
  EXPECT_THAT(why.not_believed[0].reason, HasSubstr(pack_ + ": a time of 1e-06 s is impossible"));
  EXPECT_EQ(nlohmann::json::parse(to_json(why))["not_believed"][0]["reason"], why.not_believed[0].reason);
}

TEST_F(NotBelieved, ALockedContextSaysWhyItServesNothing) {
  std::vector<std::string> announced;
  ContextOptions locked = with_pack(announced);
  locked.locked = true;
  Context context(locked);
  EXPECT_THAT(refusal_of([&] { context.plan(request_); }, ErrorCode::unsupported),
              AllOf(HasSubstr("locked"), HasSubstr(pack_ + ": a time of 1e-06 s is impossible")));
}

TEST_F(NotBelieved, NoBundleIsMadeOfIt) {
  const device::DeviceInfo& info = device_->device().info();
  const auto nvrtc = device::Nvrtc::open({options().environment->nvrtc});
  const Catalogue catalogue = make_catalogue(embedded_sources());
  BundleOptions what;
  what.archs = {Arch::of(info.cc_major, info.cc_minor)};
  what.emulated = info.emulated;
  const auto plan = [&] {
    return plan_bundle(std::vector{request_}, catalogue, *nvrtc, cache::Database::in_memory(), {pack_}, what);
  };
  EXPECT_EQ(plan().gaps.size(), 1U);
  what.untuned = true;
  ASSERT_EQ(plan().choices.size(), 1U);
  EXPECT_EQ(plan().choices[0].source, "estimate");
  ASSERT_EQ(plan().not_believed.size(), 1U);
  EXPECT_THAT(plan().not_believed[0], HasSubstr(pack_ + " is not believed about "));
}

}  // namespace
}  // namespace kiln::not_believed_test
