#include "fusion.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "liveness.h"

namespace kiln::emulator {
namespace {

// Deferred factors occupy registers: four steps of an 8 x 8 tile double its 64 registers, and stay in a 32 KiB cache.
constexpr size_t most_deferred = 256;

/// Multiply-adds that wait for their place, and the registers that keep them from moving further.
class Deferred {
 public:
  bool empty() const { return operations_.empty(); }
  bool full() const { return operations_.size() >= most_deferred; }

  void add(Operation operation) {
    visit_registers(operation, [&](RegisterId id, bool is_write) { (is_write ? written_ : read_).insert(id); });
    operations_.push_back(std::move(operation));
  }

  /// Whether `operation` must come after what is deferred.
  bool blocks(const Operation& operation) const {
    if (operation.flow != Operation::Flow::next) return true;
    bool conflict = false;
    visit_registers(operation, [&](RegisterId id, bool is_write) {
      conflict = conflict || written_.count(id) != 0 || (is_write && read_.count(id) != 0);
    });
    return conflict;
  }

  void flush(std::vector<Operation>& to) {
    std::move(operations_.begin(), operations_.end(), std::back_inserter(to));
    operations_.clear();
    read_.clear();
    written_.clear();
  }

 private:
  std::vector<Operation> operations_;
  std::unordered_set<RegisterId> read_, written_;
};

bool has_factor(const MultiplyAdd& m, uint32_t factor) {
  return m.a == factor || m.b == factor;
}
uint32_t other_factor(const MultiplyAdd& m, uint32_t factor) {
  return m.a == factor ? m.b : m.a;
}

/// The factor that most of the following operations share.
uint32_t common_factor(const std::vector<MultiplyAdd>& run, size_t first) {
  const auto length = [&](uint32_t factor) {
    size_t k = first;
    while (k < run.size() && has_factor(run[k], factor)) ++k;
    return k - first;
  };
  return length(run[first].b) > length(run[first].a) ? run[first].b : run[first].a;
}

uint32_t append_groups(const std::vector<MultiplyAdd>& run, std::vector<uint32_t>& lists) {
  uint32_t groups = 0;
  for (size_t k = 0; k < run.size(); ++groups) {
    const uint32_t factor = common_factor(run, k);
    lists.push_back(factor);
    const size_t length_at = lists.size();
    lists.push_back(0);
    // The factor is read once, so a group ends with an operation that overwrites it.
    for (bool overwritten = false; k < run.size() && !overwritten && has_factor(run[k], factor); ++k) {
      const MultiplyAdd& m = run[k];
      lists.insert(lists.end(), {m.d, other_factor(m, factor), m.c});
      ++lists[length_at];
      overwritten = m.d == factor;
    }
  }
  return groups;
}

constexpr size_t edge = 4;

/// The operations that accumulate into one register in a run, in order.
struct Sum {
  std::vector<MultiplyAdd> steps;
  bool tiled = false;
};

/// Finds sums that form outer products: sum (i, j) adds row[i] * column[j] in every step.
class TileFinder {
 public:
  explicit TileFinder(const std::vector<MultiplyAdd>& run) {
    for (const MultiplyAdd& m : run) {
      if (index_.try_emplace(m.d, sums_.size()).second) sums_.emplace_back();
      sums_[index_.at(m.d)].steps.push_back(m);
    }
    for (size_t k = 0; k < sums_.size(); ++k) {
      const MultiplyAdd& first = sums_[k].steps.front();
      by_factors_[key(first.a, first.b)] = k;
      partners_[first.a].push_back(first.b);
      partners_[first.b].push_back(first.a);
    }
  }

  /// Sums can be computed one after the other if each stays in its register and none is a factor.
  static bool independent(const std::vector<MultiplyAdd>& run) {
    std::unordered_set<uint32_t> sums;
    for (const MultiplyAdd& m : run) {
      if (m.d != m.c) return false;
      sums.insert(m.d);
    }
    return std::none_of(run.begin(), run.end(),
                        [&](const MultiplyAdd& m) { return sums.count(m.a) != 0 || sums.count(m.b) != 0; });
  }

  uint32_t append_tiles(std::vector<uint32_t>& lists) {
    uint32_t tiles = 0;
    for (const Sum& sum : sums_) {
      if (!sum.tiled && append_tile(sum, lists)) ++tiles;
    }
    return tiles;
  }

  bool is_tiled(uint32_t d) const { return sums_[index_.at(d)].tiled; }

 private:
  using Square = std::array<std::array<Sum*, edge>, edge>;

  static uint64_t key(uint32_t x, uint32_t y) { return uint64_t{std::min(x, y)} << 32 | std::max(x, y); }

