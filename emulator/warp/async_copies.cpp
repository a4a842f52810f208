#include "warp/async_copies.h"

#include <algorithm>
#include <bit>

namespace kiln::emulator {

namespace {

/// Complete copies at the front that are worth moving the others for.
constexpr size_t most_complete = 64;

}  // namespace

void AsyncCopies::clear() {
  first_ = end_ = 0;
  committed_.fill(0);
  committers_ = 0;
  alike_ = true;
}

AsyncCopies::Copy& AsyncCopies::next() {
  if (end_ == copies_.size()) copies_.resize(2 * end_ + 1);
  return copies_[end_];
}

void AsyncCopies::issue() {
  // Lanes with different numbers of groups behind them get entries of their own.
  for (Mask open = copies_[end_].lanes; open != 0;) {
    const uint32_t group = committed_[static_cast<size_t>(std::countr_zero(open))];
    Mask same = alike(open) ? open : 0;
    for (uint32_t lane = 0; same == 0 && lane < warp_lanes; ++lane) {
      if ((open >> lane & 1) != 0 && committed_[lane] == group) same |= Mask{1} << lane;
    }
    copies_[end_].group = group;
    copies_[end_++].lanes = same;
    open &= ~same;
    if (open == 0) return;
    Copy& rest = next();
    rest = copies_[end_ - 1];
    rest.lanes = open;
  }
}

void AsyncCopies::commit(Mask lanes) {
  for (uint32_t lane = 0; lane < warp_lanes; ++lane) committed_[lane] += lanes >> lane & 1;
  if (committers_ == 0) committers_ = lanes;
  alike_ = alike_ && lanes == committers_;
}

/// Lanes among `lanes`, which have issued the copy, that wait for it if they leave `pending` groups.
Mask AsyncCopies::due(const Copy& copy, Mask lanes, uint32_t pending) const {
  const auto is_due = [&](Mask of) {
    return uint64_t{copy.group} + pending < committed_[static_cast<size_t>(std::countr_zero(of))];
  };
  if (lanes == 0) return 0;
  if (alike(lanes)) return is_due(lanes) ? lanes : 0;
  Mask found = 0;
  for (Mask rest = lanes; rest != 0; rest &= rest - 1) {
    if (is_due(rest)) found |= rest & -rest;
  }
  return found;
}

void AsyncCopies::forget_complete() {
  while (first_ < end_ && copies_[first_].lanes == 0) ++first_;
  if (first_ < end_ && first_ < most_complete) return;
  const auto begin = copies_.begin();
  std::move(begin + static_cast<ptrdiff_t>(first_), begin + static_cast<ptrdiff_t>(end_), begin);
  end_ -= first_;
  first_ = 0;
}

}  // namespace kiln::emulator
