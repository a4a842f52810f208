#include "checks/global_shadow.h"

#include <algorithm>
#include <bit>

namespace kiln::emulator {

GlobalShadow::GlobalShadow(uint32_t launch, uint32_t piece_bytes, const SharedShadow& time, BlockOrder* order)
    : launch_(uint64_t{launch} << launch_at),
      shift_(static_cast<uint32_t>(std::countr_zero(piece_bytes))),
      time_(time),
      order_(order) {}

void GlobalShadow::begin_block(uint64_t number) {
  block_ = number;
  here_ = launch_ | number << block_at;
}

uint64_t GlobalShadow::mark_of(uint32_t thread, bool strong) const {
  return here_ | uint64_t{thread} << thread_at | (strong ? strong_flag : 0) | std::min(time_.since_start(), latest);
}

/// The mark of all reads of a piece: `read` is that of the earlier ones, `mark` that of the latest.
inline uint64_t GlobalShadow::joined(uint64_t read, uint64_t mark) const {
  if (!is_current(read)) return mark;
  const uint64_t weakened = read & (mark | ~strong_flag);
  if ((read & many_flag) != 0) return weakened;
  if (((read ^ mark) & block_mask) != 0) return weakened | many_flag;
  if (thread_of(read) != thread_of(mark)) return weakened | several_flag;
  if ((read & several_flag) != 0) return weakened;
  return (mark & (read | ~strong_flag)) | (read & watched_flag);
}

/// The mark of a write where another one stands: that the block has stored there plainly is not forgotten.
uint64_t GlobalShadow::replaces(uint64_t write, uint64_t by) const {
  if ((by & strong_flag) == 0 || (write & block_mask) != here_) return by;
  return (write & strong_flag) != 0 ? by | (write & weak_flag) : by | weak_flag;
}

/// Whether what the mark tells of comes before the access.
bool GlobalShadow::in_order(const Access& access, uint64_t mark) const {
  const uint32_t thread = thread_of(mark), time = time_of(mark);
  if (time == latest) return true;
  if (block_of(mark) == block_) return time_.in_order_since_start(access.thread, thread, time);
  return order_ != nullptr && order_->knows(access.thread, block_of(mark), thread, time);
}

std::optional<GlobalShadow::Other> GlobalShadow::check_write_before(uint64_t write, const Access& access) const {
  const uint64_t block = block_of(write);
  const bool only_strong = access.strong && (write & strong_flag) != 0 && (block == block_ || (write & weak_flag) == 0);
  if (only_strong || in_order(access, write)) return std::nullopt;
  return Other{.has_written = true, .block = block, .thread = thread_of(write)};
}

std::optional<GlobalShadow::Other> GlobalShadow::check_reads_before(uint64_t read, const Access& access) const {
  if (access.strong && (read & strong_flag) != 0) return std::nullopt;
  const uint64_t block = block_of(read);
  const uint32_t thread = thread_of(read), time = time_of(read);
  if (!in_order(access, read)) return Other{.block = block, .thread = thread};
  // The first reader comes before the writer. Others may not, as long as nothing can have told the writer of them.
  if ((read & many_flag) != 0 && (order_ == nullptr || !order_->has_acquired())) {
    return Other{.block = block_, .is_known = false};
  }
  const bool alone = (read & several_flag) == 0 || block != block_ || thread != access.thread || time == latest;
  if (alone || !time_.nobody_met_since(thread, time)) return std::nullopt;
  return Other{.block = block};
}

std::optional<GlobalShadow::Other> GlobalShadow::read(const Access& access) {
  const uint64_t mark = mark_of(access.thread, access.strong);
  for (PieceMarks* marks = access.marks; marks != access.marks + access.pieces; ++marks) {
    const uint64_t write = get(marks->write), read = get(marks->read);
    uint64_t together = joined(read, mark);
    if (access.partial) together |= watched_flag;
    if (is_current(write)) {
      if (const std::optional<Other> other = check_write_before(write, access)) return other;
      together |= watched_flag;
    }
    if (together != read) put(marks->read, together);
  }
  return std::nullopt;
}

std::optional<GlobalShadow::Other> GlobalShadow::read_lanes(const AccessRequest& request, Mask lanes,
                                                            const AddressWindow& window, uint32_t first, bool strong,
                                                            uint32_t& lane) {
  const bool one_piece = request.bytes == 1u << shift_;
  const uint64_t mark_of_first = mark_of(first, strong);
  for (; lanes != 0; lanes &= lanes - 1) {
    lane = static_cast<uint32_t>(std::countr_zero(lanes));
    const uint64_t offset = request.address[lane] - window.begin;
    PieceMarks& marks = window.marks[offset >> shift_];
    if (one_piece && !is_current(get(marks.write))) {
      const uint64_t read = get(marks.read), together = joined(read, mark_of_first + (uint64_t{lane} << thread_at));
      if (together != read) put(marks.read, together);
    } else if (const auto other = read(access(window.marks, offset, request.bytes, first + lane, strong))) {
      return other;
    }
  }
  return std::nullopt;
}

GlobalShadow::OldNews GlobalShadow::old_news_like(uint64_t read) const {
  const bool of_many = (read & many_flag) != 0;
  return {of_many ? launch_ | many_flag : here_ | several_flag,
          (of_many ? launch_mask | many_flag : block_mask | several_flag) | strong_flag | watched_flag};
}

bool GlobalShadow::is_old_news(const Reach& reach, uint32_t bytes, const AddressWindow& window) const {
  constexpr uint64_t worth_scanning = warp_lanes + warp_lanes / 4;  // times the pieces of a lane: few gaps
  const uint64_t pieces = std::max(bytes >> shift_, 1u);
  const uint64_t stretch = ((reach.highest - reach.lowest) >> shift_) + pieces;
  if (stretch > worth_scanning * pieces) return false;
  PieceMarks* const begin = marks_at(reach.lowest, window);
  const OldNews old = old_news_like(get(begin->read));
  uint64_t news = 0;
  for (uint64_t k = 0; k < stretch; ++k) news |= get(begin[k].read) ^ old.bits;
  return (news & old.mask) == 0;
}

bool GlobalShadow::is_old_news(const AccessRequest& request, Mask lanes, const AddressWindow& window) const {
  const uint64_t lowest = request.reach.lowest;
  const uint64_t first = get(marks_at(lowest, window)->read);
  const OldNews old = old_news_like(first);
  if (((first ^ old.bits) & old.mask) != 0) return false;
  if (is_old_news(request.reach, request.bytes, window)) return true;
  const auto pieces = std::max(request.bytes >> shift_, 1u);
  uint64_t news = 0;
  for (uint32_t lane = 0; lane < warp_lanes; ++lane) {
    PieceMarks* const begin = marks_at((lanes >> lane & 1) != 0 ? request.address[lane] : lowest, window);
    for (uint32_t k = 0; k < pieces; ++k) news |= get(begin[k].read) ^ old.bits;
  }
  return (news & old.mask) == 0;
}

}  // namespace kiln::emulator
