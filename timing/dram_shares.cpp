#include "dram_shares.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>

#include "kiln/base/error.h"

namespace kiln::timing {
namespace {

using Sectors = std::unordered_map<uint64_t, uint32_t>;  // by line

uint64_t mixed(uint64_t value, uint64_t with) {
  value = (value ^ with) * 0x9e3779b97f4a7c15;
  return value ^ value >> 29;
}

template <class Function>
void for_each_line(const Sass& sass, const WarpPath& warp, const Executed& executed, const Function& function) {
  if (executed.access == no_access || !sass.instructions[executed.instruction].opcode.starts_with("LD")) return;
  const Access& access = warp.accesses[executed.access];
  if (access.space != Access::Space::global) return;
  for (uint32_t i = 0; i < access.lines; ++i) function(warp.lines[access.first_line + i]);
}

// Operands of a launch: memory from the line of a pointer among its parameters up to that of the next. Other parameters
// may be taken for pointers, which at most splits an operand.
class Operands {
 public:
  explicit Operands(const std::string& parameters) : begins_{0} {
    uint64_t word = 0;
    for (size_t at = 0; at + sizeof word <= parameters.size(); at += sizeof word) {
      std::memcpy(&word, parameters.data() + at, sizeof word);
      begins_.push_back(word / line_bytes * line_bytes);
    }
    std::sort(begins_.begin(), begins_.end());
    begins_.erase(std::unique(begins_.begin(), begins_.end()), begins_.end());
  }

  size_t count() const { return begins_.size(); }
  uint64_t begin(size_t operand) const { return begins_[operand]; }
  size_t of(uint64_t line) const {
    return static_cast<size_t>(std::upper_bound(begins_.begin(), begins_.end(), line) - begins_.begin()) - 1;
  }

 private:
  std::vector<uint64_t> begins_;
};

// Sectors of each operand.
using Counts = std::vector<uint64_t>;

struct Traffic {
  Counts loaded, fresh;
};

struct Drawn {
  uint64_t block = 0;
  Traffic traffic;
};

// Neighbouring blocks, of which those from `judged` on stand for the grid.
struct Window {
  uint64_t begin = 0, judged = 0, end = 0;
};

// For all blocks of a small grid, or for windows of a large one, and each operand: the nearest earlier block whose
// first warp begins with the same loads of it.
class Census {
 public:
  // A block is the first that loads what it loads of an operand, or repeats the loads of an earlier one.
  enum class Kind : uint8_t { first, repeats, unknown };

  Census(const LoadingLaunch& loading, const Operands& operands, const WarpPath& usual, Interpreter& interpreter)
      : sass_(loading.sass), operands_(operands) {
    constexpr uint64_t most_instructions = 1'000'000, most_blocks = 4096, most_windows = 4;
    const uint64_t depth = depth_of(usual), all = loading.launch.blocks();
    const uint64_t blocks = std::min({all, most_blocks, most_instructions / std::max<uint64_t>(1, depth)});
    const uint64_t windows = blocks == all ? 1 : most_windows, size = blocks / windows;
    for (uint64_t w = 0; w < windows; ++w) {
      const uint64_t end = (all - size) / windows * w + (all - size) / windows + size;
      windows_.push_back({end - size, blocks == all ? 0 : end - size / 2, end});
    }
    if (depth == 0 || all == 1) return;
    try {
      for (const Window& window : windows_) {
        latest_.clear();
        for (uint64_t block = window.begin; block < window.end; ++block)
          add(block, interpreter.beginning(block, depth));
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported) throw;
      distances_.clear();  // the warp's way depends on the others
    }
  }

  const std::vector<Window>& windows() const { return windows_; }

  // How far before `block` it is, 0 if there is none.
  uint64_t distance(uint64_t block, size_t operand) const {
    const auto found = distances_.find(block);
    return found == distances_.end() || found->second[operand] == unseen ? 0 : found->second[operand];
  }

  Kind kind(uint64_t block, size_t operand) const {
    const auto found = distances_.find(block);
    if (found == distances_.end() || found->second[operand] == unseen) return Kind::unknown;
    return found->second[operand] == 0 ? Kind::first : Kind::repeats;
  }

  // How many of the blocks that stand for the grid are of that kind, and which is the middle one of these.
  std::pair<uint64_t, uint64_t> blocks_of(Kind wanted, size_t operand) const {
    std::vector<uint64_t> blocks;
    for (const Window& window : windows_) {
      for (uint64_t block = window.judged; block < window.end; ++block) {
        if (kind(block, operand) == wanted) blocks.push_back(block);
      }
    }
    return {blocks.size(), blocks.empty() ? 0 : blocks[blocks.size() / 2]};
  }

