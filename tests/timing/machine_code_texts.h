// Machine code for tests: written line by line, or read from data/.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/timing/card.h"
#include "kiln/timing/cubin.h"
#include "kiln/timing/interpret.h"
#include "kiln/timing/sass.h"

namespace kiln::timing {

std::string read_data(const std::string& name);

/// Text as nvdisasm prints it, of instructions that are written here.
class Code {
 public:
  explicit Code(int arch = 80) : arch_(arch) {}

  Code& add(const std::string& instruction, Control control = {}, uint64_t low = 0);
  Code& label(const std::string& name);
  std::string text() const;
  Sass sass() const { return parse_sass(text(), "test"); }

 private:
  int arch_;
  int count_ = 0;
  std::string lines_;
};

/// Control bits by name.
Control stall(uint8_t cycles);
Control sets(uint8_t barrier, uint8_t cycles = 1);
Control waits(uint8_t mask, uint8_t cycles = 1);

/// The upper word of an instruction's encoding with these control bits.
uint64_t encoded(const Control& control);

/// A built-in card that never waits for code: cycles can be counted by hand.
Card card_with_code_at_hand(const std::string& name);

/// Facts of a kernel without memory of its own.
KernelFacts plain_facts(int arch = 80);

/// The path of block 0 of `launch`, with 32 threads.
BlockPath run_code(const Sass& sass, Launch launch = {});

/// Lanes' addresses of all global accesses of a block, as pairs of line and sectors, sorted, each once.
std::vector<uint64_t> sectors_of(const BlockPath& block);

/// A kernel of data/ as NVRTC and nvdisasm of this machine make it.
struct Compiled {
  Sass sass;
  KernelFacts facts;
};

/// The only kernel of `file`, with these options ("-DN=4"). Nothing where the machine has no nvdisasm.
std::optional<Compiled> compile(const std::string& file, const std::string& arch, std::vector<std::string> options);

}  // namespace kiln::timing
