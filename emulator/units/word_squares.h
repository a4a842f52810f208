// Squares of 4 x 4 words in vector registers, which every x86-64 has.
#pragma once

#include <cstdint>
#include <cstring>

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
inline void transpose(Words (&w)[4]) {
  const Words low01 = __builtin_shuffle(w[0], w[1], Words{0, 4, 1, 5});
  const Words high01 = __builtin_shuffle(w[0], w[1], Words{2, 6, 3, 7});
  const Words low23 = __builtin_shuffle(w[2], w[3], Words{0, 4, 1, 5});
  const Words high23 = __builtin_shuffle(w[2], w[3], Words{2, 6, 3, 7});
  w[0] = __builtin_shuffle(low01, low23, Words{0, 1, 4, 5});
  w[1] = __builtin_shuffle(low01, low23, Words{2, 3, 6, 7});
  w[2] = __builtin_shuffle(high01, high23, Words{0, 1, 4, 5});
  w[3] = __builtin_shuffle(high01, high23, Words{2, 3, 6, 7});
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
