// Integers, logic and predicates.
#include <algorithm>
#include <bit>

#include "lanes.h"
#include "machine.h"
#include "predicates.h"
#include "tensor_shape.h"

namespace kiln::timing {
namespace {

uint32_t lookup(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t result = 0;
  for (uint32_t row = 0; row < 8; ++row) {
    if ((table >> row & 1) == 0) continue;
    result |= ((row & 4) != 0 ? a : ~a) & ((row & 2) != 0 ? b : ~b) & ((row & 1) != 0 ? c : ~c);
  }
  return result;
}

}  // namespace

void Interpreter::Machine::arithmetic(Warp& warp, const Decoded& decoded, const Instruction& instruction,
                                      uint32_t active) {
  switch (decoded.op) {
    case Op::iadd3:
      return add(warp, decoded, instruction, active);
    case Op::imad:
      return multiply(warp, decoded, instruction, active);
    case Op::lea:
      return scale_and_add(warp, decoded, instruction, active);
    case Op::lop3:
      return logic(warp, decoded, instruction, active);
    case Op::plop3:
      return predicate_logic(warp, decoded, instruction, active);
    case Op::shf:
      return funnel(warp, decoded, instruction, active);
    case Op::isetp:
    case Op::fsetp:
      return compare(warp, decoded, instruction, active);
    case Op::imnmx:
    case Op::fmnmx:
    case Op::sel:
      return select(warp, decoded, instruction, active);
    case Op::fadd:
    case Op::fmul:
    case Op::ffma:
    case Op::mufu:
    case Op::i2f:
    case Op::f2i:
      return floating(warp, decoded, instruction, active);
    case Op::hfma2:
      return half(warp, decoded, instruction, active);
    case Op::hsetp2:
      return compare_halves(warp, decoded, instruction, active);
    case Op::tensor:
    case Op::unknown:
      return forget(warp, decoded, instruction, active);
    default:
      return simple(warp, decoded, instruction, active);
  }
}

// The results of an instruction that is not executed have no value.
void Interpreter::Machine::forget(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active) {
  if (decoded.destination >= 0) {
    const std::string& name = instruction.opcode;
    uint32_t count = name.starts_with('D') || decoded.wide || decoded.bytes == 8 ? 2 : 1;
    if (decoded.bytes == 16) count = 4;
    if (decoded.op == Op::matrix_load) count = matrices_of(instruction);
    if (name.ends_with("MMA")) count = tensor_registers(instruction, 0);
    for (uint32_t i = 0; i < count; ++i) forget_register(warp, destination(instruction, decoded), active, i);
  }
  for (const uint8_t i : decoded.out_predicates) put_predicate(warp, instruction.operands[i], {0, all_lanes}, active);
}

// IADD.64: pairs of registers.
void Interpreter::Machine::add_pairs(Warp& warp, const Decoded& decoded, const Instruction& instruction,
                                     uint32_t active) {
  Lanes low[2], high[2];
  for (size_t i = 0; i < 2; ++i) {
    const Operand& operand = source(instruction, decoded, i);
    high[i] = fetch_high(warp, operand);
    low[i] = fetch_plain(warp, operand);
  }
  const auto term = [&](size_t i, uint32_t lane) {
    const uint64_t value = pair(low[i], high[i], lane);
    return source(instruction, decoded, i).negated ? 0 - value : value;
  };
  Lanes upper;
  const Lanes lower = each(low[0].unknown | low[1].unknown | high[0].unknown | high[1].unknown, [&](uint32_t lane) {
    const uint64_t sum = term(0, lane) + term(1, lane);
    upper.v[lane] = static_cast<uint32_t>(sum >> 32);
    return static_cast<uint32_t>(sum);
  });
  upper.unknown = lower.unknown;
  put(warp, destination(instruction, decoded), lower, active);
  put(warp, destination(instruction, decoded), upper, active, 1);
}

void Interpreter::Machine::add(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active) {
  if (decoded.wide_type) return add_pairs(warp, decoded, instruction, active);
  Lanes terms[3];
  uint64_t ones = 0;  // a negated operand is its complement and one
  uint32_t unknown = 0;
  for (size_t i = 0; i < 3 && i < decoded.sources.size(); ++i) {
    const Operand& operand = source(instruction, decoded, i);
    if (operand.negated) ++ones;
    terms[i] = fetch_plain(warp, operand);
    if (operand.negated || operand.inverted) {
      for (uint32_t& v : terms[i].v) v = ~v;
    }
    unknown |= terms[i].unknown;
  }
  Bits carries[2];
  for (size_t i = 0; decoded.extended && i < 2 && i < decoded.predicates.size(); ++i) {
    carries[i] = fetch_predicate(warp, instruction.operands[decoded.predicates[i]]);
    unknown |= carries[i].unknown;
  }
  Bits out[2] = {{0, unknown}, {0, unknown}};
  const Lanes sum = each(unknown, [&](uint32_t lane) {
    const uint64_t total = ones + terms[0].v[lane] + uint64_t{terms[1].v[lane]} + terms[2].v[lane] +
                           (carries[0].value >> lane & 1) + (carries[1].value >> lane & 1);
    if (total >> 32 >= 1) out[0].value |= uint32_t{1} << lane;
    if (total >> 32 >= 2) out[1].value |= uint32_t{1} << lane;
    return static_cast<uint32_t>(total);
  });
  put(warp, destination(instruction, decoded), sum, active);
  for (size_t i = 0; i < 2 && i < decoded.out_predicates.size(); ++i) {
    put_predicate(warp, instruction.operands[decoded.out_predicates[i]], out[i], active);
  }
}

void Interpreter::Machine::multiply(Warp& warp, const Decoded& decoded, const Instruction& instruction,
                                    uint32_t active) {
  const Lanes a = fetch(warp, source(instruction, decoded, 0)), b = fetch(warp, source(instruction, decoded, 1));
  const Operand& addend = source(instruction, decoded, 2);
  const Lanes c = fetch(warp, addend);
  uint32_t unknown = a.unknown | b.unknown | c.unknown;
  const bool long_addend = decoded.wide || decoded.high;
  Lanes upper;
  if (long_addend) {
    upper = fetch_high(warp, addend);
    unknown |= upper.unknown;
  }
  Bits carry;
  if (decoded.extended && !decoded.predicates.empty()) {
    carry = fetch_predicate(warp, instruction.operands[decoded.predicates[0]]);
    unknown |= carry.unknown;
  }
  Lanes high;
  high.unknown = unknown;
  Bits out{0, unknown};
  const Lanes low = each(unknown, [&](uint32_t lane) {
    const uint64_t product =
        decoded.is_unsigned
            ? uint64_t{a.v[lane]} * b.v[lane]
            : static_cast<uint64_t>(int64_t{static_cast<int32_t>(a.v[lane])} * static_cast<int32_t>(b.v[lane]));
    const uint64_t sum = product + (long_addend ? pair(c, upper, lane) : c.v[lane]) + (carry.value >> lane & 1);
    if (sum < product) out.value |= uint32_t{1} << lane;
    high.v[lane] = static_cast<uint32_t>(sum >> 32);
    return static_cast<uint32_t>(sum);
  });
  const Operand& target = destination(instruction, decoded);
  put(warp, target, decoded.high ? high : low, active);
  if (decoded.wide) put(warp, target, high, active, 1);
  if (!decoded.out_predicates.empty()) {
    put_predicate(warp, instruction.operands[decoded.out_predicates[0]], out, active);
  }
}

// LEA: (a << shift) + b. LEA.HI: the upper half of ({c, a} << shift), + b.
void Interpreter::Machine::scale_and_add(Warp& warp, const Decoded& decoded, const Instruction& instruction,
                                         uint32_t active) {
  const Lanes a = fetch(warp, source(instruction, decoded, 0)), b = fetch(warp, source(instruction, decoded, 1));
  const Lanes shift = fetch(warp, source(instruction, decoded, decoded.sources.size() - 1));
  Lanes c;
  if (decoded.high && !decoded.sign_high && decoded.sources.size() > 3)
    c = fetch(warp, source(instruction, decoded, 2));
  uint32_t unknown = a.unknown | b.unknown | c.unknown | shift.unknown;
  Bits carry;
  if (decoded.extended && !decoded.predicates.empty()) {
    carry = fetch_predicate(warp, instruction.operands[decoded.predicates[0]]);
    unknown |= carry.unknown;
  }
  Bits out{0, unknown};
  const Lanes sum = each(unknown, [&](uint32_t lane) {
    const uint32_t top = decoded.sign_high ? static_cast<uint32_t>(static_cast<int32_t>(a.v[lane]) >> 31) : c.v[lane];
    const uint64_t shifted = (uint64_t{top} << 32 | a.v[lane]) << (shift.v[lane] & 31);
    const uint64_t term = decoded.high ? shifted >> 32 : shifted & 0xffffffff;
    const uint64_t total = term + b.v[lane] + (carry.value >> lane & 1);
    if (total >> 32 != 0) out.value |= uint32_t{1} << lane;
    return static_cast<uint32_t>(total);
  });
  put(warp, destination(instruction, decoded), sum, active);
  if (!decoded.out_predicates.empty()) {
    put_predicate(warp, instruction.operands[decoded.out_predicates[0]], out, active);
  }
}

void Interpreter::Machine::logic(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active) {
  const Lanes a = fetch(warp, source(instruction, decoded, 0)), b = fetch(warp, source(instruction, decoded, 1)),
              c = fetch(warp, source(instruction, decoded, 2));
  const auto table = static_cast<uint32_t>(source(instruction, decoded, 3).value);
  Bits out{0, a.unknown | b.unknown | c.unknown};
  const Lanes result = each(out.unknown, [&](uint32_t lane) {
    const uint32_t value = lookup(a.v[lane], b.v[lane], c.v[lane], table);
    if (value != 0) out.value |= uint32_t{1} << lane;
    return value;
  });
  put(warp, destination(instruction, decoded), result, active);
  if (decoded.out_predicates.empty()) return;
  if (!decoded.predicates.empty()) {
    out = combined(Combine::disjunction, out, fetch_predicate(warp, instruction.operands[decoded.predicates[0]]));
  }
  put_predicate(warp, instruction.operands[decoded.out_predicates[0]], out, active);
}

void Interpreter::Machine::predicate_logic(Warp& warp, const Decoded& decoded, const Instruction& instruction,
                                           uint32_t active) {
  Bits in[3];
  for (size_t i = 0; i < 3 && i < decoded.predicates.size(); ++i) {
    in[i] = fetch_predicate(warp, instruction.operands[decoded.predicates[i]]);
  }
  for (size_t i = 0; i < decoded.out_predicates.size() && i < decoded.sources.size(); ++i) {
    const auto table = static_cast<uint32_t>(source(instruction, decoded, i).value);
    // A lane is known where its unknown inputs make no difference.
    uint32_t can_be_true = 0, can_be_false = 0;
    for (uint32_t row = 0; row < 8; ++row) {
      uint32_t possible = all_lanes;
      for (uint32_t k = 0; k < 3; ++k) {
        possible &= in[k].unknown | ((row >> (2 - k) & 1) != 0 ? in[k].value : ~in[k].value);
      }
      ((table >> row & 1) != 0 ? can_be_true : can_be_false) |= possible;
    }
    put_predicate(warp, instruction.operands[decoded.out_predicates[i]], {can_be_true, can_be_true & can_be_false},
                  active);
  }
}

void Interpreter::Machine::funnel(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active) {
  const Lanes a = fetch(warp, source(instruction, decoded, 0)), shift = fetch(warp, source(instruction, decoded, 1)),
              c = fetch(warp, source(instruction, decoded, 2));
  const uint32_t most = decoded.wide_type ? 64 : 32;
  const Lanes result = each(a.unknown | shift.unknown | c.unknown, [&](uint32_t lane) -> uint32_t {
    const uint32_t by = decoded.wraps ? shift.v[lane] & (most - 1) : std::min(shift.v[lane], most);
    const uint64_t whole = pair(a, c, lane);
    if (decoded.left) {
      if (decoded.high) return by >= 64 ? 0 : static_cast<uint32_t>(whole << by >> 32);
      return by >= 32 ? 0 : a.v[lane] << by;
    }
    if (decoded.high) {
      if (decoded.is_signed) return static_cast<uint32_t>(static_cast<int32_t>(c.v[lane]) >> std::min(by, 31U));
      return by >= 32 ? 0 : c.v[lane] >> by;
    }
    if (decoded.is_signed) return static_cast<uint32_t>(static_cast<int64_t>(whole) >> std::min(by, 63U));
    return by >= 64 ? 0 : static_cast<uint32_t>(whole >> by);
  });
  put(warp, destination(instruction, decoded), result, active);
}

// P0 = (a compared with b) combined with the first predicate; the second result has the opposite comparison.
void Interpreter::Machine::compare(Warp& warp, const Decoded& decoded, const Instruction& instruction,
                                   uint32_t active) {
  const bool floats = decoded.op == Op::fsetp;
  const Lanes a = fetch(warp, source(instruction, decoded, 0), floats),
              b = fetch(warp, source(instruction, decoded, 1), floats);
  Bits low{0, 0};
  const bool extended = decoded.extended && decoded.predicates.size() > 1;
  if (extended) low = fetch_predicate(warp, instruction.operands[decoded.predicates[1]]);
  Bits result{0, a.unknown | b.unknown | low.unknown};
  Lanes upper_a, upper_b;
  if (decoded.wide_type) {
    upper_a = fetch_high(warp, source(instruction, decoded, 0));
    upper_b = fetch_high(warp, source(instruction, decoded, 1));
    result.unknown |= upper_a.unknown | upper_b.unknown;
  }
  for (uint32_t lane = 0; lane < 32; ++lane) {
    bool less = a.v[lane] < b.v[lane], equal = a.v[lane] == b.v[lane];
    if (floats) {
      less = as_float(a.v[lane]) < as_float(b.v[lane]);
      equal = as_float(a.v[lane]) == as_float(b.v[lane]);
    } else if (decoded.wide_type) {
      const uint64_t left = pair(a, upper_a, lane), right = pair(b, upper_b, lane);
      less = decoded.is_unsigned ? left < right : static_cast<int64_t>(left) < static_cast<int64_t>(right);
      equal = left == right;
    } else if (!decoded.is_unsigned) {
      less = static_cast<int32_t>(a.v[lane]) < static_cast<int32_t>(b.v[lane]);
    }
    bool holds = ordered(decoded.compare, less, equal);
    const bool is_number =
        !floats || (as_float(a.v[lane]) == as_float(a.v[lane]) && as_float(b.v[lane]) == as_float(b.v[lane]));
    if (!is_number && decoded.compare != Compare::t) holds = decoded.unordered;
    if (extended && equal) holds = (low.value >> lane & 1) != 0;
    if (holds) result.value |= uint32_t{1} << lane;
  }
  const Bits other = decoded.predicates.empty() ? Bits{all_lanes, 0}
                                                : fetch_predicate(warp, instruction.operands[decoded.predicates[0]]);
  put_predicate(warp, out_predicate(instruction, decoded), combined(decoded.combine, result, other), active);
  if (decoded.out_predicates.size() > 1) {
    result.value = ~result.value;
    put_predicate(warp, instruction.operands[decoded.out_predicates[1]], combined(decoded.combine, result, other),
                  active);
  }
}

// SEL, and the smaller (predicate true) or larger of two; VIADDMNMX: of a sum and a third operand.
void Interpreter::Machine::select(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active) {
  const bool floats = decoded.op == Op::fmnmx || instruction.opcode == "FSEL";
  Lanes a = fetch(warp, source(instruction, decoded, 0), floats),
        b = fetch(warp, source(instruction, decoded, 1), floats);
  if (instruction.opcode == "VIADDMNMX") {
    for (uint32_t lane = 0; lane < 32; ++lane) a.v[lane] += b.v[lane];
    a.unknown |= b.unknown;
    b = fetch(warp, source(instruction, decoded, 2));
  }
  const Bits choice = decoded.predicates.empty()
                          ? Bits{all_lanes, 0}
                          : fetch_predicate(warp, instruction.operands[decoded.predicates.back()]);
  Lanes result;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    bool first = (choice.value >> lane & 1) != 0;
    if (decoded.op != Op::sel) {
      bool less = decoded.is_unsigned ? a.v[lane] < b.v[lane]
                                      : static_cast<int32_t>(a.v[lane]) < static_cast<int32_t>(b.v[lane]);
      if (floats) less = as_float(a.v[lane]) < as_float(b.v[lane]);
      first = less == first;
    }
    result.v[lane] = first ? a.v[lane] : b.v[lane];
  }
  if (decoded.op == Op::sel) {  // only the chosen one matters
    result.unknown = choice.unknown | (a.unknown & choice.value) | (b.unknown & ~choice.value);
  } else {
    result.unknown = a.unknown | b.unknown | choice.unknown;
  }
  put(warp, destination(instruction, decoded), result, active);
}

