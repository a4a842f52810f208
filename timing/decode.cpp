#include "decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "kiln/base/error.h"
#include "opcode_table.h"

namespace kiln::timing {
namespace {

const OpcodeTable<Op> ops({{Op::mov, "MOV"},
                           {Op::iadd3, "IADD3 IADD VIADD"},
                           {Op::imad, "IMAD"},
                           {Op::lea, "LEA"},
                           {Op::lop3, "LOP3"},
                           {Op::shf, "SHF"},
                           {Op::isetp, "ISETP"},
                           {Op::plop3, "PLOP3"},
                           {Op::imnmx, "IMNMX VIMNMX VIADDMNMX"},
                           {Op::sel, "SEL FSEL"},
                           {Op::prmt, "PRMT"},
                           {Op::iabs, "IABS"},
                           {Op::bmsk, "BMSK"},
                           {Op::sgxt, "SGXT"},
                           {Op::popc, "POPC"},
                           {Op::flo, "FLO"},
                           {Op::brev, "BREV"},
                           {Op::s2r, "S2R S2UR"},
                           {Op::cs2r, "CS2R"},
                           {Op::r2ur, "R2UR"},
                           {Op::vote, "VOTE VOTEU"},
                           {Op::shfl, "SHFL"},
                           {Op::ldc, "LDC ULDC LDCU"},
                           {Op::p2r, "P2R"},
                           {Op::r2p, "R2P"},
                           {Op::fadd, "FADD"},
                           {Op::fmul, "FMUL"},
                           {Op::ffma, "FFMA"},
                           {Op::fmnmx, "FMNMX"},
                           {Op::fsetp, "FSETP"},
                           {Op::hsetp2, "HSETP2"},
                           {Op::mufu, "MUFU"},
                           {Op::i2f, "I2F I2FP"},
                           {Op::f2i, "F2I"},
                           {Op::hfma2, "HFMA2"},
                           {Op::load, "LDG LDS LDL LD"},
                           {Op::store, "STG STS STL ST"},
                           {Op::atomic, "ATOM ATOMG ATOMS RED REDG"},
                           {Op::matrix_load, "LDSM"},
                           {Op::matrix_store, "STSM"},
                           {Op::copy, "LDGSTS"},
                           {Op::bar, "BAR"},
                           {Op::bra, "BRA"},
                           {Op::brx, "BRX BRXU"},
                           {Op::bssy, "BSSY"},
                           {Op::bsync, "BSYNC"},
                           {Op::brk, "BREAK"},
                           {Op::bmov, "BMOV"},
                           {Op::exit, "EXIT"},
                           {Op::call, "CALL"},
                           {Op::ret, "RET"},
                           {Op::nothing,
                            "NOP WARPSYNC DEPBAR LDGDEPBAR MEMBAR ERRBAR CCTL CCTLL YIELD FENCE WARPGROUP "
                            "UCGABAR_ARV CGAERRBAR UTMACMDFLUSH UTMACCTL UTMAPF NANOSLEEP"},
                           {Op::tensor, "F2FP HADD2 HMUL2 HMNMX2 HMMA IMMA BMMA DMMA QMMA HGMMA IGMMA QGMMA BGMMA"},
                           {Op::syncs, "SYNCS"},
                           {Op::bulk_copy, "UTMALDG UTMASTG UBLKCP"},
                           {Op::elect, "ELECT"},
                           {Op::set_registers, "USETMAXREG"},
                           {Op::cluster_wait, "UCGABAR_WAIT"}});

Compare comparison(const Instruction& instruction, bool& unordered) {
  constexpr std::pair<const char*, Compare> known[] = {{"LT", Compare::lt}, {"EQ", Compare::eq}, {"LE", Compare::le},
                                                       {"GT", Compare::gt}, {"NE", Compare::ne}, {"GE", Compare::ge},
                                                       {"F", Compare::f}};
  for (const auto& [name, value] : known) {
    if (instruction.has(name)) return value;
    unordered = instruction.has(std::string(name) + "U");
    if (unordered) return value;
  }
  return Compare::t;
}

Function function_of(const Instruction& instruction) {
  constexpr std::pair<const char*, Function> known[] = {{"RCP", Function::rcp},   {"RSQ", Function::rsq},
                                                        {"SQRT", Function::sqrt}, {"EX2", Function::ex2},
                                                        {"LG2", Function::lg2},   {"SIN", Function::sin}};
  for (const auto& [name, value] : known) {
    if (instruction.has(name)) return value;
  }
  return Function::cos;
}

Rounding rounding_of(const Instruction& instruction) {
  if (instruction.has("CEIL") || instruction.has("RP")) return Rounding::up;
  if (instruction.has("FLOOR")) return Rounding::down;
  return instruction.has("TRUNC") ? Rounding::truncated : Rounding::nearest;
}

bool has_other_width(const Instruction& instruction) {
  constexpr const char* names[] = {"F16", "F64", "64H", "U16", "U8", "S16", "S8"};
  return std::any_of(std::begin(names), std::end(names), [&](const char* name) { return instruction.has(name); });
}

uint8_t lane_bytes(const Instruction& instruction) {
  if (instruction.has("U8") || instruction.has("S8")) return 1;
  if (instruction.has("U16") || instruction.has("S16")) return 2;
  if (instruction.has("64")) return 8;
  return instruction.has("128") ? 16 : 4;
}

Phase phase_of(const Instruction& instruction) {
  if (instruction.has("EXCH")) return Phase::init;
  if (instruction.has("ARRIVE")) return Phase::arrive;
  return instruction.has("PHASECHK") ? Phase::wait : Phase::none;
}

MemorySpace space_of(const std::string& opcode) {
  if (opcode == "LDS" || opcode == "STS" || opcode == "ATOMS" || opcode == "LDSM" || opcode == "STSM" ||
      opcode == "SYNCS")
    return MemorySpace::shared;
  return opcode == "LDL" || opcode == "STL" ? MemorySpace::local : MemorySpace::global;
}

// Destinations come first: one register, and predicates before or behind it.
void assign_roles(const Instruction& instruction, Decoded& decoded) {
  using Kind = Operand::Kind;
  const bool writes_predicates_only =
      decoded.op == Op::isetp || decoded.op == Op::fsetp || decoded.op == Op::hsetp2 || decoded.op == Op::plop3;
  const bool writes_nothing = decoded.op == Op::store || decoded.op == Op::bra || decoded.op == Op::brx ||
                              decoded.op == Op::bar || decoded.op == Op::copy || decoded.op == Op::matrix_store ||
                              decoded.op == Op::bulk_copy || decoded.op == Op::ret || decoded.op == Op::call ||
                              decoded.op == Op::nothing || decoded.op == Op::bssy || decoded.op == Op::bsync ||
                              decoded.op == Op::brk || decoded.op == Op::exit || decoded.op == Op::r2p ||
                              instruction.opcode.starts_with("RED");
  size_t out_predicates = writes_predicates_only ? 2 : 0;
  bool destination_due = !writes_predicates_only && !writes_nothing;
  bool at_front = !writes_nothing;

  for (size_t i = 0; i < instruction.operands.size(); ++i) {
    const Operand& operand = instruction.operands[i];
    const bool predicate = operand.kind == Kind::predicate || operand.kind == Kind::uniform_predicate;
    if (predicate && (writes_predicates_only ? i < out_predicates : at_front)) {
      decoded.out_predicates.push_back(static_cast<uint8_t>(i));
    } else if (predicate) {
      decoded.predicates.push_back(static_cast<uint8_t>(i));
    } else if (operand.kind == Kind::memory) {
      at_front = destination_due = false;
      (decoded.memory < 0 ? decoded.memory : decoded.second_memory) = static_cast<int8_t>(i);
    } else if (operand.kind == Kind::special || operand.kind == Kind::label || operand.kind == Kind::other) {
      at_front = false;
    } else if (destination_due &&
               (operand.kind == Kind::reg || operand.kind == Kind::uniform || operand.kind == Kind::barrier)) {
      decoded.destination = static_cast<int8_t>(i);
      destination_due = false;
    } else {
      at_front = false;
      decoded.sources.push_back(static_cast<uint8_t>(i));
    }
  }
}

}  // namespace

Decoded decode(const Instruction& instruction) {
  Decoded decoded;
  const std::string& opcode = instruction.opcode;
  const Op* op = ops.find(opcode);
  if (op == nullptr && opcode.starts_with('U')) op = ops.find(std::string_view(opcode).substr(1));
  if (op != nullptr) decoded.op = *op;
  decoded.is_unsigned =
      instruction.has("U32") || instruction.has("U64") || instruction.has("U16") || instruction.has("U8");
  decoded.wide = instruction.has("WIDE");
  decoded.high = instruction.has("HI");
  decoded.extended = instruction.has("X") || instruction.has("EX");
  decoded.left = instruction.has("L");
  decoded.wraps = instruction.has("W");
  decoded.wide_type = instruction.has("U64") || instruction.has("S64") || instruction.has("64");
  decoded.sign_high = instruction.has("SX32");
  decoded.is_signed = instruction.has("S32") || instruction.has("S64");
  decoded.other_width = has_other_width(instruction);
  decoded.function = function_of(instruction);
  decoded.rounding = rounding_of(instruction);
  decoded.sign_extends = instruction.has("S8") || instruction.has("S16");
  decoded.compare = comparison(instruction, decoded.unordered);
  if (instruction.has("OR")) decoded.combine = Combine::disjunction;
  if (instruction.has("XOR")) decoded.combine = Combine::exclusive;
  decoded.space = space_of(opcode);
  decoded.bytes = lane_bytes(instruction);
  if (decoded.op == Op::syncs) decoded.phase = phase_of(instruction);
  assign_roles(instruction, decoded);
  for (const uint8_t i : decoded.sources) {
    const Operand& operand = instruction.operands[i];
    if (operand.kind == Operand::Kind::reg && operand.index != zero_register)
      decoded.registers.push_back(operand.index);
  }
  if (decoded.op == Op::vote && decoded.out_predicates.size() > 1) {  // the last predicate is what is voted on
    decoded.predicates.push_back(decoded.out_predicates.back());
    decoded.out_predicates.pop_back();
  }
  if (decoded.destination >= 0) {
    decoded.uniform = instruction.operands[decoded.destination].kind == Operand::Kind::uniform;
  } else if (!decoded.out_predicates.empty()) {
    decoded.uniform = instruction.operands[decoded.out_predicates[0]].kind == Operand::Kind::uniform_predicate;
  }
  return decoded;
}

namespace {

[[noreturn]] void fail_for_operand(const Instruction& instruction) {
  throw Error(ErrorCode::parse_error,
              fmt::format("instruction {} at {:#x} lacks an operand", instruction.opcode, instruction.address));
}

}  // namespace

uint32_t matrices_of(const Instruction& instruction) {
  return instruction.has("4") ? 4 : instruction.has("2") ? 2 : 1;
}

const Operand& source(const Instruction& instruction, const Decoded& decoded, size_t number) {
  if (number >= decoded.sources.size()) fail_for_operand(instruction);
  return instruction.operands[decoded.sources[number]];
}

const Operand& destination(const Instruction& instruction, const Decoded& decoded) {
  if (decoded.destination < 0) fail_for_operand(instruction);
  return instruction.operands[static_cast<size_t>(decoded.destination)];
}

const Operand& out_predicate(const Instruction& instruction, const Decoded& decoded) {
  if (decoded.out_predicates.empty()) fail_for_operand(instruction);
  return instruction.operands[decoded.out_predicates[0]];
}

const Operand& last_operand(const Instruction& instruction) {
  if (instruction.operands.empty()) fail_for_operand(instruction);
  return instruction.operands.back();
}

}  // namespace kiln::timing
