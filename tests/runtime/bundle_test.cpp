// Contexts that use bundles, with and without NVRTC.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "device_fixture.h"
#include "kiln/base/error.h"
#include "kiln/cache/pack.h"
#include "kiln/context.h"
#include "kiln/runtime/bundling.h"
#include "kiln/templates/catalogue.h"

namespace kiln::bundle_test {
namespace {

using testing::HasSubstr;

class ContextBundleTest : public DeviceTest {
 protected:
  ContextBundleTest() { std::filesystem::remove(path_); }

  // A bundle of the best estimates for the device at hand, or for another architecture.
  void write(const std::vector<std::string>& lines, std::optional<Arch> arch = std::nullopt) const {
    const device::DeviceInfo& info = device_->device().info();
    const Catalogue catalogue = make_catalogue(embedded_sources());
    const auto nvrtc = device::Nvrtc::open({options().environment->nvrtc});
    BundleOptions what;
    what.archs = {arch.value_or(Arch::of(info.cc_major, info.cc_minor))};
    what.emulated = info.emulated;
    what.untuned = true;
    std::vector<Request> requests;
    for (const std::string& line : lines) requests.push_back(Request::parse(line));
    const BundlePlan plan = plan_bundle(requests, catalogue, *nvrtc, cache::Database::in_memory(), {}, what);
    ASSERT_TRUE(plan.gaps.empty());
    execution::write_bundle(path_, compile_bundle(plan, catalogue, *nvrtc, info.emulated, nullptr), "1", "13.0");
  }

  ContextOptions with_bundle() const {
    ContextOptions bundled = options();
    bundled.bundles = {path_};
    return bundled;
  }
  // As on a machine without NVRTC.
  ContextOptions without_nvrtc() const {
    ContextOptions bundled = with_bundle();
    bundled.environment->nvrtc = "/nonexistent/libnvrtc.so";
    return bundled;
  }

  std::string path_ = testing::TempDir() + "kiln_context_bundle.kiln";
};

const char* const softmax = "softmax_forward x=f32:4x37";
const char* const conv = "conv_forward x=f32:1x3x7x9 w=f32:5x3x3x3 pad=1 epilogue=bias+relu";

TEST_F(ContextBundleTest, RunsWithoutNvrtcWhatTheBundleHolds) {
  write({softmax, conv});
  Context context(without_nvrtc());
  EXPECT_THAT(context.device_description(), HasSubstr("no NVRTC"));
  for (const char* line : {softmax, conv}) {
    const Request request = Request::parse(line);
    const Plan plan = context.plan(request);
    EXPECT_EQ(plan.source(), "bundle " + path_);
    EXPECT_EQ(context.explain(request).chosen->source, "bundle " + path_);
    expect_matches_reference(request, plan);
  }
}

TEST_F(ContextBundleTest, SaysWithoutNvrtcWhatIsMissing) {
  write({softmax});
  ContextOptions named = without_nvrtc();
  const Request request = Request::parse(conv);
  const std::string pack = testing::TempDir() + "kiln_missing.pack";
  const ExplainedCandidate best = Context(options()).explain(request).estimated.at(0);
  cache::write_pack_file(pack, cache::make_pack({entry()}, {record(request, best, 1e-3)}), "1");
  named.packs = {pack};  // it names a variant, and the error is about the request all the same
  Context context(named);
  try {
    context.plan(Request::parse(conv));
    ADD_FAILURE() << "it made a plan of nothing";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::missing_library);
    EXPECT_THAT(error.what(), HasSubstr(Request::parse(conv).key()));
    EXPECT_THAT(error.what(), HasSubstr(path_));
    EXPECT_THAT(error.what(), HasSubstr("/nonexistent/libnvrtc.so"));
    EXPECT_THAT(error.what(), HasSubstr("add the request to the bundle (`kiln bundle`)"));
  }
  EXPECT_FALSE(context.explain(Request::parse(conv)).chosen);
}

// A pack beside it names something else, which would have to be compiled.
TEST_F(ContextBundleTest, WithoutNvrtcExplainPromisesNothingThatCannotBeCompiled) {
  write({softmax});
  const Request request = Request::parse(softmax);
  const ExplainedCandidate other = Context(options()).explain(request).estimated.at(1);
  const std::string pack = testing::TempDir() + "kiln_context_bundle.pack";
  cache::write_pack_file(pack, cache::make_pack({entry()}, {record(request, other, 1e-6)}), "1");
  ContextOptions bundled = without_nvrtc();
  bundled.packs = {pack};
  Context context(bundled);
  const Explanation why = context.explain(request);
  ASSERT_EQ(why.stored.size(), 1U);
  EXPECT_EQ(why.chosen->source, "bundle " + path_);
  EXPECT_EQ(why.chosen->source, context.plan(request).source());
  ASSERT_EQ(why.withheld.size(), 1U);
  EXPECT_EQ(why.withheld[0].config, other.config);
  EXPECT_EQ(why.withheld[0].reason, "it is in no bundle, and nothing can be compiled here");
  EXPECT_THAT(why.no_compiler, HasSubstr("/nonexistent/libnvrtc.so"));

  bundled.locked = true;
  Context locked(bundled);
  EXPECT_FALSE(locked.explain(request).chosen) << "it takes what is named first, or nothing";
  EXPECT_THROW(locked.plan(request), Error);

  ContextOptions compiling = with_bundle();
  compiling.packs = {pack};
  const Explanation with_nvrtc = Context(compiling).explain(request);
  EXPECT_THAT(with_nvrtc.chosen->source, HasSubstr(pack));
  EXPECT_EQ(with_nvrtc.no_compiler, "");
  EXPECT_TRUE(with_nvrtc.withheld.empty());
}

TEST_F(ContextBundleTest, OfAnotherArchitectureIsOfNoUseAndSaysWhatItIsFor) {
  write({softmax}, Arch::of(8, 0));
  Context context(without_nvrtc());
  try {
    context.plan(Request::parse(softmax));
    ADD_FAILURE() << "it ran kernels of another architecture";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("sm_80"));
    EXPECT_THAT(error.what(), HasSubstr("cc=9.0"));
  }
}

