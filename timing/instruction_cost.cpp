#include "instruction_cost.h"

#include <algorithm>
#include <array>
#include <string>

#include "decode.h"
#include "opcode_table.h"
#include "tensor_shape.h"

namespace kiln::timing {
namespace {

const OpcodeTable<Pipe> pipes({{Pipe::fma, "FFMA FMUL FADD FFMA2 FMUL2 FADD2"},
                               {Pipe::imad, "IMAD IDP IDP4A"},
                               {Pipe::half, "HADD2 HMUL2 HFMA2 HMNMX2 HSETP2 HSET2"},
                               {Pipe::fp64, "DADD DMUL DFMA DSETP"},
                               {Pipe::special,
                                "MUFU I2F F2I F2F I2I POPC FLO BREV FRND S2R S2UR B2R LDC MATCH REDUX FCHK"},
                               {Pipe::alu,
                                "CS2R R2UR MOV IADD3 IADD LEA LOP3 SHF ISETP PLOP3 IMNMX VIMNMX VIMNMX3 VIADDMNMX SEL "
                                "FSEL PRMT IABS BMSK SGXT VOTE VOTEU P2R R2P FMNMX FSETP FSET I2FP F2FP VIADD LEPC "
                                "ISCADD VABSDIFF IADD3X ELECT"},
                               {Pipe::tensor, "HMMA IMMA BMMA DMMA QMMA"},
                               {Pipe::branch, "BRA BRX BRXU JMP CALL RET EXIT BSSY BSYNC BREAK BMOV WARPSYNC YIELD"},
                               {Pipe::none,
                                "NOP DEPBAR LDGDEPBAR BAR MEMBAR ERRBAR CCTL CCTLL FENCE HGMMA IGMMA QGMMA BGMMA "
                                "WARPGROUP UTMACMDFLUSH UTMACCTL UTMAPF UCGABAR_ARV UCGABAR_WAIT CGAERRBAR "
                                "ENDCOLLECTIVE NANOSLEEP"},
                               {Pipe::memory,
                                "LDS STS LDG STG LDL STL LD ST LDSM STSM LDGSTS ATOM ATOMG ATOMS RED REDG SHFL SYNCS "
                                "UTMALDG UTMASTG UBLKCP"},
                               {Pipe::uniform, "ULDC LDCU USETMAXREG"}});

Pipe pipe_of(const Instruction& instruction, const Card& card, std::vector<std::string>& unknown) {
  const std::string& name = instruction.opcode;
  if (const Pipe* pipe = pipes.find(name)) return *pipe == Pipe::imad && card.imad_shares_fma != 0 ? Pipe::fma : *pipe;
  const bool uniform = name.starts_with('U') && pipes.find(std::string_view(name).substr(1)) != nullptr;
  if (uniform) return Pipe::uniform;
  if (std::find(unknown.begin(), unknown.end(), name) == unknown.end()) unknown.push_back(name);
  return Pipe::alu;
}

bool is_conversion(const std::string& opcode) {
  return opcode == "I2F" || opcode == "F2I" || opcode == "F2F" || opcode == "I2I" || opcode == "FRND";
}

bool is_of_warpgroup(const Instruction& instruction) {
  return instruction.opcode.ends_with("GMMA");
}

// Multiply-adds of a cycle by the types of operands and sums.
uint64_t tensor_rate(const Instruction& instruction, const Card& card) {
  const bool half_sums = !instruction.has("F32");
  if (instruction.opcode == "BMMA" || instruction.opcode == "BGMMA") return 8 * card.tensor_byte;
  if (instruction.opcode == "IMMA" || instruction.opcode == "IGMMA")
    return instruction.has("S4") || instruction.has("U4") ? 2 * card.tensor_byte : card.tensor_byte;
  if (instruction.opcode == "QMMA" || instruction.opcode == "QGMMA")
    return half_sums ? uint64_t{card.tensor_fp8} * card.tensor_half / card.tensor_float : card.tensor_fp8;
  if (instruction.has("TF32")) return card.tensor_tf32;
  return half_sums ? card.tensor_half : card.tensor_float;
}

// In 1/256 of a cycle.
uint64_t tensor_time(const Instruction& instruction, const Card& card) {
  if (instruction.opcode == "DMMA") {
    return uint64_t{256} * card.tensor_double_cycles * tensor_multiply_adds(instruction) / (8 * 8 * 4);
  }
  const uint32_t sparse = instruction.has("SP") ? 2 : 1;  // half of the products are left out
  const uint32_t reached = is_of_warpgroup(instruction) ? 4 * 100 : card.mma_percent;  // on all four schedulers
  const uint64_t rate = std::max<uint64_t>(1, tensor_rate(instruction, card)) * sparse * reached;
  return std::max<uint64_t>(256, (uint64_t{tensor_multiply_adds(instruction)} * 25600 + rate / 2) / rate);
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
      return static_cast<uint32_t>(tensor_time(instruction, card) / 256);
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
  if (name == "SYNCS" || name == "UTMALDG" || name == "UTMASTG" || name == "UBLKCP") return Wait::transaction;
  if (name == "UTMACMDFLUSH") return Wait::bulk_stores;
  if (is_of_warpgroup(instruction)) return Wait::products;
  if (name == "WARPGROUP" && instruction.has("DEPBAR")) return Wait::product_group;
  const bool counts = instruction.control.write_barrier != Control::no_barrier ||
                      instruction.control.read_barrier != Control::no_barrier;
  return counts ? Wait::unit : Wait::fixed;
}

// True if the instruction before has kept the register of this place of an operand, so that no bank has to give it.
bool is_kept(const Instruction* before, uint32_t slot, uint16_t index) {
  if (before == nullptr || (before->control.reuse_mask >> slot & 1) == 0) return false;
  uint32_t other = 0;
  for (size_t k = 1; k < before->operands.size(); ++k) {
    if (before->operands[k].kind == Operand::Kind::predicate) continue;
    if (other++ == slot) return before->operands[k].index == index;
  }
  return false;
}

// Registers that each of the two register banks, of even and of odd ones, has to give.
std::array<uint8_t, 2> reads_of(const Instruction& instruction, Pipe pipe, const Instruction* before) {
  std::array<uint8_t, 2> reads{};
  uint32_t slot = 0;
  for (size_t i = 1; i < instruction.operands.size(); ++i) {
    const Operand& operand = instruction.operands[i];
    if (operand.kind == Operand::Kind::predicate) continue;
    const uint32_t place = slot++;
    if (operand.kind != Operand::Kind::reg || operand.index == zero_register) continue;
    if (is_kept(before, place, operand.index)) continue;
    const uint32_t count = pipe == Pipe::tensor ? tensor_registers(instruction, i) : 1;
    for (uint32_t r = 0; r < count; ++r) ++reads[(operand.index + r) % 2];
  }
  return reads;
}

// A row of the operands in shared memory is 32 bytes, whatever their type.
void set_products(const Instruction& instruction, const Card& card, Cost& cost) {
  constexpr uint32_t row_bytes = 32;
  cost.cycles = static_cast<uint32_t>((tensor_time(instruction, card) + 128) / 256);
  const bool left_in_registers = instruction.operands.size() > 1 && instruction.operands[1].kind == Operand::Kind::reg;
  const auto [m, n, k] = tensor_shape(instruction);
  cost.operand_bytes = static_cast<uint16_t>((n + (left_in_registers ? 0 : m)) * row_bytes);
  cost.ends_group = last_operand(instruction).text.starts_with("gsb");
}

}  // namespace

std::vector<Cost> costs_of(const Sass& sass, const Card& card, std::vector<std::string>& unknown) {
  std::vector<Cost> costs;
  for (const Instruction& instruction : sass.instructions) {
    Cost cost;
    cost.pipe = pipe_of(instruction, card, unknown);
    cost.cycles = cycles_of(instruction, cost.pipe, card);
    cost.wait = wait_of(instruction);
    cost.extra = instruction.has("128") ? 6 : instruction.has("64") ? 2 : 0;
    cost.control = instruction.control;
    cost.line = instruction.address / 128;
    cost.is_barrier = instruction.opcode == "BAR" || instruction.opcode == "UCGABAR_WAIT";
    if (cost.wait == Wait::products) set_products(instruction, card, cost);
    if (cost.wait == Wait::product_group) cost.groups_left = static_cast<uint8_t>(last_operand(instruction).value);
    cost.bypasses_l1 = instruction.has("BYPASS");
    const bool reads_banks = cost.pipe != Pipe::memory && cost.pipe != Pipe::branch && cost.pipe != Pipe::none;
    if (reads_banks) cost.reads = reads_of(instruction, cost.pipe, costs.empty() ? nullptr : &instruction - 1);
    if (cost.pipe == Pipe::tensor) cost.fraction = static_cast<uint8_t>(tensor_time(instruction, card) % 256);
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
