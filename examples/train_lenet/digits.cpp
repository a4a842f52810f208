#include "digits.h"

#include <array>
#include <cstddef>

namespace {

constexpr int size = 32, scale = 3;  // pixels of an image's side, and of a dot's

// Seven rows of five dots.
constexpr std::array<std::array<const char*, 7>, 10> font = {{
    {".###.", "#...#", "#..##", "#.#.#", "##..#", "#...#", ".###."},
    {"..#..", ".##..", "..#..", "..#..", "..#..", "..#..", ".###."},
    {".###.", "#...#", "....#", "...#.", "..#..", ".#...", "#####"},
    {"#####", "...#.", "..#..", "...#.", "....#", "#...#", ".###."},
    {"...#.", "..##.", ".#.#.", "#..#.", "#####", "...#.", "...#."},
    {"#####", "#....", "####.", "....#", "....#", "#...#", ".###."},
    {"..##.", ".#...", "#....", "####.", "#...#", "#...#", ".###."},
    {"#####", "....#", "...#.", "..#..", ".#...", ".#...", ".#..."},
    {".###.", "#...#", "#...#", ".###.", "#...#", "#...#", ".###."},
    {".###.", "#...#", "#...#", ".####", "....#", "...#.", ".##.."},
}};

}  // namespace

uint64_t Random::bits() {
  state_ += 0x9E3779B97F4A7C15;
  uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
  return mixed ^ (mixed >> 31);
}

void Digits::draw(int digit, float* image) {
  const int left = 5 + random_.below(8), top = 2 + random_.below(8);
  const float ink = 0.5f + 0.5f * random_.uniform();
  for (int i = 0; i < size * size; ++i) image[i] = 0.25f * random_.uniform();
  for (int row = 0; row < 7 * scale; ++row) {
    for (int column = 0; column < 5 * scale; ++column) {
      const bool dot = font[static_cast<size_t>(digit)][static_cast<size_t>(row / scale)][column / scale] == '#';
      if (dot) image[(top + row) * size + left + column] = ink;
    }
  }
  for (int i = 0; i < size * size; ++i) image[i] = 4 * image[i] - 2;
}

Batch Digits::next(int count) {
  Batch batch;
  batch.images.resize(static_cast<size_t>(count) * size * size);
  for (int i = 0; i < count; ++i) {
    const int digit = random_.below(10);
    batch.labels.push_back(digit);
    draw(digit, batch.images.data() + static_cast<ptrdiff_t>(i) * size * size);
  }
  return batch;
}
