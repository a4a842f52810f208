// PTX that Triton makes on the emulated device: it is right, and no check reports.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "kiln/base/error.h"
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
    const TestDevice* const device = TestDevice::find(Arch::of(program.capability / 10, program.capability % 10));
    ASSERT_NE(device, nullptr);
    const TritonPeer kernel(device->context, program);
    const Request& request = program.whole.request;
    const checking::CheckOptions options = peer_options(request);
    ASSERT_TRUE(checking::is_checked_in_full(request, options));
    const checking::Verdict verdict =
        checking::Checker(device->context, request, options).check(kernel.checkable(program.whole));
    EXPECT_TRUE(verdict.passed) << verdict.text;
  }
}

TEST(Triton, FolderOfSomethingElseIsRefused) {
  const std::filesystem::path folder = testing::TempDir() + "no_kernels_of_triton";
  EXPECT_TRUE(triton_programs(folder / "nowhere").empty());
  std::filesystem::create_directories(folder);
  for (const char* text : {"no JSON", "[]", R"({"entry": 3})", R"({"entry": "attention"})"}) {
    std::ofstream(folder / "a.json") << text;
    try {
      triton_programs(folder);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::parse_error) << text;
      EXPECT_NE(error.message().find("a.json describes no kernel of Triton"), std::string::npos) << error.message();
    }
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace kiln::bench::triton_test
