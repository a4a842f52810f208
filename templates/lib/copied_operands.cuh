// Operands of lib/conv_tile.cuh that go from global to shared memory as they are, by asynchronous copies: loaders for
// lib/copy_pipeline.cuh. Filters are those of lib/copied_filters.cuh; copies of x are of X_RUN channels at one pixel
// under one tap. Neighbouring taps read much of the same x, which L1 keeps.
//
// From the prelude, for each tap: TAP_X, its distance in x from the first, and TAP_WINDOW, the bits of its column, row
// and plane. A pixel has such bits too, and one more: they are less than 32. There are COLUMN_BITS, ROW_BITS and
// PLANE_BITS of them: one for each tap along the axis or, where no tap is outside, one for all of them, which a pixel
// has that exists.
#include "lib/copied_filters.cuh"
#include "lib/windows.cuh"

// The bit that no window has.
constexpr unsigned NO_WINDOW = 1u << 31;

// Copies of x, a window's channels at a time.
class CopiedPixels {
 public:
  using Chunk = CopiedChunk;
  static constexpr bool DOWN = true;

 private:
  static constexpr int RUNS = BLOCK_K / X_RUN;  // of a column
  static constexpr int COLUMN_STEP = THREADS / RUNS;
  static constexpr int COUNT = ceil_div(BLOCK_M, COLUMN_STEP);
  static_assert(THREADS % RUNS == 0, "threads tile the rows");

 public:
  template <class Tile>
  __device__ __forceinline__ CopiedPixels(const TX* x, const UserArguments&, const Tile& tile) : x_(x) {
    const int thread = static_cast<int>(threadIdx.x);
    row_ = thread % RUNS * X_RUN;
    column_ = thread / RUNS;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      const Index pixel = tile.first_pixel + column(i);
      Window window;
      window.place(tile.region, tile.group, tile.number_of(pixel), tile.holds(pixel));
      offset_[i] = window.offset + row_;
      inside_[i] = taps_inside(window);
    }
  }

  // Starts copying a chunk to the tile at `address`.
  template <class Tile>
  __device__ __forceinline__ void copy(const CopiedChunk& chunk, unsigned address) const {
    const unsigned needed = chunk.has(row_) ? static_cast<unsigned>(TAP_WINDOW[chunk.tap]) : NO_WINDOW;
    const TX* const from = x_ + (Index(TAP_X[chunk.tap]) + chunk.channel);
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      if (COUNT * COLUMN_STEP != BLOCK_M && column(i) >= BLOCK_M) continue;
      start_copy<X_RUN * sizeof(TX), true>(address + byte_of_copy<Tile, COLUMN_STEP>(row_, column_, i),
                                           element_at(from, offset_[i]), (needed & ~inside_[i]) == 0);
    }
  }

 private:
  __device__ __forceinline__ int column(int i) const {
    return column_ + i * COLUMN_STEP;
  }

  // Bits of the columns, rows and planes of taps that are inside.
  __device__ __forceinline__ static unsigned taps_inside(const Window& window) {
    unsigned bits = 0;
#pragma unroll
    for (int s = 0; s < COLUMN_BITS; ++s) {
      bits |= static_cast<unsigned>(is_in(window.w + Tap(0, 0, s).right, W)) << s;
    }
#pragma unroll
    for (int r = 0; r < ROW_BITS; ++r) {
      bits |= static_cast<unsigned>(is_in(window.h + Tap(0, r, 0).down, H)) << (COLUMN_BITS + r);
    }
#pragma unroll
    for (int t = 0; t < PLANE_BITS; ++t) {
      bits |= static_cast<unsigned>(is_in(window.d + Tap(t, 0, 0).deep, D)) << (COLUMN_BITS + ROW_BITS + t);
    }
    return bits;
  }
  __device__ __forceinline__ static bool is_in(Index position, Index extent) {
    return static_cast<UnsignedIndex>(position) < static_cast<UnsignedIndex>(extent);
  }

  const TX* x_;
  int row_, column_;
  Index offset_[COUNT];
  unsigned inside_[COUNT];
};
