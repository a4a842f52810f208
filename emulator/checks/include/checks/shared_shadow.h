// Who touched each piece of a block's shared memory last, and when: finds races and reads of what was never written.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "checks/thread_clocks.h"

namespace kiln::emulator {

/// Shared memory in pieces as small as the kernel's smallest access, so that every access covers whole pieces and what
/// is found is exact to the byte.
///
/// Time is counted in synchronisations: it advances at each barrier and each warp synchronisation, so two accesses by
/// different threads are in order only if the later one's thread has synchronised with the earlier one's since.
/// A barrier of the whole block and a synchronisation of a whole warp are remembered by their time alone, which
/// decides nearly every access by one comparison; all else is asked of ThreadClocks.
///
/// Kernels mostly write a tile, meet, read it many times, and meet again. So reads of what was written before the block
/// last met are only put into a log, which is forgotten when it meets again; a write to where such reads have been
/// has them entered first.
class SharedShadow {
 public:
  /// `partial`: the kernel synchronises in parts, or by memory operations. `now`: where time starts.
  SharedShadow(uint32_t bytes, uint32_t piece_bytes, uint32_t threads, bool partial, uint32_t now = first_time);

  void begin_block();

  /// An access by lanes that are at the same address: `first` is the thread of lane 0, `at` the instruction's index.
  struct Access {
    uint32_t offset = 0, bytes = 4;
    uint32_t first = 0;
    Mask lanes = 0;
    uint32_t at = 0;
    bool strong = false;   ///< volatile, atomic, or with an explicit memory order
    bool is_bulk = false;  ///< through the asynchronous proxy: of a copy in bulk
  };

  enum class Finding : uint8_t {
    none,
    uninitialised,    ///< nobody has written it in this block
    race_with_write,  ///< not in order with the other's write
    race_with_read,   ///< not in order with the other's read
    copy_in_flight,   ///< the other's cp.async has not been waited for
    not_fenced,       ///< between the other's write and a copy in bulk there is no fence of proxies
  };
  /// A finding about an access, with the other party.
  struct Result {
    Finding finding = Finding::none;
    uint32_t offset = 0;            ///< of the piece
    uint32_t thread = 0;            ///< that made the access
    std::optional<uint32_t> other;  ///< the other party; nothing if only its warp's having read is known
    uint32_t other_at = 0;          ///< and its instruction's index
    explicit operator bool() const { return finding != Finding::none; }
  };

  /// An access by a whole warp: lane l of `lanes` has `bytes` at offset[l]; all lie in [lowest, highest + bytes).
  struct WarpAccess {
    uint32_t at = 0, first = 0, bytes = 4, time = 0;
    Mask lanes = 0;
    std::array<uint32_t, warp_lanes> offset;
  };
  /// Takes the read into the log, where it is in order with all writes; else false, and nothing is done: it must be
  /// looked at lane by lane.
  bool log_read(const WarpAccess& access, uint32_t lowest, uint32_t highest);
  /// The same for a store of a whole warp side by side: lane l writes `bytes` at offset + l * bytes.
  bool write_row(uint32_t offset, uint32_t bytes, uint32_t first, uint32_t at);
  /// The same for cp.async by lanes at different offsets: write_later() of all.
  bool write_all_later(const WarpAccess& access, uint32_t lowest, uint32_t highest);

  Result read(const Access& access);
  /// `may_repeat`: asked when a write is not in order with another one; true if it stores what is there already, which
  /// changes nothing for anybody and is allowed.
  template <class MayRepeat>
  Result write(const Access& access, MayRepeat may_repeat);
  /// Reads and writes in one.
  Result update(const Access& access);
  /// A cp.async writes the pieces at some time from now until landed().
  Result write_later(const Access& access);
  void landed(const Access& access);
  /// The same of the copy that write_later() was told of last.
  void landed(uint32_t offset, uint32_t bytes) {
    const uint32_t pieces = (bytes + (1u << shift_) - 1) >> shift_;
    std::fill_n(write_time_.begin() + (offset >> shift_), pieces, now_);
  }
  /// The value that has just been written there is one that nobody has written: reads find it uninitialised.
  void hold_unwritten(uint32_t offset, uint32_t bytes);

  // Synchronisation. `live`: the warp's lanes that have not exited.
  void warp_met(uint32_t first, Mask lanes, Mask live);
  void block_met();
  void arrived(uint32_t barrier, uint32_t first, Mask lanes);
  void left(uint32_t barrier, uint32_t first, Mask lanes);
  void barrier_over(uint32_t barrier);
  void fenced(uint32_t first, Mask lanes, uint8_t order);  // MemoryOrder bits
  void proxies_fenced(uint32_t first, Mask lanes);
  void published(uint32_t thread, uint64_t address, bool releases);
  void observed(uint32_t thread, uint64_t address, bool acquires);
  bool is_partial() const { return clocks_ != nullptr; }