  /// The sum that starts with x * y and is still free.
  Sum* find(uint32_t x, uint32_t y) {
    const auto found = by_factors_.find(key(x, y));
    return found == by_factors_.end() || sums_[found->second].tiled ? nullptr : &sums_[found->second];
  }

  std::vector<uint32_t> free_partners(uint32_t factor) {
    std::vector<uint32_t> result;
    for (const uint32_t partner : partners_[factor]) {
      if (result.size() < edge && find(factor, partner) != nullptr) result.push_back(partner);
    }
    return result;
  }

  std::optional<Square> square_around(const Sum& corner) {
    const MultiplyAdd& first = corner.steps.front();
    const std::vector<uint32_t> rows = free_partners(first.b), columns = free_partners(first.a);
    if (rows.size() < edge || columns.size() < edge) return std::nullopt;
    Square square;
    for (size_t i = 0; i < edge; ++i) {
      for (size_t j = 0; j < edge; ++j) {
        square[i][j] = find(rows[i], columns[j]);
        if (square[i][j] == nullptr || square[i][j]->steps.size() != corner.steps.size()) return std::nullopt;
      }
    }
    return square;
  }

  /// The factor that two steps have in common.
  static std::optional<uint32_t> shared_factor(const MultiplyAdd& x, const MultiplyAdd& y) {
    if (has_factor(y, x.a)) return x.a;
    if (has_factor(y, x.b)) return x.b;
    return std::nullopt;
  }

  /// Row and column factors of one step of the square; false if it is no outer product.
  static bool append_step(const Square& square, size_t step, std::vector<uint32_t>& lists) {
    std::array<uint32_t, edge> row{}, column{};
    for (size_t i = 0; i < edge; ++i) {
      const auto of_row = shared_factor(square[i][0]->steps[step], square[i][1]->steps[step]);
      const auto of_column = shared_factor(square[0][i]->steps[step], square[1][i]->steps[step]);
      if (!of_row || !of_column) return false;
      row[i] = *of_row;
      column[i] = *of_column;
    }
    for (size_t i = 0; i < edge; ++i) {
      for (size_t j = 0; j < edge; ++j) {
        const MultiplyAdd& m = square[i][j]->steps[step];
        if (key(m.a, m.b) != key(row[i], column[j])) return false;
      }
    }
    lists.insert(lists.end(), row.begin(), row.end());
    lists.insert(lists.end(), column.begin(), column.end());
    return true;
  }

  // { steps, 16 sums row by row, steps times { 4 row factors, 4 column factors } }
  bool append_tile(const Sum& corner, std::vector<uint32_t>& lists) {
    const auto square = square_around(corner);
    if (!square) return false;
    const size_t begin = lists.size();
    lists.push_back(static_cast<uint32_t>(corner.steps.size()));
    for (const auto& line : *square) {
      for (const Sum* sum : line) lists.push_back(sum->steps.front().d);
    }
    for (size_t step = 0; step < corner.steps.size(); ++step) {
      if (append_step(*square, step, lists)) continue;
      lists.resize(begin);
      return false;
    }
    for (const auto& line : *square) {
      for (Sum* sum : line) sum->tiled = true;
    }
    return true;
  }

  std::vector<Sum> sums_;
  std::unordered_map<uint32_t, size_t> index_;                    // by register
  std::unordered_map<uint64_t, size_t> by_factors_;               // by the first step's factors
  std::unordered_map<uint32_t, std::vector<uint32_t>> partners_;  // of a factor in first steps
};

}  // namespace

void gather_multiply_adds(std::vector<Operation>& operations) {
  std::vector<Operation> result;
  result.reserve(operations.size());
  Deferred deferred;
  for (Operation& operation : operations) {
    if (operation.fusable) {
      deferred.add(std::move(operation));
      if (deferred.full()) deferred.flush(result);
      continue;
    }
    if (!deferred.empty() && deferred.blocks(operation)) deferred.flush(result);
    result.push_back(std::move(operation));
  }
  deferred.flush(result);
  operations = std::move(result);
}

uint32_t fma_run_length(const std::vector<Operation>& operations, uint32_t first) {
  uint32_t end = first;
  while (end < operations.size() && operations[end].fusable) ++end;
  return end > first ? end - first : 1;
}

FusedRun append_run(const std::vector<MultiplyAdd>& run, std::vector<uint32_t>& lists) {
  FusedRun result;
  if (run.size() < edge * edge || !TileFinder::independent(run)) {
    result.groups = append_groups(run, lists);
    return result;
  }
  TileFinder finder(run);
  result.tiles = finder.append_tiles(lists);
  std::vector<MultiplyAdd> rest;
  for (const MultiplyAdd& m : run) {
    if (!finder.is_tiled(m.d)) rest.push_back(m);
  }
  result.groups = append_groups(rest, lists);
  return result;
}

}  // namespace kiln::emulator
