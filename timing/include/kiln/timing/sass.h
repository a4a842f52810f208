// Machine code as the compiler wrote it: instructions with their control bits, read from the text of nvdisasm.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::timing {

/// Control bits of an instruction, by which the compiler directs the scheduler: bits 105 to 125 of its 128.
struct Control {
  static constexpr uint8_t no_barrier = 7;

  uint8_t stall = 0;                   ///< Cycles until the warp may issue its next instruction.
  bool yields = false;                 ///< Another warp goes first in the next cycle.
  uint8_t write_barrier = no_barrier;  ///< Counter that is released when the result is there.
  uint8_t read_barrier = no_barrier;   ///< Counter that is released when the operands have been read.
  uint8_t wait_mask = 0;               ///< Counters (bit 0 to 5) that have to be released before it issues.
  uint8_t reuse_mask = 0;              ///< Operand slots that are kept in the register cache.

  bool operator==(const Control&) const = default;
};

/// Takes the control bits from the upper 64 bits of an instruction's encoding.
Control decode_control(uint64_t high_word);

inline constexpr uint16_t zero_register = 255;  ///< RZ, URZ, and where there is no register.
inline constexpr uint16_t true_predicate = 7;   ///< PT, UPT.

/// One operand as it stands in the text, destinations included.
struct Operand {
  enum class Kind : uint8_t {
    reg,                ///< R4: `index`.
    uniform,            ///< UR4.
    predicate,          ///< P0.
    uniform_predicate,  ///< UP0.
    barrier,            ///< B0: a convergence barrier.
    immediate,          ///< `value`.
    constant,           ///< c[bank][base + value].
    memory,             ///< [base + uniform_base + value].
    label,              ///< A place in the code: `value` is its address.
    special,            ///< SR_TID.X: `text`.
    other,              ///< SB0, PR, {4,3}: `text`.
  };

  Kind kind = Kind::other;
  bool negated = false;   ///< -R4
  bool inverted = false;  ///< !P0, ~R4
  bool absolute = false;  ///< |R4|
  uint16_t index = zero_register;
  uint8_t bank = 0;            ///< A constant's.
  bool wide = false;           ///< [R4.64]: the base is a pair of registers.
  bool uniform_index = false;  ///< c[0x0][UR4 + 0x10]: `uniform_base` counts.
  uint8_t shift = 0;           ///< [R4.X8]: the base counts in units of 2^shift.
  uint16_t base = zero_register;
  uint16_t uniform_base = zero_register;
  int64_t value = 0;
  std::string suffix;  ///< Words behind a register's name: "H0_H0", "B1", "64".
  std::string text;    ///< Words of the kinds special and other.
};

struct Instruction {
  uint32_t address = 0;  ///< In bytes, from the beginning of the kernel.
  uint64_t low = 0, high = 0;
  uint16_t guard = true_predicate;
  bool guard_uniform = false;
  bool guard_inverted = false;
  std::string opcode;                  ///< "ISETP"
  std::vector<std::string> modifiers;  ///< "GT", "AND"
  std::vector<Operand> operands;
  Control control;

  bool has(std::string_view modifier) const;
};

/// The code of one kernel, with the functions that it calls.
struct Sass {
  std::string kernel;
  int arch = 0;  ///< 80 for sm_80.
  std::vector<Instruction> instructions;

  /// The index of the instruction at `address`. Throws Error(parse_error) if there is none.
  uint32_t index_of(int64_t address) const;
};

inline constexpr uint32_t instruction_bytes = 16;

/// Reads the code of `kernel` from what `nvdisasm -c -hex` printed. Throws Error(parse_error), with the line, for text
/// that is cut short or has another form, and Error(unsupported) for machine code older than sm_75.
Sass parse_sass(std::string_view text, const std::string& kernel);

}  // namespace kiln::timing
