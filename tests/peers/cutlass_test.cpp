// Kernels of CUTLASS, which have been proved on chips, on the emulated device: they are right, and no check reports.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "cutlass_cases.h"
#include "cutlass_peer.h"
#include "kiln/base/error.h"
#include "peer_kernels.h"
#include "variant_check.h"

namespace kiln::bench::cutlass_test {
namespace {

using testing_support::TestDevice;

// Sums in f16, and sums of slices that are stored in f16 between them, are exact for small integers.
checking::CheckOptions options_for(const CutlassChoice& choice, const Request& request) {
  checking::CheckOptions options = peer_options(request);
  if (choice.sum != DType::f32 || choice.slices > 1) options.fills = {reference::Values::integers};
  return options;
}

class Cutlass : public testing::TestWithParam<CutlassCase> {};

TEST_P(Cutlass, IsRightAndSilent) {
  const CutlassCase& peer = GetParam();
  const TestDevice* const device = TestDevice::find(Arch::of(peer.major, peer.minor));
  ASSERT_NE(device, nullptr);
  if (const auto reason = why_no_cutlass(*device->nvrtc)) GTEST_SKIP() << *reason;
  for (const std::string& line : peer.requests) {
    SCOPED_TRACE(line);
    const Request request = Request::parse(line);
    const checking::CheckOptions options = options_for(peer.choice, request);
    CutlassPeer kernel(device->context, *device->nvrtc, peer_store(), request, device->target, peer.choice);
    checking::Checker checker(device->context, request, options);
    ASSERT_TRUE(checking::is_checked_in_full(request, options));
    const checking::Verdict verdict = checker.check(kernel.checkable());
    EXPECT_TRUE(verdict.passed) << peer.choice.print() << ": " << verdict.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Cutlass, testing::ValuesIn(cutlass_cases()),
                         [](const auto& peer) { return peer.param.name; });

}  // namespace
}  // namespace kiln::bench::cutlass_test
