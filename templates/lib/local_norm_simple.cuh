// Windows around elements by their coordinates, the plain way: what the trusted kernels of local normalisations share.
//
// From the prelude: what lib/simple_rows.cuh asks for, and HAS_MEANS.
#include "lib/local_norm.cuh"
#include "lib/store.cuh"

struct Coordinates {
  Index at[RANK];

  // Coordinates of element number `element` in logical order.
  __device__ __forceinline__ explicit Coordinates(Index element) { take<RANK - 1>(element); }

  template <const long long (&STRIDES)[RANK], int DIMENSION = 0>
  __device__ __forceinline__ Index offset() const {
    if constexpr (DIMENSION == RANK) {
      return 0;
    } else {
      return at[DIMENSION] * Index(STRIDES[DIMENSION]) + offset<STRIDES, DIMENSION + 1>();
    }
  }

 private:
  template <int DIMENSION>
  __device__ __forceinline__ void take(Index element) {
    if constexpr (DIMENSION >= 0) {
      at[DIMENSION] = take_coordinate(element, EXTENTS[DIMENSION]);
      take<DIMENSION - 1>(element);
    }
  }
};

// Calls visit() with `place` at each element inside the tensor from `before` ahead of where it is to `after` behind it
// along every axis.
template <int DIMENSION = 0, class Visit>
__device__ __forceinline__ void for_each_in_window(Coordinates& place, int before, int after, const Visit& visit) {
  if constexpr (DIMENSION == RANK) {
    visit();
  } else if constexpr (AXES[DIMENSION] == 0) {
    for_each_in_window<DIMENSION + 1>(place, before, after, visit);
  } else {
    const Index centre = place.at[DIMENSION];
    const Index last = smaller<Index>(centre + after, Index(EXTENTS[DIMENSION]) - 1);
    for (Index i = larger<Index>(centre - before, 0); i <= last; ++i) {
      place.at[DIMENSION] = i;
      for_each_in_window<DIMENSION + 1>(place, before, after, visit);
    }
    place.at[DIMENSION] = centre;
  }
}

// x - means.
template <class Enter>
__device__ __forceinline__ float distance_at(const TX* x, const TMEANS* means, const Coordinates& place,
                                             const Enter& enter) {
  const float value = to_float(enter(x[place.offset<X_STRIDES>()]));
  return HAS_MEANS ? value - to_float(means[place.offset<MEANS_STRIDES>()]) : value;
}

// The logarithm of s at `place`.
template <class Enter>
__device__ __forceinline__ float logarithm_at(const TX* x, const TMEANS* means, Coordinates place,
                                              const LocalNormNumbers& numbers, const Enter& enter) {
  float squares = 0.0f;
  for_each_in_window(place, BEHIND, AHEAD, [&] {
    const float distance = distance_at(x, means, place, enter);
    squares += distance * distance;
  });
  return numbers.logarithm(squares);
}

// Elements of this call.
__device__ __forceinline__ Index element_count(long long n) {
  return (DYNAMIC_N ? static_cast<Index>(n) * ROWS_PER_IMAGE : ROWS) * Index(ROW);
}
