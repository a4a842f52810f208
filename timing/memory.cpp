#include <algorithm>
#include <bit>

#include "machine.h"

namespace kiln::timing {
namespace {

// True if no bank is asked for two different words.
bool without_conflict(const std::array<uint64_t, 32>& addresses, uint32_t lanes) {
  std::array<uint64_t, 32> words;
  words.fill(~uint64_t{0});
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const uint64_t word = addresses[static_cast<size_t>(std::countr_zero(rest))] / 4;
    if (words[word % 32] != word && words[word % 32] != ~uint64_t{0}) return false;
    words[word % 32] = word;
  }
  return true;
}

// Passes over the 32 banks that the words of a group of lanes need: as many as one bank has different words of.
uint32_t bank_passes(const std::array<uint64_t, 32>& addresses, uint32_t lanes, uint32_t bytes) {
  if (bytes <= 4 && lanes != 0 && without_conflict(addresses, lanes)) return 1;
  std::array<uint64_t, 128> words;
  uint32_t count = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    for (uint32_t byte = 0; byte < bytes; byte += 4) words[count++] = (addresses[lane] + byte) / 4;
  }
  std::sort(words.begin(), words.begin() + count);
  std::array<uint8_t, 32> uses{};
  uint32_t most = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (i > 0 && words[i] == words[i - 1]) continue;
    most = std::max<uint32_t>(most, ++uses[words[i] % 32]);
  }
  return most;
}

// Wide accesses go through in halves or quarters of the warp.
uint32_t wavefronts_of(const std::array<uint64_t, 32>& addresses, uint32_t active, uint32_t bytes) {
  const uint32_t parts = std::max(1U, bytes / 4), lanes = 32 / parts;
  uint32_t total = 0;
  for (uint32_t part = 0; part < parts; ++part) {
    const uint32_t group = lanes == 32 ? all_lanes : ((uint32_t{1} << lanes) - 1) << (part * lanes);
    if ((active & group) != 0) total += bank_passes(addresses, active & group, bytes);
  }
  return std::max(1U, total);
}

}  // namespace

Interpreter::Machine::Addresses Interpreter::Machine::addresses(const Warp& warp, const Operand& operand,
                                                                MemorySpace space) const {
  Addresses found;
  const bool global = space == MemorySpace::global;
  const Lanes& low = warp.registers[operand.base];
  const bool paired = operand.base != zero_register && (operand.wide || (global && !operand.uniform_index));
  const Lanes& high = warp.registers[paired ? operand.base + 1 : zero_register];
  found.unknown = low.unknown | high.unknown;
  uint64_t base = static_cast<uint64_t>(operand.value);
  if (operand.uniform_index && operand.uniform_base != zero_register) {
    const Lanes& uniform = warp.uniform[operand.uniform_base];
    const Lanes& upper = warp.uniform[operand.uniform_base + 1];
    if (((uniform.unknown | (global ? upper.unknown : 0)) & 1) != 0) found.unknown = all_lanes;
    base += uniform.v[0] | (global ? uint64_t{upper.v[0]} << 32 : 0);
  }
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint64_t index = (uint64_t{high.v[lane]} << 32 | low.v[lane]) << operand.shift;
    found.v[lane] = base + index;
    if (!global) found.v[lane] &= 0xffffff;
  }
  return found;
}

uint32_t Interpreter::Machine::access(Warp& warp, const Decoded& decoded, const Instruction& instruction,
                                      uint32_t active) {
  if (decoded.memory < 0) fail(instruction, "has no address");
  const Addresses where = addresses(warp, instruction.operands[decoded.memory], decoded.space);
  if (decoded.space == MemorySpace::global && (decoded.op == Op::store || decoded.op == Op::atomic)) {
    for (uint32_t rest = active & ~where.unknown; rest != 0; rest &= rest - 1) {
      note_stored(instruction, where.v[static_cast<size_t>(std::countr_zero(rest))], decoded.bytes);
    }
  }
  switch (decoded.op) {
    case Op::load:
      load(warp, decoded, instruction, where, active);
      break;
    case Op::store:
      store(warp, decoded, instruction, where, active);
      break;
    case Op::copy:
      return copy(warp, decoded, instruction, where, active);
    default:
      forget(warp, decoded, instruction, active);
  }
  if (decoded.op == Op::matrix_load ||
      decoded.op == Op::matrix_store) {  // every eight lanes give the rows of a matrix of 128 bytes
    const uint32_t matrices = matrices_of(instruction);
    const uint32_t lanes = matrices == 4 ? all_lanes : (uint32_t{1} << (8 * matrices)) - 1;
    return record(warp, where, MemorySpace::shared, 16, active & lanes);
  }
  return record(warp, where, decoded.space, decoded.bytes, active);
}

