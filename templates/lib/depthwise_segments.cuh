// Rows of x as the depthwise kernels along the pixels read them: a thread has TILE_P x TILE_Q outputs of one channel of
// one image, and loads the rows of x under their windows one by one, each as one segment. Its accesses of X_RUN
// elements are aligned by starting SHIFT elements before that under tap 0 of output 0.
//
// From the prelude, besides the problem: TILE_P, TILE_Q, SHIFT, and X_RUN, which divides W.
#include "lib/depthwise_tiles.cuh"
#include "lib/padded_vector.cuh"
#include "lib/user_code.cuh"

constexpr int RUNS = ceil_div(SHIFT + INPUT_COLUMNS, X_RUN);

static_assert(TILE_Q * STRIDE_W % X_RUN == 0, "an access is inside its row, or outside");

// Elements of one row of x as f32, from column `first` on; zero outside the image.
struct Segment {
  float values[RUNS * X_RUN];

  __device__ __forceinline__ Segment(const TX* row, Index first, bool inside, int channel, const UserArguments& user) {
    const TX* const start = row + first * Index(X_STRIDE_W);
#pragma unroll
    for (int i = 0; i < RUNS; ++i) {
      const bool exists = inside && static_cast<UnsignedIndex>(first + i * X_RUN) < UnsignedIndex(W);
      const Vector<TX, X_RUN> run = load_readonly_if<X_RUN>(exists, start + i * X_RUN * Index(X_STRIDE_W));
      float entered[X_RUN];
      to_floats(run, entered);
#pragma unroll
      for (int j = 0; j < X_RUN; ++j) {
        values[i * X_RUN + j] = USER_PROLOGUE ? user_entered_if(exists, run[j], channel, user) : entered[j];
      }
    }
  }
};
