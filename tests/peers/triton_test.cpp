// PTX that Triton makes on the emulated device: it is right, and no check reports.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "peer_kernels.h"
#include "triton_peer.h"
#include "variant_check.h"

namespace kiln::bench::triton_test {
namespace {

using testing_support::TestDevice;

TEST(Triton, IsRightAndSilent) {
  const std::vector<TritonProgram> programs = triton_programs();
  if (programs.empty()) GTEST_SKIP() << why_no_triton();
  for (const TritonProgram& program : programs) {
    SCOPED_TRACE(program.name);
    const int capability = nlohmann::json::parse(program.description)["capability"];
    const TestDevice* const device = TestDevice::find(Arch::of(capability / 10, capability % 10));
    ASSERT_NE(device, nullptr);
    TritonPeer kernel(device->context, program);
    checking::CheckOptions options = peer_options(kernel.request());
    ASSERT_TRUE(checking::is_checked_in_full(kernel.request(), options));
    const checking::Verdict verdict =
        checking::Checker(device->context, kernel.request(), options).check(kernel.checkable());
    EXPECT_TRUE(verdict.passed) << verdict.text;
  }
}

}  // namespace
}  // namespace kiln::bench::triton_test
