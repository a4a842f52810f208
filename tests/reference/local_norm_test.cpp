// The references of local normalisations: windows by hand, oneDNN's LRN, gradients by central differences of the
// forward, special values.
#include "kiln/generator/operations/local_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <oneapi/dnnl/dnnl.hpp>

#include "call.h"
#include "differences.h"
#include "kiln/reference/tolerance.h"

namespace kiln::reference::local_norm_test {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsNan;

constexpr float lrn_alpha = 1.5F, lrn_beta = 0.625F, lrn_k = 0.5F;

std::vector<double> results(const Call& call, std::string_view output = {}) {
  Bindings bindings = call.bindings();
  bindings.values.operation_scalars = {lrn_alpha, lrn_beta, lrn_k};
  return evaluate(call.request, bindings, output);
}

double divided(double x, double squares, double window) {
  return x * std::pow(lrn_k + lrn_alpha / window * squares, -double{lrn_beta});
}

// The extra element of an even window stands behind its centre; outside x there is nothing, but it is divided by as
// much.
TEST(LocalNormReference, HasTheWindowOfCudnnAndOnnx) {
  Call call("local_norm_forward x=f32:1x4 size=4");
  call.set("x", {1, 2, 3, 4});
  EXPECT_THAT(results(call), ElementsAre(DoubleNear(divided(1, 14, 4), 1e-14), DoubleNear(divided(2, 30, 4), 1e-14),
                                         DoubleNear(divided(3, 29, 4), 1e-14), DoubleNear(divided(4, 25, 4), 1e-14)));
}

TEST(LocalNormReference, ComparesEachElementWithTheMeanAtItsPlaceAndDividesWhatItWas) {
  Call call("local_norm_forward x=f32:1x1x2x2 means=f32:1x1x2x2 axes=2,3 size=2");
  call.set("x", {1, 2, 3, 4}).set("means", {0, 4, 2, 7});  // differences 1, -2, 1, -3
  EXPECT_THAT(results(call), ElementsAre(DoubleNear(divided(1, 15, 4), 1e-14), DoubleNear(divided(2, 13, 4), 1e-14),
                                         DoubleNear(divided(3, 10, 4), 1e-14), DoubleNear(divided(4, 9, 4), 1e-14)));
}

TEST(LocalNormReference, LetsInfinitiesVanishWhatSurroundsThemAndNanSpread) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Call call("local_norm_forward x=f32:1x7 size=3");
  call.set("x", {1, -infinity, 2, 3, std::nan(""), 4, -0.0});
  EXPECT_THAT(results(call), ElementsAre(0, IsNan(), 0, IsNan(), IsNan(), IsNan(), 0));
}

// A sum beyond f32 leaves everything open; one misplaced element does not.
TEST(LocalNormReference, GrantsOverflowAndNothingElse) {
  Call call("local_norm_forward x=f32:1x6 size=3");
  call.set("x", {1e30, 2, 3, 1, 2, 6});
  Bindings bindings = call.bindings();
  bindings.values.operation_scalars = {lrn_alpha, lrn_beta, lrn_k};
  EXPECT_TRUE(is_right(call.request, at(call.request, bindings, Coordinate{0, 1}), -7));
  const Expected expected = at(call.request, bindings, Coordinate{0, 3});
  EXPECT_TRUE(is_right(call.request, expected, static_cast<float>(expected.value)));
  EXPECT_FALSE(is_right(call.request, expected, expected.value * (1 + 1e-5)));
}

class LocalNormDifferences : public testing::TestWithParam<const char*> {};

// d(sum of dy y) / d(x or means) by moving one element after the other, in double.
TEST_P(LocalNormDifferences, AgreeWithTheReference) {
  const std::string attributes = GetParam();
  const std::string extents = attributes.substr(0, attributes.find(' ')), rest = attributes.substr(extents.size());
  Call forward("local_norm_forward x=f32:" + extents + " means=f32:" + extents + rest);
  Call backward("local_norm_backward x=f32:" + extents + " means=f32:" + extents + " dmeans=f32:" + extents + rest);
  for (const char* name : {"x", "means"}) backward.memory[name] = forward.memory[name];
  const std::vector<double> dy = read_all(backward.request.at("dy"), backward.memory["dy"]);
  const auto of_forward = [](const Call& call) { return results(call); };
  for (const auto& [operand, gradient] : {std::pair{"x", "dx"}, std::pair{"means", "dmeans"}}) {
    const std::vector<double> got = results(backward, gradient);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], central_difference(forward, operand, i, dy, of_forward), 1e-5) << gradient << " " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Windows, LocalNormDifferences,
                         testing::Values("2x7x2", "2x6x2 size=4", "1x2x4x5 axes=2,3 size=3", "1x2x4x5 axes=2,3 size=2",
                                         "1x1x3x2x4 axes=2,3,4 size=2", "3x4 size=1"));

// Across channels, and within a channel: divisive normalisation without means.
class LocalNormByOneDnn : public testing::TestWithParam<const char*> {};

TEST_P(LocalNormByOneDnn, IsTheReference) {
  using dnnl::memory;
  Call forward(std::string("local_norm_forward x=f32:2x7x5x6") + GetParam());
  Call backward(std::string("local_norm_backward x=f32:2x7x5x6") + GetParam());
  backward.memory["x"] = forward.memory["x"];
  const LocalNormForward norm = LocalNormForward::of(forward.request);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const memory::desc desc(norm.x.extents, memory::data_type::f32, memory::format_tag::nchw);
  const auto kind = norm.axes.size() == 1 ? dnnl::algorithm::lrn_across_channels : dnnl::algorithm::lrn_within_channel;
  const dnnl::lrn_forward::primitive_desc description(
      {dnnl::prop_kind::forward_training, kind, desc, norm.size, lrn_alpha, lrn_beta, lrn_k}, engine);
  const dnnl::lrn_backward::primitive_desc gradient({kind, desc, desc, norm.size, lrn_alpha, lrn_beta, lrn_k}, engine,
                                                    description);
  const memory x(desc, engine, forward.memory["x"].data()), dy(desc, engine, backward.memory["dy"].data());
  memory y(desc, engine), dx(desc, engine), workspace(description.workspace_desc(), engine);
  dnnl::lrn_forward(description)
      .execute(stream, {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}, {DNNL_ARG_WORKSPACE, workspace}});
  dnnl::lrn_backward(gradient).execute(
      stream, {{DNNL_ARG_SRC, x}, {DNNL_ARG_DIFF_DST, dy}, {DNNL_ARG_DIFF_SRC, dx}, {DNNL_ARG_WORKSPACE, workspace}});
  stream.wait();
  const std::vector<double> expected_y = results(forward), expected_dx = results(backward);
  for (size_t i = 0; i < expected_y.size(); ++i) {
    EXPECT_NEAR(static_cast<const float*>(y.get_data_handle())[i], expected_y[i], 2e-6) << i;
    EXPECT_NEAR(static_cast<const float*>(dx.get_data_handle())[i], expected_dx[i], 4e-6) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Windows, LocalNormByOneDnn,
                         testing::Values(" size=5", " size=3", " size=1", " axes=2,3 size=3", " axes=2,3 size=5"));

}  // namespace
}  // namespace kiln::reference::local_norm_test
