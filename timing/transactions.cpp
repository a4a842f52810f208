// Barriers in shared memory that count arrivals and bytes (mbarriers), copies in bulk that complete them, and clusters.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "kiln/base/error.h"
#include "machine.h"

namespace kiln::timing {
namespace {

uint64_t mixed(uint64_t value, uint64_t with) {
  value = (value ^ with) * 0x9e3779b97f4a7c15;
  return value ^ value >> 29;
}

// UTMALDG.2D; 0 if it does not say.
uint32_t dimensions_of(const Instruction& instruction) {
  for (uint32_t dimensions = 1; dimensions <= 5; ++dimensions) {
    if (instruction.has(fmt::format("{}D", dimensions))) return dimensions;
  }
  return 0;
}

constexpr uint32_t initial = 0x100000;  // SYNCS.EXCH writes twice what is left of it for arrivals

}  // namespace

uint32_t Interpreter::Machine::transact(Warp& warp, const Decoded& decoded, const Instruction& instruction,
                                        uint32_t active) {
  if (decoded.op == Op::bulk_copy) return copy_in_bulk(warp, decoded, instruction);
  if (decoded.memory < 0) fail(instruction, "has no address");
  switch (decoded.phase) {
    case Phase::arrive:
      return arrive_at(warp, decoded, instruction, active);
    case Phase::wait:
      return wait_for(warp, decoded, instruction, active);
    case Phase::init:
      return make_barrier(warp, decoded, instruction, active);
    default:
      return no_access;
  }
}

// SYNCS.EXCH.64 makes a barrier.
uint32_t Interpreter::Machine::make_barrier(Warp& warp, const Decoded& decoded, const Instruction& instruction,
                                            uint32_t active) {
  const Addresses where = addresses(warp, instruction.operands[decoded.memory], MemorySpace::shared);
  const Lanes value = fetch(warp, source(instruction, decoded, 0));
  const int lane = std::countr_zero(active);
  if (((where.unknown | value.unknown) >> lane & 1) != 0) fail(instruction, "makes a barrier that is not known");
  const auto [place, added] = phases_.try_emplace(static_cast<uint32_t>(where.v[lane]));
  PhaseBarrier& barrier = place->second;
  if (added) barrier.number = static_cast<uint16_t>(phases_.size() - 1);
  barrier.count = barrier.pending = initial - (value.v[lane] >> 1);
  if (barrier.count == 0 || barrier.count >= initial) fail(instruction, "makes a barrier without arrivals");
  Transaction made;
  made.barrier = barrier.number;
  made.arrivals = barrier.count;
  return note(warp, made);
}

PhaseBarrier& Interpreter::Machine::barrier_at(const Instruction& instruction, uint64_t address) {
  const auto found = phases_.find(static_cast<uint32_t>(address));
  if (found == phases_.end()) fail(instruction, fmt::format("uses a barrier at {:#x} that nobody has made", address));
  return found->second;
}

uint32_t Interpreter::Machine::arrive_at(Warp& warp, const Decoded& decoded, const Instruction& instruction,
                                         uint32_t active) {
  const Operand& operand = instruction.operands[decoded.memory];
  const Addresses where = addresses(warp, operand, MemorySpace::shared);
  const Lanes given = fetch(warp, source(instruction, decoded, 0));
  Lanes token;
  Transaction arrival;
  arrival.kind = Transaction::Kind::arrive;
  if (instruction.has("A0TX")) fail(instruction, "completes bytes by itself, which is not known here");
  const bool counts_given = instruction.has("ART0"), expects = !counts_given && !instruction.has("A1T0");
  const uint32_t first = static_cast<uint32_t>(std::countr_zero(active));
  for (uint32_t lane = first; lane < 32; ++lane) {
    if ((active >> lane & 1) == 0) continue;
    if (((where.unknown | given.unknown) >> lane & 1) != 0) fail_for_data(instruction);
    if (where.v[lane] != where.v[first]) fail(instruction, "arrives at several barriers of a block at once");
    const uint32_t upper =
        operand.uniform_index && operand.uniform_base != zero_register ? warp.uniform[operand.uniform_base].v[0] : 0;
    arrival.remote = arrival.remote || (warp.registers[operand.base].v[lane] + upper) >> 24 != rank_;
    arrival.arrivals += counts_given ? given.v[lane] : instruction.has("A0TR") ? 0 : 1;
    if (expects) arrival.bytes += given.v[lane];
  }
  if (!loops_) {
    PhaseBarrier& barrier = barrier_at(instruction, where.v[first]);
    if (barrier.pending == 0) complete(barrier);
    if (barrier.pending < arrival.arrivals) fail(instruction, "arrives more often than its barrier counts");
    token.v.fill(static_cast<uint32_t>(barrier.phase & 1) << 31);
    arrival.barrier = barrier.number;
    barrier.pending -= arrival.arrivals;
    barrier.expected += arrival.bytes;
    if (barrier.expected == 0 && barrier.loads.empty()) complete(barrier);
  }
  put(warp, destination(instruction, decoded), Lanes{}, active);
  put(warp, destination(instruction, decoded), token, active, 1);
  return note(warp, arrival);
}

// The token of an arrival and the parity that is given have the phase in their upper bit. Nothing is noted
// of tries that fail: the threads try again when others have gone on.
uint32_t Interpreter::Machine::wait_for(Warp& warp, const Decoded& decoded, const Instruction& instruction,
                                        uint32_t active) {
  Transaction wait;
  wait.kind = Transaction::Kind::wait;
  if (!loops_) {
    const Addresses where = addresses(warp, instruction.operands[decoded.memory], MemorySpace::shared);
    const Lanes parity = fetch(warp, source(instruction, decoded, 0));
    const int lane = std::countr_zero(active);
    if (((where.unknown | parity.unknown) >> lane & 1) != 0) fail_for_data(instruction);
    PhaseBarrier& barrier = barrier_at(instruction, where.v[lane]);
    complete(barrier);
    wait.barrier = barrier.number;
    wait.phase = barrier.phase;
    if ((barrier.phase & 1) == parity.v[lane] >> 31) return phase_lacks;
  }
  for (const uint8_t i : decoded.out_predicates) {
    put_predicate(warp, instruction.operands[i], {all_lanes, 0}, active);
  }
  return note(warp, wait);
}

// Ends a phase whose arrivals and copies are there: copies of unknown size share what is expected.
void Interpreter::Machine::complete(PhaseBarrier& barrier, bool at_end) {
  const bool ends = barrier.pending == 0 && (barrier.expected == 0 || !barrier.loads.empty());
  if (!ends && !at_end) return;
  uint64_t known = 0, shares = 0;
  for (const auto& [warp, place] : barrier.loads) {
    const Transaction& load = warps_[warp].path.transactions[place];
    known += load.bytes * load.receivers;
    if (load.bytes == 0) shares += load.receivers;
  }
  if (shares == 0 && known != barrier.expected && !at_end) {
    throw Error(ErrorCode::unsupported, fmt::format("{}: copies bring {} bytes to barrier {}, which expects {}",
                                                    sass_.kernel, known, barrier.number, barrier.expected));
  }
  for (const auto& [warp, place] : barrier.loads) {
    Transaction& load = warps_[warp].path.transactions[place];
    if (load.bytes == 0) load.bytes = (barrier.expected - std::min(known, barrier.expected)) / shares;
  }
  ++barrier.phase;
  barrier.pending = barrier.count;
  barrier.expected = 0;
  barrier.loads.clear();
}

uint32_t Interpreter::Machine::uniform(const Warp& warp, const Instruction& instruction, uint32_t index) const {
  if (index >= zero_register) return 0;
  if ((warp.uniform[index].unknown & 1) != 0) fail(instruction, "copies what is not known");
  return warp.uniform[index].v[0];
}

// UTMALDG [to, barrier, coordinates], [map]; UTMASTG [from, coordinates], [map]; UBLKCP.S.G [to, barrier], [from],
// size; UBLKCP.G.S [to], [from], size. The brackets name the first of the registers.
uint32_t Interpreter::Machine::copy_in_bulk(Warp& warp, const Decoded& decoded, const Instruction& instruction) {
  if (decoded.memory < 0 || decoded.second_memory < 0) fail(instruction, "has no address");
  const uint16_t own = instruction.operands[decoded.memory].uniform_base;
  const uint16_t other = instruction.operands[decoded.second_memory].uniform_base;
  const auto at = [&](uint32_t index) { return uniform(warp, instruction, index); };
  Transaction copy;
  const bool plain = instruction.opcode == "UBLKCP";
  const bool loads = plain ? instruction.has("S") && instruction.modifiers[0] == "S" : instruction.opcode == "UTMALDG";
  copy.kind = loads ? Transaction::Kind::load : Transaction::Kind::store;
  const uint64_t address = at(other) | uint64_t{at(other + 1U)} << 32;
  copy.data = mixed(address, 0);
  if (plain) {
    if (instruction.modifiers.size() < 2 || instruction.modifiers[0] == instruction.modifiers[1] ||
        instruction.has("MULTICAST")) {
      fail(instruction, "copies between blocks of a cluster, which is not replayed");
    }
    copy.bytes = uint64_t{at(source(instruction, decoded, 0).index)} * 16;
    copy.address = address;
    if (!loads) note_stored(instruction, at(own) | uint64_t{at(own + 1U)} << 32, copy.bytes);
  } else {
    const uint32_t dimensions = dimensions_of(instruction);
    for (uint32_t i = 0; i < dimensions; ++i) copy.data = mixed(copy.data, at(own + (loads ? 2U : 1U) + i));
    uint32_t bytes = 0;
    if (launch_.box_bytes && launch_.box_bytes(address, bytes)) copy.bytes = bytes;
    if (instruction.has("MULTICAST")) {
      const uint32_t mask = at(source(instruction, decoded, 0).index) >> 16;
      copy.receivers = static_cast<uint8_t>(std::max(1, std::popcount(mask)));
    }
  }
  if (!loads && copy.bytes == 0) ++report.unknown_addresses;
  if (loops_) return no_access;
  const uint32_t place = note(warp, copy);
  if (loads) {
    PhaseBarrier& barrier = barrier_at(instruction, at(own + 1U) & 0xffffff);
    warp.path.transactions[place].barrier = barrier.number;
    barrier.loads.emplace_back(warp.number, place);
    ++loads_asked_;
  }
  return place;
}

uint32_t Interpreter::Machine::note(Warp& warp, const Transaction& transaction) {
  if (loops_) return no_access;
  warp.path.transactions.push_back(transaction);
  return static_cast<uint32_t>(warp.path.transactions.size() - 1);
}

void Interpreter::Machine::elect(Warp& warp, const Decoded& decoded, const Instruction& instruction, uint32_t active) {
  const uint32_t lowest = active & (0 - active);
  Lanes lane;
  lane.v.fill(static_cast<uint32_t>(std::countr_zero(active)));
  put(warp, destination(instruction, decoded), lane, active);
  put_predicate(warp, out_predicate(instruction, decoded), {lowest, 0}, active);
}

}  // namespace kiln::timing
