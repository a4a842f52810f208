// ldmatrix, stmatrix and movmatrix: where each element goes, and planted bugs.
#include <bit>
#include <functional>
#include <numeric>

#include "core_strict_fixture.h"
#include "machine/program.h"
#include "units/unit_table.h"

namespace kiln::emulator::test::core_matrix_access_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint32_t lanes = 32, rows = 8, row_bytes = 16;

/// Bytes into the tile of the row at the address of a lane: all different, and in no order.
uint32_t place_of(uint32_t lane) {
  return (lane * 7 + 3) % 32 * row_bytes * 2;
}

std::string registers(uint32_t count) {
  std::string text = "{";
  for (uint32_t k = 0; k < count; ++k) text += (k == 0 ? "%r" : ", %r") + std::to_string(10 + k);
  return text + "}";
}

/// Puts halves 0, 1, 2 ... in the tile, and in %r4 (%rd4) each lane's place less 16 bytes.
const std::string fill_tile =
    ".shared .align 16 .b8 before[16];\n.shared .align 16 .b8 tile[1024];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, "
    "tile;\nmad.lo.u32 %r2, %r0, 32, %r1;\n"
    "mul.lo.u32 %r3, %r0, 0x100010;\nadd.u32 %r3, %r3, 0x10000;\nmov.u32 %r5, 0;\nagain:\n"
    "st.shared.b32 [%r2], %r3;\nadd.u32 %r3, %r3, 0x20002;\nadd.u32 %r2, %r2, 4;\nadd.u32 %r5, %r5, 1;\n"
    "setp.lt.u32 %p1, %r5, 8;\n@%p1 bra again;\nmad.lo.u32 %r4, %r0, 7, 3;\nand.b32 %r4, %r4, 31;\n"
    "mad.lo.u32 %r4, %r4, 32, %r1;\nsub.u32 %r4, %r4, 16;\ncvt.u64.u32 %rd4, %r4;\nbar.sync 0;\n";

std::string store_results(uint32_t count) {
  std::string text = "ld.param.u64 %rd0, [p0];\nmad.wide.u32 %rd0, %r0, 4, %rd0;\n";
  for (uint32_t k = 0; k < count; ++k) {
    text += "st.global.b32 [%rd0+" + std::to_string(128 * k) + "], %r" + std::to_string(10 + k) + ";\n";
  }
  return text;
}

/// Results of a kernel of one warp: `count` words of each lane, register after register.
std::vector<uint32_t> run_warp(const std::string& body, uint32_t count, const UnitTable& units) {
  const auto program = load_program(ptx_kernel(body), units);
  Buffer<uint32_t> out(size_t{count} * lanes);
  const Arguments arguments(out.address(), uint64_t{0}, uint64_t{0}, uint64_t{0});
  LaunchRequest r;
  r.kernel = find_kernel(*program, "k");
  r.grid = {1};
  r.block = {lanes};
  r.parameters = arguments.bytes();
  r.memory = std::make_shared<RegionTable>(RegionTable::Contents{.regions = {out.region()}});
  r.check = CheckLevel::full;
  const LaunchOutcome outcome = run(r);
  EXPECT_FALSE(outcome.fault) << outcome.fault->report;
  return out.values();
}

/// Half `column` of row `row` of matrix `matrix`, as the tile has it.
uint16_t element(uint32_t matrix, uint32_t row, uint32_t column) {
  return static_cast<uint16_t>(place_of(matrix * rows + row) / 2 + column);
}

TEST(MatrixLoads, GiveEachLaneItsElements) {
  for (const UnitTable* units : unit_tables()) {
    for (const uint32_t count : {1u, 2u, 4u}) {
      for (const bool transposed : {false, true}) {
        for (const std::string address : {"%r4", "%rd4"}) {
          const std::string load = "ldmatrix.sync.aligned.m8n8.x" + std::to_string(count) +
                                   (transposed ? ".trans" : "") + ".shared.b16 " + registers(count) + ", [" + address +
                                   "+16];\n";
          const std::vector<uint32_t> got = run_warp(fill_tile + load + store_results(count), count, *units);
          for (uint32_t m = 0; m < count; ++m) {
            for (uint32_t lane = 0; lane < lanes; ++lane) {
              const uint32_t line = lane / 4, pair = lane % 4 * 2;
              const uint32_t first = transposed ? element(m, pair, line) : element(m, line, pair);
              const uint32_t second = transposed ? element(m, pair + 1, line) : element(m, line, pair + 1);
              ASSERT_EQ(got[m * lanes + lane], first | second << 16)
                  << units->name << ": " << load << "lane " << lane << " of matrix " << m;
            }
          }
        }
      }
    }
  }
}

