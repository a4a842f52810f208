// Philox 4x32-10: four random words from a counter and a key, in any order of calls (Salmon, Moraes, Dror, Shaw:
// "Parallel Random Numbers: As Easy as 1, 2, 3", 2011).

struct PhiloxWords {
  unsigned words[4];

  // words[i], without an array in memory.
  __device__ __forceinline__ unsigned at(int i) const {
    return i == 0 ? words[0] : i == 1 ? words[1] : i == 2 ? words[2] : words[3];
  }
};

__device__ __forceinline__ PhiloxWords philox4x32_10(PhiloxWords counter, unsigned key_0, unsigned key_1) {
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned high_0 = __umulhi(0xD2511F53u, counter.words[0]), low_0 = 0xD2511F53u * counter.words[0];
    const unsigned high_1 = __umulhi(0xCD9E8D57u, counter.words[2]), low_1 = 0xCD9E8D57u * counter.words[2];
    counter = {{high_1 ^ counter.words[1] ^ key_0, low_1, high_0 ^ counter.words[3] ^ key_1, low_0}};
    key_0 += 0x9E3779B9u;
    key_1 += 0xBB67AE85u;
  }
  return counter;
}
