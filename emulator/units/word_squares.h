// Squares of 4 x 4 words in vector registers, which every x86-64 has.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#ifndef KILN_EMULATOR_ISA
#error "the execution units are compiled with KILN_EMULATOR_ISA set to avx512, avx2 or baseline"
#endif

namespace kiln::emulator::KILN_EMULATOR_ISA {

using Words = uint32_t __attribute__((vector_size(16)));
inline Words words_at(const void* at) {
  Words w;
  std::memcpy(&w, at, sizeof(w));
  return w;
}
inline void put_words(void* at, Words w) {
  std::memcpy(at, &w, sizeof(w));
}

/// Transposes squares that lie side by side: square n is in lanes 4 n to 4 n + 3 of the four vectors.
template <class V>
inline void transpose(V (&v)[4]) {
  constexpr int lanes = sizeof(V) / 4;
  // `picked`: for a group of four lanes, of 8: those of the first vector and those of the second.
  const auto shuffled = []<int... picked, size_t... lane>(V first, V second, std::integer_sequence<int, picked...>,
                                                          std::index_sequence<lane...>) {
    constexpr int of_four[] = {picked...};
    return __builtin_shufflevector(
        first, second,
        (static_cast<int>(lane) / 4 * 4 + of_four[lane % 4] % 4 + (of_four[lane % 4] < 4 ? 0 : lanes))...);
  };
  const auto pick = [&]<int... picked>(V first, V second, std::integer_sequence<int, picked...> four) {
    return shuffled(first, second, four, std::make_index_sequence<lanes>());
  };
  constexpr std::integer_sequence<int, 0, 4, 1, 5> low;
  constexpr std::integer_sequence<int, 2, 6, 3, 7> high;
  constexpr std::integer_sequence<int, 0, 1, 4, 5> first_halves;
  constexpr std::integer_sequence<int, 2, 3, 6, 7> second_halves;
  const V low01 = pick(v[0], v[1], low), high01 = pick(v[0], v[1], high);
  const V low23 = pick(v[2], v[3], low), high23 = pick(v[2], v[3], high);
  v[0] = pick(low01, low23, first_halves);
  v[1] = pick(low01, low23, second_halves);
  v[2] = pick(high01, high23, first_halves);
  v[3] = pick(high01, high23, second_halves);
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
