#include "kiln/timing/time_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>

#include "block_paths.h"
#include "dram_shares.h"
#include "kiln/base/error.h"

namespace kiln::timing {
namespace {

template <class Value>
constexpr Value up(Value value, uint32_t unit) {
  return (value + unit - 1) / unit * unit;
}

uint64_t shared_of_block(const KernelFacts& facts, const Launch& launch, const Card& card) {
  const uint64_t own = uint64_t{facts.shared_bytes} + launch.dynamic_shared_bytes;
  return up(own, 128) + card.shared_reserve;
}

// Bytes of L1 that remain beside the smallest split that holds the resident blocks.
uint32_t l1_bytes(const Card& card, uint64_t shared) {
  uint32_t taken = card.carveout_kb.back();
  for (const uint32_t kb : card.carveout_kb) {
    if (kb * 1024 >= shared) taken = std::min(taken, kb);
  }
  return card.l1_bytes - std::min(card.l1_bytes, taken * 1024);
}

std::vector<std::pair<std::string, double>> units_of(const ReplayResult& result) {
  const auto cycles = static_cast<double>(std::max<uint64_t>(1, result.passed));
  const auto share = [&](uint64_t busy, int parts) { return static_cast<double>(busy) / parts / cycles; };
  std::vector<std::pair<std::string, double>> units = {{"issue", share(result.issued, 4)}};
  for (size_t p = 0; p < pipe_count; ++p) {
    const Pipe pipe = static_cast<Pipe>(p);
    if (pipe == Pipe::memory || pipe == Pipe::none) continue;
    units.emplace_back(to_string(pipe), share(result.pipe_busy[p], 4));
  }
  units.emplace_back("load/store unit", share(result.lsu_busy, 1));
  units.emplace_back("instruction cache", share(result.fetch_busy, 1));
  units.emplace_back("L2", share(result.l2_busy, 1));
  units.emplace_back("DRAM", share(result.dram_busy, 1));
  std::stable_sort(units.begin(), units.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return units;
}

std::string bound_of(const ReplayResult& result, const std::pair<std::string, double>& busiest) {
  const auto most = std::max_element(result.stalled.begin(), result.stalled.end()) - result.stalled.begin();
  const double all =
      1 + static_cast<double>(std::accumulate(result.stalled.begin(), result.stalled.end(), uint64_t{0}));
  return fmt::format("{} {:.0f}%, waits for {} {:.0f}%", busiest.first, 100 * busiest.second,
                     to_string(static_cast<Stall>(most)), 100 * static_cast<double>(result.stalled[most]) / all);
}

}  // namespace

Occupancy occupancy(const KernelFacts& facts, const Launch& launch, const Card& card) {
  const uint32_t warps = launch.warps();
  const uint32_t of_warp = up(std::max(1, facts.registers) * 32U, 256);
  const std::pair<uint32_t, const char*> limits[] = {
      {card.blocks, "blocks"},
      {card.warps / warps, "warps"},
      {card.registers / 4 / of_warp * 4 / warps, "registers"},
      {static_cast<uint32_t>(card.shared_bytes / std::max<uint64_t>(1, shared_of_block(facts, launch, card))),
       "shared memory"}};
  const auto least = std::min_element(std::begin(limits), std::end(limits),
                                      [](const auto& a, const auto& b) { return a.first < b.first; });
  if (least->first == 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("no block of {} fits on an SM of {}: too many {}", facts.name, card.name, least->second));
  }
  return {least->first, least->second};
}

namespace {

class Model {
 public:
  Model(const Sass& sass, const KernelFacts& facts, const Launch& launch, const Card& card)
      : sass_(sass), launch_(launch), card_(card), interpreter_(sass, facts, launch) {
    time_.occupancy = occupancy(facts, launch, card);
    l1_bytes_ = l1_bytes(card, time_.occupancy.blocks * shared_of_block(facts, launch, card));
    local_dram_ = local_dram(facts);
  }

