// Times that the model gives some kernels, and all counts behind them, held against data/times.txt. Other tests say
// what rules the model follows; this one, that no number changes which nobody meant to change. Records of measurements
// hold such times, so a change that is meant raises `model_version` (kiln/timing/time_model.h).
//
// The test leaves what it found beside its own program, to be compared and put in the place of the file.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kiln/base/digest.h"
#include "kiln/timing/time_model.h"
#include "machine_code_texts.h"
#include "table_file.h"

namespace kiln::timing::times_test {
namespace {

constexpr uint64_t buffer = 0x7f0000000000;

std::string parameters(std::initializer_list<uint64_t> values) {
  std::string bytes;
  for (const uint64_t value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

struct Kernel {
  std::string name;
  Sass sass;
  KernelFacts facts;
  Launch launch;
};

std::string text_of(const ReplayResult& result) {
  return fmt::format(
      "{} cycles, passed {}, issued {}\n    pipes {}\n    waits {}\n    load/store unit {}, fetch {}, sectors L1 {} L2 "
      "{} "
      "past L1 {}\n    DRAM read {} written {} of {}, bulk {}, busy L2 {} DRAM {}\n",
      result.cycles, result.passed, result.issued, fmt::join(result.pipe_busy, " "), fmt::join(result.stalled, " "),
      result.lsu_busy, result.fetch_busy, result.l1_sectors, result.l2_sectors, result.bypassing_sectors,
      result.dram_bytes_read, result.dram_bytes_written, result.bytes_written, result.bulk_bytes, result.l2_busy,
      result.dram_busy);
}

// A digest of what the warps of the last block execute, with which lanes, and of all memory that they touch.
std::string path_of(const Kernel& kernel) {
  Digest digest;
  Interpreter interpreter(kernel.sass, kernel.facts, kernel.launch);
  const auto add = [&](const auto&... numbers) { (digest.add(std::to_string(numbers)), ...); };
  for (const WarpPath& warp : interpreter.run(kernel.launch.blocks() - 1).warps) {
    for (const Executed& one : warp.executed) add(one.instruction, one.active, one.access);
    for (const Access& access : warp.accesses) {
      add(static_cast<int>(access.space), access.known, access.wavefronts, access.first_line, access.lines);
    }
    for (const Line& line : warp.lines) add(line.address, line.sectors, line.partial);
    for (const Barrier& barrier : warp.barriers) add(barrier.id, barrier.warps, barrier.waits);
    for (const Transaction& asked : warp.transactions) {
      add(static_cast<int>(asked.kind), asked.remote, asked.receivers, asked.barrier, asked.arrivals, asked.bytes,
          asked.phase, asked.data, asked.address);
    }
  }
  return digest.hex().substr(0, 16);
}

std::string text_of(const Kernel& kernel, const std::string& card) {
  const ModelledTime time = model_time(kernel.sass, kernel.facts, kernel.launch, find_card(card), {10'000, nullptr});
  std::string text = fmt::format(
      "{} on {}, {} blocks: {:.5g} us\n  {} blocks by {}, {:.4g} waves, {} replayed, {:.4g} of the path, {:.4g} "
      "from DRAM, {} bytes of code\n  {}\n  ",
      kernel.name, card, kernel.launch.blocks(), 1e6 * time.seconds, time.occupancy.blocks, time.occupancy.limit,
      time.waves, time.replayed_blocks, time.path_share, time.dram_share, time.code_bytes, time.bound);
  text += text_of(time.replayed);
  text += fmt::format("  guesses {}, unknown addresses {}, opcodes {}, not classified {}, stored",
                      time.report.guessed_branches, time.report.unknown_addresses,
                      fmt::join(time.report.unknown_opcodes, " "), fmt::join(time.unclassified, " "));
  for (const AddressRange& range : time.stored) text += fmt::format(" {:x}-{:x}", range.begin, range.end);
  return text + "\n  path " + path_of(kernel) + "\n";
}

// The kernels of data/kernels.cu, in the code of an architecture.
std::vector<Kernel> kernels_of(int arch) {
  const std::pair<const char*, std::string> all[] = {
      {"diverge", parameters({buffer, 100'000})},
      {"divide", parameters({buffer, 7, 123457})},
      {"exchange", parameters({buffer, 8})},
      {"lanes", parameters({buffer})},
      {"indexed", parameters({buffer, 30})},
      {"widths", parameters({buffer, buffer + 0x100000, buffer + 0x200000})},
      {"calls", parameters({buffer})}};
  std::vector<Kernel> kernels;
  for (const auto& [name, arguments] : all) {
    Kernel kernel{name, parse_sass(read_data(fmt::format("kernels_sm_{}.sass", arch)), name),
                  find_kernel(read_cubin(read_data("kernels_sm_80.cubin")), name), Launch{}};
    kernel.facts.parameter_base = plain_facts(arch).parameter_base;
    if (kernel.name == "indexed") kernel.facts.local_bytes = 128;
    kernel.launch.block = {64, 1, 1};
    kernel.launch.parameters = arguments;
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

// A tiled product that copies the next tile meanwhile: blocks of a row of the grid share one factor, those of a column
// the other. `turns` of its loop.
Kernel tiles(uint32_t turns) {
  Code code;
  code.add("S2R R0, SR_TID.X", sets(0))
      .add("S2R R1, SR_CTAID.X", sets(0))
      .add("S2R R2, SR_CTAID.Y", sets(1))
      .add("SHF.L.U32 R4, R0, 0x4, RZ", waits(1, 6))
      .add("IMAD R6, R1, 0x10000, R4", stall(5))
      .add("IMAD R7, R2, 0x10000, R4", waits(2, 5))
      .add("IMAD.WIDE.U32 R8, R6, 0x1, RZ", stall(5))
      .add("IADD3 R8, P0, R8, c[0x0][0x160], RZ", stall(6))
      .add("IADD3.X R9, R9, c[0x0][0x164], RZ, P0, !PT", stall(6))
      .add("IMAD.WIDE.U32 R10, R7, 0x1, RZ", stall(5))
      .add("IADD3 R10, P0, R10, c[0x0][0x168], RZ", stall(6))
      .add("IADD3.X R11, R11, c[0x0][0x16c], RZ, P0, !PT", stall(6))
      .add("MOV R12, RZ", stall(5))
      .label("again")
      .add("LDGSTS.E.BYPASS.128 [R4], [R8.64]", stall(2))
      .add("LDGSTS.E.128 [R4+0x1000], [R10.64+0x800]", stall(2))
      .add("LDG.E.128 R40, [R10.64]", sets(3, 2))
      .add("LDGDEPBAR", sets(0, 2))
      .add("DEPBAR.LE SB0, 0x0", stall(2))
      .add("BAR.SYNC 0x0", stall(6))
      .add("LDSM.16.M88.4 R16, [R4]", sets(1, 2))
      .add("LDS.128 R20, [R4+0x1000]", sets(2, 2))
      .add("HMMA.16816.F32 R24, R16, R20, R24", waits(6, 4))
      .add("HMMA.16816.F32 R28, R16, R22, R28", stall(4))
      .add("FFMA R32, R40, R41, R32", waits(8, 4))
      .add("STS.64 [R4+0x2000], R32", stall(2))
      .add("IADD3 R12, R12, 0x1, RZ", stall(4))
      .add("IADD3 R8, R8, 0x1000, RZ", stall(4))
      .add(fmt::format("ISETP.NE.AND P0, PT, R12, {:#x}, PT", turns), stall(13))
      .add("@P0 BRA `(again)", stall(5))
      .add("STG.E.128 [R10.64+0x100000], R24", stall(2))
      .add("STG.E.U8 [R8.64+0x200000], R28", stall(2))
      .add("EXIT", stall(5));
  KernelFacts facts = plain_facts();
  facts.registers = 64;
  facts.shared_bytes = 12288;
  Launch launch;
  launch.block = {128, 1, 1};
  launch.parameters = parameters({buffer, buffer + 0x10000000});
  return {fmt::format("tiles of {} turns", turns), code.sass(), facts, launch};
}

// Instructions of each pipe, with their waits.
Kernel pipes(int arch) {
  Code code(arch);
  code.add("S2R R0, SR_TID.X", sets(0)).add("SHF.L.U32 R2, R0, 0x2, RZ", waits(1, 6)).add("MOV R3, RZ", stall(5));
  for (const char* plain :
       {"FFMA R4, R2, R2, R4", "FADD R5, R2, R4", "FMUL R6, R4, R5", "IADD3 R7, R2, R3, RZ",
        "LOP3.LUT R8, R2, R3, RZ, 0xc0, !PT", "IMAD R9, R2, R3, R7", "IMAD.WIDE R10, R2, R3, RZ",
        "HFMA2 R12, R4, R4, R5", "HADD2 R13, R4, R4", "SEL R14, R2, R3, P0", "PRMT R15, R2, 0x5410, R3",
        "ISETP.LT.AND P1, PT, R2, R3, PT", "FSETP.LT.AND P2, PT, R2, R3, PT", "UIADD3 UR4, UR5, UR6, URZ",
        "R2UR UR7, R3", "VOTE.ANY R16, PT, P1", "NOP", "SHF.R.U32.HI R17, RZ, 0x4, R2"}) {
    code.add(plain, stall(2)).add(plain, stall(1));
  }
  for (const char* waited : {"MUFU.RCP R20, R4",
                             "MUFU.EX2 R21, R4",
                             "I2F R22, R2",
                             "F2I R23, R4",
                             "POPC R24, R2",
                             "DADD R26, R26, R28",
                             "DFMA R26, R26, R28, R30",
                             "F2F.F64.F32 R32, R4",
                             "LDC R34, c[0x0][R2]",
                             "SHFL.IDX PT, R35, R2, 0x7, 0x1f",
                             "LDS.64 R36, [R2]",
                             "LDS.U R38, [R0]",
                             "ATOMS.ADD R39, [R2], R3",
                             "LDL R40, [R3]",
                             "LDG.E.CONSTANT R41, [R2.64]",
                             "LDG.E.64 R42, [R2.64+0x10000]",
                             "ATOMG.E.ADD.STRONG.GPU PT, R44, [R2.64], R3",
                             "HMMA.16816.F32 R48, R48, R52, R48",
                             "IMMA.16832.S8.S8 R56, R56.ROW, R60.COL, R56",
                             "S2R R64, SR_CLOCKLO",
                             "LDSM.16.M88.2 R66, [R3]"}) {
    code.add(waited, sets(1, 2)).add(waited, sets(2, 3)).add("FADD R70, R20, R40", waits(6, 4));
  }
  Control reads = stall(2);
  reads.read_barrier = 3;
  for (const char* stored : {"STS [R2], R3", "STS.128 [R3], R4", "STL [R3], R2", "STG.E [R2.64+0x20000], R3",
                             "STG.E.U16 [R2.64+0x30000], R3", "RED.E.ADD.STRONG.GPU [R2.64], R3"}) {
    code.add(stored, reads).add("MOV R3, RZ", waits(8, 4));
  }
  code.add("BAR.ARV 0x1, 0x60", stall(4)).add("BAR.SYNC 0x0", stall(5)).add("MEMBAR.SC.GPU", sets(0, 4));
  code.add("EXIT", waits(1, 5));
  KernelFacts facts = plain_facts(arch);
  facts.registers = 80;
  facts.shared_bytes = 8192;
  facts.local_bytes = 16;
  Launch launch;
  launch.block = {96, 1, 1};
  launch.parameters = parameters({buffer});
  return {fmt::format("pipes of {}", arch), code.sass(), facts, launch};
}

// A thread asks for a copy of 4 KB that four warps wait for, of data of its row of blocks, and products of a warpgroup
// follow, before it is stored again.
Kernel copies_in_bulk() {
  Code code(90);
  code.add("S2R R0, SR_TID.X", sets(0))
      .add("UMOV UR4, 0x1ffffe", stall(4))  // one arrival
      .add("SYNCS.EXCH.64 URZ, [URZ+0x400], UR4", stall(4))
      .add("BAR.SYNC 0x0", stall(5))
      .add("UMOV UR8, 0x1000", stall(1))
      .add("UMOV UR9, 0x400", stall(1))
      .add("UMOV UR10, 0x1000", stall(1))
      .add("S2UR UR11, SR_CTAID.Y", sets(1))
      .add("UMOV UR6, 0x100", waits(2, 4))
      .add("MOV R3, 0x1000", stall(4))
      .add("MOV R4, RZ", stall(4))
      .add("ISETP.NE.AND P1, PT, R0, RZ, PT", waits(1, 13))
      .add("@!P1 SYNCS.ARRIVE.TRANS64 RZ, [URZ+0x400], R3", stall(4))
      .add("@!P1 UBLKCP.S.G [UR8], [UR10], UR6", stall(4))
      .label("again")
      .add("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [URZ+0x400], R4", sets(0))
      .add("@!P0 BRA `(again)", waits(1, 5));
  for (int i = 0; i < 4; ++i) code.add("HGMMA.64x128x16.F32 R24, gdesc[UR4], R24, gsb0", stall(1));
  code.add("WARPGROUP.DEPBAR.LE gsb0, 0x1", stall(1))
      .add("UMOV UR4, 0x400", stall(1))
      .add("UMOV UR5, URZ", stall(4))
      .add("@!P1 UBLKCP.G.S [UR8], [UR4], UR6", stall(4))
      .add("UTMACMDFLUSH", stall(2))
      .add("UCGABAR_WAIT", stall(4))
      .add("EXIT", stall(1));
  KernelFacts facts = plain_facts(90);
  facts.registers = 90;
  facts.shared_bytes = 16384;
  Launch launch;
  launch.block = {128, 1, 1};
  return {"copies in bulk", code.sass(), facts, launch};
}

std::string times_of(Kernel kernel, const char* card, const std::vector<Extents>& grids) {
  std::string text;
  for (const Extents& grid : grids) {
    kernel.launch.grid = grid;
    text += text_of(kernel, card);
  }
  return text;
}

std::string all_times() {
  std::string text;
  for (const auto& [card, arch, blocks] : {std::tuple("t4", 75, 5U), std::tuple("a100", 80, 1000U),
                                           std::tuple("h200", 90, 150U), std::tuple("rtx5090", 120, 700U)}) {
    for (const Kernel& kernel : kernels_of(arch)) text += times_of(kernel, card, {{blocks, 1, 1}});
    text += times_of(pipes(arch), card, {{3, 1, 1}, {700, 1, 1}});
  }
  for (const char* card : {"rtx4090", "a10", "rtx3070", "rtx4000ada"}) text += times_of(pipes(80), card, {{200, 2, 1}});
  for (const char* card : {"h100", "b200"}) text += times_of(copies_in_bulk(), card, {{1, 1, 1}, {40, 5, 2}});
  text += times_of(tiles(3), "l40s", {{6, 5, 1}, {20, 9, 3}});
  Kernel long_one = tiles(1000);
  text += times_of(long_one, "a100", {{6, 5, 1}, {30, 9, 1}});
  long_one.launch.in_l2 = {{buffer, buffer + 0x40000}};
  return text + times_of(long_one, "a100", {{30, 9, 1}});
}

TEST(Times, AreThoseOfTheFile) {
  const std::string difference = test::difference_from_table(KILN_TIMING_DATA "/times.txt", all_times());
  EXPECT_TRUE(difference.empty()) << "the model gives other times now, so `model_version` has to be raised too: "
                                  << difference;
}

}  // namespace
}  // namespace kiln::timing::times_test
