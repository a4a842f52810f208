// The statistics of a row, and what parts of a row add up to them.
//
// From the prelude: RMS.
#include "lib/math.cuh"
#include "lib/select.cuh"

struct RowStatistics {
  float mean, inv_deviation;
  float variance;  // over one less than the elements
};

// Statistics of a row from its mean square or square of deviations `m2`, a sum over `count` elements. A row that holds
// NaN or an infinity is NaN throughout.
__device__ __forceinline__ RowStatistics statistics_of(float mean, float m2, float count, float epsilon) {
  const float variance = m2 / fmaxf(count, 1.0f);
  if (!(variance < infinity())) return {nan(), nan(), nan()};
  return {mean, rsqrtf(variance + epsilon), m2 / fmaxf(count - 1.0f, 1.0f)};
}

// The sum of the squares of some elements.
struct SquareSum {
  static constexpr int WORDS = 1;
  float words[WORDS];

  __device__ __forceinline__ static SquareSum of_nothing() { return {{0.0f}}; }
  template <int COUNT>
  __device__ __forceinline__ void add(const float (&x)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) words[0] += x[i] * x[i];
  }
  __device__ __forceinline__ static SquareSum merged(const SquareSum& a, const SquareSum& b) {
    return {{a.words[0] + b.words[0]}};
  }
  __device__ __forceinline__ RowStatistics statistics(float count, float epsilon) const {
    return statistics_of(0.0f, words[0], count, epsilon);
  }
};

// Number, mean and sum of squared deviations of some elements: sound whatever their mean. T. F. Chan, G. H. Golub and
// R. J. LeVeque, Algorithms for computing the sample variance, The American Statistician 37, 1983.
struct Moments {
  static constexpr int WORDS = 3;
  float words[WORDS];

  __device__ __forceinline__ static Moments of_nothing() { return {{0.0f, 0.0f, 0.0f}}; }
  template <int COUNT>
  __device__ __forceinline__ void add(const float (&x)[COUNT]) {
    Moments more = {{static_cast<float>(COUNT), x[0], 0.0f}};
    if constexpr (COUNT > 1) {
      float sum = 0.0f;
#pragma unroll
      for (int i = 0; i < COUNT; ++i) sum += x[i];
      more.words[1] = sum * (1.0f / COUNT);
#pragma unroll
      for (int i = 0; i < COUNT; ++i) more.words[2] += (x[i] - more.words[1]) * (x[i] - more.words[1]);
    }
    *this = merged(*this, more);
  }
  __device__ __forceinline__ static Moments merged(const Moments& a, const Moments& b) {
    const float count = a.words[0] + b.words[0];
    const float part = __fdividef(b.words[0], fmaxf(count, 1.0f));
    const float distance = b.words[1] - a.words[1];
    return {{count, a.words[1] + distance * part, a.words[2] + b.words[2] + distance * distance * a.words[0] * part}};
  }
  __device__ __forceinline__ RowStatistics statistics(float count, float epsilon) const {
    return statistics_of(words[1], words[2], count, epsilon);
  }
};

using RowMoments = Select<RMS, SquareSum, Moments>::type;
