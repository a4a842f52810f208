#include "instruction_cost.h"

#include <algorithm>
#include <map>
#include <string>

namespace kiln::timing {
namespace {

const std::map<std::string, Pipe, std::less<>>& pipes() {
  static const std::map<std::string, Pipe, std::less<>> table = {
      {"FFMA", Pipe::fma},      {"FMUL", Pipe::fma},     {"FADD", Pipe::fma},     {"FFMA2", Pipe::fma},
      {"FMUL2", Pipe::fma},     {"FADD2", Pipe::fma},    {"IMAD", Pipe::imad},    {"IDP", Pipe::imad},
      {"IDP4A", Pipe::imad},    {"HADD2", Pipe::half},   {"HMUL2", Pipe::half},   {"HFMA2", Pipe::half},
      {"HMNMX2", Pipe::half},   {"HSETP2", Pipe::half},  {"HSET2", Pipe::half},   {"DADD", Pipe::fp64},
      {"DMUL", Pipe::fp64},     {"DFMA", Pipe::fp64},    {"DSETP", Pipe::fp64},   {"MUFU", Pipe::special},
      {"I2F", Pipe::special},   {"F2I", Pipe::special},  {"F2F", Pipe::special},  {"I2I", Pipe::special},
      {"POPC", Pipe::special},  {"FLO", Pipe::special},  {"BREV", Pipe::special}, {"FRND", Pipe::special},
      {"S2R", Pipe::special},   {"S2UR", Pipe::special}, {"CS2R", Pipe::alu},     {"B2R", Pipe::special},
      {"HMMA", Pipe::tensor},   {"IMMA", Pipe::tensor},  {"BMMA", Pipe::tensor},  {"DMMA", Pipe::tensor},
      {"QMMA", Pipe::tensor},   {"BRA", Pipe::branch},   {"BRX", Pipe::branch},   {"JMP", Pipe::branch},
      {"CALL", Pipe::branch},   {"RET", Pipe::branch},   {"EXIT", Pipe::branch},  {"BSSY", Pipe::branch},
      {"BSYNC", Pipe::branch},  {"BREAK", Pipe::branch}, {"BMOV", Pipe::branch},  {"WARPSYNC", Pipe::branch},
      {"YIELD", Pipe::branch},  {"NOP", Pipe::none},     {"DEPBAR", Pipe::none},  {"LDGDEPBAR", Pipe::none},
      {"BAR", Pipe::none},      {"MEMBAR", Pipe::none},  {"ERRBAR", Pipe::none},  {"CCTL", Pipe::none},
      {"CCTLL", Pipe::none},    {"FENCE", Pipe::none},   {"LDS", Pipe::memory},   {"STS", Pipe::memory},
      {"LDG", Pipe::memory},    {"STG", Pipe::memory},   {"LDL", Pipe::memory},   {"STL", Pipe::memory},
      {"LD", Pipe::memory},     {"ST", Pipe::memory},    {"LDSM", Pipe::memory},  {"STSM", Pipe::memory},
      {"LDGSTS", Pipe::memory}, {"ATOM", Pipe::memory},  {"ATOMG", Pipe::memory}, {"ATOMS", Pipe::memory},
      {"RED", Pipe::memory},    {"REDG", Pipe::memory},  {"SHFL", Pipe::memory},  {"LDC", Pipe::special},
      {"ULDC", Pipe::uniform},  {"LDCU", Pipe::uniform}, {"R2UR", Pipe::alu},     {"MATCH", Pipe::special},
      {"REDUX", Pipe::special}, {"MOV", Pipe::alu},      {"IADD3", Pipe::alu},    {"IADD", Pipe::alu},
      {"LEA", Pipe::alu},       {"LOP3", Pipe::alu},     {"SHF", Pipe::alu},      {"ISETP", Pipe::alu},
      {"PLOP3", Pipe::alu},     {"IMNMX", Pipe::alu},    {"VIMNMX", Pipe::alu},   {"VIMNMX3", Pipe::alu},
      {"VIADDMNMX", Pipe::alu}, {"SEL", Pipe::alu},      {"FSEL", Pipe::alu},     {"PRMT", Pipe::alu},
      {"IABS", Pipe::alu},      {"BMSK", Pipe::alu},     {"SGXT", Pipe::alu},     {"VOTE", Pipe::alu},
      {"VOTEU", Pipe::alu},     {"P2R", Pipe::alu},      {"R2P", Pipe::alu},      {"FMNMX", Pipe::alu},
      {"FSETP", Pipe::alu},     {"FSET", Pipe::alu},     {"I2FP", Pipe::alu},     {"F2FP", Pipe::alu},
      {"FCHK", Pipe::special},  {"VIADD", Pipe::alu},    {"LEPC", Pipe::alu},     {"ISCADD", Pipe::alu},
      {"VABSDIFF", Pipe::alu},  {"IADD3X", Pipe::alu}};
  return table;
}

Pipe pipe_of(const Instruction& instruction, const Card& card, std::vector<std::string>& unknown) {
  const std::string& name = instruction.opcode;
  const auto found = pipes().find(name);
  if (found != pipes().end()) {
    if (found->second == Pipe::imad && card.imad_shares_fma != 0) return Pipe::fma;
    return found->second;
  }
  const bool uniform = name.starts_with('U') && pipes().contains(std::string_view(name).substr(1));
  if (uniform) return Pipe::uniform;
  if (std::find(unknown.begin(), unknown.end(), name) == unknown.end()) unknown.push_back(name);
  return Pipe::alu;
}

bool is_conversion(const std::string& opcode) {
  return opcode == "I2F" || opcode == "F2I" || opcode == "F2F" || opcode == "I2I" || opcode == "FRND";
}

uint32_t cycles_of(const Instruction& instruction, Pipe pipe, const Card& card) {
  switch (pipe) {
    case Pipe::fma:
      return instruction.opcode == "IMAD" ? card.imad_cycles : card.fma_cycles;
    case Pipe::imad:
      return card.imad_cycles;
    case Pipe::alu:
      return card.alu_cycles;
    case Pipe::half:
      return card.half_cycles;
    case Pipe::fp64:
      return card.double_cycles;
    case Pipe::special:
      if (is_conversion(instruction.opcode)) return card.convert_cycles;
      return instruction.opcode.starts_with("S2") || instruction.opcode == "LDC" ? 2 : card.special_cycles;
    case Pipe::uniform:
      return card.uniform_cycles;
    case Pipe::tensor:
      return card.tensor_cycles;
    case Pipe::branch:
      return card.branch_cycles;
    default:
      return 1;
  }
}

Wait wait_of(const Instruction& instruction) {
  const std::string& name = instruction.opcode;
  if (name == "LDS" || name == "LDSM" || name == "SHFL" || name == "ATOMS") return Wait::shared_load;
  if (name == "STS" || name == "STSM") return Wait::shared_store;
  if (name == "LDG" || name == "LD" || name == "ATOM" || name == "ATOMG") return Wait::load;
  if (name == "STG" || name == "ST" || name.starts_with("RED")) return name == "REDUX" ? Wait::unit : Wait::store;
  if (name == "LDL") return Wait::local_load;
  if (name == "STL") return Wait::local_store;
  if (name == "LDC" || name == "ULDC" || name == "LDCU") return Wait::constant;
  if (name == "LDGSTS") return Wait::copy;
  if (name == "LDGDEPBAR") return Wait::copies;
  const bool counts = instruction.control.write_barrier != Control::no_barrier ||
                      instruction.control.read_barrier != Control::no_barrier;
  return counts ? Wait::unit : Wait::fixed;
}

// Cycles that the fuller of the two register banks gives its operands in, but those that the instruction before has
// kept.
uint8_t ports_of(const Instruction& instruction, const Instruction* before) {
  uint32_t reads[2] = {0, 0};
  uint32_t slot = 0;
  for (size_t i = 1; i < instruction.operands.size(); ++i) {
    const Operand& operand = instruction.operands[i];
    if (operand.kind == Operand::Kind::predicate) continue;
    const uint32_t bit = uint32_t{1} << slot;
    ++slot;
    if (operand.kind != Operand::Kind::reg || operand.index == zero_register) continue;
    bool kept = false;
    if (before != nullptr && (before->control.reuse_mask & bit) != 0) {
      uint32_t other = 0;
      for (size_t k = 1; k < before->operands.size(); ++k) {
        if (before->operands[k].kind == Operand::Kind::predicate) continue;
        kept = kept || (uint32_t{1} << other == bit && before->operands[k].index == operand.index);
        ++other;
      }
    }
    if (!kept) ++reads[operand.index % 2];
  }
  return static_cast<uint8_t>(std::max({1U, reads[0], reads[1]}));
}

}  // namespace

std::vector<Cost> costs_of(const Sass& sass, const Card& card, std::vector<std::string>& unknown) {
  std::vector<Cost> costs;
  for (const Instruction& instruction : sass.instructions) {
    Cost cost;
    cost.pipe = pipe_of(instruction, card, unknown);
    cost.cycles = static_cast<uint8_t>(cycles_of(instruction, cost.pipe, card));
    cost.wait = wait_of(instruction);
    cost.extra = instruction.has("128") ? 6 : instruction.has("64") ? 2 : 0;
    cost.control = instruction.control;
    cost.line = instruction.address / 128;
    cost.is_barrier = instruction.opcode == "BAR";
    const bool reads_banks = cost.pipe != Pipe::memory && cost.pipe != Pipe::branch && cost.pipe != Pipe::none;
    if (reads_banks) cost.ports = ports_of(instruction, costs.empty() ? nullptr : &instruction - 1);
    if (instruction.opcode == "DEPBAR" && instruction.operands.size() > 1 &&
        instruction.operands[0].text.starts_with("SB")) {
      cost.counter = static_cast<uint8_t>(instruction.operands[0].text[2] - '0');
      cost.at_most = static_cast<uint8_t>(instruction.operands[1].value);
    }
    costs.push_back(cost);
  }
  return costs;
}

std::vector<std::string> unclassified(const Sass& sass, const Card& card) {
  std::vector<std::string> unknown;
  costs_of(sass, card, unknown);
  return unknown;
}

}  // namespace kiln::timing
