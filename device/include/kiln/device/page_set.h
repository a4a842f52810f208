// PageSet: pages of the address space, remembered without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace kiln::device {

/// Pages that something was found out about, for any thread to look up and add to at the same time. A fixed size: of
/// more than 4,096 pages, or 8 that meet in one place, some are forgotten, which costs finding out again.
///
/// A page has 4 KiB, the finest that host and device map memory by: what is true of an address is true of its page.
class PageSet {
 public:
  /// Whether the page of `address` was added. Two or three instructions for each of at most 8 words of one cache line.
  bool has(uint64_t address) const noexcept {
    const uint64_t mark = mark_of(address);
    for (const std::atomic<uint64_t>& word : lines_[line_of(mark)].words) {
      if (word.load(std::memory_order_relaxed) == mark) return true;
    }
    return false;
  }

  void add(uint64_t address) noexcept {
    const uint64_t mark = mark_of(address);
    Line& line = lines_[line_of(mark)];
    for (std::atomic<uint64_t>& word : line.words) {
      uint64_t nothing = 0;
      if (word.compare_exchange_strong(nothing, mark, std::memory_order_relaxed) || nothing == mark) return;
    }
    const size_t victim = next_victim_.fetch_add(1, std::memory_order_relaxed);
    line.words[victim % line.words.size()].store(mark, std::memory_order_relaxed);
  }

 private:
  static constexpr unsigned page_bits = 12;
  static constexpr unsigned line_bits = 9;

  struct alignas(64) Line {
    std::array<std::atomic<uint64_t>, 8> words{};  // marks; 0 for none
  };

  static uint64_t mark_of(uint64_t address) { return (address >> page_bits) + 1; }
  // Multiplicative hashing by the golden ratio: neighbouring pages fall on different lines.
  static size_t line_of(uint64_t mark) { return static_cast<size_t>(mark * 0x9E3779B97F4A7C15 >> (64 - line_bits)); }

  std::array<Line, size_t{1} << line_bits> lines_{};
  std::atomic<size_t> next_victim_{0};
};

}  // namespace kiln::device
