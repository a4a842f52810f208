#include "checks/shared_shadow.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace kiln::emulator {

namespace {

// A block that begins before it has as much time before it as there was.
constexpr uint32_t latest_start = UINT32_MAX / 2;

}  // namespace

SharedShadow::SharedShadow(uint32_t bytes, uint32_t piece_bytes, uint32_t threads, bool partial, uint32_t now)
    : shift_(static_cast<uint32_t>(std::countr_zero(piece_bytes))),
      now_(now),
      block_start_(now),
      block_met_(now),
      warp_met_((threads + warp_lanes - 1) / warp_lanes),
      proxies_fenced_(threads) {
  const size_t pieces = (bytes >> shift_) + 1;
  for (auto* of_piece : {&write_time_, &write_who_, &read_time_, &read_who_, &read_lanes_}) of_piece->resize(pieces);
  for (auto* of_chunk : {&chunk_written_, &chunk_logged_, &chunk_full_}) of_chunk->resize((bytes >> chunk_shift) + 1);
  if (partial) clocks_ = std::make_unique<ThreadClocks>(threads);
  logs_ = !partial;
}

// Times go on from block to block, so that what the last one did is simply long ago; until there are too many.
void SharedShadow::begin_block() {
  if (now_ >= latest_start) restart();
  block_start_ = block_met_ = ++now_;
  logged_ = 0;
  logs_ = clocks_ == nullptr;
  unwritten_.clear();
  if (clocks_ == nullptr) return;
  clocks_->begin_block();
  more_readers_.clear();
}

void SharedShadow::restart() {
  for (auto* times : {&write_time_, &write_who_, &read_time_, &read_who_, &read_lanes_, &chunk_written_, &chunk_logged_,
                      &chunk_full_, &warp_met_, &proxies_fenced_}) {
    std::fill(times->begin(), times->end(), 0);
  }
  now_ = first_time;
  if (clocks_ != nullptr)
    clocks_ = std::make_unique<ThreadClocks>(static_cast<uint32_t>(warp_met_.size() * warp_lanes));
}

uint32_t SharedShadow::who(const Access& access) const {
  const uint32_t at = std::min(access.at, (1u << at_bits) - 1);
  const uint32_t thread = access.first + static_cast<uint32_t>(std::countr_zero(access.lanes));
  return at | thread << at_bits | (access.strong ? strong_flag : 0);
}

bool SharedShadow::in_order(uint32_t thread, uint32_t other, uint32_t time) const {
  if (thread == other || time < block_met_) return true;
  const uint32_t warp = thread / warp_lanes;
  if (warp == other / warp_lanes && time < warp_met_[warp]) return true;
  return clocks_ != nullptr && clocks_->knows(thread, other, time);
}

uint32_t SharedShadow::known_until(uint32_t thread, uint32_t other) const {
  if (thread == other) return since_start();
  const uint32_t known = clocks_->known(thread, other);
  return known < block_start_ ? 0 : known - block_start_ + 1;
}

SharedShadow::Result SharedShadow::found(Finding finding, uint32_t piece, uint32_t thread, uint32_t other_who) const {
  return {finding, piece << shift_, thread, thread_of(other_who), at_of(other_who)};
}

SharedShadow::Result SharedShadow::check_write_before(uint32_t piece, const Access& access) const {
  const uint32_t time = write_time_[piece], writer = write_who_[piece];
  if (time < block_met_) return {};
  const uint32_t leader = access.first + static_cast<uint32_t>(std::countr_zero(access.lanes));
  if (time == in_flight) return found(Finding::copy_in_flight, piece, leader, writer);
  if (access.strong && (writer & strong_flag) != 0) return {};
  for (Mask rest = access.lanes; rest != 0; rest &= rest - 1) {
    const uint32_t thread = access.first + static_cast<uint32_t>(std::countr_zero(rest));
    if (in_order(thread, thread_of(writer), time)) continue;
    return found(Finding::race_with_write, piece, thread, writer);
  }
  return {};
}

SharedShadow::Result SharedShadow::check_reads_before(uint32_t piece, const Access& access) const {
  const uint32_t time = read_time_[piece], reader = read_who_[piece];
  if (time < block_met_ || (access.strong && (reader & strong_flag) != 0)) return {};
  const uint32_t readers_warp = thread_of(reader) / warp_lanes * warp_lanes;
  for (Mask rest = access.lanes; rest != 0; rest &= rest - 1) {
    const uint32_t thread = access.first + static_cast<uint32_t>(std::countr_zero(rest));
    for (Mask lanes = read_lanes_[piece]; lanes != 0; lanes &= lanes - 1) {
      const uint32_t other = readers_warp + static_cast<uint32_t>(std::countr_zero(lanes));
      if (in_order(thread, other, time)) continue;
      return {Finding::race_with_read, piece << shift_, thread, other, at_of(reader)};
    }
    if ((reader & many_flag) == 0) continue;
    // Without clocks nothing but a barrier of the block orders threads of different warps.
    if (clocks_ == nullptr) return {Finding::race_with_read, piece << shift_, thread, std::nullopt, at_of(reader)};
    const auto more = more_readers_.find(piece);
    if (more == more_readers_.end()) continue;
    for (const Reader& other : more->second) {
      if (in_order(thread, other.thread, other.time)) continue;
      return {Finding::race_with_read, piece << shift_, thread, other.thread, other.at};
    }
  }
  return {};
}

