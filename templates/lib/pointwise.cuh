// Element-wise operations on up to three inputs: operands of any strides, the function, and what is stored.
//
// From the prelude: INPUTS; TA, TB, TC and TY (types); DIMENSIONS, EXTENTS (innermost first; the outermost one is not
// looked at) and STRIDES (elements; the inputs, then y; each innermost first; 0 where an input repeats); STEP_KINDS,
// the stride of each operand along the innermost dimension, or 2 where that is larger than 1; PER_IMAGE and N
// (elements, and how often; DYNAMIC_N: the argument n counts instead); FUNCTION, MODE, ALPHA, BETA. PADDED: whether the
// one input has padding around it, PAD_BEGIN elements before INSIDE of its own in each dimension; the padding holds the
// call's first number. PADDED_DIMENSIONS: those that may have some.
//
// NUMBERED: the last input is not in memory: it is the number of the element in logical order, whose strides those of
// this input are. NUMBERED_BY_FOURS: whether neighbours along the innermost dimension, four at a time, have numbers
// that follow each other from a multiple of four on.
//
// y may be one of the inputs: every thread reads all that it needs of its elements before it writes them, and nothing
// here is __restrict__ or read through the read-only path.
#include "lib/index.cuh"
#include "lib/pointwise_function.cuh"
#include "lib/store.cuh"
#include "lib/vector.cuh"

struct PointwiseArguments {
  const TA* a;
  const TB* b;
  const TC* c;
  TY* y;
  float alpha, beta;
  UserArguments user;
  PointwiseNumbers numbers;
};

constexpr int RESULT = INPUTS;                          // its number among the operands
constexpr int LOADED = NUMBERED ? INPUTS - 1 : INPUTS;  // inputs in memory
constexpr int NUMBER = NUMBERED ? LOADED : 0;           // the operand that is the element's number

__device__ __forceinline__ long long stride_of(int operand, int dimension) {
  return STRIDES[operand * DIMENSIONS + dimension];
}

// Elements of this call.
__device__ __forceinline__ Index element_count(long long n) {
  return DYNAMIC_N ? static_cast<Index>(n) * Index(PER_IMAGE) : Index(PER_IMAGE) * Index(N);
}

// Offsets of one element, in every operand. Where it is padding, those of the input lead nowhere.
struct Place {
  Index offsets[INPUTS + 1];
  Index first;   // coordinate in the input along dimension 0, if that is padded
  bool outside;  // along another dimension
};

__host__ __device__ constexpr bool is_padded(int dimension) {
  return PADDED && PADDED_DIMENSIONS[dimension] != 0;
}

template <int DIMENSION, int OPERAND = 0>
__device__ __forceinline__ void move_along(Index coordinate, Place& place) {
  if constexpr (is_padded(DIMENSION) && OPERAND == 0) {
    const Index inner = coordinate - Index(PAD_BEGIN[DIMENSION]);
    place.offsets[0] += inner * Index(stride_of(0, DIMENSION));
    if constexpr (DIMENSION == 0) place.first = inner;
    if constexpr (DIMENSION != 0) place.outside |= inner < 0 || inner >= Index(INSIDE[DIMENSION]);
    move_along<DIMENSION, 1>(coordinate, place);
  } else if constexpr (OPERAND <= RESULT) {
    if constexpr (DIMENSION != 0 || STEP_KINDS[OPERAND] != 0)
      place.offsets[OPERAND] += coordinate * Index(stride_of(OPERAND, DIMENSION));
    move_along<DIMENSION, OPERAND + 1>(coordinate, place);
  }
}

// Splits `index` into coordinates from DIMENSION on and moves there.
template <int DIMENSION>
__device__ __forceinline__ void move_to(Index index, Place& place) {
  if constexpr (DIMENSION == DIMENSIONS - 1) {
    move_along<DIMENSION>(index, place);
  } else if constexpr (DIMENSION < DIMENSIONS) {
    move_along<DIMENSION>(take_coordinate(index, EXTENTS[DIMENSION]), place);
    move_to<DIMENSION + 1>(index, place);
  }
}

// COUNT elements from `offset` on, `stride` apart: in one access where they lie side by side. KIND is that of the
// stride, as STEP_KINDS says it.
template <long long KIND, int COUNT, class T>
__device__ __forceinline__ Vector<T, COUNT> load_strided(const T* address, Index offset, long long stride) {
  if constexpr (KIND == 1) {
    return load<COUNT>(address + offset);
  } else {
    Vector<T, COUNT> result;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      result[i] = KIND == 0 && i > 0 ? result[0] : address[offset + i * Index(stride)];
    }
    return result;
  }
}

// The elements of input number OPERAND at a place and COUNT - 1 neighbours.
template <int OPERAND, int COUNT, class T>
__device__ __forceinline__ Vector<T, COUNT> load_input(const T* address, const Place& place) {
  return load_strided<STEP_KINDS[OPERAND], COUNT>(address, place.offsets[OPERAND], stride_of(OPERAND, 0));
}