  ModelledTime run(const ModelOptions& options) {
    trace_ = options.trace;
    const double share = static_cast<double>(launch_.blocks()) / card_.sms;  // blocks of an SM
    const auto whole = static_cast<uint64_t>(std::ceil(share));
    const auto resident = static_cast<uint32_t>(std::min<uint64_t>(time_.occupancy.blocks, whole));
    const uint64_t budget = std::max<uint64_t>(1, options.instructions / launch_.warps() / resident);  // of a warp
    const std::optional<LoopProfile> profile = profile_of_warp();
    const bool is_long = profile && profile->instructions > budget;
    find_stored(is_long);
    bulk_dram_ = fresh_in_bulk();
    std::optional<double> cycles;
    if (is_long) cycles = of_cut_blocks(*profile, resident, whole, budget);
    if (!cycles) cycles = of_whole_blocks(resident, share, options);
    time_.waves = share / time_.occupancy.blocks;
    time_.seconds = *cycles / (card_.clock_mhz * 1e6) + card_.launch_ns * 1e-9;
    time_.units = units_of(time_.replayed);
    time_.bound = bound_of(time_.replayed, time_.units.front());
    time_.code_bytes = static_cast<uint32_t>(sass_.instructions.size() * instruction_bytes);
    time_.report = interpreter_.report();
    time_.unclassified = unclassified(sass_, card_);
    return std::move(time_);
  }

 private:
  // Finds the memory that the launch stores to: the stores of the first, the middle and the last block span those of
  // all. Whole paths are followed if they will be replayed, else only those of the first warps.
  void find_stored(bool is_long) {
    try {
      for (const uint64_t block : {uint64_t{0}, middle(), launch_.blocks() - 1}) {
        if (is_long) {
          (void)interpreter_.profile(block);
        } else {
          (void)paths_.of(block, {});
        }
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported) throw;
      return;
    }
    time_.stored = interpreter_.stored();
    in_l2_ = without(launch_.in_l2, time_.stored);
  }

  // Two replays, of one resident set and of several, give the time of a block in the steady state.
  double of_whole_blocks(uint32_t resident, double share, const ModelOptions& options) {
    find_dram_shares({});
    const auto whole = static_cast<uint64_t>(std::ceil(share));
    const uint64_t sets = options.instructions / static_cast<uint64_t>(work_of_block(middle(), {})) / resident;
    const auto wanted = static_cast<uint32_t>(std::max<uint64_t>(3, sets) * resident);
    if (whole <= uint64_t{wanted} + resident) {
      return static_cast<double>(of_blocks(resident, static_cast<uint32_t>(whole), {}).passed);
    }
    const auto first = static_cast<double>(of_blocks(resident, resident, {}).passed);
    const auto cycles = static_cast<double>(of_blocks(resident, wanted, {}).passed);
    return cycles + (cycles - first) / (wanted - resident) * (share * mean_work({}) - wanted);
  }

  // If not even one resident set can be replayed: its paths end after some turns of a loop, and all that is left goes
  // on like the later half of those turns.
  std::optional<double> of_cut_blocks(const LoopProfile& profile, uint32_t resident, uint64_t whole, uint64_t budget) {
    const Loop* loop = nullptr;
    for (const Loop& other : profile.loops) {
      const bool fits = other.turns >= 2 * fewest_turns && other.instructions_of_turn() * fewest_turns <= budget &&
                        other.first <= budget;
      if (fits && (loop == nullptr || other.last - other.first > loop->last - loop->first)) loop = &other;
    }
    if (loop == nullptr) return {};
    const auto turns = static_cast<uint64_t>(static_cast<double>(budget) / loop->instructions_of_turn());
    const Cut late{loop->branch, std::clamp(turns, fewest_turns, loop->turns)}, early{loop->branch, late.turns / 2};
    const uint64_t early_instructions = instructions_of_warp(early), late_instructions = instructions_of_warp(late);
    find_dram_shares(late);
    time_.path_share = static_cast<double>(late_instructions) / static_cast<double>(profile.instructions);
    const double left = static_cast<double>(profile.instructions - late_instructions) /
                        static_cast<double>(late_instructions - early_instructions);
    const auto of_set = [&](uint32_t blocks) {
      const auto before = static_cast<double>(of_blocks(blocks, blocks, early).passed);
      const auto after = static_cast<double>(of_blocks(blocks, blocks, late).passed);
      return after + (after - before) * left;
    };
    const uint64_t full = whole / resident;
    first_wave_ = full == 1;  // otherwise one set stands for all
    const auto rest = static_cast<uint32_t>(whole - full * resident);
    const auto sets = static_cast<double>(full);
    const double last = rest == 0 ? 0 : of_set(rest) + card_.block_cycles;
    const double all = sets * of_set(resident) + (sets - 1) * card_.block_cycles + last;
    return is_small_for(resident) ? all : all * mean_work(late);
  }

