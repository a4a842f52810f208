// Forms of mma, tiles to multiply, and their fragments where the PTX ISA puts them.
#pragma once

#include <array>
#include <cstdint>
#include <ostream>
#include <random>
#include <string>
#include <vector>

namespace kiln::testing_support::mma {

inline constexpr uint32_t columns = 8, lanes = 32;

/// A form of mma.
struct Form {
  std::string shape, a, b, sum;
  uint32_t rows, k;
  bool saturates = false;
  bool half_sums() const { return sum == "f16"; }
  bool integers() const { return sum == "s32"; }
  uint32_t bits() const { return a == "tf32" ? 32 : a == "f16" || a == "bf16" ? 16 : 8; }
  uint32_t in_word() const { return 32 / bits(); }
  uint32_t a_registers() const { return rows * k * bits() / 32 / lanes; }
  uint32_t b_registers() const { return columns * k * bits() / 32 / lanes; }
  uint32_t lane_sums() const { return rows * columns / lanes; }
  uint32_t sum_registers() const { return lane_sums() / (half_sums() ? 2 : 1); }
  std::string opcode() const {
    return "mma.sync.aligned." + shape + ".row.col." + (saturates ? "satfinite." : "") + sum + "." + a + "." + b + "." +
           sum;
  }
};

/// For names of tests in gtest's messages.
inline void PrintTo(const Form& form, std::ostream* out) {
  *out << form.opcode();
}

std::vector<Form> all_forms();

/// A place in a matrix.
struct Place {
  uint32_t row, column;
};

Place place_in_sums(uint32_t lane, uint32_t i);

/// Operands of one product, as bits.
struct Tile {
  std::vector<uint32_t> a, b;  // [row][k], [k][column]
  std::vector<uint32_t> c;     // [row][column]
};

/// Words of the fragments of all tiles, by tile, register and lane.
struct Fragments {
  std::vector<uint32_t> a, b, c, d;
};

/// Registers of product_text(), %r: the first of A, B, C and D.
inline constexpr uint32_t a_first = 8, b_first = 12, c_first = 16, d_first = 20;

/// The instruction.
std::string product_text(const Form& form);

/// The first compute capability, as 10 * major + minor, that has the form: ptxas refuses those below.
int first_target(const Form& form);

/// A module of one kernel `k` whose warps multiply a tile each. Parameters: addresses of the words of Fragments.
std::string kernel_text(const Form& form, int target = 90);

Fragments fragments_of(const Form& form, const std::vector<Tile>& tiles);

/// The number that the bits of an element stand for. Fractions of tf32 are cut off, as tensor cores read them.
double value_of(const std::string& type, uint32_t bits);

/// Bits of element i of a lane's fragment of D.
uint32_t result_at(const Form& form, const Fragments& f, size_t tile, uint32_t lane, uint32_t i);

/// Numbers of a type: 1, the smallest normal one, infinity or what is beyond the largest number, the bits of fractions.
struct Landmarks {
  uint32_t one, normal, infinity, fraction, sign;
};

Landmarks landmarks_of(const std::string& type);

/// Draws bits of elements: all there are, or those at which arithmetic goes wrong.
class Draw {
 public:
  explicit Draw(uint32_t seed) : random_(seed) {}

  enum class Kind { usual, edges, extremes, any };

  uint32_t element(const std::string& type, Kind kind) {
    const auto bits = static_cast<uint32_t>(random_());
    if (type == "s8" || type == "u8") {
      const std::array<uint32_t, 4> edges = {0, 0x7F, 0x80, 0xFF};
      return kind == Kind::edges ? edges[bits % edges.size()] : bits & 0xFF;
    }
    if (type == "s32") {
      const std::array<uint32_t, 6> edges = {0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FFF0000};
      return kind == Kind::any ? bits : kind == Kind::usual ? bits % 1000 : edges[bits % edges.size()];
    }
    const Landmarks marks = landmarks_of(type);
    if (kind == Kind::any) return bits & (2 * marks.sign - 1);
    const uint32_t sign = bits / 3 % 2 == 0 ? 0 : marks.sign;
    const auto other = static_cast<uint32_t>(random_());
    if (kind == Kind::usual) return sign | (marks.one - 2 * (marks.fraction + 1) + other % (3 * (marks.fraction + 1)));
    const std::array<uint32_t, 8> edges = {
        0, 1, marks.fraction, marks.normal, marks.one, marks.one + 1, marks.one - 1, marks.infinity - 1};
    if (kind == Kind::edges || bits % 8 != 0) return sign | edges[other % edges.size()];
    return sign | (marks.infinity + (other % 4 == 0 && marks.infinity != 0x7F ? 1 + other % marks.fraction : 0));
  }

  Tile tile(const Form& form, Kind kind) {
    Tile tile;
    for (uint32_t k = 0; k < form.rows * form.k; ++k) tile.a.push_back(element(form.a, kind));
    for (uint32_t k = 0; k < columns * form.k; ++k) tile.b.push_back(element(form.b, kind));
    for (uint32_t k = 0; k < form.rows * columns; ++k) tile.c.push_back(element(form.sum, kind));
    return tile;
  }

 private:
  std::mt19937 random_;
};

}  // namespace kiln::testing_support::mma
