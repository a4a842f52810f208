// User code beyond the single call: what is tuned, stored, packed, bundled, locked and captured of it. Caches hold its
// digest only, so each of these meets requests whose text nobody here knows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "device_fixture.h"
#include "kiln/base/error.h"
#include "kiln/cache/database.h"
#include "kiln/cache/pack.h"
#include "kiln/context.h"
#include "kiln/device/stream.h"
#include "kiln/runtime/bundling.h"
#include "kiln/templates/catalogue.h"

namespace kiln::user_code_shipping_test {
namespace {

using namespace cuda_abi;
using testing::AllOf;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

class ShippedUserCode : public DeviceTest {
 protected:
  ShippedUserCode() {
    for (const std::string& file : {database_, pack_, bundle_, kernels_}) std::filesystem::remove_all(file);
  }

  static Request request(const std::string& text = "acc * a + t") {
    return Request::parse("conv_forward x=f32:1x2x1x1 w=f32:2x2x1x1 epilogue=user:e epilogue.t=f32:2",
                          {{"e", Expression(text, {"t"}, {"a"})}});
  }
  // The same one as caches know it.
  static Request without_text() { return Request::parse(request().key()); }

  // Runs a plan of request(): the sums are 11 and -7, t is 0.5 and 0.25.
  std::vector<float> run(const Plan& plan, float a) {
    RunValues values;
    values.scalars = {a};
    plan.run(nullptr, operands_, workspace_of(plan), values);
    synchronize();
    return result();
  }
  std::vector<float> result() const { return download<float>(operands_[2].pointer, 2); }
  void* workspace_of(const Plan& plan) {
    return upload(std::vector<std::byte>(static_cast<size_t>(plan.workspace_bytes())));
  }
  const std::vector<Address>& operands() const { return operands_; }
  static auto is_of(float a) { return Pointwise(FloatNear(1e-4F), {11 * a + 0.5F, -7 * a + 0.25F}); }

  BundlePlan bundle_plan(const Request& request) const {
    const device::DeviceInfo& info = device_->device().info();
    BundleOptions what;
    what.archs = {Arch::of(info.cc_major, info.cc_minor)};
    what.emulated = info.emulated;
    what.untuned = true;
    return plan_bundle({&request, 1}, catalogue_, *nvrtc_, cache::Database::in_memory(), {}, what);
  }

  static auto names_the_text() {
    return AllOf(HasSubstr("the text of user:" + request().user_code.digest() + " is not known"),
                 HasSubstr("--expression"), HasSubstr("KILN_RECORD"));
  }

  ContextOptions tuning() const {
    ContextOptions tuned = options();
    tuned.cache = database_;
    if (!tuned.environment->worker) tuned.environment->worker = KILN_PROGRAM;
    tuned.tuning = {TuningMode::within_budget, 120, 2};
    return tuned;
  }

  std::string database_ = testing::TempDir() + "kiln_user_code.db";
  std::string pack_ = testing::TempDir() + "kiln_user_code.pack";
  std::string bundle_ = testing::TempDir() + "kiln_user_code.kiln";
  std::string kernels_ = testing::TempDir() + "kiln_user_code_kernels";
  const Catalogue catalogue_ = make_catalogue(embedded_sources());
  const std::shared_ptr<const device::Nvrtc> nvrtc_ = device::Nvrtc::open({options().environment->nvrtc});