  // The same time for global memory, counted from the beginning of the block.
  uint32_t since_start() const { return now_ - block_start_; }
  /// Whether what thread `other` did at `time` comes before what `thread` does now.
  bool in_order_since_start(uint32_t thread, uint32_t other, uint32_t time) const {
    return in_order(thread, other, block_start_ + time);
  }
  /// Until when (exclusively) `thread` knows all that thread `other` has done. Only of a kernel that synchronises in
  /// parts.
  uint32_t known_until(uint32_t thread, uint32_t other) const;
  /// Whether it is certain that nothing since `time` can have put another thread's doings before those of `thread`.
  bool nobody_met_since(uint32_t thread, uint32_t time) const {
    return clocks_ == nullptr && block_start_ + time >= block_met_ &&
           warp_met_[thread / warp_lanes] <= block_start_ + time;
  }

 private:
  // Who: instruction's index in the low bits, then thread, then the flags.
  static constexpr uint32_t at_bits = 20, thread_bits = 10;
  static constexpr uint32_t strong_flag = 1u << 30, many_flag = 1u << 31;
  static constexpr uint32_t bulk_flag = many_flag;   // of a write
  static constexpr uint32_t in_flight = UINT32_MAX;  // as a time: after everything

  struct Reader {
    uint32_t thread = 0, time = 0, at = 0;
  };

  void restart();
  static uint32_t at_of(uint32_t who) { return who & ((1u << at_bits) - 1); }
  static uint32_t thread_of(uint32_t who) { return who >> at_bits & ((1u << thread_bits) - 1); }
  uint32_t who(const Access& access) const;

  bool in_order(uint32_t thread, uint32_t other, uint32_t time) const;
  Result found(Finding finding, uint32_t piece, uint32_t thread, uint32_t other_who) const;
  Result check_write_before(uint32_t piece, const Access& access) const;
  Result check_reads_before(uint32_t piece, const Access& access) const;
  Result check_read(uint32_t piece, const Access& access) const;
  Result check_proxies(uint32_t piece, const Access& access) const;
  void note_read(uint32_t piece, const Access& access, uint32_t who, uint32_t time);
  void note_write(uint32_t first, uint32_t pieces, uint32_t time, uint32_t who);
  bool is_quiet(uint32_t first, uint32_t pieces) const;
  bool is_settled(uint32_t chunk);
  void enter_logged_reads(uint32_t offset, uint32_t bytes);
  void touch_chunks(uint32_t offset, uint32_t bytes, uint32_t time);

  const uint32_t shift_;
  static constexpr uint32_t first_time = 2;
  uint32_t now_, block_start_, block_met_;
  std::vector<uint32_t> warp_met_;        // by warp
  std::vector<uint32_t> proxies_fenced_;  // by thread: when it last put its writes before what copies in bulk read
  // By piece. Last write; reads since (the first unordered ones): time and one of the readers, with the lanes of its
  // warp.
  std::vector<uint32_t> write_time_, write_who_, read_time_, read_who_;
  std::vector<Mask> read_lanes_;
  std::unique_ptr<ThreadClocks> clocks_;
  std::unordered_map<uint32_t, std::vector<Reader>> more_readers_;  // by piece; only with clocks

  // By chunk of so many bytes: when it was last written (at the latest), and when last read into the log.
  static constexpr uint32_t chunk_shift = 7;
  std::vector<uint32_t> chunk_written_, chunk_logged_;
  std::vector<uint32_t> chunk_full_;  // block_start_ of the block in which all of its pieces have been written
  std::vector<WarpAccess> log_;
  size_t logged_ = 0;  // entries of log_ in use
  bool logs_ = true;   // false until the block meets: reads and writes alternate

  std::vector<uint8_t> unwritten_;  // by piece: holds an unwritten value; empty until one is stored in this block
};

template <class MayRepeat>
SharedShadow::Result SharedShadow::write(const Access& access, MayRepeat may_repeat) {
  const uint32_t first = access.offset >> shift_, pieces = (access.bytes + (1u << shift_) - 1) >> shift_;
  enter_logged_reads(access.offset, access.bytes);
  if (!is_quiet(first, pieces)) {
    for (uint32_t piece = first; piece < first + pieces; ++piece) {
      const Result writes = check_write_before(piece, access);
      if (writes && (writes.finding != Finding::race_with_write || !may_repeat())) return writes;
      if (const Result reads = check_reads_before(piece, access)) return reads;
    }
  }
  note_write(first, pieces, now_, who(access));
  touch_chunks(access.offset, access.bytes, now_);
  return {};
}

}  // namespace kiln::emulator
