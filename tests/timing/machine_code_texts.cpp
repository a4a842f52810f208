#include "machine_code_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "kiln/base/error.h"
#include "kiln/device/nvrtc.h"
#include "kiln/timing/disassembler.h"

namespace kiln::timing {

std::string read_data(const std::string& name) {
  std::ifstream file(std::string(KILN_TIMING_DATA) + "/" + name, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

uint64_t encoded(const Control& control) {
  const uint64_t bits = uint64_t{control.stall} | uint64_t{!control.yields} << 4 |
                        uint64_t{control.write_barrier} << 5 | uint64_t{control.read_barrier} << 8 |
                        uint64_t{control.wait_mask} << 11 | uint64_t{control.reuse_mask} << 17;
  return bits << 41;
}

Code& Code::add(const std::string& instruction, Control control, uint64_t low) {
  lines_ += fmt::format("        /*{:04x}*/  {} ;  /* 0x{:016x} */\n                 /* 0x{:016x} */\n", count_++ * 16,
                        instruction, low, encoded(control));
  return *this;
}

Code& Code::label(const std::string& name) {
  lines_ += name + ":\n";
  return *this;
}

std::string Code::text() const {
  return fmt::format("\t.target\tsm_{}\n\t.section\t.text.test,\"ax\",@progbits\n{}", arch_, lines_);
}

Control stall(uint8_t cycles) {
  Control control;
  control.stall = cycles;
  return control;
}

Control sets(uint8_t barrier, uint8_t cycles) {
  Control control = stall(cycles);
  control.write_barrier = barrier;
  return control;
}

Control waits(uint8_t mask, uint8_t cycles) {
  Control control = stall(cycles);
  control.wait_mask = mask;
  return control;
}

Card card_with_code_at_hand(const std::string& name) {
  Card card = find_card(name);
  card.l1i_latency = card.l2i_latency = card.l1i_cycles = card.l2i_cycles = 0;
  return card;
}

KernelFacts plain_facts(int arch) {
  KernelFacts facts;
  facts.name = "test";
  facts.registers = 16;
  facts.parameter_base = arch >= 100 ? 0x380 : arch >= 90 ? 0x210 : 0x160;
  return facts;
}

std::vector<uint64_t> sectors_of(const BlockPath& block) {
  std::vector<uint64_t> sectors;
  for (const WarpPath& warp : block.warps) {
    for (const Access& access : warp.accesses) {
      if (access.space != Access::Space::global) continue;
      for (uint32_t i = 0; i < access.lines; ++i) {
        const Line& line = warp.lines[access.first_line + i];
        for (uint32_t s = 0; s < 4; ++s) {
          if ((line.sectors >> s & 1) != 0) sectors.push_back(line.address + 32 * s);
        }
      }
    }
  }
  std::sort(sectors.begin(), sectors.end());
  sectors.erase(std::unique(sectors.begin(), sectors.end()), sectors.end());
  return sectors;
}

std::optional<Compiled> compile(const std::string& file, const std::string& arch, std::vector<std::string> options) {
  std::optional<Disassembler> disassembler;
  try {
    disassembler.emplace(DisassemblerOptions{});
  } catch (const Error&) {
    return {};
  }
  device::CompileOptions how;
  how.arch = arch;
  how.extra = std::move(options);
  const std::string cubin = device::Nvrtc::open({})->compile(read_data(file), file, how).cubin;
  Compiled compiled;
  compiled.facts = read_cubin(cubin).at(0);
  compiled.sass = parse_sass(disassembler->text_of(cubin), compiled.facts.name);
  return compiled;
}

BlockPath run_code(const Sass& sass, Launch launch) {
  launch.block = {32, 1, 1};
  const KernelFacts facts = plain_facts(sass.arch);
  return Interpreter(sass, facts, launch).run(0);
}

}  // namespace kiln::timing