// The first input as it is kept: the user's prologue, if there is one, applies to what is loaded.
using KeptA = UserKept<TA>::type;

// The same of a first input with padding, which the user's prologue leaves as it is.
template <int COUNT>
__device__ __forceinline__ Vector<KeptA, COUNT> load_padded(const TA* address, const Place& place, float padding,
                                                            const UserArguments& user) {
  if constexpr (!is_padded(0)) {
    if (!place.outside) {
      return user_kept<false>(load_input<0, COUNT>(address, place), 0, user);
    }
  }
  Vector<KeptA, COUNT> result;
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    const TA around = from_float<TA>(padding);
    if constexpr (USER_PROLOGUE) {
      result[i] = to_float(around);
    } else {
      result[i] = around;
    }
    if constexpr (is_padded(0)) {
      const bool inside = !place.outside && place.first + i >= 0 && place.first + i < Index(INSIDE[0]);
      if (inside) result[i] = user_kept(address[place.offsets[0] + i * Index(stride_of(0, 0))], 0, user);
    }
  }
  return result;
}

// Whether elements pass as they are, bit by bit.
template <class T, class U>
constexpr bool IS_SAME = false;
template <class T>
constexpr bool IS_SAME<T, T> = true;
constexpr bool IS_COPY = FUNCTION == FUNCTION_TRANSFORM && IS_SAME<TA, TY> && ALPHA == SCALE_ONE &&
                         BETA == SCALE_ZERO && !USER_EPILOGUE && !USER_PROLOGUE;

// The inputs of COUNT neighbours along the innermost dimension.
template <int COUNT>
struct Inputs {
  Vector<KeptA, COUNT> a;
  Vector<TB, COUNT> b;
  Vector<TC, COUNT> c;
  unsigned long long number;  // of the first, if NUMBERED

  __device__ __forceinline__ void load_from(const PointwiseArguments& arguments, const Place& place) {
    if constexpr (PADDED) {
      a = load_padded<COUNT>(arguments.a, place, arguments.numbers.values[0], arguments.user);
    } else if constexpr (LOADED > 0) {
      a = user_kept<false>(load_input<0, COUNT>(arguments.a, place), 0, arguments.user);
    }
    if constexpr (LOADED > 1) b = load_input<1, COUNT>(arguments.b, place);
    if constexpr (LOADED > 2) c = load_input<2, COUNT>(arguments.c, place);
    if constexpr (NUMBERED) number = static_cast<unsigned long long>(place.offsets[NUMBER]);
  }

  __device__ __forceinline__ void results(const PointwiseArguments& arguments, float (&values)[COUNT]) const {
    const PointwiseNumbers& numbers = arguments.numbers;
    if constexpr (FUNCTION == FUNCTION_DROPOUT && NUMBERED_BY_FOURS && COUNT % 4 == 0) {
#pragma unroll
      for (int i = 0; i < COUNT; i += 4) {
        const PhiloxWords random = dropout_words(number + i, numbers.integers[0], numbers.integers[1]);
#pragma unroll
        for (int j = 0; j < 4; ++j) values[i + j] = dropped_out(to_float(a[i + j]), random.words[j], numbers.values[0]);
      }
    } else {
#pragma unroll
      for (int i = 0; i < COUNT; ++i) values[i] = result(i, arguments);
    }
  }

  __device__ __forceinline__ float result(int i, const PointwiseArguments& arguments) const {
    const PointwiseNumbers& numbers = arguments.numbers;
    if constexpr (FUNCTION == FUNCTION_DROPOUT) {
      const unsigned long long element = number + i * static_cast<unsigned long long>(stride_of(NUMBER, 0));
      const PhiloxWords random = dropout_words(element, numbers.integers[0], numbers.integers[1]);
      return dropped_out(to_float(a[i]), random.at(static_cast<int>(element % 4)), numbers.values[0]);
    }
    float values[3] = {0.0f, 0.0f, 0.0f};
    if constexpr (LOADED > 0) values[0] = to_float(a[i]);
    if constexpr (LOADED > 1) values[1] = to_float(b[i]);
    if constexpr (LOADED > 2) values[2] = to_float(c[i]);
    return pointwise_function(values[0], values[1], values[2], numbers);
  }
};

template <int COUNT, class T, class U>
__device__ __forceinline__ void store_copy(U* y, const Vector<T, COUNT>& elements) {
  if constexpr (IS_SAME<T, U>) store<COUNT>(y, elements);
}

// Stores what becomes of COUNT elements that lie side by side in y.
template <int COUNT>
__device__ __forceinline__ void store_results(const Inputs<COUNT>& inputs, Index y_offset,
                                              const PointwiseArguments& arguments) {
  if constexpr (IS_COPY) {
    store_copy<COUNT>(arguments.y + y_offset, inputs.a);
  } else {
    float results[COUNT];
    inputs.results(arguments, results);
    store_run<false>(arguments.y, y_offset, results, 0, {arguments.alpha, arguments.beta, arguments.user});
  }
}