  // Nothing if the warp's way depends on the others.
  std::optional<LoopProfile> profile_of_warp() {
    try {
      return interpreter_.profile(middle());
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported) throw;
      return {};
    }
  }

  void find_dram_shares(const Cut& cut) {
    const uint64_t beside = uint64_t{time_.occupancy.blocks} * card_.sms;
    const LoadingLaunch loading{sass_, launch_, beside, card_.l2_bytes, in_l2_, middle()};
    dram_ = dram_shares(loading, interpreter_, paths_, cut);
    time_.dram_share = dram_.all;
  }

  // Share, in 1/256, of the bytes copied in bulk that come from DRAM. The same data count once, and data that a
  // previous launch has left in L2 do not count. Looks at the first copies of the blocks that run at the same time.
  uint32_t fresh_in_bulk() {
    constexpr uint64_t first_loads = 32;
    const bool copies = std::any_of(sass_.instructions.begin(), sass_.instructions.end(), [](const Instruction& code) {
      return code.opcode == "UTMALDG" || code.opcode == "UBLKCP";
    });
    if (!copies) return 256;
    const uint64_t blocks = std::min<uint64_t>(launch_.blocks(), uint64_t{card_.sms} * time_.occupancy.blocks);
    std::set<uint64_t> data;
    uint64_t all = 0, fresh = 0;
    for (uint64_t i = 0; i < blocks; ++i) {
      const BlockPath path = interpreter_.run(i, {0, 0, first_loads});
      for (const WarpPath& warp : path.warps) {
        for (const Transaction& asked : warp.transactions) {
          if (asked.kind != Transaction::Kind::load) continue;
          all += asked.bytes;
          const bool is_left = meets(in_l2_, asked.address, asked.address + asked.bytes);
          if (data.insert(asked.data).second && !is_left) fresh += asked.bytes;
        }
      }
      if (all == 0) return 256;
    }
    return static_cast<uint32_t>((fresh * 256 + all - 1) / all);
  }

  // L2 keeps as much as it holds of the local memory of all SMs. In 1/256.
  uint32_t local_dram(const KernelFacts& facts) const {
    const uint64_t blocks = std::min<uint64_t>(launch_.blocks(), uint64_t{card_.sms} * time_.occupancy.blocks);
    const uint64_t all = blocks * launch_.warps() * 32 * facts.local_bytes;
    return all <= card_.l2_bytes ? 0 : static_cast<uint32_t>((all - card_.l2_bytes) * 256 / all);
  }

  uint64_t instructions_of_warp(const Cut& cut) { return paths_.of(middle(), cut)->warps[0].executed.size(); }

  uint64_t index_of(const Extents& at) const {
    return (at[2] * uint64_t{launch_.grid[1]} + at[1]) * launch_.grid[0] + at[0];
  }

  uint64_t middle() const {
    return index_of({(launch_.grid[0] - 1) / 2, (launch_.grid[1] - 1) / 2, (launch_.grid[2] - 1) / 2});
  }

  // Instructions of a block in the mean, of those of one in the middle: the last ones of each axis may have less to do.
  double mean_work(const Cut& cut) {
    double sum = 0;
    for (uint32_t edges = 0; edges < 8; ++edges) {
      Extents at{};
      double blocks = 1;
      for (size_t axis = 0; axis < at.size(); ++axis) {
        const uint32_t last = launch_.grid[axis] - 1;
        const bool at_edge = (edges >> axis & 1) != 0;
        at[axis] = at_edge ? last : last / 2;
        blocks *= at_edge ? 1 : last;
      }
      if (blocks > 0) sum += blocks * work_of_block(index_of(at), cut);
    }
    return sum / (work_of_block(middle(), cut) * static_cast<double>(launch_.blocks()));
  }

