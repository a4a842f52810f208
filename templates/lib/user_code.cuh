// The user's code of a request: where its text stands, and how kernels feed it.
//
// From the prelude: USER_EPILOGUE and USER_PROLOGUE (whether there is such a part), USER_TENSORS and USER_SCALARS (how
// many it reads), and USER_DTYPES (the codes below), USER_PER_CHANNEL, USER_ALIGNMENTS (bytes) and USER_STRIDES
// (elements, for each dimension of y, 0 where the tensor repeats; one tensor after the other), USER_RANK and
// USER_EXTENTS of y, and USER_CHANNEL_DIMENSION, the dimension of y that counts channels.
// USER_ROUNDS: whether the prologue's results are rounded to UserInput, the type that x is stored in.
// USER_PROLOGUE_TENSORS, USER_PROLOGUE_DTYPES, USER_PROLOGUE_ALIGNMENTS and USER_PROLOGUE_STRIDES: what the prologue
// reads, one element for each channel of x, or for each image and channel, which are USER_PROLOGUE_IMAGE_STRIDES apart
// (0: the same for all images); USER_OF_IMAGES: whether there is such a tensor.
//
// Kernels say where an element is by its offset in y. A tensor of y's strides is read at that offset. For any other the
// offset is computed from the digits of that in y: y's strides nest, so that dividing by them, the largest first, gives
// the coordinates. USER_DIGITS: how many there are (0: y's strides, or one element a channel), USER_Y_STEPS and
// USER_STEPS: the strides of y and of the tensor along them. Dimensions that both continue without a gap are one digit.
// USER_ROWS: as many neighbours in y, from a multiple of their number on, differ in the last digit only; USER_WIDTHS:
// as many of these may be read in one access.
#include "lib/index.cuh"
#include "lib/user_functions.cuh"
#include "lib/vector.cuh"

// Values that a call gives to the code. The block that a kernel takes by value (UserArgument of the generator).
struct UserArguments {
  // The epilogue's, then the prologue's.
  const void* tensors[USER_TENSORS + USER_PROLOGUE_TENSORS == 0 ? 1 : USER_TENSORS + USER_PROLOGUE_TENSORS];
  float scalars[USER_SCALARS == 0 ? 1 : USER_SCALARS];
};

// The elements of the tensors that belong to one element of y.
struct UserValues {
  float tensors[USER_TENSORS == 0 ? 1 : USER_TENSORS];
};

// Where an element of x stands, as the prologue's tensors see it. The image matters where USER_OF_IMAGES.
struct PrologueIndex {
  int channel, image;
  __device__ __forceinline__ PrologueIndex(int channel, int image = 0) : channel(channel), image(image) {}
};

// The elements of the prologue's tensors that belong to one channel of x.
struct PrologueValues {
  float tensors[USER_PROLOGUE_TENSORS == 0 ? 1 : USER_PROLOGUE_TENSORS];
};

namespace user_code {

// The channel of an element, for the code to ask for: `k < 8 ? acc : 0.0f`, `bias[k]`.
struct ChannelIndex {
  int value;
  __device__ __forceinline__ explicit ChannelIndex(int channel) : value(channel) {}
  __device__ __forceinline__ operator int() const { return value; }
};

// A tensor with one element a channel; both `bias` and `bias[k]` are that of this channel.
struct ChannelValue {
  float value;
  __device__ __forceinline__ operator float() const { return value; }
  __device__ __forceinline__ float operator[](ChannelIndex) const { return value; }
};

#pragma nv_diag_error 940  // a function without a return statement

#include "user/functions"

// ---- the user's prologue
__device__ __forceinline__ float prologue(float x, int channel, const PrologueValues& values, const float* scalars){
#include "user/prologue"
}

// ---- the user's epilogue
__device__ __forceinline__ float epilogue(float acc, int channel, const UserValues& values, const float* scalars) {
#include "user/epilogue"
}

}  // namespace user_code

template <long long I, class First, class... Rest>
struct NthType : NthType<I - 1, Rest...> {};
template <class First, class... Rest>
struct NthType<0, First, Rest...> {
  using type = First;
};
// The type of a tensor's elements by its code.
template <long long CODE>
#include "types/by_code"

// Elements of one access where COUNT neighbours of type T are stored: of up to 16 bytes, at a multiple of its own size.
template <class T, int COUNT>
constexpr int ELEMENTS_OF_ACCESS = COUNT * sizeof(T) <= 16 ? COUNT : 16 / sizeof(T);

// Offset in tensor I, which has strides of its own, of the element at `offset` in y. It works for the way from an
// element to another of which no coordinate is less, too.
template <int I, int DIGIT = 0, class Index>
__device__ __forceinline__ long long own_user_offset(Index offset) {
  if constexpr (DIGIT < USER_DIGITS[I]) {
    const Index rest = take_coordinate(offset, USER_Y_STEPS[I * USER_RANK + DIGIT]);
    return static_cast<long long>(offset) * USER_STEPS[I * USER_RANK + DIGIT] + own_user_offset<I, DIGIT + 1>(rest);
  } else {
    return 0;
  }
}

