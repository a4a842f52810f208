// PTX that cannot be executed is refused when it is loaded, with the line and what is wrong there.
#include <algorithm>

#include "core_fixture.h"

namespace kiln::emulator::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Loads a kernel with `line` in its body; the message must name that line of the module and contain `reason`.
void expect_refused(const std::string& line, const std::string& reason) {
  const std::string ptx = ptx_kernel("mov.u32 %r0, %tid.x;\n" + line + "\nmov.u32 %r1, 0;");
  const auto at = static_cast<std::ptrdiff_t>(ptx.find(line));
  const auto number = std::count(ptx.begin(), ptx.begin() + at, '\n') + 1;
  EXPECT_THAT(load_error(ptx), AllOf(HasSubstr("PTX line " + std::to_string(number) + ":"), HasSubstr(reason))) << line;
}

TEST(MalformedPtx, UnknownInstructionsAndFormsAreNamed) {
  expect_refused("frobnicate.u32 %r1, %r0;", "frobnicate");
  expect_refused("add.q32 %r1, %r0, %r0;", "q32");
  expect_refused("add.u32.wide %r1, %r0, %r0;", "wide");
  expect_refused("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0}, {%r0}, {%r1}, {%f1};", "mma");
  expect_refused("shfl.bfly.b32 %r1, %r0, 1, 31;", ".sync");
  expect_refused("sin.f32 %f1, %f2;", ".approx");
  expect_refused("cvt.s32.f32 %r1, %f1;", "rni");
  expect_refused("add.f32x4 %f1, %f2, %f3;", "f32x4");
}

TEST(MalformedPtx, WrongOperandsAreRefused) {
  expect_refused("add.u32 %r1, %r0;", "operand");
  expect_refused("add.u32 %r1, %r0, %r0, %r0;", "operand");
  expect_refused("add.u32 %r1, %r99, 1;", "%r99");
  expect_refused("add.u32 %r1, %rd1, 1;", "%rd1");
  expect_refused("add.u64 %r1, %rd1, 1;", "%r1");
  expect_refused("setp.eq.u32 %r1, %r0, 1;", "predicate");
  expect_refused("ld.global.v2.u32 %r1, [%rd0];", "vector");
  expect_refused("ld.global.v2.u32 {%r1, %r2, %r3}, [%rd0];", "vector");
  expect_refused("ld.global.u64 %r1, [%rd0];", "narrower");
  expect_refused("ld.param.u64 %rd1, [nowhere];", "nowhere");
  expect_refused("ld.param.u64 %rd1, [p3+8];", "beyond the kernel's parameters");
  expect_refused("st.param.u64 [p0], %rd1;", "cannot be written");
  expect_refused("cp.async.ca.shared.global [%r1], [%rd1], 12;", "4, 8 or 16");
  expect_refused("atom.local.add.u32 %r1, [%r0], 1;", "global and shared");
}

TEST(MalformedPtx, ControlFlowMustLeadSomewhere) {
  expect_refused("bra elsewhere;", "elsewhere");
  expect_refused("call unknown;", "unknown");
  expect_refused("@%p99 mov.u32 %r1, 0;", "%p99");
  expect_refused("@%r0 mov.u32 %r1, 0;", "%r0");
  expect_refused("brx.idx %r0, table;", "table");
}

TEST(MalformedPtx, TextThatDoesNotParseNamesItsLine) {
  expect_refused("add.u32 %r1, %r0, ;", "");
  expect_refused("add.u32 %r1 %r0, 1;", "");
  expect_refused("ld.global.u32 %r1, [%rd0;", "");
  expect_refused("mov.f32 %f1, 0fZZ;", "");
  expect_refused(".reg .b31 %q<4>;", "");
  expect_refused("mov.u32 %r1, \"text\";", "");
}

TEST(MalformedPtx, ModulesThatEndTooEarlyAreRefused) {
  const std::string whole = ptx_kernel("mov.u32 %r0, %tid.x;");
  for (size_t length = 60; length + 2 < whole.size(); length += 3) {
    try {
      load_program(whole.substr(0, length));
    } catch (const LoadError& error) {
      EXPECT_GT(error.line(), 0u);
      continue;
    }
    // What is left may be a whole module that merely lacks its kernel's body.
    EXPECT_EQ(whole.substr(0, length).find('{'), std::string::npos) << whole.substr(0, length);
  }
}

TEST(MalformedPtx, DamagedTextNeverCrashes) {
  const std::string whole = ptx_kernel(
      ".shared .align 4 .b8 tile[128];\nmov.u32 %r0, %tid.x;\nagain:\nld.global.v2.f32 {%f1, %f2}, [%rd0+8];\n"
      "fma.rn.f32 %f3, %f1, %f2, 0f3F800000;\nsetp.lt.f32 %p1, %f3, %f1;\n@%p1 bra again;\nst.shared.f32 [tile], %f3;");
  size_t refused = 0, loaded = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const char c : {' ', ';', '{', '9', '.', '%', '\0', '\xFF'}) {
      std::string damaged = whole;
      damaged[at] = c;
      try {
        load_program(damaged);
        ++loaded;
      } catch (const LoadError& error) {
        EXPECT_GT(error.line(), 0u) << error.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, loaded) << "most damage is noticed";
}

}  // namespace
}  // namespace kiln::emulator::test