SharedShadow::Result SharedShadow::check_read(uint32_t piece, const Access& access) const {
  if (write_time_[piece] < block_start_) {
    const uint32_t leader = access.first + static_cast<uint32_t>(std::countr_zero(access.lanes));
    return {Finding::uninitialised, piece << shift_, leader, std::nullopt, 0};
  }
  const Result race = check_write_before(piece, access);
  if (race || unwritten_.empty() || unwritten_[piece] == 0) return race;
  return {Finding::uninitialised, piece << shift_, thread_of(who(access)), std::nullopt, 0};
}

/// Looks for a fence of proxies between a thread's write and a copy in bulk that reads it. The thread that has written
/// may have executed the fence, or the one that copies.
SharedShadow::Result SharedShadow::check_proxies(uint32_t piece, const Access& access) const {
  const uint32_t time = write_time_[piece], writer = write_who_[piece];
  if ((writer & bulk_flag) != 0) return {};
  const uint32_t thread = access.first + static_cast<uint32_t>(std::countr_zero(access.lanes));
  if (proxies_fenced_[thread_of(writer)] >= time || proxies_fenced_[thread] >= time) return {};
  return found(Finding::not_fenced, piece, thread, writer);
}

/// Replaces what is known of earlier reads if they come before this one, else adds this one to them.
void SharedShadow::note_read(uint32_t piece, const Access& access, uint32_t who, uint32_t now) {
  uint32_t& time = read_time_[piece];
  uint32_t& reader = read_who_[piece];
  const uint32_t warp = access.first / warp_lanes;
  const bool same_warp = thread_of(reader) / warp_lanes == warp;
  const bool alone = (reader & many_flag) == 0;
  if (time < block_met_ || (same_warp && alone && (time < warp_met_[warp] || read_lanes_[piece] == access.lanes))) {
    time = now;
    reader = who;
    read_lanes_[piece] = access.lanes;
    if (clocks_ != nullptr) more_readers_.erase(piece);
    return;
  }
  if ((who & strong_flag) == 0) reader &= ~strong_flag;
  if (same_warp && clocks_ == nullptr) {
    read_lanes_[piece] |= access.lanes;
    return;
  }
  reader |= many_flag;
  if (clocks_ == nullptr) return;
  std::vector<Reader>& more = more_readers_[piece];
  for (Mask rest = access.lanes; rest != 0; rest &= rest - 1) {
    const uint32_t thread = access.first + static_cast<uint32_t>(std::countr_zero(rest));
    std::erase_if(more, [&](const Reader& earlier) { return in_order(thread, earlier.thread, earlier.time); });
    more.push_back({thread, now_, at_of(who)});
  }
}

void SharedShadow::note_write(uint32_t first, uint32_t pieces, uint32_t time, uint32_t who) {
  std::fill_n(write_time_.begin() + first, pieces, time);
  std::fill_n(write_who_.begin() + first, pieces, who);
  if (!unwritten_.empty()) std::fill_n(unwritten_.begin() + first, pieces, uint8_t{0});
}

void SharedShadow::hold_unwritten(uint32_t offset, uint32_t bytes) {
  enter_logged_reads(0, static_cast<uint32_t>(chunk_logged_.size() << chunk_shift));
  unwritten_.resize(write_time_.size());
  std::fill_n(unwritten_.begin() + (offset >> shift_), (bytes + (1u << shift_) - 1) >> shift_, uint8_t{1});
}

/// Nothing has happened to the pieces since the block last met.
bool SharedShadow::is_quiet(uint32_t first, uint32_t pieces) const {
  const uint32_t* const written = write_time_.data() + first;
  const uint32_t* const read = read_time_.data() + first;
  uint32_t busy = 0;
  for (uint32_t k = 0; k < pieces; ++k) {
    busy |= static_cast<uint32_t>(written[k] >= block_met_) | static_cast<uint32_t>(read[k] >= block_met_);
  }
  return busy == 0;
}

