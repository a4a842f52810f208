// Bounds of docs/numerics.md for each of Winograd's algorithms by itself. The check of a request that permits them
// grants what the loosest needs, to all; here every algorithm is held to its own bound.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "algorithm_cases.h"
#include "kiln/device/memory.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/fill.h"
#include "kiln/reference/reference.h"
#include "variant_check.h"

namespace kiln::testing_support::winograd_numerics_test {
namespace {

using Floats = std::vector<float>;

constexpr int64_t channels = 7, height = 11, width = 13, filters = 5;

// One image, padded by 1: as many outputs as inputs. The gradient by input is a convolution of dy, whose channels are
// the filters of the forward.
Request request_for(const std::string& algorithm) {
  if (algorithm.starts_with("conv_backward_data")) {
    return Request::parse(fmt::format("conv_backward_data dy=f32:1x{}x{}x{} w=f32:{}x{}x3x3 pad=1 fast", channels,
                                      height, width, channels, filters));
  }
  return Request::parse(fmt::format("conv_forward x=f32:1x{}x{}x{} w=f32:{}x{}x3x3 pad=1 fast", channels, height, width,
                                    filters, channels));
}

Floats random(const Request& request, const Operand& operand, reference::Values values) {
  const std::vector<std::byte> bytes = reference::filled(request, operand, values, 7);
  Floats result(bytes.size() / sizeof(float));
  std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

execution::Executable compiled(const std::string& algorithm) {
  const TestDevice& device = TestDevice::get();
  const Request request = request_for(algorithm);
  const Config config = built_in_catalogue().find(algorithm)->on(request, device.target).first_legal().value();
  const Program program = built_in_catalogue().program(request, device.target, {algorithm, config});
  return device.load(program, device.target, {request.operands[0].name, "w", result_of(request).name});
}

// Programs of all tests, each compiled once.
std::map<std::string, execution::Executable>& executables() {
  static std::map<std::string, execution::Executable> all;
  return all;
}

Floats run(const std::string& algorithm, const Floats& x, const Floats& w) {
  const TestDevice& device = TestDevice::get();
  if (!executables().contains(algorithm)) executables().emplace(algorithm, compiled(algorithm));
  const execution::Executable& executable = executables().at(algorithm);
  const device::Buffer on_x = device::upload(device.context, x), on_w = device::upload(device.context, w);
  const auto outputs = static_cast<size_t>(result_of(request_for(algorithm)).spec.elements());
  const device::Buffer y(device.context, outputs * sizeof(float));
  const device::Buffer workspace(device.context, static_cast<size_t>(executable.workspace_bytes()));
  executable.run(nullptr, std::vector{on_x.address(), on_w.address(), y.address()}, {}, 1, workspace.address());
  return device::download<float>(*device.context, y.address(), outputs);
}

std::vector<double> exact(const Request& request, const Floats& x, const Floats& w) {
  reference::Bindings bindings;
  bindings.operands = {{request.operands[0].name, std::as_bytes(std::span(x))}, {"w", std::as_bytes(std::span(w))}};
  return reference::evaluate(request, bindings);
}

struct Form {
  std::string algorithm;
  int64_t tile;          // 1: no tiles
  double amplification;  // of max |x| max |w|, a channel
  double roundings;
};

void PrintTo(const Form& form, std::ostream* out) {
  *out << form.algorithm;
}

class WinogradNumerics : public testing::TestWithParam<Form> {
 protected:
  static void TearDownTestSuite() { executables().clear(); }  // while there is a device

  Floats input(reference::Values values) const { return random(request_, request_.operands[0], values); }
  Floats filter(reference::Values values) const { return random(request_, {"w", request_.at("w")}, values); }

  const Request request_ = request_for(GetParam().algorithm);
};

// The largest row sum of |A^T| (|G| |1|) . (|B^T| |1|), squared, is what the transforms may make of a channel whose
// elements are at most 1.
TEST_P(WinogradNumerics, KeepTheBoundOfTheirOwnTransforms) {
  const Form& form = GetParam();
  const Floats x = input(reference::Values::uniform), w = filter(reference::Values::uniform);
  const std::vector<double> expected = exact(request_, x, w);
  const Floats got = run(form.algorithm, x, w);
  const double bound = form.roundings * 0x1p-24 * form.amplification * channels;
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], bound) << i;
}

TEST_P(WinogradNumerics, SumIntegersExactly) {
  const Floats x = input(reference::Values::integers), w = filter(reference::Values::integers);
  const std::vector<double> expected = exact(request_, x, w);
  const Floats got = run(GetParam().algorithm, x, w);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], expected[i]) << i;
}

// One element of x that is not finite: it reaches all outputs whose window it is in, maybe others of their tiles, and
// no others.
TEST_P(WinogradNumerics, KeepSpecialValuesInTheirTiles) {
  const Form& form = GetParam();
  const int64_t row = 5, column = 6;
  const Floats w = filter(reference::Values::uniform);
  Floats x = input(reference::Values::uniform);
  const Floats before = run(form.algorithm, x, w);
  for (const float special : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    x[static_cast<size_t>((2 * height + row) * width + column)] = special;
    const Floats after = run(form.algorithm, x, w);
    for (int64_t i = 0; i < filters * height * width; ++i) {
      const int64_t p = i / width % height, q = i % width;
      const float value = after[static_cast<size_t>(i)];
      const bool in_window = std::abs(p - row) <= 1 && std::abs(q - column) <= 1;
      const auto meets = [&](int64_t output, int64_t input) {
        const int64_t first = output / form.tile * form.tile;
        return input >= first - 1 && input <= first + form.tile;
      };
      if (in_window) {
        EXPECT_FALSE(std::isfinite(value)) << p << "," << q;
        EXPECT_TRUE(std::isinf(special) || std::isnan(value)) << p << "," << q;
      } else if (!meets(p, row) || !meets(q, column)) {
        EXPECT_EQ(value, before[static_cast<size_t>(i)]) << p << "," << q;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, WinogradNumerics,
                         testing::Values(Form{"conv_implicit_gemm", 1, 9, 9 * channels},
                                         Form{"conv_winograd_2x2", 2, 64, channels + 11},
                                         Form{"conv_winograd_2x2_fused", 2, 64, channels + 11},
                                         Form{"conv_winograd_4x4", 4, 2304, channels + 16},
                                         Form{"conv_winograd_4x4_fused", 4, 2304, channels + 16},
                                         Form{"conv_backward_data_winograd_2x2", 2, 64, channels + 11},
                                         Form{"conv_backward_data_winograd_2x2_fused", 2, 64, channels + 11},
                                         Form{"conv_backward_data_winograd_4x4", 4, 2304, channels + 16},
                                         Form{"conv_backward_data_winograd_4x4_fused", 4, 2304, channels + 16}),
                         [](const auto& one) { return one.param.algorithm; });

}  // namespace
}  // namespace kiln::testing_support::winograd_numerics_test
