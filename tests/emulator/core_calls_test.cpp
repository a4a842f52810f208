// Local memory and calls.
#include <numeric>

#include "core_lanes.h"

namespace kiln::emulator::test::core_calls_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(LocalMemory, IsEachThreadsOwnAndIndexable) {
  // Eight words of the thread's own: word k holds k * a, then word a % 8 is read back through a generic address.
  std::string text = ".local .align 16 .b8 depot[32];\nmov.u64 %rd5, depot;\ncvta.local.u64 %rd6, %rd5;\n";
  for (int k = 0; k < 8; ++k) {
    text += "mul.lo.u32 %r2, %a, " + std::to_string(k) + ";\nst.local.u32 [%rd5+" + std::to_string(4 * k) + "], %r2;\n";
  }
  text += "and.b32 %r3, %a, 7;\nmul.wide.u32 %rd7, %r3, 4;\nadd.u64 %rd8, %rd6, %rd7;\nld.u32 %d, [%rd8];";
  std::vector<uint32_t> values(96);
  std::iota(values.begin(), values.end(), 0u);
  expect_lanes(
      text, [](uint32_t a) { return a % 8 * a; }, values);
}

TEST(LocalMemory, VectorsAndBytesKeepTheirPlaces) {
  expect_lanes(
      ".local .align 16 .b8 depot[16];\nadd.u32 %r2, %a, 1;\nst.local.v2.u32 [depot], {%a, %r2};\n"
      "st.local.u8 [depot+1], 255;\nld.local.u32 %r3, [depot];\nld.local.u32 %r4, [depot+4];\nadd.u32 %d, %r3, %r4;",
      [](uint32_t a) { return (a | 0xFF00u) + a + 1; }, awkward_u32);
}

/// A kernel whose functions stand before it: out[tid] = f(in[tid]).
std::vector<uint32_t> call_on(const std::string& functions, const std::string& call, std::vector<uint32_t> values) {
  Module module(
      ptx_kernel("mov.u32 %r0, %tid.x;\nld.param.u64 %rd0, [p0];\nld.param.u64 %rd1, [p1];\n"
                 "mul.wide.u32 %rd2, %r0, 4;\nadd.u64 %rd0, %rd0, %rd2;\nadd.u64 %rd1, %rd1, %rd2;\n"
                 "ld.global.u32 %r1, [%rd1];\n" +
                     call + "\nst.global.u32 [%rd0], %r2;",
                 ".param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3", functions));
  Buffer<uint32_t> in(values), out(values.size());
  module.allow(in).allow(out);
  module.launch("k", {1}, {static_cast<uint32_t>(values.size())},
                Arguments(out.address(), in.address(), uint64_t{0}, uint64_t{0}));
  return out.values();
}

const std::string collatz = R"(
.func (.param .b32 result) collatz(.param .b32 start)
{
.reg .b32 %r<8>;
.reg .pred %p<4>;
ld.param.u32 %r1, [start];
mov.u32 %r2, 0;
again:
setp.le.u32 %p1, %r1, 1;
@%p1 bra done;
add.u32 %r2, %r2, 1;
and.b32 %r3, %r1, 1;
setp.eq.u32 %p2, %r3, 0;
@%p2 bra even;
mad.lo.u32 %r1, %r1, 3, 1;
bra again;
even:
shr.u32 %r1, %r1, 1;
bra again;
done:
st.param.b32 [result], %r2;
ret;
}
.func (.param .b32 total) twice(.param .b32 first)
{
.reg .b32 %r<8>;
ld.param.u32 %r1, [first];
{
.param .b32 a;
.param .b32 r;
st.param.b32 [a], %r1;
call.uni (r), collatz, (a);
ld.param.b32 %r2, [r];
}
add.u32 %r3, %r1, 1;
{
.param .b32 a;
.param .b32 r;
st.param.b32 [a], %r3;
call.uni (r), collatz, (a);
ld.param.b32 %r4, [r];
}
add.u32 %r5, %r2, %r4;
st.param.b32 [total], %r5;
ret;
}
)";

uint32_t collatz_steps(uint32_t n) {
  uint32_t steps = 0;
  for (; n > 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  return steps;
}

TEST(Calls, ReturnToEachCallerAndNest) {
  std::vector<uint32_t> values(64);
  std::iota(values.begin(), values.end(), 1u);
  const auto results = call_on(
      collatz,
      "{\n.param .b32 a;\n.param .b32 r;\nst.param.b32 [a], %r1;\ncall (r), twice, (a);\nld.param.b32 %r2, [r];\n}",
      values);
  for (size_t k = 0; k < values.size(); ++k) {
    EXPECT_EQ(results[k], collatz_steps(values[k]) + collatz_steps(values[k] + 1)) << values[k];
  }
}

TEST(Calls, SomeLanesCallWhileOthersDoNot) {
  std::vector<uint32_t> values(64);
  std::iota(values.begin(), values.end(), 1u);
  const auto results =
      call_on(collatz,
              "mov.u32 %r2, 5000;\nand.b32 %r3, %r1, 3;\nsetp.ne.u32 %p1, %r3, 0;\n@%p1 bra skip;\n{\n.param "
              ".b32 a;\n.param .b32 r;\nst.param.b32 [a], %r1;\ncall (r), collatz, (a);\n"
              "ld.param.b32 %r2, [r];\n}\nskip:",
              values);
  for (size_t k = 0; k < values.size(); ++k) {
    EXPECT_EQ(results[k], values[k] % 4 == 0 ? collatz_steps(values[k]) : 5000) << values[k];
  }
}

TEST(Calls, RecursionIsRefusedByName) {
  const std::string itself = R"(
.func (.param .b32 result) down(.param .b32 n)
{
.reg .b32 %r<4>;
{
.param .b32 a;
.param .b32 r;
st.param.b32 [a], 1;
call (r), down, (a);
}
ret;
}
)";
  const std::string text = ptx_kernel(
      "{\n.param .b32 a;\n.param .b32 r;\nst.param.b32 [a], 1;\ncall (r), down, (a);\n}", ".param .u64 p0", itself);
  EXPECT_THAT(load_error(text), AllOf(HasSubstr("line "), HasSubstr("down")));
}

}  // namespace
}  // namespace kiln::emulator::test::core_calls_test
