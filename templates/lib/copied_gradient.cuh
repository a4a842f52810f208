// Operands of the gradient of a convolution by its filter that go from global to shared memory as they are, by
// asynchronous copies: loaders for lib/copy_pipeline.cuh where the channels of x, and those of dy, stand side by side.
//
// The rows of the product are channels of x under a tap of the filter, and its columns channels of dy. Its depth are
// the positions of dy in all images, BLOCK_K of them a chunk. A line of a tile is a position: copies move X_RUN or
// W_RUN channels there. lib/conv_tile.cuh has other names for all this: dy is the filter w of a convolution of x, whose
// images are channels; the positions of dy are its taps.
#include "lib/conv_tile.cuh"
#include "lib/copies.cuh"
#include "lib/windows.cuh"

static_assert(IMAGES_INNER && W_ALONG_K, "copies move channels side by side");
static_assert(!REGIONS_OF_PIXELS && !REGIONS_OF_TAPS, "there is one filter");

// A chunk of positions.
struct CopiedPositions {
  int first;

  __device__ __forceinline__ explicit CopiedPositions(int number) : first(number * BLOCK_K) {}
  __device__ __forceinline__ void next() { first += BLOCK_K; }
  __device__ __forceinline__ bool has(int row) const {
    return FILTER_ELEMENTS % BLOCK_K == 0 || first + row < FILTER_ELEMENTS;
  }
};

// The lines of a tile that a thread copies, RUN of EXTENT elements each.
template <int EXTENT, int RUN>
struct CopiedLines {
  static constexpr int RUNS = EXTENT / RUN;  // of a line
  static constexpr int STEP = THREADS / RUNS;
  static constexpr int COUNT = ceil_div(BLOCK_K, STEP);
  static_assert(THREADS % RUNS == 0, "threads tile the lines");

  __device__ __forceinline__ static int column() { return static_cast<int>(threadIdx.x) % RUNS * RUN; }
  __device__ __forceinline__ static int row(int i) { return static_cast<int>(threadIdx.x) / RUNS + i * STEP; }
  __device__ __forceinline__ static bool has(int i) { return COUNT * STEP == BLOCK_K || row(i) < BLOCK_K; }
};

// Copies of x.
class CopiedRows {
  using Lines = CopiedLines<BLOCK_M, X_RUN>;

 public:
  using Chunk = CopiedPositions;
  static constexpr bool DOWN = false;

  template <class Tile>
  __device__ __forceinline__ CopiedRows(const TX* x, const UserArguments&, const Tile& tile) : x_(x) {
    const Index row = tile.first_pixel + Lines::column();
    window_.place(tile.region, tile.group, tile.number_of(row), tile.holds(row));
  }

  // Starts copying a chunk to the tile at `address`.
  template <class Tile>
  __device__ __forceinline__ void copy(const CopiedPositions& chunk, unsigned address) const {
#pragma unroll
    for (int i = 0; i < Lines::COUNT; ++i) {
      if (!Lines::has(i)) continue;
      int image = chunk.first + Lines::row(i);
      const int s = take_coordinate(image, S), r = take_coordinate(image, R), t = take_coordinate(image, T);
      const Tap tap(t, r, s);
      start_copy<X_RUN * sizeof(TX), true>(address + byte_of_copy<Tile, Lines::STEP>(Lines::row(0), Lines::column(), i),
                                           element_at(x_, window_.offset + (image * Index(X_STRIDE_C) + tap.offset())),
                                           chunk.has(Lines::row(i)) && window_.holds(tap));
    }
  }

 private:
  const TX* x_;
  Window window_;
};

// Copies of dy.
class CopiedColumns {
  using Lines = CopiedLines<BLOCK_N, W_RUN>;

 public:
  static constexpr bool DOWN = false;

  template <class Tile>
  __device__ __forceinline__ CopiedColumns(const TW* w, const Tile& tile)
      : w_(w),
        offset_(first_filter_element(static_cast<Index>(tile.group) * K_PER_GROUP + tile.first_k + Lines::column())),
        exists_(tile.first_k + Lines::column() < K_PER_GROUP) {}

  // Starts copying a chunk to the tile at `address`.
  template <class Tile>
  __device__ __forceinline__ void copy(const CopiedPositions& chunk, unsigned address) const {
#pragma unroll
    for (int i = 0; i < Lines::COUNT; ++i) {
      if (!Lines::has(i)) continue;
      start_copy<W_RUN * sizeof(TW), false>(
          address + byte_of_copy<Tile, Lines::STEP>(Lines::row(0), Lines::column(), i),
          element_at(w_, offset_ + filter_offset(chunk.first + Lines::row(i))), exists_ && chunk.has(Lines::row(i)));
    }
  }

 private:
  const TW* w_;
  Index offset_;
  bool exists_;
};
