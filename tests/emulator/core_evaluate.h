// Executes one PTX instruction on many values, for tests of instruction families against a host oracle.
#pragma once

#include <algorithm>
#include <bit>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core_fixture.h"
#include "machine/program.h"
#include "units/unit_table.h"

namespace kiln::emulator::test {

/// The instruction's text with d, a, b, c as operands, e.g. "add.s32 d, a, b;", whose registers have 2, 4 or 8 bytes.
/// Several instructions may follow one another, with "%G" where the guard goes; they may use the predicates q and q2
/// and the registers h, h2 (16 bits), w, w2 (32 bits) and l (64 bits).
struct Evaluation {
  std::string instruction;
  uint32_t result_bytes = 4;
  std::vector<uint32_t> source_bytes;
};

/// Values as the bits of registers: result k is the instruction's on the k-th of each source. Runs the instruction
/// unguarded, then under @p, and expects the guarded one to change odd threads only; on all units this CPU can run.
std::vector<uint64_t> evaluate_bits(const Evaluation& evaluation, const std::vector<std::vector<uint64_t>>& sources,
                                    const UnitTable& units);

template <class T>
uint64_t to_bits(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <class T>
T from_bits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

template <class T>
std::vector<uint64_t> bits_of_all(const std::vector<T>& values) {
  std::vector<uint64_t> bits;
  for (const T value : values) bits.push_back(to_bits(value));
  return bits;
}

/// All combinations of the awkward values of each source type, as columns of bits.
template <class... S>
std::vector<std::vector<uint64_t>> combinations(const std::vector<S>&... values) {
  std::vector<std::vector<uint64_t>> columns(sizeof...(S));
  const std::vector<std::vector<uint64_t>> choices = {bits_of_all(values)...};
  std::vector<size_t> index(sizeof...(S), 0);
  for (;;) {
    for (size_t k = 0; k < columns.size(); ++k) columns[k].push_back(choices[k][index[k]]);
    size_t k = 0;
    while (k < index.size() && ++index[k] == choices[k].size()) index[k++] = 0;
    if (k == index.size()) return columns;
  }
}

/// Values at which integer instructions go wrong.
template <class T>
std::vector<T> awkward() {
  constexpr T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  return {T(0),
          T(1),
          T(2),
          T(3),
          T(7),
          T(31),
          T(32),
          T(33),
          T(-1),
          T(-2),
          T(-7),
          T(100),
          low,
          T(low + 1),
          high,
          T(high - 1),
          T(high / 2),
          T(T(0x5A) << (8 * sizeof(T) - 8)),
          T(0x9E3779B97F4A7C15u),
          T(0x0123456789ABCDEFu)};
}
template <>
std::vector<float> awkward<float>();
template <>
std::vector<double> awkward<double>();

/// Row `k` of columns of bits, as values.
template <class... S, size_t... I>
std::tuple<S...> row_of(const std::vector<std::vector<uint64_t>>& columns, size_t k, std::index_sequence<I...>) {
  return {from_bits<S>(columns[I][k])...};
}

/// Expects that the instruction gives expected(a, b, ...) for all combinations of awkward values. `same` compares.
template <class D, class... S, class Expected, class Same>
void expect_instruction(const std::string& instruction, Expected expected, Same same,
                        const std::vector<std::vector<uint64_t>>& columns) {
  const Evaluation evaluation{instruction, sizeof(D), {sizeof(S)...}};
  for (const UnitTable* units : unit_tables()) {
    const std::vector<uint64_t> results = evaluate_bits(evaluation, columns, *units);
    int failures = 0;
    for (size_t k = 0; k < results.size() && failures < 5; ++k) {
      const std::tuple<S...> sources = row_of<S...>(columns, k, std::index_sequence_for<S...>{});
      const D wanted = std::apply(expected, sources);
      const D got = from_bits<D>(results[k]);
      if (same(got, wanted)) continue;
      ++failures;
      std::string values;
      for (const auto& column : columns) values += " " + std::to_string(column[k]);
      ADD_FAILURE() << units->name << ": " << instruction << " of bits" << values << "\n  got " << +got << " (bits "
                    << to_bits(got) << "), expected " << +wanted << " (bits " << to_bits(wanted) << ")";
    }
  }
}

template <class D, class... S, class Expected>
void expect_exact(const std::string& instruction, Expected expected) {
  expect_instruction<D, S...>(
      instruction, expected, [](D x, D y) { return to_bits(x) == to_bits(y); }, combinations(awkward<S>()...));
}

/// Equal bits, or both NaN.
template <class D, class... S, class Expected>
void expect_float(const std::string& instruction, Expected expected) {
  expect_instruction<D, S...>(
      instruction, expected, [](D x, D y) { return to_bits(x) == to_bits(y) || (x != x && y != y); },
      combinations(awkward<S>()...));
}

/// Within `ulps` of the expected value, NaN for NaN, infinity for infinity.
template <class D, class... S, class Expected>
void expect_close(const std::string& instruction, double relative, double absolute, Expected expected) {
  expect_instruction<D, S...>(
      instruction, expected,
      [=](D x, D y) {
        if (x != x || y != y) return x != x && y != y;
        if (x == y) return true;
        return std::abs(double(x) - double(y)) <= std::max(absolute, relative * std::abs(double(y)));
      },
      combinations(awkward<S>()...));
}

}  // namespace kiln::emulator::test
