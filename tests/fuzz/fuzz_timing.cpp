// Fuzzes the input of the time model: cubins, nvdisasm's listings of them, and cards; and how long a kernel then takes.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "fuzz_driver.h"
#include "kiln/base/error.h"
#include "kiln/timing/card.h"
#include "kiln/timing/cubin.h"
#include "kiln/timing/sass.h"
#include "kiln/timing/time_model.h"

namespace kiln::fuzz {
namespace {

using namespace kiln::timing;

constexpr uint64_t few_instructions = 20'000;

std::string time_of(const Sass& sass, const Card& card, bool knows_memory) {
  KernelFacts facts;
  facts.name = sass.kernel;
  facts.registers = 32;
  facts.shared_bytes = 4096;
  facts.local_bytes = 64;
  facts.parameter_base = sass.arch >= 100 ? 0x380 : sass.arch >= 90 ? 0x210 : 0x160;
  facts.parameter_bytes = 64;
  timing::Launch launch;
  launch.grid = {5, 2, 1};
  launch.block = {48, 1, 1};
  launch.parameters = std::string(64, '\1');
  launch.instruction_limit = few_instructions;
  if (knows_memory) {
    launch.memory = [](uint64_t address, uint32_t& word) {
      word = static_cast<uint32_t>(address >> 2 & 3);
      return true;
    };
  }
  const ModelledTime time = model_time(sass, facts, launch, card, {.instructions = few_instructions});
  check(std::isfinite(time.seconds) && time.seconds > 0, "a kernel takes a time");
  return time.bound;
}

std::string time_disassembly(std::string_view text) {
  constexpr std::string_view section = ".text.";
  const size_t name = std::min(text.find(section), text.size() - section.size()) + section.size();
  const Sass sass = parse_sass(text, std::string(text.substr(name, text.find(',', name) - name)));
  const Card card = find_card(sass.arch >= 90 ? "h100" : "a100");
  try {
    return time_of(sass, card, false);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    return time_of(sass, card, true);
  }
}

// A kernel that needs all units of a card.
Sass demanding() {
  std::string text = " .target sm_90\n .section .text.demanding,\"ax\",@progbits\n";
  size_t address = 0;
  for (const char* instruction : {"S2R R0, SR_TID.X",
                                  "IMAD.WIDE.U32 R2, R0, 0x4, RZ",
                                  "LDG.E R4, [R2.64]",
                                  "LDS R5, [R0]",
                                  "STS [R0], R5",
                                  "LDL R6, [R1]",
                                  "LDC R7, c[0x0][0x210]",
                                  "I2F R7, R7",
                                  "MUFU.RCP R7, R7",
                                  "DADD R8, R8, R8",
                                  "HADD2 R9, R9, R9",
                                  "FFMA R9, R9, R9, R9",
                                  "QMMA.16832.F16.E4M3 R4, R4, R8, R4",
                                  "HMMA.16816.F32 R4, R4, R8, R4",
                                  "IMMA.16832.S8 R4, R4, R8, R4",
                                  "DMMA.8x8x4 R4, R4, R8, R4",
                                  "UMOV UR4, 0x0",
                                  "HGMMA.64x64x16.F32 R24, gdesc[UR4], R24, gsb0",
                                  "WARPGROUP.DEPBAR.LE gsb0, 0x0",
                                  "BAR.SYNC 0x0",
                                  "STG.E [R2.64], R4",
                                  "EXIT"}) {
    text += fmt::format("/*{:04x}*/ {} ; /* 0x{:016x} */\n/* 0x{:016x} */\n", address, instruction, 0,
                        uint64_t{0x7f1} << 41);
    address += instruction_bytes;
  }
  return parse_sass(text, "demanding");
}

std::string run(std::string_view input) {
  static const Sass kernel = demanding();
  try {
    if (input.starts_with("\x7f"
                          "ELF"))
      return fmt::format("a cubin of {} kernels", read_cubin(input).size());
    if (input.find(".target") != std::string_view::npos) return time_disassembly(input);
    return time_of(kernel, parse_card("of the input", input), false);
  } catch (const Error& error) {
    check(error.code() == ErrorCode::parse_error || error.code() == ErrorCode::invalid_argument ||
              error.code() == ErrorCode::unsupported,
          error.what());
    return error.what();
  }
}

std::vector<std::string> dictionary() {
  return {"R255",
          "RZ",
          "UR62",
          "P0, ",
          "@!P1 ",
          "@UP0 ",
          "c[0x0][0x160]",
          "c[0x3][",
          "[R2.64+",
          "]",
          ".128",
          ".64",
          ".X8",
          ".WIDE",
          ".HI",
          ".U32",
          "|R4|",
          "-R4",
          "~R4",
          "desc[UR4]",
          "`(.L_x_1)",
          ".L_x_1:\n",
          "0x7fffffff",
          "0xffffffffffffffff",
          "0x8000000000000000",
          " BRA ",
          " EXIT ",
          " LDG.E ",
          " STS ",
          " LDL ",
          " SHFL.BFLY ",
          " SYNCS.ARRIVE.TRANS64 ",
          " UTMALDG.3D ",
          " UBLKCP.S.G ",
          " BSSY B0, ",
          " BSYNC B0 ",
          " CALL.REL ",
          " RET ",
          " VOTE.ANY ",
          " ELECT ",
          "SR_TID.X",
          "SR_CTAID.Y",
          "\x7f"
          "ELF",
          ".text.",
          " 10000 ",
          "\n",
          ";"};
}

}  // namespace
}  // namespace kiln::fuzz

int main(int argc, char** argv) {
  return kiln::fuzz::fuzz_main(argc, argv, {"timing", kiln::fuzz::run, kiln::fuzz::dictionary()});
}