  // Its instructions. Where paths are cut, all of its warps go as far behind the cut as the first.
  double work_of_block(uint64_t index, const Cut& cut) {
    const auto path = paths_.of(index, cut);
    double instructions = 0;
    for (const WarpPath& warp : path->warps) instructions += static_cast<double>(warp.executed.size());
    if (cut.turns == 0) return instructions;
    return instructions * static_cast<double>(interpreter_.profile(index).instructions) /
           static_cast<double>(path->warps[0].executed.size());
  }

  // True if every SM runs so many blocks, or at most twice as many.
  bool is_small_for(uint32_t blocks) const { return launch_.blocks() <= uint64_t{blocks} * card_.sms * 2; }

  // The block that the SM with the most work begins with, if each runs `blocks`, or one less. Looks at the SM of the
  // block in the middle, the first, and others spread evenly; as many as a budget of instructions allows.
  uint64_t busiest_sm(uint32_t blocks, const Cut& cut) {
    constexpr int most_seen = 8;
    constexpr double golden = 0.6180339887498949;
    constexpr double most_instructions = 2e6;
    const uint64_t full = std::min<uint64_t>(card_.sms, launch_.blocks() - uint64_t{blocks - 1} * card_.sms);
    const uint64_t of_middle = middle() % card_.sms;
    uint64_t busiest = 0;
    double most = 0, seen = 0;
    for (int i = 0; i < most_seen && (i == 0 || seen < most_instructions); ++i) {
      const auto spread = static_cast<uint64_t>(std::fmod((i - 1) * golden, 1.0) * static_cast<double>(full));
      const uint64_t first = i > 0 ? spread : of_middle < full ? of_middle : full / 2;
      double work = 0;
      for (uint32_t n = 0; n < blocks; ++n) work += work_of_block(first + uint64_t{n} * card_.sms, cut);
      seen += work;
      if (work > most) {
        most = work;
        busiest = first;
      }
    }
    return busiest;
  }

  // One SM of the chip: its blocks are those whose number is its own modulo the SMs. In a small grid the last SM to end
  // is the one with the most work, in a large one all have blocks of each kind.
  ReplayResult of_blocks(uint32_t resident, uint32_t blocks, const Cut& cut) {
    ReplaySetup setup;
    setup.resident_blocks = resident;
    setup.blocks = blocks;
    setup.l1_bytes = l1_bytes_;
    setup.local_dram = local_dram_;
    setup.busy_sms = static_cast<uint32_t>(std::min<uint64_t>(card_.sms, launch_.blocks()));
    setup.bulk_dram = bulk_dram_;
    setup.trace = trace_;
    setup.dram = dram_.operands;
    setup.first_wave = first_wave_ ? resident : 0;
    setup.in_l2 = in_l2_;
    const uint64_t begin = is_small_for(blocks) ? busiest_sm(blocks, cut) : middle();
    setup.path = [&](uint32_t n) { return paths_.of(begin + uint64_t{n} * card_.sms, cut); };
    time_.replayed = replay(sass_, card_, setup);
    time_.replayed_blocks = blocks;
    return time_.replayed;
  }

  static constexpr uint64_t fewest_turns = 16;

  const Sass& sass_;
  const Launch& launch_;
  const Card& card_;
  Interpreter interpreter_;
  BlockPaths paths_{interpreter_};
  uint32_t l1_bytes_ = 0, local_dram_ = 0, bulk_dram_ = 256;
  DramShares dram_;
  bool first_wave_ = true;
  AddressRanges in_l2_;  // without what the launch stores
  ReplayTrace* trace_ = nullptr;
  ModelledTime time_;
};

}  // namespace

ModelledTime model_time(const Sass& sass, const KernelFacts& facts, const Launch& launch, const Card& card,
                        const ModelOptions& options) {
  return Model(sass, facts, launch, card).run(options);
}

}  // namespace kiln::timing
