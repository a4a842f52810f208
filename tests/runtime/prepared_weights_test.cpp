// Plans whose weights stay the same: what depends on these alone runs once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "device_fixture.h"
#include "kiln/context.h"
#include "kiln/device/nvrtc.h"
#include "kiln/execution/target.h"
#include "kiln/generator/catalogue.h"
#include "kiln/reference/fill.h"
#include "kiln/reference/tensor_memory.h"
#include "kiln/reference/tolerance.h"
#include "kiln/templates/catalogue.h"

namespace kiln::prepared_weights_test {
namespace {

using testing::HasSubstr;

class PreparedWeights : public DeviceTest {
 protected:
  // The plan of `algorithm`, with the best of its configurations by the estimates.
  Plan plan_of(const Request& request, const std::string& algorithm) {
    const device::DeviceInfo& info = device_->device().info();
    const Catalogue catalogue = make_catalogue(embedded_sources());
    const auto nvrtc = device::Nvrtc::open({.library = Environment::read().nvrtc});
    const Target target = execution::target_for(info.cc_major, info.cc_minor, *nvrtc);
    for (const Candidate& candidate : catalogue.candidates(request, target, execution::figures_of(info)).ranked) {
      if (candidate.choice.algorithm != algorithm) continue;
      const ExplainedCandidate named{algorithm, candidate.choice.config.print(), 0, ""};
      return contexts_.emplace_back(options_with_winner(request, named)).plan(request);
    }
    throw Error(ErrorCode::internal, algorithm + " is not among the candidates");
  }

  void make_operands(const Request& request, uint64_t seed) {
    host_.clear();
    device_operands_.clear();
    for (const Operand& operand : request.operands) {
      host_.push_back(operand.name == "y" || operand.name == "dx"
                          ? reference::poisoned(operand.spec)
                          : reference::filled(operand.spec, reference::Values::uniform, seed));
      device_operands_.emplace_back(upload(host_.back()));
    }
  }
  bool is_right(const Request& request) {
    reference::Bindings bindings;
    for (size_t i = 0; i < host_.size(); ++i) bindings.operands[request.operands[i].name] = host_[i];
    return !reference::compare(request, bindings, download(device_operands_[output].pointer, host_[output].size()));
  }
  void* memory(int64_t bytes) { return upload(std::vector<std::byte>(static_cast<size_t>(bytes), std::byte{0xff})); }

  std::vector<Context> contexts_;
  std::vector<std::vector<std::byte>> host_;
  std::vector<Address> device_operands_;
  static constexpr size_t output = 2;
};

struct Case {
  const char* request;
  const char* algorithm;
  bool needs_workspace;  // besides what is prepared
};

TEST_F(PreparedWeights, AreUsedByEveryRunThatFollows) {
  const Case cases[] = {
      {"conv_forward x=f32:2x5x9x7 w=f32:6x5x3x3 pad=1 fast", "conv_winograd_2x2", true},
      {"conv_forward x=f32:2x5x9x7 w=f32:6x5x3x3 pad=1 fast", "conv_winograd_2x2_fused", false},
      {"conv_backward_data dy=f32:2x6x9x7 w=f32:6x5x3x3 pad=1 fast", "conv_backward_data_winograd_4x4", true}};
  for (const auto& [line, algorithm, needs_workspace] : cases) {
    SCOPED_TRACE(algorithm);
    const Request request = Request::parse(line);
    const Plan plan = plan_of(request, algorithm);
    ASSERT_THAT(plan.variant(), HasSubstr(algorithm));
    EXPECT_GT(plan.prepared_bytes(), 0);
    EXPECT_EQ(plan.prepared_workspace_bytes() > 0, needs_workspace);
    make_operands(request, 1);
    void* const prepared = memory(plan.prepared_bytes());
    std::vector<Address> weights(3);
    weights[1] = device_operands_[1];  // the others are not looked at
    plan.prepare_weights(nullptr, weights, prepared);
    // Poisoned afterwards: a run that still reads the weights does not have the right result.
    const std::vector<std::byte> poison(host_[1].size(), std::byte{0xff});
    device::copy_to_device(*device_, reinterpret_cast<cuda_abi::CUdeviceptr>(device_operands_[1].pointer),
                           poison.data(), poison.size());
    for (int run = 0; run < 2; ++run) {
      plan.run_prepared(nullptr, device_operands_, prepared, memory(plan.prepared_workspace_bytes()));
      EXPECT_TRUE(is_right(request)) << "run " << run;
    }
    make_operands(request, 2);
    plan.run(nullptr, device_operands_, memory(plan.workspace_bytes()));
    EXPECT_TRUE(is_right(request)) << "run() does all of it, whatever was prepared";
  }
}

TEST_F(PreparedWeights, AreNothingWhereAnAlgorithmMakesNothingOfThem) {
  const Request request = Request::parse("conv_forward x=f32:1x3x5x5 w=f32:4x3x3x3");
  const Plan plan = plan_of(request, "conv_direct");
  EXPECT_EQ(plan.prepared_bytes(), 0);
  EXPECT_EQ(plan.prepared_workspace_bytes(), plan.workspace_bytes());
  make_operands(request, 1);
  plan.prepare_weights(nullptr, std::vector<Address>(3), nullptr);
  plan.run_prepared(nullptr, device_operands_, nullptr);
  EXPECT_TRUE(is_right(request));
}

TEST_F(PreparedWeights, AreRefusedWithWhatIsMissing) {
  const Request request = Request::parse("conv_forward x=f32:2x5x9x7 w=f32:6x5x3x3 pad=1 fast");
  const Plan plan = plan_of(request, "conv_winograd_2x2");
  make_operands(request, 1);
  auto* const prepared = static_cast<std::byte*>(memory(plan.prepared_bytes()));
  void* const workspace = memory(plan.prepared_workspace_bytes());
  EXPECT_THAT(refusal_of([&] { plan.prepare_weights(nullptr, device_operands_, nullptr); }),
              HasSubstr("the memory of prepared weights is missing"));
  EXPECT_THAT(refusal_of([&] { plan.prepare_weights(nullptr, device_operands_, prepared + 4); }),
              HasSubstr("the memory of prepared weights is not 256-byte aligned"));
  EXPECT_THAT(refusal_of([&] { plan.prepare_weights(nullptr, std::vector<Address>(3), prepared); }),
              HasSubstr("w is a null pointer"));
  EXPECT_THAT(refusal_of([&] { plan.prepare_weights(nullptr, std::vector<Address>(2), prepared); }),
              HasSubstr("2 operands were given, expected 3"));
  EXPECT_THAT(refusal_of([&] { plan.run_prepared(nullptr, device_operands_, nullptr, workspace); }),
              HasSubstr("the memory of prepared weights is missing"));
  EXPECT_THAT(refusal_of([&] { plan.run_prepared(nullptr, device_operands_, prepared, nullptr); }),
              HasSubstr("the workspace is missing"));
  EXPECT_THAT(refusal_of([&] { plan.run_prepared(nullptr, device_operands_, prepared, workspace, {.alpha = 2}); }),
              HasSubstr("alpha is 2"));
}

}  // namespace
}  // namespace kiln::prepared_weights_test
