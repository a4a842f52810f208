#include "decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "kiln/base/error.h"

namespace kiln::timing {
namespace {

const std::map<std::string, Op, std::less<>>& names() {
  static const std::map<std::string, Op, std::less<>> table = {
      {"MOV", Op::mov},         {"IADD3", Op::iadd3},      {"IADD", Op::iadd3},     {"VIADD", Op::iadd3},
      {"IMAD", Op::imad},       {"LEA", Op::lea},          {"LOP3", Op::lop3},      {"SHF", Op::shf},
      {"ISETP", Op::isetp},     {"PLOP3", Op::plop3},      {"IMNMX", Op::imnmx},    {"VIMNMX", Op::imnmx},
      {"VIADDMNMX", Op::imnmx}, {"SEL", Op::sel},          {"FSEL", Op::sel},       {"PRMT", Op::prmt},
      {"IABS", Op::iabs},       {"BMSK", Op::bmsk},        {"SGXT", Op::sgxt},      {"POPC", Op::popc},
      {"FLO", Op::flo},         {"BREV", Op::brev},        {"S2R", Op::s2r},        {"S2UR", Op::s2r},
      {"CS2R", Op::cs2r},       {"R2UR", Op::r2ur},        {"VOTE", Op::vote},      {"VOTEU", Op::vote},
      {"SHFL", Op::shfl},       {"LDC", Op::ldc},          {"ULDC", Op::ldc},       {"LDCU", Op::ldc},
      {"P2R", Op::p2r},         {"R2P", Op::r2p},          {"FADD", Op::fadd},      {"FMUL", Op::fmul},
      {"FFMA", Op::ffma},       {"FMNMX", Op::fmnmx},      {"FSETP", Op::fsetp},    {"MUFU", Op::mufu},
      {"I2F", Op::i2f},         {"I2FP", Op::i2f},         {"F2I", Op::f2i},        {"HFMA2", Op::hfma2},
      {"LDG", Op::load},        {"LDS", Op::load},         {"LDL", Op::load},       {"LD", Op::load},
      {"STG", Op::store},       {"STS", Op::store},        {"STL", Op::store},      {"ST", Op::store},
      {"ATOM", Op::atomic},     {"ATOMG", Op::atomic},     {"ATOMS", Op::atomic},   {"RED", Op::atomic},
      {"REDG", Op::atomic},     {"LDSM", Op::matrix_load}, {"LDGSTS", Op::copy},    {"BAR", Op::bar},
      {"BRA", Op::bra},         {"BSSY", Op::bssy},        {"BSYNC", Op::bsync},    {"BREAK", Op::brk},
      {"BMOV", Op::bmov},       {"EXIT", Op::exit},        {"CALL", Op::call},      {"RET", Op::ret},
      {"NOP", Op::nothing},     {"WARPSYNC", Op::nothing}, {"DEPBAR", Op::nothing}, {"LDGDEPBAR", Op::nothing},
      {"MEMBAR", Op::nothing},  {"ERRBAR", Op::nothing},   {"CCTL", Op::nothing},   {"CCTLL", Op::nothing},
      {"YIELD", Op::nothing},   {"FENCE", Op::nothing}};
  return table;
}

Compare comparison(const Instruction& instruction) {
  constexpr std::pair<const char*, Compare> known[] = {{"LT", Compare::lt}, {"EQ", Compare::eq}, {"LE", Compare::le},
                                                       {"GT", Compare::gt}, {"NE", Compare::ne}, {"GE", Compare::ge},
                                                       {"F", Compare::f}};
  for (const auto& [name, value] : known) {
    if (instruction.has(name)) return value;
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

MemorySpace space_of(const std::string& opcode) {
  if (opcode == "LDS" || opcode == "STS" || opcode == "ATOMS" || opcode == "LDSM") return MemorySpace::shared;
  return opcode == "LDL" || opcode == "STL" ? MemorySpace::local : MemorySpace::global;
}

// Destinations come first: one register, and predicates before or behind it.
void assign_roles(const Instruction& instruction, Decoded& decoded) {
  using Kind = Operand::Kind;
  const bool writes_predicates_only = decoded.op == Op::isetp || decoded.op == Op::fsetp || decoded.op == Op::plop3;
  const bool writes_nothing = decoded.op == Op::store || decoded.op == Op::bra || decoded.op == Op::bar ||
                              decoded.op == Op::copy || decoded.op == Op::ret || decoded.op == Op::call ||
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
      at_front = false;
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
  auto found = names().find(opcode);
  if (found == names().end() && opcode.starts_with('U')) {
    found = names().find(std::string_view(opcode).substr(1));
  }
  if (found != names().end()) decoded.op = found->second;
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
  decoded.compare = comparison(instruction);
  if (instruction.has("OR")) decoded.combine = Combine::disjunction;
  if (instruction.has("XOR")) decoded.combine = Combine::exclusive;
  decoded.space = space_of(opcode);
  decoded.bytes = lane_bytes(instruction);
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

const Operand& source(const Instruction& instruction, const Decoded& decoded, size_t number) {
  if (number >= decoded.sources.size()) {
    throw Error(ErrorCode::parse_error,
                fmt::format("instruction {} at {:#x} lacks an operand", instruction.opcode, instruction.address));
  }
  return instruction.operands[decoded.sources[number]];
}

}  // namespace kiln::timing
