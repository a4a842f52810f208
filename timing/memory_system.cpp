#include "memory_system.h"

#include <algorithm>
#include <bit>

#include "kiln/timing/trace.h"

namespace kiln::timing {
namespace {

constexpr uint64_t ways = 8;

uint64_t mixed(uint64_t value) {
  value ^= value >> 33;
  value *= 0xff51afd7ed558ccd;
  return value ^ value >> 29;
}

// The rate of one SM: no more than L2 gives it, however few others ask.
double dram_bytes_per_cycle(const Card& card, uint32_t busy_sms) {
  const double all = card.dram_gbs * 1000.0 / card.clock_mhz;
  return std::min<double>(card.l2_bytes_per_clock, all / (busy_sms > 0 ? busy_sms : card.sms));
}

}  // namespace

MemorySystem::MemorySystem(const Card& card, const ReplaySetup& setup)
    : card_(card),
      dram_(setup.dram),
      local_dram_(setup.local_dram),
      bulk_dram_(setup.bulk_dram),
      trace_(setup.trace),
      first_wave_(setup.first_wave),
      in_l2_(setup.in_l2),
      sets_(std::max<uint64_t>(1, setup.l1_bytes / line_bytes / ways)),
      to_l2_(card.l2_bytes_per_clock),
      to_dram_(dram_bytes_per_cycle(card, setup.busy_sms)),
      from_dram_(dram_bytes_per_cycle(card, setup.busy_sms)) {
  entries_.resize(sets_ * ways);
}

// The line's place, that of the line unused for longest if it is not there.
MemorySystem::Entry& MemorySystem::entry_of(uint64_t line, uint64_t now) {
  Entry* first = &entries_[mixed(line / line_bytes) % sets_ * ways];
  Entry* oldest = first;
  for (Entry* entry = first; entry != first + ways; ++entry) {
    if (entry->line == line) {
      entry->used = now;
      return *entry;
    }
    if (entry->used < oldest->used) oldest = entry;
  }
  *oldest = {line, now, 0, 0};
  return *oldest;
}

uint64_t MemorySystem::pass(bool dram, uint64_t now, uint64_t bytes) {
  Throughput& queue = dram ? to_dram_ : to_l2_;
  const uint64_t passed = queue.pass(now, bytes);
  if (trace_ != nullptr) trace_->pass(dram, queue.latest().first, queue.latest().second, bytes);
  return passed;
}

uint32_t MemorySystem::share_of_dram(uint64_t line) const {
  const auto next = std::upper_bound(dram_.begin(), dram_.end(), line,
                                     [](uint64_t address, const DramShare& share) { return address < share.begin; });
  return (next - 1)->share;
}

// A sector that a block had from DRAM is in L2. Each block draws anew, because the share is that of the sectors of a
// block.
uint32_t MemorySystem::sectors_from_dram(uint32_t block, uint64_t line, uint32_t sectors, bool local) {
  const uint32_t share = local ? local_dram_ * (DramShare::all / 256) : share_of_dram(line);
  uint32_t drawn = 0;
  const uint32_t by = local ? 0 : block;
  for (uint32_t s = 0; s < 4; ++s) drawn |= mixed(mixed(line + s) + by) % DramShare::all < share ? 1U << s : 0;
  if (local || (drawn & sectors) == 0) return drawn & sectors;
  uint32_t& brought = brought_[line ^ uint64_t{block} << 48];
  const uint32_t lacking = drawn & sectors & ~brought;
  brought |= sectors;
  return lacking;
}

// From L2, or from DRAM where L2 lacks it: which, is drawn by the address.
uint64_t MemorySystem::fetch(uint64_t now, uint32_t block, uint64_t line, uint32_t sectors, bool local) {
  uint64_t there = now;
  const uint32_t lacking = sectors_from_dram(block, line, sectors, local);
  for (uint32_t s = 0; s < 4; ++s) {
    if ((sectors >> s & 1) == 0) continue;
    ++l2_sectors_;
    const uint64_t passed = pass(false, now, sector_bytes);
    uint64_t arrives = passed + card_.l2_latency;
    if ((lacking >> s & 1) != 0) {
      dram_read_ += sector_bytes;
      pass(true, passed, sector_bytes);
      arrives = from_dram_.pass(passed, sector_bytes) + card_.dram_latency;
    }
    if (!local && block - 1 < first_wave_) arrives = arrival_in_first_wave(line + sector_bytes * s, passed, arrives);
    there = std::max(there, arrives);
  }
  return there;
}

// All SMs begin at the same time, and their blocks ask for the same data at the same time. So a sector that this SM has
// not had yet is on its way from DRAM, as this SM's own request or as another's.
uint64_t MemorySystem::arrival_in_first_wave(uint64_t sector, uint64_t passed, uint64_t arrives) {
  if (const auto known = first_.find(sector / 64); known != first_.end()) return std::max(arrives, known->second);
  if (!meets(in_l2_, sector, sector + sector_bytes))
    arrives = std::max(arrives, from_dram_.begin(passed) + card_.dram_latency);
  return first_[sector / 64] = arrives;
}

uint64_t MemorySystem::load(uint64_t now, uint32_t block, const Access& access, const Line* lines, uint64_t offset,
                            bool bypasses) {
  uint64_t there = now;
  const bool local = access.space == Access::Space::local;
  for (uint32_t i = 0; i < access.lines; ++i) {
    const uint64_t line = lines[i].address + offset;
    if (bypasses) {
      bypassing_sectors_ += static_cast<uint64_t>(std::popcount(lines[i].sectors));
      there = std::max(there, fetch(now, block, line, lines[i].sectors, local));
      continue;
    }
    l1_sectors_ += static_cast<uint64_t>(std::popcount(lines[i].sectors));
    Entry& entry = entry_of(line, now);
    const uint32_t lacking = lines[i].sectors & ~entry.sectors;
    if (lacking != 0) {
      entry.sectors |= lacking;
      entry.ready = std::max(entry.ready, fetch(now, block, line, lacking, local));
    }
    there = std::max(there, entry.ready);
  }
  return there;
}

void MemorySystem::store(uint64_t now, const Access& access, const Line* lines, uint64_t offset, bool stays) {
  for (uint32_t i = 0; i < access.lines; ++i) {
    const uint64_t line = lines[i].address + offset;
    const auto bytes_of = [](uint32_t sectors) { return sector_bytes * static_cast<uint64_t>(std::popcount(sectors)); };
    const uint64_t bytes = bytes_of(lines[i].sectors);
    written_ += bytes;
    const uint64_t passed = pass(false, now, bytes + (card_.partial_sectors - 1) * bytes_of(lines[i].partial));
    uint64_t to_dram = bytes * local_dram_ / 256;
    if (stays) {
      entry_of(line, now).sectors |= lines[i].sectors;
    } else {
      // L2 gathers what is stored into a sector piece by piece.
      uint32_t& stored = stored_[line];
      to_dram = bytes_of(lines[i].sectors & ~stored);
      stored |= lines[i].sectors;
    }
    if (to_dram == 0) continue;
    dram_written_ += to_dram;
    pass(true, passed, to_dram);
  }
}

// Blocks that run at the same time ask for the same data at the same time, so all of them wait for DRAM.
uint64_t MemorySystem::load_in_bulk(uint64_t now, uint64_t bytes) {
  bulk_bytes_ += bytes;
  const uint64_t passed = pass(false, now, bytes), fresh = bytes * bulk_dram_ / 256;
  if (fresh == 0) return passed + card_.l2_latency + card_.bulk_latency;
  dram_read_ += fresh;
  pass(true, now, fresh);
  return std::max(passed, from_dram_.pass(now, fresh)) + card_.dram_latency + card_.bulk_latency;
}

uint64_t MemorySystem::store_in_bulk(uint64_t now, uint64_t bytes) {
  written_ += bytes;
  dram_written_ += bytes;
  pass(true, now, bytes);
  return pass(false, now, bytes);
}

void MemorySystem::count(ReplayResult& result) const {
  result.bulk_bytes = bulk_bytes_;
  result.l1_sectors = l1_sectors_;
  result.l2_sectors = l2_sectors_;
  result.bypassing_sectors = bypassing_sectors_;
  result.dram_bytes_read = dram_read_;
  result.bytes_written = written_;
  result.dram_bytes_written = dram_written_;
  result.l2_busy = to_l2_.busy();
  result.dram_busy = to_dram_.busy();
}

}  // namespace kiln::timing