// Lanes whose predicate operand is false load nothing, and write zeros.
uint32_t Interpreter::Machine::copy(Warp& warp, const Decoded& decoded, const Instruction& instruction,
                                    const Addresses& to, uint32_t active) {
  if (decoded.second_memory < 0) fail(instruction, "has no address");
  uint32_t loads = active;
  for (const uint8_t i : decoded.predicates) {
    const Bits bits = fetch_predicate(warp, instruction.operands[i]);
    loads &= bits.value | bits.unknown;
  }
  const Operand& from = instruction.operands[decoded.second_memory];
  Addresses where = addresses(warp, from, MemorySpace::global);
  if (instruction.has("ZFILL")) {  // the address's last bits are the bytes that are zero
    for (uint64_t& address : where.v) address &= ~uint64_t{decoded.bytes - 1U};
  }
  uint32_t taken = record(warp, where, MemorySpace::global, decoded.bytes, loads);
  if (loops_) return no_access;
  if (taken == no_access) {
    Access nothing;
    nothing.space = Access::Space::global;
    nothing.first_line = static_cast<uint32_t>(warp.path.lines.size());
    taken = static_cast<uint32_t>(warp.path.accesses.size());
    warp.path.accesses.push_back(nothing);
  }
  if ((to.unknown & active) != 0) return taken;
  // Data from L2 meet the banks of shared memory only where they are written.
  uint16_t& wavefronts = warp.path.accesses[taken].wavefronts;
  const auto written = static_cast<uint16_t>(wavefronts_of(to.v, active, decoded.bytes));
  wavefronts = instruction.has("BYPASS") ? written : std::max(wavefronts, written);
  return taken;
}

uint32_t Interpreter::Machine::record(Warp& warp, const Addresses& where, MemorySpace space, uint32_t bytes,
                                      uint32_t active) {
  if (active == 0 || loops_) return no_access;
  Access access;
  access.space = space == MemorySpace::shared  ? Access::Space::shared
                 : space == MemorySpace::local ? Access::Space::local
                                               : Access::Space::global;
  access.known = (where.unknown & active) == 0;
  access.first_line = static_cast<uint32_t>(warp.path.lines.size());
  if (!access.known) {
    ++report.unknown_addresses;
    access.wavefronts = static_cast<uint16_t>(std::max(1U, bytes / 4));
  } else if (space == MemorySpace::local) {
    // A word of all lanes lies together, so that equal offsets are one line.
    std::array<uint64_t, 32> spread = where.v;
    for (uint32_t lane = 0; lane < 32; ++lane) spread[lane] = where.v[lane] / 4 * 128 + lane * 4;
    for (uint32_t part = 0; part < std::max(1U, bytes / 4); ++part) {
      for (uint32_t lane = 0; lane < 32; ++lane) {
        if ((active >> lane & 1) == 0) continue;
        const uint64_t address = spread[lane] + uint64_t{part} * 128;
        const uint32_t sector = uint32_t{1} << (address / 32 % 4);
        const auto first = warp.path.lines.begin() + access.first_line;
        const auto line =
            std::find_if(first, warp.path.lines.end(), [&](const Line& l) { return l.address == address / 128 * 128; });
        if (line != warp.path.lines.end()) {
          line->sectors |= sector;
        } else {
          warp.path.lines.push_back({address / 128 * 128, sector});
        }
      }
    }
    access.wavefronts = static_cast<uint16_t>(warp.path.lines.size() - access.first_line);
  } else {
    access.wavefronts = static_cast<uint16_t>(wavefronts_of(where.v, active, bytes));
    std::array<std::array<uint16_t, 4>, 64> touched{};  // bytes of each sector; a lane touches two lines at most
    for (uint32_t lane = 0; space == MemorySpace::global && lane < 32; ++lane) {
      if ((active >> lane & 1) == 0) continue;
      for (uint64_t at = where.v[lane] / 32; at <= (where.v[lane] + bytes - 1) / 32; ++at) {
        const uint32_t sector = uint32_t{1} << (at % 4);
        auto line = warp.path.lines.end();
        while (line != warp.path.lines.begin() + access.first_line && (line - 1)->address != at / 4 * 128) --line;
        if (line != warp.path.lines.begin() + access.first_line) {
          (line - 1)->sectors |= sector;
        } else {
          line = warp.path.lines.insert(warp.path.lines.end(), {at / 4 * 128, sector}) + 1;
        }
        const uint64_t end = std::min(where.v[lane] + bytes, (at + 1) * 32);
        uint16_t& count = touched[static_cast<size_t>(line - 1 - warp.path.lines.begin()) - access.first_line][at % 4];
        count = static_cast<uint16_t>(count + (end - std::max(where.v[lane], at * 32)));
        (line - 1)->partial = count < 32 ? (line - 1)->partial | sector : (line - 1)->partial & ~sector;
      }
    }
  }
  access.lines = static_cast<uint32_t>(warp.path.lines.size()) - access.first_line;
  warp.path.accesses.push_back(access);
  return static_cast<uint32_t>(warp.path.accesses.size() - 1);
}

