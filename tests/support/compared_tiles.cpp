#include "compared_tiles.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace kiln::testing_support::mma {
namespace {

struct Exponents {
  int lowest, highest;
};

/// Numbers of a tile: exponents of A, B and C, how many elements of eight are 0, and how many pairs of products along k
/// cancel in each element of D.
struct Family {
  uint32_t tiles;
  Exponents a, b, c;
  uint32_t zeros = 0, pairs = 0;
};

/// Exponents of the type's numbers: the largest, the smallest normal, the smallest.
struct Range {
  int largest, normal, least;
};

Range range_of(const std::string& type) {
  const Landmarks marks = landmarks_of(type);
  const int fraction = std::popcount(marks.fraction), bias = static_cast<int>(marks.one >> fraction);
  return {static_cast<int>((marks.infinity - 1) >> fraction) - bias, 1 - bias, 1 - bias - fraction};
}

class Probes {
 public:
  explicit Probes(const Form& form) : form_(form) {}

  std::vector<Tile> all() {
    const Range a = range_of(form_.a), b = range_of(form_.b), d = range_of(form_.sum);
    const int low = d.least / 2, high = d.largest / 2;
    const uint32_t pairs = form_.k / 4;
    const Exponents middle = {-12, 12}, wide = {-24, 24};
    add({48, middle, middle, wide});
    add({32, middle, middle, wide, 6});                                                // few products
    add({48, middle, middle, wide, 0, pairs});                                         // small ones beside large ones
    add({32, middle, middle, {d.least, d.least}, 0, 2 * pairs});                       // nothing is left, or C
    add({48, {low - 6, low + 6}, {low - 6, low + 6}, {d.least - 1, d.least + 8}, 1});  // about the smallest result
    add({32, {low - 6, low + 6}, {low - 6, low + 6}, {d.least - 1, d.least + 8}, 1, pairs});
    add({32, {a.least, a.normal + 2}, {-a.normal - 12, -a.normal + 2}, {-14, 4}});  // subnormal factors
    add({32, {-b.normal - 12, -b.normal + 2}, {b.least, b.normal + 2}, {-14, 4}});
    add({32, {high - 2, high + 1}, {high - 2, high + 1}, {d.largest - 3, d.largest}});  // about the largest result
    add_zeros(16);
    for (int t = 0; t < 32; ++t) tiles_.push_back(draw_.tile(form_, Draw::Kind::any));
    return std::move(tiles_);
  }

 private:
  uint32_t below(uint32_t count) { return static_cast<uint32_t>(random_()) % count; }

  /// A number of the type with an exponent within these, where the type has it; one beyond the smallest is 0.
  uint32_t number(const std::string& type, Exponents exponents) {
    const Landmarks marks = landmarks_of(type);
    const int fraction = std::popcount(marks.fraction), bias = static_cast<int>(marks.one >> fraction);
    const int exponent = exponents.lowest + static_cast<int>(below(exponents.highest - exponents.lowest + 1)) + bias;
    const uint32_t sign = below(2) * marks.sign, digits = static_cast<uint32_t>(random_()) & marks.fraction;
    const uint32_t bits = exponent > 0 ? static_cast<uint32_t>(exponent) << fraction | digits
                                       : (marks.fraction + 1 + digits) >> std::min(1 - exponent, 31);
    return sign | std::min(bits, marks.infinity - 1);
  }

  void add(const Family& family) {
    const auto draw = [&](const std::string& type, Exponents exponents) {
      const uint32_t bits = number(type, exponents);
      return below(8) < family.zeros ? bits & landmarks_of(type).sign : bits;
    };
    for (uint32_t t = 0; t < family.tiles; ++t) {
      Tile tile;
      for (uint32_t i = 0; i < form_.rows * form_.k; ++i) tile.a.push_back(draw(form_.a, family.a));
      for (uint32_t i = 0; i < form_.k * columns; ++i) tile.b.push_back(draw(form_.b, family.b));
      for (uint32_t i = 0; i < form_.rows * columns; ++i) tile.c.push_back(draw(form_.sum, family.c));
      std::vector<uint32_t> order;  // of k
      for (uint32_t k = 0; k < form_.k; ++k) order.insert(order.begin() + below(k + 1), k);
      for (uint32_t pair = 0; pair < family.pairs; ++pair) cancel(tile, order[2 * pair], order[2 * pair + 1]);
      tiles_.push_back(std::move(tile));
    }
  }

  /// Makes the products at `other` those at `k`, negated.
  void cancel(Tile& tile, uint32_t k, uint32_t other) const {
    for (uint32_t r = 0; r < form_.rows; ++r) tile.a[r * form_.k + other] = tile.a[r * form_.k + k];
    for (uint32_t n = 0; n < columns; ++n) {
      tile.b[other * columns + n] = tile.b[k * columns + n] ^ landmarks_of(form_.b).sign;
    }
  }

  /// Terms of 0: in a row or column all of one sign, or of any. B has ones too.
  void add_zeros(uint32_t count) {
    const Landmarks a = landmarks_of(form_.a), b = landmarks_of(form_.b), c = landmarks_of(form_.sum);
    const auto sign_of = [&](uint32_t line) { return line % 4 < 2 ? line % 2 : below(2); };
    for (uint32_t t = 0; t < count; ++t) {
      Tile tile;
      for (uint32_t i = 0; i < form_.rows * form_.k; ++i) tile.a.push_back(sign_of(i / form_.k) * a.sign);
      for (uint32_t i = 0; i < form_.k * columns; ++i) {
        tile.b.push_back(sign_of(i % columns) * b.sign | (i % columns < 4 ? b.one : 0));
      }
      for (uint32_t i = 0; i < form_.rows * columns; ++i) tile.c.push_back(below(2) * c.sign);
      tiles_.push_back(std::move(tile));
    }
  }

  const Form& form_;
  std::vector<Tile> tiles_;
  Draw draw_{43};
  std::mt19937 random_{43};
};

}  // namespace

std::vector<TileSet> compared_tiles(const Form& form) {
  TileSet drawn{"bits", {}};
  for (const Draw::Kind kind : {Draw::Kind::usual, Draw::Kind::edges, Draw::Kind::extremes}) {
    Draw draw(41);
    for (int t = 0; t < 64; ++t) drawn.tiles.push_back(draw.tile(form, kind));
  }
  if (form.integers()) return {std::move(drawn)};
  return {std::move(drawn), {"probes", Probes(form).all()}};
}

uint32_t digest_of(const std::vector<uint32_t>& words) {
  uint32_t digest = 0x811C9DC5;
  for (const uint32_t word : words) {
    for (int byte = 0; byte < 4; ++byte) digest = (digest ^ (word >> (8 * byte) & 0xFF)) * 0x01000193;
  }
  return digest;
}

}  // namespace kiln::testing_support::mma