// Values of tensor I, which has strides of its own, for COUNT elements that lie side by side in y.
template <int I, class TY, class T, int COUNT, class Index>
__device__ __forceinline__ void load_own_run(const T* tensor, Index offset, UserValues (&run)[COUNT]) {
  constexpr int ROW = smaller<int>(ELEMENTS_OF_ACCESS<TY, COUNT>, USER_ROWS[I]);
  constexpr int WIDTH = smaller<int>(ROW, USER_WIDTHS[I]);
  const long long step = USER_STEPS[I * USER_RANK + USER_DIGITS[I] - 1];
#pragma unroll
  for (int i = 0; i < COUNT; i += ROW) {
    const T* const row = tensor + own_user_offset<I>(offset + i);
#pragma unroll
    for (int j = 0; j < ROW; j += WIDTH) {
      const Vector<T, WIDTH> piece = load<WIDTH>(row + j * step);
#pragma unroll
      for (int k = 0; k < WIDTH; ++k) run[i + j + k].tensors[I] = to_float(piece[k]);
    }
  }
}

// Values of the tensors from number I on for COUNT elements that lie side by side from element `offset` of y on: of
// channel `channel`, or of the channels from it on if ALONG_CHANNEL. TY is that of y.
template <bool ALONG_CHANNEL, class TY, int I = 0, int COUNT, class Index>
__device__ __forceinline__ void load_user_run(const UserArguments& user, Index offset, int channel,
                                              UserValues (&run)[COUNT]) {
  if constexpr (I < USER_TENSORS) {
    using T = UserStorage<USER_DTYPES[I]>;
    const T* const tensor = static_cast<const T*>(user.tensors[I]);
    if constexpr (USER_PER_CHANNEL[I] != 0) {
      const long long stride = USER_STRIDES[I * USER_RANK + USER_CHANNEL_DIMENSION];
#pragma unroll
      for (int i = 0; i < COUNT; ++i) {
        run[i].tensors[I] = to_float(load_readonly<1>(tensor + (ALONG_CHANNEL ? channel + i : channel) * stride)[0]);
      }
    } else if constexpr (USER_DIGITS[I] != 0) {
      load_own_run<I, TY>(tensor, offset, run);
    } else {
      // As many elements of the tensor as one access of y has make an access where the tensor's alignment allows it.
      constexpr int STEP = ELEMENTS_OF_ACCESS<TY, COUNT>;
      constexpr int ACCESS = STEP * sizeof(T) <= 16 ? STEP * sizeof(T) : 16;
      constexpr int WIDTH = USER_ALIGNMENTS[I] % ACCESS == 0 ? STEP : 1;
#pragma unroll
      for (int i = 0; i < COUNT; i += WIDTH) {
        const Vector<T, WIDTH> piece = load<WIDTH>(tensor + offset + i);
#pragma unroll
        for (int j = 0; j < WIDTH; ++j) run[i + j].tensors[I] = to_float(piece[j]);
      }
    }
    load_user_run<ALONG_CHANNEL, TY, I + 1>(user, offset, channel, run);
  }
}

// The arguments for a y that starts `offset` elements further on.
template <int I = 0, class Index>
__device__ __forceinline__ void advance_user_tensors(UserArguments& user, Index offset) {
  if constexpr (I < USER_TENSORS) {
    using T = UserStorage<USER_DTYPES[I]>;
    const T* const tensor = static_cast<const T*>(user.tensors[I]);
    if constexpr (USER_DIGITS[I] != 0) {
      user.tensors[I] = tensor + own_user_offset<I>(offset);
    } else if constexpr (USER_PER_CHANNEL[I] == 0) {
      user.tensors[I] = tensor + offset;
    }
    advance_user_tensors<I + 1>(user, offset);
  }
}

// Offset of element number `element` of y, in logical order, in tensor I.
template <int I, int DIMENSION = USER_RANK - 1>
__device__ __forceinline__ long long user_offset(long long element) {
  if constexpr (DIMENSION < 0) {
    return 0;
  } else {
    const long long extent = USER_EXTENTS[DIMENSION], stride = USER_STRIDES[I * USER_RANK + DIMENSION];
    return element % extent * stride + user_offset<I, DIMENSION - 1>(element / extent);
  }
}

// Values of the tensors from number I on for element number `element` of y in logical order, whatever their strides.
template <int I = 0>
__device__ __forceinline__ void load_user_element(const UserArguments& user, long long element, UserValues& values) {
  if constexpr (I < USER_TENSORS) {
    using T = UserStorage<USER_DTYPES[I]>;
    values.tensors[I] = to_float(static_cast<const T*>(user.tensors[I])[user_offset<I>(element)]);
    load_user_element<I + 1>(user, element, values);
  }
}