 private:
  // Instructions of a warp up to its first load of the last operand that it comes to soon.
  uint64_t depth_of(const WarpPath& usual) const {
    constexpr size_t soon = 1024;
    uint64_t depth = 0;
    std::vector<bool> seen(operands_.count());
    for (size_t i = 0; i < std::min(soon, usual.executed.size()); ++i) {
      for_each_line(sass_, usual, usual.executed[i], [&](const Line& line) {
        const size_t operand = operands_.of(line.address);
        if (!seen[operand]) depth = i + 1;
        seen[operand] = true;
      });
    }
    return depth;
  }

  void add(uint64_t block, const WarpPath& warp) {
    std::vector<uint64_t> digests(operands_.count());
    for (const Executed& executed : warp.executed) {
      for_each_line(sass_, warp, executed, [&](const Line& line) {
        uint64_t& digest = digests[operands_.of(line.address)];
        digest = mixed(digest, line.address | line.sectors);
      });
    }
    std::vector<uint64_t> distances(operands_.count(), unseen);
    for (size_t operand = 0; operand < digests.size(); ++operand) {
      if (digests[operand] == 0) continue;
      const auto [latest, added] = latest_.try_emplace(mixed(digests[operand], operand), block);
      distances[operand] = block - std::exchange(latest->second, block);
    }
    distances_.try_emplace(block, std::move(distances));  // a window that begins earlier knows more
  }

  static constexpr uint64_t unseen = ~uint64_t{0};  // the warp does not begin with loads of the operand

  const Sass& sass_;
  const Operands& operands_;
  std::vector<Window> windows_;
  std::unordered_map<uint64_t, std::vector<uint64_t>> distances_;  // by block, by operand
  std::unordered_map<uint64_t, uint64_t> latest_;                  // block of the window by digest
};

class Sampler {
 public:
  Sampler(const LoadingLaunch& loading, Interpreter& interpreter, BlockPaths& paths, const Cut& cut)
      : loading_(loading),
        launch_(loading.launch),
        paths_(paths),
        cut_(cut),
        operands_(launch_.parameters),
        census_(loading, operands_, paths.of(loading.middle, cut)->warps[0], interpreter) {}

  DramShares run() {
    draw();
    DramShares shares;
    double all_loaded = 0, all_fresh = 0;
    for (size_t operand = 0; operand < operands_.count(); ++operand) {
      if (std::none_of(drawn_.begin(), drawn_.end(), [&](const Drawn& one) { return one.traffic.loaded[operand] > 0; }))
        continue;
      const auto [loaded, fresh] = mean_of(operand);
      all_loaded += loaded;
      all_fresh += fresh;
      const auto share = static_cast<uint32_t>(std::lround(fresh / loaded * DramShare::all));
      shares.operands.push_back({shares.operands.empty() ? 0 : operands_.begin(operand), share});
    }
    if (shares.operands.empty()) shares.operands.push_back({0, 0});
    shares.all = all_loaded == 0 ? 0 : all_fresh / all_loaded;
    return shares;
  }

 private:
  // Blocks are drawn from all windows, the last first, spread evenly (the golden ratio's multiples), because tiles of
  // different kinds may take turns; as many as a budget of instructions allows.
  void draw() {
    constexpr size_t most_drawn = 8;
    constexpr double golden = 0.6180339887498949;
    constexpr uint64_t most_instructions = 2'000'000;
    const std::vector<Window>& windows = census_.windows();
    for (size_t i = 0; i < most_drawn && (i == 0 || instructions_ < most_instructions); ++i) {
      const Window& window = windows[windows.size() - 1 - i % windows.size()];
      const double place = std::fmod(static_cast<double>(i + 1) * golden, 1.0);
      draw(window.judged + static_cast<uint64_t>(place * static_cast<double>(window.end - window.judged)));
    }
  }

  void draw(uint64_t block) { drawn_.push_back({block, traffic_of(block)}); }

