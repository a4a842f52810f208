#include "core_strict_fixture.h"

#include <algorithm>

namespace kiln::emulator::test {
namespace {

constexpr uint32_t board_words = 256;
constexpr uint32_t input_bytes = 256, written_input_bytes = 128;  // the rest of the input has never been written

std::string text_of(const StrictKernel& kernel) {
  return ptx_kernel(
      ".shared .align 16 .b8 tile[2048];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, tile;\n"
      "mad.lo.u32 %r2, %r0, 4, %r1;\nand.b32 %r3, %r0, 31;\nld.param.u64 %rd0, [p0];\n"
      "mul.wide.u32 %rd2, %r0, 4;\nadd.u64 %rd0, %rd0, %rd2;\nld.param.u64 %rd1, [p1];\n"
      "ld.param.u64 %rd10, [p2];\nadd.u64 %rd11, %rd10, %rd2;\nmov.u32 %r20, %ctaid.x;\n" +
      kernel.body);
}

struct Run {
  Fault fault;
  std::vector<uint32_t> out;
};

Run run_kernel(const StrictKernel& kernel) {
  Module module(text_of(kernel));
  Buffer<uint32_t> out(kernel.threads), board(board_words);
  Buffer<uint8_t> input(input_bytes, 1), written(input_bytes);
  std::fill_n(written.data(), written_input_bytes, uint8_t{1});
  Region region = input.region("the input");
  region.written = written.data();
  std::vector<PieceMarks> marks(board_words * sizeof(uint32_t));
  Region board_region = board.region("the board");
  board_region.marks = marks.data();
  module.allow(out).allow(region).allow(board_region).check(CheckLevel::full);
  const Arguments arguments(out.address(), input.address(), board.address(), uint64_t{0});
  LaunchRequest request = module.request("k", {kernel.blocks}, {kernel.threads}, arguments);
  request.instruction_limit = 100'000;
  request.counted_blocks = 1;  // the first; others are looked at with all short cuts
  request.host_threads = kernel.host_threads;
  LaunchOutcome outcome = run(request);
  return {outcome.fault.value_or(Fault{}), out.values()};
}

std::string thread_text(uint32_t thread) {
  return "thread (" + std::to_string(thread) + ", 0, 0) (warp " + std::to_string(thread / 32) + ", lane " +
         std::to_string(thread % 32) + ")";
}

/// "PTX line 12: st.shared.u32 [%r2], %r0"
std::string line_text(const StrictKernel& kernel, const std::string& instruction) {
  const std::string ptx = text_of(kernel);
  const size_t at = ptx.find(instruction + ";");
  EXPECT_NE(at, std::string::npos) << instruction;
  EXPECT_EQ(ptx.find(instruction + ";", at + 1), std::string::npos) << instruction << " stands there twice";
  const auto line = std::count(ptx.begin(), ptx.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
  return "PTX line " + std::to_string(line) + ": " + instruction;
}

}  // namespace

Fault run_strict(const StrictKernel& kernel) {
  return run_kernel(kernel).fault;
}

void expect_report(const StrictKernel& kernel, FaultKind kind, const Party& first, const std::string& what) {
  const Fault fault = run_strict(kernel);
  const std::string block = "block (" + std::to_string(kernel.blocks - 1) + ", 0, 0)";
  EXPECT_EQ(fault.report, "kernel k, " + block + ", " + thread_text(first.thread) + ": " + what + "\n  " +
                              line_text(kernel, first.instruction));
  EXPECT_EQ(fault.kind, kind);
}

void expect_report(const StrictKernel& kernel, FaultKind kind, const Party& first, const std::string& what,
                   const Party& other) {
  std::string text = what;
  if (const size_t at = text.find("{other}"); at != std::string::npos) text.replace(at, 7, thread_text(other.thread));
  const Fault fault = run_strict(kernel);
  EXPECT_EQ(fault.report, "kernel k, block (0, 0, 0), " + thread_text(first.thread) + ": " + text + "\n  " +
                              line_text(kernel, first.instruction) +
                              "\n  the other: " + line_text(kernel, other.instruction));
  EXPECT_EQ(fault.kind, kind);
}

std::vector<uint32_t> expect_silence(const StrictKernel& kernel) {
  const Run result = run_kernel(kernel);
  EXPECT_EQ(result.fault.report, "");
  return result.out;
}

}  // namespace kiln::emulator::test