TEST(MatrixStores, PutEachElementInItsPlace) {
  // Loaded matrices are stored elsewhere, and read back word by word.
  for (const UnitTable* units : unit_tables()) {
    for (const uint32_t count : {1u, 2u, 4u}) {
      for (const bool transposed : {false, true}) {
        const std::string form = ".sync.aligned.m8n8.x" + std::to_string(count);
        const std::string kind = transposed ? ".trans" : "";
        const std::string text = fill_tile + ".shared .align 16 .b8 other[512];\nmov.u32 %r6, other;\n" +
                                 "mad.lo.u32 %r7, %r0, 16, %r6;\nldmatrix" + form + ".shared.b16 " + registers(count) +
                                 ", [%r4+16];\nstmatrix" + form + kind + ".shared.b16 [%r7], " + registers(count) +
                                 ";\nbar.sync 0;\nmad.lo.u32 %r7, %r0, 4, %r6;\n";
        std::string back;
        for (uint32_t k = 0; k < count; ++k) {
          back += "ld.shared.b32 %r" + std::to_string(10 + k) + ", [%r7+" + std::to_string(128 * k) + "];\n";
        }
        const std::vector<uint32_t> got = run_warp(text + back + store_results(count), count, *units);
        for (uint32_t word = 0; word < got.size(); ++word) {
          const uint32_t m = word / lanes, row = word % lanes / 4, pair = word % 4 * 2;
          const uint32_t first = transposed ? element(m, pair, row) : element(m, row, pair);
          const uint32_t second = transposed ? element(m, pair + 1, row) : element(m, row, pair + 1);
          ASSERT_EQ(got[word], first | second << 16) << units->name << ": " << form << kind << " word " << word;
        }
      }
    }
  }
}

TEST(MatrixTranspositions, StayInRegisters) {
  for (const UnitTable* units : unit_tables()) {
    const std::vector<uint32_t> got = run_warp(
        "mov.u32 %r0, %tid.x;\nmul.lo.u32 %r1, %r0, 0x20002;\nadd.u32 %r1, %r1, 0x10000;\n"
        "movmatrix.sync.aligned.m8n8.trans.b16 %r10, %r1;\n" +
            store_results(1),
        1, *units);
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      const uint32_t first = lane % 4 * 2 * rows + lane / 4;
      ASSERT_EQ(got[lane], first | (first + rows) << 16) << units->name << " lane " << lane;
    }
  }
}

/// Counters of a kernel in which every lane loads four matrices, of which rows are `stride` bytes apart.
Counters counters_of(const std::string& instruction, uint32_t stride) {
  Module module(
      ptx_kernel(".shared .align 16 .b8 tile[8192];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, tile;\nmad.lo.u32 "
                 "%r4, %r0, " +
                 std::to_string(stride) + ", %r1;\n" + instruction));
  return module.launch("k", {1}, {lanes}, Arguments(uint64_t{0}, uint64_t{0}, uint64_t{0}, uint64_t{0}));
}

TEST(MatrixLoads, CountBankConflictsByEightRows) {
  const std::string load = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r4];";
  for (const auto& [stride, wavefronts] : std::vector<std::pair<uint32_t, uint64_t>>{
           {16, 4}, {32, 8}, {64, 16}, {128, 32}, {48, 4}, {80, 4}, {144, 4}, {0, 4}}) {
    const Counters counters = counters_of(load, stride);
    EXPECT_EQ(counters.shared_wavefronts, wavefronts) << stride;
    EXPECT_EQ(counters.matrix_loads, 1u);
    EXPECT_EQ(counters.shared_load, 1u);
    EXPECT_EQ(counters.shared_store, 0u);
  }
  EXPECT_EQ(counters_of("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r4];", 128).shared_wavefronts, 8u);
  const Counters stored = counters_of("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r4], {%r10, %r11};", 128);
  EXPECT_EQ(stored.shared_wavefronts, 16u);
  EXPECT_EQ(stored.matrix_stores, 1u);
  EXPECT_EQ(stored.shared_store, 1u);
  EXPECT_EQ(counters_of("movmatrix.sync.aligned.m8n8.trans.b16 %r10, %r11;", 0).warp_exchange, 1u);
}