TEST_F(ContextBundleTest, CompilesWithNvrtcWhatTheBundleDoesNotHold) {
  write({softmax});
  Context context(with_bundle());
  EXPECT_EQ(context.plan(Request::parse(softmax)).source(), "bundle " + path_);
  EXPECT_EQ(context.plan(Request::parse(conv)).source(), "estimate");
}

TEST_F(ContextBundleTest, HonoursTheWorkspaceLimitAmongBundledVariants) {
  write({softmax});
  ContextOptions limited = without_nvrtc();
  limited.workspace_limit = 0;
  limited.deterministic = true;
  EXPECT_EQ(Context(limited).plan(Request::parse(softmax)).workspace_bytes(), 0);
}

TEST_F(ContextBundleTest, IsAnnouncedWhereItCannotBeUsedAndNvrtcTakesOver) {
  std::ofstream(path_) << "this is no bundle";
  std::vector<std::string> announced;
  ContextOptions broken = with_bundle();
  broken.announce = [&](std::string_view message) { announced.emplace_back(message); };
  Context context(broken);
  EXPECT_EQ(context.plan(Request::parse(softmax)).source(), "estimate");
  ASSERT_EQ(announced.size(), 1U);
  EXPECT_THAT(announced[0], HasSubstr(path_));
}

TEST_F(ContextBundleTest, WithNeitherNvrtcNorAUsableBundleThereIsNoContext) {
  std::ofstream(path_) << "this is no bundle";
  ContextOptions broken = without_nvrtc();
  broken.announce = [](std::string_view) {};
  EXPECT_THROW(Context{broken}, Error);
}

TEST_F(ContextBundleTest, DamagedInsideIsPassedOver) {
  write({softmax});
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(path_) / 2));
  file.put('\x01');
  file.close();
  std::vector<std::string> announced;
  ContextOptions damaged = with_bundle();
  damaged.announce = [&](std::string_view message) { announced.emplace_back(message); };
  Context context(damaged);
  const Request request = Request::parse(softmax);
  expect_matches_reference(request, context.plan(request));
  ASSERT_FALSE(announced.empty());
  EXPECT_THAT(announced[0], HasSubstr(path_));
}

}  // namespace
}  // namespace kiln::bundle_test