bool Interpreter::Machine::word_at(const Warp& warp, MemorySpace space, uint64_t address, uint32_t lane,
                                   uint32_t& word) const {
  if (space == MemorySpace::shared) {
    if (address / 4 >= shared_.value.size() || !shared_.known[address / 4]) return false;
    word = shared_.value[address / 4];
    return true;
  }
  if (space == MemorySpace::local) {
    if (address / 4 >= warp.local.size() || (warp.local[address / 4].unknown >> lane & 1) != 0) return false;
    word = warp.local[address / 4].v[lane];
    return true;
  }
  return launch_.memory && launch_.memory(address / 4 * 4, word);
}

void Interpreter::Machine::load(Warp& warp, const Decoded& decoded, const Instruction& instruction,
                                const Addresses& where, uint32_t active) {
  // STRONG: what other blocks write meanwhile.
  const bool is_data = decoded.space == MemorySpace::global;
  const bool nothing_known = is_data && (!launch_.memory || instruction.has("STRONG"));
  for (uint32_t part = 0; part < std::max(1U, decoded.bytes / 4U); ++part) {
    Lanes result;
    result.unknown = nothing_known ? all_lanes : where.unknown;
    for (uint32_t lane = 0; lane < 32 && !nothing_known; ++lane) {
      if ((active & ~where.unknown) >> lane & 1) {
        const uint64_t address = where.v[lane] + uint64_t{4} * part;
        uint32_t word = 0;
        if (!word_at(warp, decoded.space, address, lane, word)) {
          result.unknown |= uint32_t{1} << lane;
          continue;
        }
        if (decoded.bytes < 4) {
          const uint32_t bits = decoded.bytes * 8U;
          word = word >> (address % 4 * 8) & ((uint32_t{1} << bits) - 1);
          if (decoded.sign_extends)
            word = static_cast<uint32_t>(static_cast<int32_t>(word << (32 - bits)) >> (32 - bits));
        }
        result.v[lane] = word;
      }
    }
    put(warp, destination(instruction, decoded), result, active, part);
  }
}

void Interpreter::Machine::store(Warp& warp, const Decoded& decoded, const Instruction& instruction,
                                 const Addresses& where, uint32_t active) {
  if (decoded.space == MemorySpace::global) return;  // what a kernel writes there is data
  const Operand& value = source(instruction, decoded, 0);
  for (uint32_t part = 0; part < std::max(1U, decoded.bytes / 4U); ++part) {
    const Lanes lanes = fetch_plain(warp, value, part);
    for (uint32_t lane = 0; lane < 32; ++lane) {
      if ((active >> lane & 1) == 0 || (where.unknown >> lane & 1) != 0) continue;
      const uint64_t address = where.v[lane] + uint64_t{4} * part, word = address / 4;
      const uint32_t shift = decoded.bytes < 4 ? address % 4 * 8 : 0;
      const uint32_t mask = (decoded.bytes < 4 ? (uint32_t{1} << 8 * decoded.bytes) - 1 : all_lanes) << shift;
      const bool is_known = (lanes.unknown >> lane & 1) == 0, is_whole = mask == all_lanes;
      if (decoded.space == MemorySpace::shared && word < shared_.value.size()) {
        shared_.value[word] = (shared_.value[word] & ~mask) | (lanes.v[lane] << shift & mask);
        shared_.known[word] = is_known && (is_whole || shared_.known[word]);
      }
      if (decoded.space == MemorySpace::local && word < warp.local.size()) {
        Lanes& target = warp.local[word];
        target.v[lane] = (target.v[lane] & ~mask) | (lanes.v[lane] << shift & mask);
        if (!is_known) target.unknown |= uint32_t{1} << lane;
        if (is_known && is_whole) target.unknown &= ~(uint32_t{1} << lane);
      }
    }
  }
}

void Interpreter::Machine::note_stored(const Instruction& instruction, uint64_t address, uint64_t bytes) {
  AddressRange& range = stored[static_cast<size_t>(&instruction - sass_.instructions.data())];
  const bool first = range.begin == range.end;
  range = {first ? address : std::min(range.begin, address), std::max(range.end, address + bytes)};
}

void Interpreter::Machine::load_constant(Warp& warp, const Decoded& decoded, const Instruction& instruction,
                                         uint32_t active) {
  const Operand& from = source(instruction, decoded, 0);
  if (from.kind != Operand::Kind::constant) fail(instruction, "reads no constant bank");
  Lanes index;
  if (from.uniform_index) {
    const Lanes& uniform = warp.uniform[from.uniform_base];
    index.v.fill(uniform.v[0]);
    index.unknown = (uniform.unknown & 1) != 0 ? all_lanes : 0;
  } else {
    index = warp.registers[from.base];
  }
  for (uint32_t part = 0; part < std::max(1U, decoded.bytes / 4U); ++part) {
    Lanes result;
    result.unknown = index.unknown;
    for (uint32_t lane = 0; lane < 32; ++lane) {
      bool known = decoded.bytes >= 4;
      const int64_t at = from.value + int64_t{4} * part + static_cast<int32_t>(index.v[lane]);
      if (known) result.v[lane] = constant(from.bank, at, known);
      if (!known) result.unknown |= uint32_t{1} << lane;
    }
    put(warp, destination(instruction, decoded), result, active, part);
  }
}

}  // namespace kiln::timing