// Planted bugs. The threads fill the tile of 2048 bytes, a row of 16 bytes each, and %r6 is the row of the lane.
const std::string write_row = "st.shared.v4.b32 [%r5], {%r0, %r0, %r0, %r0}";
const std::string fill_rows = "mad.lo.u32 %r5, %r0, 16, %r1;\n" + write_row + ";\nmad.lo.u32 %r6, %r3, 16, %r1;\n";
const std::string load_x4 = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r6]";
const std::string load_x1 = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r6]";
const std::string store_x1 = "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r6+1024], {%r10}";

TEST(MatrixAccesses, AreOrderedByBarriersLikeOthers) {
  expect_report({fill_rows + load_x4 + ";"}, FaultKind::race, {32, load_x4},
                "reads 16 bytes, among them offset 0 of shared memory, which {other} has written, and nothing orders "
                "the two (race)",
                {0, write_row});
  expect_silence({fill_rows + "bar.sync 0;\n" + load_x4 + ";"});
  expect_silence({fill_rows + "bar.warp.sync -1;\nldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, "
                              "[%r5];"});
  expect_report({fill_rows + "xor.b32 %r5, %r5, 16;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r5];"},
                FaultKind::race, {0, "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r5]"},
                "reads 16 bytes, among them offset 16 of shared memory, which {other} has written, and nothing orders "
                "the two (race)",
                {1, write_row});
}

TEST(MatrixAccesses, KeepAStageUntilAllHaveReadIt) {
  const std::string write_again = "st.shared.v4.b32 [%r5], {%r3, %r3, %r3, %r3}";
  const std::string text =
      fill_rows + "bar.sync 0;\n" + load_x4 + ";\nadd.u32 %r5, %r5, 512;\nand.b32 %r5, %r5, 1023;\n";
  const Fault early = run_strict({text + write_again + ";"});
  EXPECT_EQ(early.kind, FaultKind::race);
  EXPECT_THAT(early.report, AllOf(HasSubstr(write_again), HasSubstr(load_x4), HasSubstr("(race)")));
  expect_silence({text + "bar.sync 0;\n" + write_again + ";"});
}

TEST(MatrixAccesses, ComeAfterTheCopiesThatTheyRead) {
  const std::string copy =
      "mad.lo.u32 %r5, %r0, 16, %r1;\nand.b32 %r7, %r0, 7;\nmul.wide.u32 %rd5, %r7, 16;\nadd.u64 %rd5, %rd5, %rd1;\n"
      "cp.async.cg.shared.global [%r5], [%rd5], 16;\ncp.async.commit_group;\nmad.lo.u32 %r6, %r3, 16, %r1;\n";
  const Fault missing = run_strict({copy + "bar.sync 0;\n" + load_x4 + ";"});
  EXPECT_EQ(missing.kind, FaultKind::race);
  EXPECT_THAT(missing.report, AllOf(HasSubstr("reads 16 bytes"), HasSubstr("cp.async")));
  expect_silence({copy + "cp.async.wait_group 0;\nbar.sync 0;\n" + load_x4 + ";"});
}

TEST(MatrixAccesses, AreCheckedRowByRow) {
  const std::string ready = fill_rows + "bar.sync 0;\n";
  const Fault misaligned =
      run_strict({ready + "setp.eq.u32 %p1, %r3, 9;\n@%p1 add.u32 %r6, %r6, 8;\n" + load_x4 + ";"});
  EXPECT_EQ(misaligned.kind, FaultKind::misaligned_address);
  EXPECT_THAT(misaligned.report, AllOf(HasSubstr("lane 9): reads 16 bytes"), HasSubstr("not aligned to 16 bytes")));
  const Fault beyond = run_strict({ready + "add.u32 %r6, %r6, 1552;\n" + load_x4 + ";"});
  EXPECT_EQ(beyond.kind, FaultKind::illegal_address);
  EXPECT_THAT(beyond.report, HasSubstr("lane 31): reads 16 bytes"));
  EXPECT_THAT(beyond.report, HasSubstr("offset 2048 of the block's 2048 bytes of shared memory"));
  const Fault stored = run_strict({ready + "mov.b32 %r10, 0;\nadd.u32 %r6, %r6, 2047;\n" + store_x1 + ";"});
  EXPECT_THAT(stored.report, HasSubstr("lane 0): writes 16 bytes"));
}

