#include <algorithm>
#include <bit>

#include "machine.h"

namespace kiln::timing {
namespace {

// A place in the order of x, then y, then z, as coordinates.
Extents coordinates(uint64_t index, const Extents& extents) {
  return {static_cast<uint32_t>(index % extents[0]), static_cast<uint32_t>(index / extents[0] % extents[1]),
          static_cast<uint32_t>(index / extents[0] / extents[1])};
}

uint32_t lane_mask(const std::string& name, uint32_t lane) {
  const uint32_t own = uint32_t{1} << lane;
  if (name == "SR_EQMASK") return own;
  if (name == "SR_LTMASK") return own - 1;
  if (name == "SR_LEMASK") return own | (own - 1);
  return name == "SR_GTMASK" ? ~(own | (own - 1)) : ~(own - 1);
}

}  // namespace

void Interpreter::Machine::special(Warp& warp, const Decoded& decoded, const Instruction& instruction,
                                   uint32_t active) {
  const Operand& target = destination(instruction, decoded);
  const std::string& name = last_operand(instruction).text;
  Lanes result;
  const auto axis = static_cast<size_t>(name.empty() ? 0 : std::clamp(name.back() - 'X', 0, 2));
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t& value = result.v[lane];
    if (name.starts_with("SR_TID")) value = coordinates(warp.number * uint64_t{32} + lane, launch_.block)[axis];
    if (name.starts_with("SR_CTAID")) value = block_index_[axis];
    if (name == "SR_LANEID") value = lane;
    if (name == "SR_CgaCtaId") value = rank_;
    if (name.ends_with("MASK")) value = lane_mask(name, lane);
  }
  const bool known = name.starts_with("SR_TID") || name.starts_with("SR_CTAID") || name == "SR_LANEID" ||
                     name == "SR_CgaCtaId" || name == "SRZ" || name.ends_with("MASK");
  if (!known) result.unknown = all_lanes;
  put(warp, target, result, active);
  if (decoded.op == Op::cs2r && !instruction.has("32")) {
    result.v.fill(0);
    put(warp, target, result, active, 1);
  }
}

void Interpreter::Machine::vote(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active) {
  Bits in{all_lanes, 0};
  if (!decoded.predicates.empty()) in = fetch_predicate(warp, instruction.operands[decoded.predicates[0]]);
  const bool known = (in.unknown & active) == 0;
  const uint32_t ballot = in.value & active;
  bool holds = ballot != 0;
  if (instruction.has("ALL")) holds = ballot == active;
  if (instruction.has("EQ")) holds = ballot == active || ballot == 0;
  if (decoded.destination >= 0) {
    Lanes result;
    result.v.fill(ballot);
    result.unknown = known ? 0 : all_lanes;
    put(warp, destination(instruction, decoded), result, active);
  }
  for (const uint8_t i : decoded.out_predicates) {
    put_predicate(warp, instruction.operands[i], {holds ? all_lanes : 0, known ? 0 : all_lanes}, active);
  }
}

void Interpreter::Machine::shuffle(Warp& warp, const Decoded& decoded, const Instruction& instruction,
                                   uint32_t active) {
  const Lanes value = fetch(warp, source(instruction, decoded, 0)), by = fetch(warp, source(instruction, decoded, 1)),
              bounds = fetch(warp, source(instruction, decoded, 2));
  Lanes result;
  Bits inside;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t segment = bounds.v[lane] >> 8 & 31, clamp = bounds.v[lane] & 31, offset = by.v[lane] & 31;
    const uint32_t low = lane & segment, high = low | (clamp & ~segment);
    uint32_t from = (offset & ~segment) | low;
    bool valid = true;
    if (instruction.has("UP")) {
      valid = lane >= offset && lane - offset >= high;
      from = lane - offset;
    } else {
      if (instruction.has("DOWN")) from = lane + offset;
      if (instruction.has("BFLY")) from = lane ^ offset;
      valid = from <= high;
    }
    if (!valid) from = lane;
    result.v[lane] = value.v[from & 31];
    if (((value.unknown >> (from & 31) | by.unknown >> lane | bounds.unknown >> lane) & 1) != 0) {
      result.unknown |= uint32_t{1} << lane;
    }
    if (valid) inside.value |= uint32_t{1} << lane;
  }
  inside.unknown = by.unknown | bounds.unknown;
  put(warp, destination(instruction, decoded), result, active);
  for (const uint8_t i : decoded.out_predicates) put_predicate(warp, instruction.operands[i], inside, active);
}

// P2R and R2P: predicates 0 to 6 as bits of a register, those that the mask names.
void Interpreter::Machine::pack_predicates(Warp& warp, const Decoded& decoded, const Instruction& instruction,
                                           uint32_t active) {
  const Lanes value = fetch(warp, source(instruction, decoded, 0)), mask = fetch(warp, source(instruction, decoded, 1));
  Lanes packed;
  packed.unknown = value.unknown | mask.unknown;
  for (uint16_t p = 0; p < true_predicate; ++p) {
    Operand predicate;
    predicate.kind = Operand::Kind::predicate;
    predicate.index = p;
    Bits bits = fetch_predicate(warp, predicate);
    uint32_t named = 0;
    for (uint32_t lane = 0; lane < 32; ++lane) {
      if ((mask.v[lane] >> p & 1) == 0) continue;
      named |= uint32_t{1} << lane;
      packed.v[lane] |= (bits.value >> lane & 1) << p;
      if (decoded.op == Op::r2p) bits.value = (bits.value & ~(uint32_t{1} << lane)) | (value.v[lane] >> p & 1) << lane;
    }
    packed.unknown |= bits.unknown & named;
    bits.unknown = packed.unknown;
    if (decoded.op == Op::r2p) put_predicate(warp, predicate, bits, active & named);
  }
  if (decoded.op == Op::r2p) return;
  for (uint32_t lane = 0; lane < 32; ++lane) packed.v[lane] |= value.v[lane] & ~mask.v[lane];
  put(warp, destination(instruction, decoded), packed, active);
}

}  // namespace kiln::timing
