// Generated pictures of digits, so that the example needs no data set.
#pragma once

#include <cstdint>
#include <vector>

/// SplitMix64 (Steele, Lea and Flood 2014): the same numbers wherever it is written down; lenet_torch.py does.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  /// In [0, 1), a multiple of 2^-24.
  float uniform() { return static_cast<float>(bits() >> 40) * 0x1p-24f; }
  /// In 0 ... count - 1.
  int below(int count) { return static_cast<int>((bits() >> 32) * static_cast<uint64_t>(count) >> 32); }

 private:
  uint64_t bits();

  uint64_t state_;
};

struct Batch {
  std::vector<float> images;    ///< N,1,32,32: from -2 to 2.
  std::vector<int32_t> labels;  ///< N: 0 to 9.
};

/// Digits of 15 x 21 pixels somewhere on a noisy background of 32 x 32.
class Digits {
 public:
  explicit Digits(uint64_t seed) : random_(seed) {}
  Batch next(int count);

 private:
  void draw(int digit, float* image);

  Random random_;
};
