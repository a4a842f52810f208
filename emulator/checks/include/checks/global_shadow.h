// Who touched each piece of global memory last in this launch: finds races between blocks, and between the threads of
// a block.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "checks/access.h"
#include "checks/block_order.h"
#include "checks/shared_shadow.h"
#include "memory/region_table.h"

namespace kiln::emulator {

/// The marks (PieceMarks) that the blocks of one host thread leave and find.
///
/// A mark is one word: launch, block, thread, and the time of SharedShadow since the block began. Every mark states
/// something that has happened, and is replaced as a whole, so that host threads need no lock, and what is found is a
/// race. What can be missed: of two accesses at the very same moment by blocks on two host threads, one may not see the
/// other; of the reads of a piece since it was last written, the first and whether other threads, and other blocks,
/// have read is all that is kept; and what a later write of the same piece has replaced is forgotten.
class GlobalShadow {
 public:
  static constexpr uint32_t launch_bits = 12, block_bits = 20;
  static_assert(most_launches < 1u << (launch_bits - 1), "a launch's number fits a mark, whose highest bit stays 0");
  /// Grids of more blocks are not looked at.
  static constexpr uint64_t most_blocks = uint64_t{1} << block_bits;

  /// `piece_bytes`: the kernel's smallest access to global memory. `time`: the block's. `order`: null if the kernel has
  /// nothing that puts blocks in order.
  GlobalShadow(uint32_t launch, uint32_t piece_bytes, const SharedShadow& time, BlockOrder* order);

  void begin_block(uint64_t number);

  /// `pieces` pieces from `marks` on.
  struct Access {
    PieceMarks* marks = nullptr;
    uint32_t pieces = 1;
    uint32_t thread = 0;
    bool strong = false;   ///< volatile, atomic, or with an explicit memory order
    bool partial = false;  ///< less than a piece: copies may be shorter than what they fill
  };
  /// The access of a region whose first byte has the marks `of_region`, `offset` bytes on.
  Access access(PieceMarks* of_region, uint64_t offset, uint32_t bytes, uint32_t thread, bool strong) const {
    const uint64_t first = offset >> shift_;
    const auto pieces = static_cast<uint32_t>(((offset + bytes - 1) >> shift_) - first) + 1;
    return {of_region + first, pieces, thread, strong, bytes < pieces << shift_};
  }

  /// The other party of a race.
  struct Other {
    bool has_written = false;  ///< else it has read
    uint64_t block = 0;
    std::optional<uint32_t> thread = std::nullopt;  ///< nothing if only its block is known
    bool is_known = true;                           ///< false: `block` is this one, and some other block has read
  };
  /// Nothing unless it races.
  std::optional<Other> read(const Access& access);
  /// The same by lanes whose addresses `window` holds; the first one is thread `first`. Those before `lane` are done.
  std::optional<Other> read_lanes(const AccessRequest& request, Mask lanes, const AddressWindow& window, uint32_t first,
                                  bool strong, uint32_t& lane);
  /// `may_repeat`: asked when a write is not in order with another one of this block; true if it stores what is there
  /// already, which changes nothing for anybody and is allowed.
  template <class MayRepeat>
  std::optional<Other> write(const Access& access, MayRepeat may_repeat);

  /// Whether all that the lanes read is known to have been read in this launch and not to have been written: then these
  /// reads are in order, add nothing to the marks, and find what earlier ones have found initialised. It is what nearly
  /// all reads of a kernel's inputs look like. `window` holds the lanes' addresses.
  bool is_old_news(const AccessRequest& request, Mask lanes, const AddressWindow& window) const;
  /// The same of all bytes from the lowest address to what is read at the highest, `bytes` of it. False says nothing.
  bool is_old_news(const Reach& reach, uint32_t bytes, const AddressWindow& window) const;

 private:
  // A mark, from the highest bits down: launch, block, thread, flags, time. Earlier launches have lower numbers.
  static constexpr uint32_t thread_bits = 10, time_bits = 18;
  static constexpr uint32_t thread_at = time_bits + 4, block_at = thread_at + thread_bits;
  static constexpr uint32_t launch_at = block_at + block_bits;
  static_assert(launch_at + launch_bits == 64);
  static constexpr uint64_t several_flag = uint64_t{1} << time_bits;       // threads of the block have read
  static constexpr uint64_t many_flag = uint64_t{1} << (time_bits + 1);    // blocks have read
  static constexpr uint64_t weak_flag = many_flag;                         // of a strong write: one that was not, too
  static constexpr uint64_t strong_flag = uint64_t{1} << (time_bits + 2);  // and nobody otherwise
  // In the mark of a read: the piece has been written in this launch, or only a part of it was read. A later read of it
  // is then checked in full.
  static constexpr uint64_t watched_flag = uint64_t{1} << (time_bits + 3);
  static constexpr uint64_t launch_mask = ~uint64_t{0} << launch_at, block_mask = ~uint64_t{0} << block_at;
  static constexpr uint32_t latest = (1u << time_bits) - 1;  // a time that was too late to be kept

  // How the mark of a read that adds nothing looks: `bits` where `mask` is set.
  struct OldNews {
    uint64_t bits, mask;
  };

  static uint64_t get(uint64_t& mark) { return std::atomic_ref(mark).load(std::memory_order_relaxed); }
  static void put(uint64_t& mark, uint64_t value) { std::atomic_ref(mark).store(value, std::memory_order_relaxed); }
  static uint32_t thread_of(uint64_t mark) { return mark >> thread_at & ((1u << thread_bits) - 1); }
  static uint64_t block_of(uint64_t mark) { return mark >> block_at & (most_blocks - 1); }
  static uint32_t time_of(uint64_t mark) { return static_cast<uint32_t>(mark) & latest; }

  bool is_current(uint64_t mark) const { return mark >= launch_; }
  OldNews old_news_like(uint64_t read) const;
  PieceMarks* marks_at(uint64_t address, const AddressWindow& window) const {
    return window.marks + ((address - window.begin) >> shift_);
  }
  uint64_t mark_of(uint32_t thread, bool strong) const;
  uint64_t joined(uint64_t read, uint64_t mark) const;
  uint64_t replaces(uint64_t write, uint64_t by) const;
  bool in_order(const Access& access, uint64_t mark) const;
  std::optional<Other> check_write_before(uint64_t write, const Access& access) const;
  std::optional<Other> check_reads_before(uint64_t read, const Access& access) const;

  const uint64_t launch_;  // in its place
  const uint32_t shift_;
  const SharedShadow& time_;
  BlockOrder* const order_;
  uint64_t block_ = 0;
  uint64_t here_ = 0;  // launch and block, in their places
};

template <class MayRepeat>
std::optional<GlobalShadow::Other> GlobalShadow::write(const Access& access, MayRepeat may_repeat) {
  const uint64_t mark = mark_of(access.thread, access.strong);
  for (PieceMarks* marks = access.marks; marks != access.marks + access.pieces; ++marks) {
    const uint64_t write = get(marks->write), read = get(marks->read);
    if (is_current(write)) {
      const std::optional<Other> other = check_write_before(write, access);
      if (other && (other->block != block_ || !may_repeat())) return other;
    }
    if (is_current(read)) {
      if (const std::optional<Other> other = check_reads_before(read, access)) return other;
    }
    put(marks->write, replaces(write, mark));
    put(marks->read, 0);  // whatever races with those reads races with this write, or comes after it
  }
  return std::nullopt;
}

}  // namespace kiln::emulator
