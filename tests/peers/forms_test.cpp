// Each form of an instruction of tensor kernels that Kiln's kernels use occurs in a kernel of others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cutlass_cases.h"
#include "cutlass_peer.h"
#include "instruction_forms.h"
#include "peer_kernels.h"
#include "variant_check.h"

namespace kiln::bench::forms_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing_support::TestDevice;

TEST(InstructionForms, AreWithoutHintsAndInOneOrder) {
  EXPECT_THAT(instruction_forms("ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%r1, %r2, %r3, %r4}, [%r5];\n"
                                "ldmatrix.sync.aligned.m8n8.x4.shared::cta.b16 {%0, %1, %2, %3}, [%4];\n"
                                "@p cp.async.cg.shared.global.L2::128B [%r7], [%rd8], 16, %r9;\n"
                                "cp.async.ca.shared.global [%r7], [%rd8], 0x8;\ncp.async.wait_group 2;"),
              ElementsAre("cp.async.ca.global.shared 8", "cp.async.cg.global.shared 16 zfill", "cp.async.wait_group",
                          "ldmatrix.aligned.b16.m8n8.shared.sync.x4"));
  EXPECT_THAT(instruction_forms("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%r1};\n"
                                "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32.satfinite {%r1};"),
              ElementsAre("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32.satfinite"));
  EXPECT_THAT(instruction_forms("_ZN7cutlass4arch3mma.x // mma\nwgmma.mma_async.sync %rmma.y; cp.reduce.x"), IsEmpty());
}

TEST(InstructionForms, OfInlineAssemblyShowWhatItsTextDoesNotSay) {
  EXPECT_THAT(instruction_forms(inline_assembly(R"(
                // "mma.sync.aligned.m8n8k4"
                asm("cp.async.ca.shared.global [%0], "  // "ldmatrix.x"
                    "[%1], %2, %3;" :: "r"(to), "n"(8));)")),
              ElementsAre("cp.async.ca.global.shared % zfill"));
  EXPECT_THAT(instruction_forms(inline_assembly(R"(asm("mma.sync.m16n8k16.f32." TYPE "." TYPE ".f32 {%0}, {%1};");)")),
              ElementsAre("mma.sync.m16n8k16.f32...."));
  EXPECT_THAT(instruction_forms(inline_assembly(R"(
#define MULTIPLY(TYPES)              \
  asm("mma.sync.m16n8k32.f32." TYPES \
      ".f32 {%0}, {%1};")
  if (first) MULTIPLY("e4m3.e5m2");
  MULTIPLY("e5m2.e5m2");
#undef MULTIPLY
)")),
              ElementsAre("mma.sync.m16n8k32.f32.e4m3.e5m2.f32", "mma.sync.m16n8k32.f32.e5m2.e5m2.f32"));
}

std::set<std::string> forms_of_peers(const TestDevice& any) {
  std::set<std::string> forms;
  for (const CutlassCase& peer : cutlass_cases()) {
    const TestDevice* const device = TestDevice::find(Arch::of(peer.major, peer.minor));
    for (const std::string& line : peer.requests) {
      forms.merge(
          instruction_forms(cutlass_ptx(*any.nvrtc, peer_store(), Request::parse(line), device->target, peer.choice)));
    }
  }
  for (const TritonProgram& program : triton_programs()) forms.merge(instruction_forms(program.ptx));
  return forms;
}

// By form: a source that has it.
std::map<std::string, std::string> forms_of_kiln() {
  std::map<std::string, std::string> forms;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(KILN_TEMPLATES)) {
    if (entry.path().extension() != ".cuh" && entry.path().extension() != ".cu") continue;
    std::ifstream file(entry.path());
    const std::string source{std::istreambuf_iterator<char>(file), {}};
    for (const std::string& form : instruction_forms(inline_assembly(source))) forms[form] = entry.path().filename();
  }
  return forms;
}

// Forms that `form` may be: the bytes of a copy are those that its cache operator may have.
std::vector<std::string> possible(const std::string& form) {
  const size_t open = form.find(" %");
  if (open == std::string::npos) return {form};
  std::vector<std::string> all;
  for (const char* bytes : {"4", "8", "16"}) {
    if (form.find(".cg") == std::string::npos || std::string_view(bytes) == "16") {
      all.push_back(form.substr(0, open + 1) + bytes + form.substr(open + 2));
    }
  }
  return all;
}

TEST(InstructionForms, OfKilnsKernelsAreAmongThoseOfPeers) {
  const TestDevice& device = TestDevice::get();
  if (const auto reason = why_no_cutlass(*device.nvrtc)) GTEST_SKIP() << *reason;
  const std::set<std::string> peers = forms_of_peers(device);
  for (const std::string& form : peers) std::cout << "of others: " << form << '\n';
  for (const auto& [written, source] : forms_of_kiln()) {
    for (const std::string& form : possible(written)) {
      EXPECT_TRUE(peers.contains(form)) << source << " has " << form << ", which no kernel of others has: add one to "
                                        << "cutlass_cases.cpp or triton_kernels.py";
    }
  }
}

}  // namespace
}  // namespace kiln::bench::forms_test