SharedShadow::Result SharedShadow::read(const Access& access) {
  const uint32_t first = access.offset >> shift_, pieces = (access.bytes + (1u << shift_) - 1) >> shift_;
  const uint32_t reader = who(access);
  for (uint32_t piece = first; piece < first + pieces; ++piece) {
    // Written in this block, before it last met: one comparison for what nearly every read finds.
    if (write_time_[piece] - block_start_ >= block_met_ - block_start_ || !unwritten_.empty()) {
      if (const Result result = check_read(piece, access)) return result;
    }
    if (access.is_bulk) {
      if (const Result result = check_proxies(piece, access)) return result;
    }
    note_read(piece, access, reader, now_);
  }
  return {};
}

void SharedShadow::touch_chunks(uint32_t offset, uint32_t bytes, uint32_t time) {
  const uint32_t last = (offset + bytes - 1) >> chunk_shift;
  for (uint32_t chunk = offset >> chunk_shift; chunk <= last; ++chunk) chunk_written_[chunk] = time;
}

/// Whether everything in the chunk was written before the block last met, or never.
bool SharedShadow::is_settled(uint32_t chunk) {
  if (chunk_written_[chunk] < block_met_) return true;
  // The latest writer may have been a copy that has landed since.
  const uint32_t pieces = 1u << (chunk_shift - shift_), first = chunk << (chunk_shift - shift_);
  const auto end = std::min<size_t>(first + pieces, write_time_.size());
  const auto latest = std::max_element(write_time_.begin() + first, write_time_.begin() + static_cast<ptrdiff_t>(end));
  chunk_written_[chunk] = *latest;
  return *latest < block_met_;
}

bool SharedShadow::log_read(const WarpAccess& access, uint32_t lowest, uint32_t highest) {
  constexpr size_t most_logged = 4096;
  if (!logs_ || !unwritten_.empty()) return false;
  const uint32_t first_chunk = lowest >> chunk_shift, last_chunk = (highest + access.bytes - 1) >> chunk_shift;
  bool full = true;
  for (uint32_t chunk = first_chunk; chunk <= last_chunk; ++chunk) {
    if (!is_settled(chunk)) return false;
    if (chunk_full_[chunk] == block_start_) continue;
    const uint32_t pieces = 1u << (chunk_shift - shift_), first = chunk << (chunk_shift - shift_);
    const auto end = static_cast<ptrdiff_t>(std::min<size_t>(first + pieces, write_time_.size() - 1));
    const bool whole = std::all_of(write_time_.begin() + first, write_time_.begin() + end,
                                   [&](uint32_t time) { return time >= block_start_; });
    if (whole) chunk_full_[chunk] = block_start_;
    full = full && whole;
  }
  const uint32_t pieces = std::max(access.bytes >> shift_, 1u);
  for (Mask rest = full ? 0 : access.lanes; rest != 0; rest &= rest - 1) {
    const uint32_t first = access.offset[static_cast<size_t>(std::countr_zero(rest))] >> shift_;
    for (uint32_t piece = first; piece < first + pieces; ++piece) {
      if (write_time_[piece] < block_start_) return false;
    }
  }
  if (logged_ == most_logged) enter_logged_reads(0, static_cast<uint32_t>(chunk_logged_.size() << chunk_shift));
  if (logged_ == log_.size()) log_.resize(log_.size() + 64);
  log_[logged_] = access;
  log_[logged_++].time = now_;
  for (uint32_t chunk = first_chunk; chunk <= last_chunk; ++chunk) chunk_logged_[chunk] = now_;
  return true;
}

/// Before anything is written to where logged reads have been, they are entered piece by piece, and later ones, too.
void SharedShadow::enter_logged_reads(uint32_t offset, uint32_t bytes) {
  if (logged_ == 0) return;
  const uint32_t last = std::min((offset + bytes - 1) >> chunk_shift, static_cast<uint32_t>(chunk_logged_.size() - 1));
  bool been_read = false;
  for (uint32_t chunk = offset >> chunk_shift; chunk <= last; ++chunk) {
    been_read = been_read || chunk_logged_[chunk] >= block_met_;
  }
  if (!been_read) return;
  const size_t entries = std::exchange(logged_, 0);
  logs_ = false;
  for (size_t k = 0; k < entries; ++k) {
    const WarpAccess& read = log_[k];
    Access access;
    access.first = read.first;
    access.at = read.at;
    const uint32_t pieces = std::max(read.bytes >> shift_, 1u);
    for (Mask rest = read.lanes; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      access.lanes = Mask{1} << lane;
      const uint32_t first = read.offset[static_cast<size_t>(lane)] >> shift_;
      for (uint32_t piece = first; piece < first + pieces; ++piece) note_read(piece, access, who(access), read.time);
    }
  }
}