namespace {

uint32_t permuted(uint32_t a, uint32_t selector, uint32_t c) {
  const uint64_t bytes = uint64_t{c} << 32 | a;
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t pick = selector >> (4 * i) & 15;
    auto byte = static_cast<uint32_t>(bytes >> (8 * (pick & 7)) & 255);
    if ((pick & 8) != 0) byte = (byte & 0x80) != 0 ? 255 : 0;
    result |= byte << (8 * i);
  }
  return result;
}

uint32_t bit_mask(uint32_t position, uint32_t width) {
  if (position >= 32 || width == 0) return 0;
  const uint32_t ones = width >= 32 ? all_lanes : (uint32_t{1} << width) - 1;
  return ones << position;
}

uint32_t sign_extended(uint32_t value, uint32_t bits, bool is_unsigned) {
  if (bits >= 32) return value;
  if (bits == 0) return 0;
  const uint32_t shift = 32 - bits;
  return is_unsigned ? value << shift >> shift : static_cast<uint32_t>(static_cast<int32_t>(value << shift) >> shift);
}

uint32_t leading_one(uint32_t value, bool is_unsigned, bool as_shift) {
  if (!is_unsigned && static_cast<int32_t>(value) < 0) value = ~value;
  if (value == 0) return all_lanes;
  const auto zeros = static_cast<uint32_t>(std::countl_zero(value));
  return as_shift ? zeros : 31 - zeros;
}