 private:
  void* floats(std::initializer_list<float> values) {
    return upload(std::as_bytes(std::span(values.begin(), values.size())));
  }
  const std::vector<Address> operands_ = {floats({1, 2}), floats({3, 4, 5, -6}), floats({100, 200}),
                                          floats({0.5F, 0.25F})};
};

TEST_F(ShippedUserCode, WithoutItsTextNothingIsMadeAndTheErrorSaysWhatIsMissing) {
  Context context(options());
  EXPECT_THAT(refusal_of([&] { context.plan(without_text()); }), names_the_text());
  const Explanation why = context.explain(without_text());
  EXPECT_FALSE(why.chosen);
  ASSERT_FALSE(why.refused.empty());
  EXPECT_THAT(why.refused.front().reason, HasSubstr("the text of user:"));
  EXPECT_THAT(run(context.plan(request()), 2), is_of(2)) << "whoever knows the text is served";
}

TEST_F(ShippedUserCode, ABundleServesItWithoutNvrtcAndWithoutItsText) {
  execution::write_bundle(
      bundle_, compile_bundle(bundle_plan(request()), catalogue_, *nvrtc_, entry().emulated, nullptr), "1", "13.0");
  ContextOptions bundled = options();
  bundled.bundles = {bundle_};
  for (const char* nvrtc : {"", "/nonexistent/libnvrtc.so"}) {
    if (*nvrtc != '\0') bundled.environment->nvrtc = nvrtc;
    Context context(bundled);
    const Plan plan = context.plan(without_text());
    EXPECT_EQ(plan.source(), "bundle " + bundle_);
    EXPECT_THAT(run(plan, 3), is_of(3));
  }
}

TEST_F(ShippedUserCode, WithoutItsTextItIsAGapInABundle) {
  const BundlePlan plan = bundle_plan(without_text());
  EXPECT_TRUE(plan.choices.empty());
  ASSERT_EQ(plan.gaps.size(), 1U);
  EXPECT_EQ(plan.gaps[0].request, request().key());
  EXPECT_THAT(plan.gaps[0].reason, names_the_text());
}

TEST_F(ShippedUserCode, IsTunedWithinABudgetAndFoundAgainByWhoeverHasTheText) {
  {
    Context context(tuning());
    const Plan plan = context.plan(request());
    EXPECT_THAT(plan.source(), HasSubstr("on this device"));
    EXPECT_THAT(run(plan, -2), is_of(-2));
  }
  ContextOptions later = options();
  later.cache = database_;
  Context context(later);
  EXPECT_THAT(refusal_of([&] { context.plan(without_text()); }), names_the_text());
  EXPECT_THAT(context.plan(request()).source(), HasSubstr("on this device"));
  EXPECT_EQ(context.plan(request("acc * a - t")).source(), "estimate") << "other code, other requests";
}

TEST_F(ShippedUserCode, TuningDoesNotTryWhatItHasNoTextOf) {
  execution::write_bundle(
      bundle_, compile_bundle(bundle_plan(request()), catalogue_, *nvrtc_, entry().emulated, nullptr), "1", "13.0");
  ContextOptions both = tuning();
  both.bundles = {bundle_};
  Context context(both);
  EXPECT_EQ(context.plan(without_text()).source(), "bundle " + bundle_);
  const auto database = cache::Database::open(database_, {.mode = cache::OpenMode::read_only});
  EXPECT_TRUE(database.sessions().empty());
}

TEST_F(ShippedUserCode, LockedItNeedsAPackAndTheText) {
  const Explanation why = Context(options()).explain(request());
  ASSERT_GE(why.estimated.size(), 2U);
  cache::write_pack_file(pack_, cache::make_pack({entry()}, {record(request(), why.estimated[1], 1e-5)}), "1");
  ContextOptions locked = options();
  locked.locked = true;
  locked.packs = {pack_};
  Context context(locked);
  EXPECT_THAT(refusal_of([&] { context.plan(without_text()); }), names_the_text());
  const Plan plan = context.plan(request());
  EXPECT_THAT(plan.source(), HasSubstr(pack_));
  EXPECT_THAT(run(plan, 1), is_of(1));
}

TEST_F(ShippedUserCode, TheKernelStoreKeepsTextsApart) {
  ContextOptions storing = options();
  storing.kernel_store = kernels_;
  const auto entries_after = [&](const std::string& text) {
    Context context(storing);
    context.plan(request(text));
    std::set<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(kernels_)) names.insert(file.path().filename());
    return names;
  };
  const auto first = entries_after("acc * a + t"), second = entries_after("acc * a - t");
  EXPECT_GT(second.size(), first.size());
  EXPECT_EQ(entries_after("acc * a + t"), second) << "what is there is not compiled again";
}

// The driver refuses whatever could wait or allocate while it captures in this mode.
TEST_F(ShippedUserCode, AGraphReplaysWithTheScalarsOfItsCapture) {
  Context context(options());
  const Plan plan = context.plan(request());
  const device::Stream stream(device_);
  RunValues values;
  values.scalars = {4};
  void* const workspace = workspace_of(plan);
  ASSERT_EQ(device_->call(&device::DriverTable::cuStreamBeginCapture_v2, stream.raw(), CU_STREAM_CAPTURE_MODE_GLOBAL),
            CUDA_SUCCESS);
  plan.run(stream.raw(), operands(), workspace, values);
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  ASSERT_EQ(device_->call(&device::DriverTable::cuStreamEndCapture, stream.raw(), &graph), CUDA_SUCCESS);
  ASSERT_EQ(device_->call(&device::DriverTable::cuGraphInstantiateWithFlags, &executable, graph, 0ULL), CUDA_SUCCESS);
  EXPECT_THAT(run(plan, -1), is_of(-1)) << "between capture and replay";
  ASSERT_EQ(device_->call(&device::DriverTable::cuGraphLaunch, executable, stream.raw()), CUDA_SUCCESS);
  stream.synchronize();
  EXPECT_THAT(result(), is_of(4));
  const device::DriverTable& calls = device_->driver().calls();
  EXPECT_EQ(calls.cuGraphExecDestroy(executable), CUDA_SUCCESS);
  EXPECT_EQ(calls.cuGraphDestroy(graph), CUDA_SUCCESS);
}

}  // namespace
}  // namespace kiln::user_code_shipping_test