bool SharedShadow::write_row(uint32_t offset, uint32_t bytes, uint32_t first, uint32_t at) {
  const uint32_t each = bytes >> shift_, begin = offset >> shift_;
  enter_logged_reads(offset, bytes * warp_lanes);
  if (clocks_ != nullptr || !unwritten_.empty() || !is_quiet(begin, each * warp_lanes)) return false;
  const uint32_t from = std::min(at, (1u << at_bits) - 1) | first << at_bits;
  std::fill_n(write_time_.begin() + begin, each * warp_lanes, now_);
  uint32_t* writer = write_who_.data() + begin;
  for (uint32_t lane = 0; lane < warp_lanes; ++lane) {
    for (uint32_t k = 0; k < each; ++k) *writer++ = from + (lane << at_bits);
  }
  touch_chunks(offset, bytes * warp_lanes, now_);
  return true;
}

bool SharedShadow::write_all_later(const WarpAccess& access, uint32_t lowest, uint32_t highest) {
  const uint32_t each = access.bytes >> shift_, end = highest + access.bytes;
  enter_logged_reads(lowest, end - lowest);
  if (clocks_ != nullptr || !unwritten_.empty() || !is_quiet(lowest >> shift_, (end - lowest) >> shift_)) return false;
  const uint32_t from = std::min(access.at, (1u << at_bits) - 1) | access.first << at_bits;
  for (Mask rest = access.lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    const uint32_t piece = access.offset[lane] >> shift_;
    std::fill_n(write_time_.begin() + piece, each, in_flight);
    std::fill_n(write_who_.begin() + piece, each, from + (lane << at_bits));
  }
  touch_chunks(lowest, end - lowest, in_flight);
  return true;
}

SharedShadow::Result SharedShadow::update(const Access& access) {
  const uint32_t first = access.offset >> shift_, pieces = (access.bytes + (1u << shift_) - 1) >> shift_;
  enter_logged_reads(access.offset, access.bytes);
  for (uint32_t piece = first; piece < first + pieces; ++piece) {
    if (const Result result = check_read(piece, access)) return result;
    if (const Result result = check_reads_before(piece, access)) return result;
  }
  // The last lane stands for all, because the first one often goes on to read the result.
  Access last = access;
  last.lanes = Mask{1} << (warp_lanes - 1 - static_cast<uint32_t>(std::countl_zero(access.lanes)));
  note_write(first, pieces, now_, who(last));
  touch_chunks(access.offset, access.bytes, now_);
  return {};
}

SharedShadow::Result SharedShadow::write_later(const Access& access) {
  const Result result = write(access, [] { return false; });
  if (result) return result;
  note_write(access.offset >> shift_, (access.bytes + (1u << shift_) - 1) >> shift_, in_flight, who(access));
  touch_chunks(access.offset, access.bytes, in_flight);
  return {};
}

void SharedShadow::landed(const Access& access) {
  const uint32_t writer = who(access) | (access.is_bulk ? bulk_flag : 0);
  note_write(access.offset >> shift_, (access.bytes + (1u << shift_) - 1) >> shift_, now_, writer);
}

void SharedShadow::warp_met(uint32_t first, Mask lanes, Mask live) {
  if (clocks_ != nullptr) clocks_->meet(first, lanes, now_);
  ++now_;
  if ((live & ~lanes) == 0) warp_met_[first / warp_lanes] = now_;
}

void SharedShadow::block_met() {
  block_met_ = ++now_;
  logged_ = 0;
  logs_ = clocks_ == nullptr;
}

void SharedShadow::arrived(uint32_t barrier, uint32_t first, Mask lanes) {
  if (clocks_ != nullptr) clocks_->arrive(barrier, first, lanes, now_++);
}

void SharedShadow::left(uint32_t barrier, uint32_t first, Mask lanes) {
  if (clocks_ != nullptr) clocks_->leave(barrier, first, lanes);
}

void SharedShadow::barrier_over(uint32_t barrier) {
  if (clocks_ != nullptr) clocks_->forget(barrier);
}

void SharedShadow::fenced(uint32_t first, Mask lanes, uint8_t order) {
  if (clocks_ == nullptr) return;
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint32_t thread = first + static_cast<uint32_t>(std::countr_zero(lanes));
    if ((order & order_acquires) != 0) clocks_->acquire(thread);
    if ((order & order_releases) != 0) clocks_->release(thread, now_);
  }
  ++now_;
}

void SharedShadow::proxies_fenced(uint32_t first, Mask lanes) {
  if (clocks_ == nullptr) return;  // nor are there copies in bulk
  for (; lanes != 0; lanes &= lanes - 1) proxies_fenced_[first + static_cast<uint32_t>(std::countr_zero(lanes))] = now_;
  ++now_;
}

void SharedShadow::published(uint32_t thread, uint64_t address, bool releases) {
  if (clocks_ != nullptr) clocks_->publish(thread, address, releases, releases ? now_++ : now_);
}

void SharedShadow::observed(uint32_t thread, uint64_t address, bool acquires) {
  if (clocks_ != nullptr) clocks_->observe(thread, address, acquires);
}

}  // namespace kiln::emulator