uint32_t reversed(uint32_t value) {
  uint32_t result = 0;
  for (uint32_t i = 0; i < 32; ++i) result |= (value >> i & 1) << (31 - i);
  return result;
}

}  // namespace

void Interpreter::Machine::simple(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active) {
  Lanes in[3];
  uint32_t unknown = 0;
  for (size_t i = 0; i < 3 && i < decoded.sources.size(); ++i) {
    in[i] = fetch(warp, source(instruction, decoded, i));
    if (i == 0 || decoded.op != Op::mov) unknown |= in[i].unknown;  // MOV's second operand is a mask of lanes
  }
  const Lanes result = each(unknown, [&](uint32_t lane) -> uint32_t {
    const uint32_t a = in[0].v[lane], b = in[1].v[lane];
    switch (decoded.op) {
      case Op::prmt:
        return permuted(a, b, in[2].v[lane]);
      case Op::iabs:
        return static_cast<int32_t>(a) < 0 ? 0 - a : a;
      case Op::bmsk:
        return bit_mask(a, b);
      case Op::sgxt:
        return sign_extended(a, b, decoded.is_unsigned);
      case Op::popc:
        return static_cast<uint32_t>(std::popcount(a));
      case Op::flo:
        return leading_one(a, decoded.is_unsigned, instruction.has("SH"));
      case Op::brev:
        return reversed(a);
      default:
        return a;
    }
  });
  put(warp, destination(instruction, decoded), result, active);
  if (decoded.op == Op::mov && decoded.wide_type) {
    put(warp, destination(instruction, decoded), fetch_high(warp, source(instruction, decoded, 0)), active, 1);
  }
}

}  // namespace kiln::timing