TEST(MatrixAccesses, NeedAllThreadsOfTheirWarp) {
  for (const std::string& instruction :
       {load_x4, store_x1, std::string("movmatrix.sync.aligned.m8n8.trans.b16 %r10, %r11")}) {
    const std::string ready = fill_rows + "mov.b32 %r10, 0;\nbar.sync 0;\n";
    const Fault some = run_strict({ready + "setp.gt.u32 %p1, %r3, 15;\n@%p1 bra done;\n" + instruction + ";\ndone:"});
    EXPECT_EQ(some.kind, FaultKind::illegal_instruction) << instruction;
    EXPECT_THAT(some.report, HasSubstr("all 32 threads of a warp must execute this together, and lanes 0xffff0000"));
    const Fault guarded = run_strict({ready + "setp.eq.u32 %p1, %r3, 15;\n@%p1 " + instruction + ";"});
    EXPECT_EQ(guarded.kind, FaultKind::illegal_instruction) << instruction;
  }
}

TEST(MatrixAccesses, NeedAddressesOfLanesWithoutRowsUpToTuring) {
  const std::string body =
      ".shared .align 16 .b8 tile[128];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, tile;\n"
      "mad.lo.u32 %r6, %r0, 16, %r1;\n" +
      load_x1 + ";";
  const auto fault_for = [&](const std::string& target) {
    std::string text = ptx_kernel(body);
    text.replace(text.find("sm_90"), 5, target);
    Module module(text);
    LaunchRequest r = module.request("k", {1}, {lanes}, Arguments(uint64_t{0}, uint64_t{0}, uint64_t{0}, uint64_t{0}));
    return run(r).fault.value_or(Fault{});
  };
  EXPECT_EQ(fault_for("sm_80").report, "");
  const Fault turing = fault_for("sm_75");
  EXPECT_EQ(turing.kind, FaultKind::illegal_address);
  EXPECT_THAT(turing.report, HasSubstr("lane 8): reads 16 bytes"));
}

TEST(MatrixAccesses, AreRefusedInFormsThatDoNotExist) {
  const auto refusal = [](const std::string& instruction, const std::string& target) {
    std::string text = ptx_kernel(instruction);
    return load_error(text.replace(text.find("sm_90"), 5, target));
  };
  EXPECT_THAT(refusal(load_x1 + ";", "sm_72"), HasSubstr("ldmatrix needs .target sm_75 or higher"));
  EXPECT_THAT(refusal(store_x1 + ";", "sm_89"), HasSubstr("stmatrix needs .target sm_90 or higher"));
  EXPECT_THAT(refusal("movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;", "sm_70"), HasSubstr("needs .target sm_75"));
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r10}, [%r6];", "expected .x1, .x2 or .x4"},
           {"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r10}, [%r6];", "expected a vector of 2 registers"},
           {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 %r10, [%r6];", "expected a vector of 1 registers"},
           {"ldmatrix.sync.aligned.m8n8.x1.b16 {%r10}, [%rd6];", "expected .shared"},
           {"ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r10, %r11}, [%r6];", "expected .m8n8"},
           {"ldmatrix.sync.m8n8.x1.shared.b16 {%r10}, [%r6];", "expected .aligned"}}) {
    EXPECT_THAT(refusal(text, "sm_90"), HasSubstr(why)) << text;
  }
}

// Unwritten values: row 5 of the tile has not been written.
const std::string all_but_row_5 = "mad.lo.u32 %r5, %r0, 16, %r1;\nsetp.ne.u32 %p1, %r0, 5;\n@%p1 " + write_row +
                                  ";\nmad.lo.u32 %r6, %r3, 16, %r1;\nbar.sync 0;\n";

/// The lanes whose %r10 is unwritten behind `body`.
Mask unwritten_lanes(const std::string& body) {
  Mask found = 0;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const Fault fault =
        run_strict({body + "setp.eq.u32 %p2, %r0, " + std::to_string(lane) + ";\n@%p2 st.global.b32 [%rd0], %r10;"});
    if (fault.report.empty()) continue;
    EXPECT_THAT(fault.report, AllOf(HasSubstr("lane 5): reads 16 bytes, among them offset 80 of shared memory, which "
                                              "no thread of the block has written (uninitialised)"),
                                    HasSubstr("stored here: PTX line ")));
    found |= Mask{1} << lane;
  }
  return found;
}

