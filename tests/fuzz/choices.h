// Choices that bytes make: what is fuzzed is a function of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>
#include <string_view>

namespace kiln::fuzz {

/// A row of choices: those of the bytes, and behind their end those of a generator that the bytes seed. Equal bytes
/// give equal choices, and so do equal seeds.
class Choices {
 public:
  explicit Choices(std::uint64_t seed) : random_(seed) {}
  /// The bytes must outlive it.
  explicit Choices(std::string_view bytes) : bytes_(bytes) {
    std::seed_seq seed(bytes.begin(), bytes.end());
    random_.seed(seed);
  }

  /// A number below `n`, which is 1 or more.
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(number() % n); }
  bool holds(std::size_t percent) { return below(100) < percent; }
  template <typename List>
  const auto& one_of(const List& list) {
    return *std::next(std::begin(list), static_cast<std::ptrdiff_t>(below(std::size(list))));
  }

 private:
  std::uint64_t number() {
    constexpr std::size_t size = 2;  // of a choice in bytes: enough for the longest list, so that a change stays local
    if (bytes_.size() < size) return random_();
    const std::uint64_t number = static_cast<unsigned char>(bytes_[0]) * 256U + static_cast<unsigned char>(bytes_[1]);
    bytes_.remove_prefix(size);
    return number;
  }

  std::string_view bytes_;
  std::mt19937_64 random_;
};

}  // namespace kiln::fuzz
