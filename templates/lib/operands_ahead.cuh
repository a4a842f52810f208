// Operands that an epilogue reads at each output of a tile (the residual, tensors of user code that lie as y does) come
// to shared memory before the first output is computed: so a thread waits for memory once, and not for each of its
// runs. It copies for itself alone, and no barrier is needed.
//
// From the prelude, besides what lib/epilogue.cuh needs: THREADS, SHARED_BYTES.
#include "lib/block_memory.cuh"
#include "lib/copies.cuh"
#include "lib/epilogue.cuh"
#include "lib/tensor_cores.cuh"

// Bytes of a tensor's elements beside one access of RUN elements of y.
template <class T, int RUN>
constexpr int BYTES_BESIDE = smaller<int>(16, ELEMENTS_OF_ACCESS<TY, RUN>* static_cast<int>(sizeof(T)));

// The operands of RUNS runs of RUN elements for each thread, from byte FIRST of the block's memory on: one operand
// after the other, of each the runs of all threads with the same number, and then those with the next.
template <int RUN, int RUNS, int FIRST>
class OperandsAhead {
 public:
  // Whether there is anything to bring, and room for it.
  __host__ __device__ static constexpr bool serve() {
    constexpr int END = first_of<USER_TENSORS>();
    return HAS_COPIES && RUNS > 1 && END > FIRST && END <= SHARED_BYTES;
  }

  // Copies those of run number `run`, which begins at elements `offset` of y and `residual` of the residual.
  template <class Index>
  __device__ __forceinline__ static void start(int run, Index offset, Index residual,
                                               const EpilogueArguments& arguments) {
    if constexpr (BRINGS_RESIDUAL) {
      constexpr int ACCESS = smaller<int>(16, RUN * static_cast<int>(sizeof(TResidual)));
      start_accesses<ACCESS>(arguments.residual + residual, FIRST, run);
    }
    start_user<0>(run, offset, arguments.user);
  }

  // The arguments that have them at the same offsets, once they are there.
  template <class Index>
  __device__ __forceinline__ static EpilogueArguments brought(int run, Index offset, Index residual,
                                                              const EpilogueArguments& arguments) {
    EpilogueArguments here = arguments;
    if constexpr (BRINGS_RESIDUAL) here.residual = place<TResidual>(FIRST, run) - residual;
    turn_user<0>(run, offset, here.user);
    return here;
  }

 private:
  template <class T>
  static constexpr int BYTES = THREADS* RUNS* RUN* static_cast<int>(sizeof(T));

  static constexpr bool BRINGS_RESIDUAL = READS_RESIDUAL && RUN * sizeof(TResidual) >= 4;

  // Whether tensor I of user code lies as y does, and can be copied in its accesses.
  template <int I>
  __host__ __device__ static constexpr bool brings() {
    constexpr int ACCESS = BYTES_BESIDE<UserStorage<USER_DTYPES[I]>, RUN>;
    return USER_PER_CHANNEL[I] == 0 && USER_DIGITS[I] == 0 && ACCESS >= 4 && USER_ALIGNMENTS[I] % ACCESS == 0;
  }

  // The byte behind the residual and the tensors before number I.
  template <int I>
  __host__ __device__ static constexpr int first_of() {
    if constexpr (I == 0) {
      return FIRST + (BRINGS_RESIDUAL ? BYTES<TResidual> : 0);
    } else {
      return first_of<I - 1>() + (brings<I - 1>() ? BYTES<UserStorage<USER_DTYPES[I - 1]>> : 0);
    }
  }

  // Where this thread's run of an operand is that begins at byte `first`.
  template <class T>
  __device__ __forceinline__ static T* place(int first, int run) {
    auto* const memory = reinterpret_cast<char*>(block_memory_words) + first;
    return reinterpret_cast<T*>(memory) + (run * THREADS + static_cast<int>(threadIdx.x)) * RUN;
  }

  template <int ACCESS, class T>
  __device__ __forceinline__ static void start_accesses(const T* from, int first, int run) {
    const unsigned to = shared_address(place<T>(first, run));
#pragma unroll
    for (int byte = 0; byte < RUN * static_cast<int>(sizeof(T)); byte += ACCESS) {
      start_copy<ACCESS, false>(to + byte, reinterpret_cast<const char*>(from) + byte, true);
    }
  }

  template <int I, class Index>
  __device__ __forceinline__ static void start_user(int run, Index offset, const UserArguments& user) {
    if constexpr (I < USER_TENSORS) {
      using T = UserStorage<USER_DTYPES[I]>;
      if constexpr (brings<I>()) {
        start_accesses<BYTES_BESIDE<T, RUN>>(static_cast<const T*>(user.tensors[I]) + offset, first_of<I>(), run);
      }
      start_user<I + 1>(run, offset, user);
    }
  }

  template <int I, class Index>
  __device__ __forceinline__ static void turn_user(int run, Index offset, UserArguments& user) {
    if constexpr (I < USER_TENSORS) {
      if constexpr (brings<I>()) user.tensors[I] = place<UserStorage<USER_DTYPES[I]>>(first_of<I>(), run) - offset;
      turn_user<I + 1>(run, offset, user);
    }
  }
};