  // Sectors of an operand, loaded and fresh, of a block in the mean: blocks count by how many of the grid are of their
  // kind, so that the first loads of an operand have their part, however seldom they are.
  std::pair<double, double> mean_of(size_t operand) {
    double loaded = 0, fresh = 0;
    for (const auto kind : {Census::Kind::first, Census::Kind::repeats, Census::Kind::unknown}) {
      const auto [blocks, typical] = census_.blocks_of(kind, operand);
      if (blocks == 0) continue;
      const auto is_of_kind = [&](const Drawn& one) { return census_.kind(one.block, operand) == kind; };
      if (std::none_of(drawn_.begin(), drawn_.end(), is_of_kind)) draw(typical);
      uint64_t count = 0, all = 0, left = 0;
      for (const Drawn& one : drawn_) {
        if (!is_of_kind(one)) continue;
        ++count;
        all += one.traffic.loaded[operand];
        left += one.traffic.fresh[operand];
      }
      const double weight = static_cast<double>(blocks) / static_cast<double>(count);
      loaded += weight * static_cast<double>(all);
      fresh += weight * static_cast<double>(left);
    }
    return {loaded, fresh};
  }

  // Sectors that a block loads, and how many of them neither an earlier launch nor a block before it has brought.
  // Which ones load the same depends on how a kernel numbers its tiles: several are looked at, nearest first. One that
  // does not run beside it counts as long as L2 holds what all blocks since then have brought.
  Traffic traffic_of(uint64_t block) {
    Sectors left = loaded_sectors(block);
    Traffic traffic;
    traffic.loaded = counts_of(left);
    for (auto& [line, sectors] : left) sectors &= ~sectors_in_l2(line);
    traffic.fresh = counts_of(left);
    for (const uint64_t before : blocks_before(block)) {
      const uint64_t away = block - before, fresh = sum(traffic.fresh);
      if (fresh == 0 || (away > loading_.beside && (away - loading_.beside) * fresh * 32 > loading_.l2_bytes)) break;
      const Sectors theirs = loaded_sectors(before);
      for (auto& [line, sectors] : left) {
        const auto found = theirs.find(line);
        if (found != theirs.end()) sectors &= ~found->second;
      }
      traffic.fresh = counts_of(left);
    }
    return traffic;
  }

  static uint64_t sum(const Counts& counts) { return std::accumulate(counts.begin(), counts.end(), uint64_t{0}); }

  Counts counts_of(const Sectors& sectors) const {
    Counts counts(operands_.count());
    for (const auto& [line, mask] : sectors) counts[operands_.of(line)] += static_cast<uint64_t>(std::popcount(mask));
    return counts;
  }

  uint32_t sectors_in_l2(uint64_t line) const {
    uint32_t sectors = 0;
    for (uint32_t s = 0; s < 4; ++s) {
      sectors |= meets(loading_.in_l2, line + 32 * s, line + 32 * (s + 1)) ? 1U << s : 0;
    }
    return sectors;
  }

  Sectors loaded_sectors(uint64_t block) {
    const auto path = paths_.of(block, cut_);
    Sectors result;
    for (const WarpPath& warp : path->warps) {
      instructions_ += warp.executed.size();
      for (const Executed& executed : warp.executed) {
        for_each_line(loading_.sass, warp, executed, [&](const Line& line) { result[line.address] |= line.sectors; });
      }
    }
    return result;
  }

  // Blocks that may load the same, nearest first: those of the census, and those at distances of a power of two blocks,
  // rows and planes of the grid, and diagonally, which may share a part.
  std::vector<uint64_t> blocks_before(uint64_t block) const {
    const uint64_t row = launch_.grid[0], plane = row * launch_.grid[1];
    std::set<uint64_t> away = {row - 1, row + 1};
    for (const uint64_t step : {uint64_t{1}, row, plane}) {
      for (uint64_t distance = step; distance <= block; distance *= 2) away.insert(distance);
    }
    for (size_t operand = 0; operand < operands_.count(); ++operand) away.insert(census_.distance(block, operand));
    std::vector<uint64_t> before;
    for (const uint64_t distance : away) {
      if (distance > 0 && distance <= block) before.push_back(block - distance);
    }
    return before;
  }

  const LoadingLaunch& loading_;
  const Launch& launch_;
  BlockPaths& paths_;
  const Cut& cut_;
  Operands operands_;
  Census census_;
  std::vector<Drawn> drawn_;
  uint64_t instructions_ = 0;  // followed
};

}  // namespace

DramShares dram_shares(const LoadingLaunch& loading, Interpreter& interpreter, BlockPaths& paths, const Cut& cut) {
  return Sampler(loading, interpreter, paths, cut).run();
}

}  // namespace kiln::timing