TEST(MatrixLoads, OfUnwrittenRowsMarkTheLanesThatGetThem) {
  const std::string transposed = "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r10}, [%r6];\n";
  EXPECT_EQ(unwritten_lanes(all_but_row_5 + load_x1 + ";\n"), 0x00F00000u);
  EXPECT_EQ(unwritten_lanes(all_but_row_5 + transposed), 0x44444444u) << "rows 4 and 5 are in one register";
  EXPECT_EQ(unwritten_lanes(all_but_row_5 + load_x1 + ";\nmovmatrix.sync.aligned.m8n8.trans.b16 %r10, %r10;\n"),
            0x44444444u);
  EXPECT_EQ(unwritten_lanes(all_but_row_5 + load_x1 + ";\nadd.u32 %r6, %r6, 128;\n" + load_x4 + ";\n"), 0u);
}

TEST(MatrixLoads, OfUnwrittenRowsAreSilentUntilTheirValuesMatter) {
  // A product with an unwritten row of A, of which the other rows are used.
  const std::string product = all_but_row_5 + load_x4 +
                              ";\nmov.b32 %r16, 0;\n"
                              "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r10, %r11, %r12, %r13}, "
                              "{%r10, %r11, %r12, %r13}, {%r16, %r16}, {%r16, %r16, %r16, %r16};\n";
  EXPECT_EQ(unwritten_lanes(product), 0x00F00000u);
  const Fault address = run_strict({all_but_row_5 +
                                    "mad.lo.u32 %r7, %r3, 16, %r1;\nld.shared.b32 %r8, [%r7];\n"
                                    "and.b32 %r8, %r8, 0;\nadd.u32 %r6, %r6, %r8;\n" +
                                    load_x1 + ";"});
  EXPECT_THAT(address.report, AllOf(HasSubstr("lane 5): reads 4 bytes"), HasSubstr("an address here: PTX line ")));
  // Addresses of lanes without rows do not matter.
  expect_silence({all_but_row_5 +
                  "sub.u32 %r7, %r3, 8;\nand.b32 %r7, %r7, 31;\nmad.lo.u32 %r7, %r7, 16, %r1;\n"
                  "ld.shared.b32 %r8, [%r7];\nand.b32 %r8, %r8, 0;\nadd.u32 %r6, %r6, %r8;\n" +
                  load_x1 + ";"});
}

TEST(MatrixStores, OfUnwrittenValuesAreReported) {
  const Fault fault = run_strict({all_but_row_5 + load_x1 + ";\nbar.sync 0;\n" + store_x1 + ";"});
  EXPECT_EQ(fault.kind, FaultKind::uninitialised_read);
  EXPECT_THAT(fault.report, AllOf(HasSubstr(load_x1), HasSubstr("stored here: PTX line "), HasSubstr(store_x1)));
  expect_silence({all_but_row_5 + load_x1 +
                  ";\nbar.sync 0;\nshr.u32 %r7, %r3, 2;\n"
                  "setp.eq.u32 %p2, %r7, 5;\n@%p2 mov.b32 %r10, 0;\n"
                  "setp.lt.u32 %p3, %r0, 32;\n@!%p3 bra done;\n" +
                  store_x1 + ";\ndone:"});
}

TEST(MatrixStores, RaceLikeOthers) {
  // Both warps store to the same rows, other values.
  const Fault race = run_strict({"mov.b32 %r10, %r0;\nmad.lo.u32 %r6, %r3, 16, %r1;\n" + store_x1 + ";"});
  EXPECT_EQ(race.kind, FaultKind::race);
  EXPECT_THAT(race.report, HasSubstr("lane 0): writes 16 bytes"));
  const Fault meet = run_strict({"mov.b32 %r10, %r0;\nmov.u32 %r6, %r1;\n" + store_x1 + ";", lanes});
  EXPECT_EQ(meet.kind, FaultKind::race);
  EXPECT_THAT(meet.report, HasSubstr("writes something else at the same time (race)"));
}

}  // namespace
}  // namespace kiln::emulator::test::core_matrix_access_test
