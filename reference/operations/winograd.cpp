#include "operations/winograd.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace kiln::reference {
namespace {

constexpr size_t most_outputs = 4, most_positions = 6;

template <size_t ROWS, size_t COLUMNS>
using Matrix = std::array<std::array<double, COLUMNS>, ROWS>;
using Positions = Matrix<most_positions, most_positions>;

// F(m x m, 3x3): magnitudes of the elements of its matrices (lib/winograd.cuh), and what the bound follows from.
struct Form {
  size_t outputs;                                // m
  Matrix<most_outputs, most_positions> output;   // A^T
  Matrix<most_positions, 3> filter;              // G
  Matrix<most_positions, most_positions> input;  // B^T
  double scale;                                  // of the filters that kernels compute with
  std::array<int, most_outputs> quanta;          // log2 of what the sums of each output are multiples of
  int quantum;                                   // log2 of the power of two not above 1 / scale
  int64_t transform_roundings;

  size_t positions() const { return outputs + 2; }
};

constexpr std::array<Form, 2> forms = {{
    {.outputs = 2,
     .output = {{{1, 1, 1, 0}, {0, 1, 1, 1}}},
     .filter = {{{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}, {0, 0, 1}}},
     .input = {{{1, 0, 1, 0}, {0, 1, 1, 0}, {0, 1, 1, 0}, {0, 1, 0, 1}}},
     .scale = 4,
     .quanta = {0, 0},
     .quantum = -2,
     .transform_roundings = 10},
    {.outputs = 4,
     .output = {{{1, 1, 1, 1, 1, 0}, {0, 1, 1, 2, 2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, 1, 8, 8, 1}}},
     .filter = {{{1 / 4.0, 0, 0},
                 {1 / 6.0, 1 / 6.0, 1 / 6.0},
                 {1 / 6.0, 1 / 6.0, 1 / 6.0},
                 {1 / 24.0, 1 / 12.0, 1 / 6.0},
                 {1 / 24.0, 1 / 12.0, 1 / 6.0},
                 {0, 0, 1}}},
     .input = {{{4, 0, 5, 0, 1, 0},
                {0, 4, 4, 1, 1, 0},
                {0, 4, 4, 1, 1, 0},
                {0, 2, 1, 2, 1, 0},
                {0, 2, 1, 2, 1, 0},
                {0, 4, 0, 5, 0, 1}}},
     .scale = 576,
     .quanta = {0, 1, 2, 2},
     .quantum = -10,
     .transform_roundings = 15},
}};

// left * inner * left^T
template <size_t COLUMNS>
Positions both_sides(const Matrix<most_positions, COLUMNS>& left, const Matrix<COLUMNS, COLUMNS>& inner) {
  Matrix<most_positions, COLUMNS> half{};
  for (size_t i = 0; i < most_positions; ++i) {
    for (size_t k = 0; k < COLUMNS; ++k) {
      for (size_t j = 0; j < COLUMNS; ++j) half[i][j] += left[i][k] * inner[k][j];
    }
  }
  Positions result{};
  for (size_t i = 0; i < most_positions; ++i) {
    for (size_t j = 0; j < most_positions; ++j) {
      for (size_t k = 0; k < COLUMNS; ++k) result[i][j] += half[i][k] * left[j][k];
    }
  }
  return result;
}

// Properties of a tile's operands that matter.
struct Tile {
  double magnitude = 0;
  double largest = 0;  // of what kernels compute on the way
  int input_quantum = Expected::quantum_of_zero, filter_quantum = Expected::quantum_of_zero;
  bool finite = true;
};

// Reads a value into a matrix of magnitudes.
double note(double value, int& quantum, bool& finite) {
  quantum = std::min(quantum, quantum_of(value));
  finite = finite && std::isfinite(value);
  return std::fabs(value);
}

// Tile of output (p, q): |A^T| (sum over c of (|G| |g| |G^T|) . (|B^T| |d| |B|)) |A|.
Tile tile_at(const Form& form, const PlaneConvolution& conv, int64_t p, int64_t q) {
  const auto outputs = static_cast<int64_t>(form.outputs);
  const auto& down = form.output[static_cast<size_t>(p % outputs)];
  const auto& right = form.output[static_cast<size_t>(q % outputs)];
  const int64_t top = p / outputs * outputs, left = q / outputs * outputs;
  Tile tile;
  for (int64_t c = 0; c < conv.channels; ++c) {
    Positions patch{};
    Matrix<3, 3> taps{};
    for (size_t i = 0; i < form.positions(); ++i) {
      for (size_t j = 0; j < form.positions(); ++j) {
        const double value = conv.input(c, top + static_cast<int64_t>(i), left + static_cast<int64_t>(j));
        patch[i][j] = note(value, tile.input_quantum, tile.finite);
      }
    }
    for (size_t r = 0; r < 3; ++r) {
      for (size_t s = 0; s < 3; ++s) {
        const double value = conv.filter(c, static_cast<int64_t>(r), static_cast<int64_t>(s));
        taps[r][s] = note(value, tile.filter_quantum, tile.finite);
      }
    }
    if (!tile.finite) return tile;
    const Positions inputs = both_sides(form.input, patch), filters = both_sides(form.filter, taps);
    for (size_t i = 0; i < form.positions(); ++i) {
      for (size_t j = 0; j < form.positions(); ++j) {
        tile.magnitude += down[i] * right[j] * inputs[i][j] * filters[i][j];
        tile.largest = std::max({tile.largest, inputs[i][j], form.scale * filters[i][j]});
      }
    }
  }
  tile.largest = std::max(tile.largest, form.scale * tile.magnitude);
  return tile;
}

void permit(Expected& sum, const Form& form, const PlaneConvolution& conv, int64_t p, int64_t q) {
  const Tile tile = tile_at(form, conv, p, q);
  if (!tile.finite) {
    // Every element of the window reaches the result, so that it is not finite if one of them is not; what else is in
    // the tile may reach it.
    sum.unspecified = sum.unspecified || std::isfinite(sum.value);
    sum.any_not_finite = true;
    return;
  }
  const bool overflows = tile.largest > std::numeric_limits<float>::max();
  const double magnitude = overflows ? std::numeric_limits<double>::infinity() : tile.magnitude;
  sum.magnitude = std::max(sum.magnitude, magnitude);
  sum.finite_magnitude = std::max(sum.finite_magnitude, magnitude);
  const auto outputs = static_cast<int64_t>(form.outputs);
  const int quantum = form.quantum + form.quanta[static_cast<size_t>(p % outputs)] +
                      form.quanta[static_cast<size_t>(q % outputs)] + tile.input_quantum + tile.filter_quantum;
  sum.quantum = std::clamp(std::min(sum.quantum, quantum), Expected::no_quantum, Expected::quantum_of_zero);
  // An eighth of the products for those that underflow; and terms of second order: (1 + u)^L - 1 exceeds L u by less
  // than L^2 u^2, for the L of anything that fits a memory.
  const int64_t roundings = conv.channels + form.transform_roundings + (conv.channels + 7) / 8;
  sum.roundings = std::max(sum.roundings, roundings + 1 + (roundings * roundings >> 24));
}

}  // namespace

void permit_winograd(Expected& sum, const PlaneConvolution& conv, int64_t p, int64_t q) {
  for (const Form& form : forms) permit(sum, form, conv, p, q);
}

}  // namespace kiln::reference
