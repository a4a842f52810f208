// RangeSet: ranges of the address space, remembered without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace kiln::device {

/// Ranges that something was found out about, for any thread to look up and add to at the same time. A fixed size: of
/// more than 16,384 ranges, or 8 that meet in one place, some are forgotten, which costs finding out again.
///
/// A range is remembered by a mark of 63 bits. Two ranges of one program do not share a mark in practice.
class RangeSet {
 public:
  /// Whether these `bytes` at `address` were added. Two or three instructions for each of at most 8 words of one cache
  /// line.
  bool has(uint64_t address, uint64_t bytes) const noexcept {
    const uint64_t mark = mark_of(address, bytes);
    for (const std::atomic<uint64_t>& word : lines_[line_of(mark)].words) {
      if (word.load(std::memory_order_relaxed) == mark) return true;
    }
    return false;
  }

  void add(uint64_t address, uint64_t bytes) noexcept {
    const uint64_t mark = mark_of(address, bytes);
    Line& line = lines_[line_of(mark)];
    for (std::atomic<uint64_t>& word : line.words) {
      uint64_t nothing = 0;
      if (word.compare_exchange_strong(nothing, mark, std::memory_order_relaxed) || nothing == mark) return;
    }
    const size_t victim = next_victim_.fetch_add(1, std::memory_order_relaxed);
    line.words[victim % line.words.size()].store(mark, std::memory_order_relaxed);
  }

  /// Forgets every range. Marks of an earlier generation are found no longer, and are overwritten in time.
  void clear() noexcept { generation_.fetch_add(1, std::memory_order_relaxed); }

 private:
  static constexpr unsigned line_bits = 11;

  struct alignas(64) Line {
    std::array<std::atomic<uint64_t>, 8> words{};  // marks; 0 for none
  };

  // Multiplicative hashing, by the golden ratio and by two primes: the upper bits tell neighbours apart.
  uint64_t mark_of(uint64_t address, uint64_t bytes) const {
    const uint64_t generation = generation_.load(std::memory_order_relaxed);
    return (address * 0x9E3779B97F4A7C15 + bytes * 0xC2B2AE3D27D4EB4F + generation * 0x165667B19E3779F9) | 1;
  }
  static size_t line_of(uint64_t mark) { return static_cast<size_t>(mark >> (64 - line_bits)); }

  std::array<Line, size_t{1} << line_bits> lines_{};
  std::atomic<uint64_t> generation_{0};             // read by every look-up
  alignas(64) std::atomic<size_t> next_victim_{0};  // written by each range that displaces another
};

}  // namespace kiln::device