// The values of the prologue's tensors from number I on for COUNT channels of x from that of `first` on, a multiple of
// COUNT: in accesses of up to 16 bytes where they lie so.
template <int I = 0, int COUNT>
__device__ __forceinline__ void load_prologue_run(const UserArguments& user, PrologueIndex first,
                                                  PrologueValues (&run)[COUNT]) {
  if constexpr (I < USER_PROLOGUE_TENSORS) {
    using T = UserStorage<USER_PROLOGUE_DTYPES[I]>;
    constexpr long long STRIDE = USER_PROLOGUE_STRIDES[I];
    constexpr int NEIGHBOURS = ELEMENTS_OF_ACCESS<T, COUNT>;
    constexpr long long IMAGE_STRIDE = USER_PROLOGUE_IMAGE_STRIDES[I];
    constexpr bool TOGETHER =
        STRIDE == 1 && IMAGE_STRIDE % NEIGHBOURS == 0 && USER_PROLOGUE_ALIGNMENTS[I] % (NEIGHBOURS * sizeof(T)) == 0;
    constexpr int WIDTH = TOGETHER ? NEIGHBOURS : 1;
    const T* const tensor =
        static_cast<const T*>(user.tensors[USER_TENSORS + I]) + (first.channel * STRIDE + first.image * IMAGE_STRIDE);
#pragma unroll
    for (int i = 0; i < COUNT; i += WIDTH) {
      const Vector<T, WIDTH> piece = load_readonly<WIDTH>(tensor + i * STRIDE);
#pragma unroll
      for (int j = 0; j < WIDTH; ++j) run[i + j].tensors[I] = to_float(piece[j]);
    }
    load_prologue_run<I + 1>(user, first, run);
  }
}

// An element of x at `at` as kernels compute with it: after the user's prologue, if there is one. Padding is no
// element: it stays zero.
template <class T>
__device__ __forceinline__ float user_entered(T x, PrologueIndex at, const UserArguments& user) {
  if constexpr (USER_PROLOGUE) {
    PrologueValues values[1];
    load_prologue_run(user, at, values);
    const float result = user_code::prologue(to_float(x), at.channel, values[0], user.scalars);
    return USER_ROUNDS ? to_float(from_float<UserInput>(result)) : result;
  }
  return to_float(x);
}

// The same for a place that may be padding, where x was loaded as zero: then it stays zero.
template <class T>
__device__ __forceinline__ float user_entered_if(bool exists, T x, PrologueIndex at, const UserArguments& user) {
  if constexpr (USER_PROLOGUE) return exists ? user_entered(x, at, user) : 0.0f;
  return to_float(x);
}

// Element of x as kernels keep it between loading and computing: as it is stored, or in f32 where the user's prologue
// made it and does not round. The prologue has to run where it is known whether the element is padding.
template <class T, bool IN_F32 = USER_PROLOGUE && !USER_ROUNDS>
struct UserKept {
  using type = T;
};
template <class T>
struct UserKept<T, true> {
  using type = float;
};

template <class T>
__device__ __forceinline__ typename UserKept<T>::type user_kept(T x, PrologueIndex at, const UserArguments& user) {
  if constexpr (USER_PROLOGUE) {
    return from_float<typename UserKept<T>::type>(user_entered(x, at, user));
  } else {
    return x;
  }
}

// The prologue of COUNT channels of x from that of `first` on, a multiple of COUNT.
template <int COUNT>
class PrologueRun {
 public:
  __device__ __forceinline__ PrologueRun(PrologueIndex first, const UserArguments& user) : channel_(first.channel) {
    load_prologue_run(user, first, values_);
  }

  // Elements of a place, as they are kept.
  template <class T>
  __device__ __forceinline__ Vector<typename UserKept<T>::type, COUNT> enter(const Vector<T, COUNT>& x,
                                                                             const UserArguments& user) const {
    using Kept = typename UserKept<T>::type;
    Vector<Kept, COUNT> result;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      result[i] = from_float<Kept>(user_code::prologue(to_float(x[i]), channel_ + i, values_[i], user.scalars));
    }
    return result;
  }

 private:
  int channel_;
  PrologueValues values_[COUNT];
};

// COUNT elements of x as they are kept: all at `at`, or, if ALONG_CHANNEL, at the channels from there on, a multiple of
// COUNT then.
template <bool ALONG_CHANNEL, class T, int COUNT>
__device__ __forceinline__ Vector<typename UserKept<T>::type, COUNT> user_kept(const Vector<T, COUNT>& x,
                                                                               PrologueIndex at,
                                                                               const UserArguments& user) {
  if constexpr (USER_PROLOGUE && ALONG_CHANNEL) {
    return PrologueRun<COUNT>(at, user).enter(x, user);
  } else if constexpr (USER_PROLOGUE) {
    PrologueValues values[1];
    load_prologue_run(user, at, values);
    using Kept = typename UserKept<T>::type;
    Vector<Kept, COUNT> result;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      result[i] = from_float<Kept>(user_code::prologue(to_float(x[i]), at.channel, values[0], user.scalars));
    }
    return result;
  } else {
    return x;
  }
}

// The result after the user's epilogue, if there is one.
__device__ __forceinline__ float user_finished(float acc, int channel, const UserValues& values,
                                               const UserArguments& user) {
  if constexpr (USER_EPILOGUE) return user_code::epilogue(acc, channel, values, user.scalars);
  return acc;
}
