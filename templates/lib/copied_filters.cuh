// Filters of lib/conv_tile.cuh that go from global to shared memory as they are, by asynchronous copies of W_RUN
// elements of w: channels of a filter or, W_ALONG_K, filters. Zeros stand for what does not exist.
//
// The depth is worked off channels outer, taps inner: chunk number i is BLOCK_K channels of the group under tap i %
// TAPS.
//
// From the prelude, for each tap: TAP_W, its distance in w from the first.
#include "lib/conv_tile.cuh"
#include "lib/copies.cuh"

static_assert(CHANNELS_INNER, "copies move channels side by side");
static_assert(!REGIONS_OF_PIXELS && !REGIONS_OF_TAPS, "filters are the same everywhere");

// A chunk: its tap, and its first channel in the group.
struct CopiedChunk {
  int tap, channel;

  __device__ __forceinline__ explicit CopiedChunk(int number) : tap(number % TAPS), channel(number / TAPS * BLOCK_K) {}
  __device__ __forceinline__ void next() {
    if (++tap == TAPS) {  // not <: an instruction less for each chunk
      tap = 0;
      channel += BLOCK_K;
    }
  }

  // Whether channel number `row` of the chunk exists.
  __device__ __forceinline__ bool has(int row) const {
    return C_PER_GROUP % BLOCK_K == 0 || channel + row < C_PER_GROUP;
  }
};

// Copies of w.
class CopiedFilters {
  static constexpr int RUNS = (W_ALONG_K ? BLOCK_N : BLOCK_K) / W_RUN;  // of a line of the tile
  static constexpr int LINES = W_ALONG_K ? BLOCK_K : BLOCK_N;
  static constexpr int LINE_STEP = THREADS / RUNS;
  static constexpr int COUNT = ceil_div(LINES, LINE_STEP);
  static_assert(THREADS % RUNS == 0, "threads tile the lines");
  static_assert(COUNT <= 32, "there is a bit for each line");

 public:
  static constexpr bool DOWN = !W_ALONG_K;

  template <class Tile>
  __device__ __forceinline__ CopiedFilters(const TW* w, const Tile& tile) : w_(w) {
    const int thread = static_cast<int>(threadIdx.x);
    first_ = thread % RUNS * W_RUN;
    line_ = thread / RUNS;
    const int filters = K_PER_GROUP - tile.first_k;  // of the group from this tile on
    const Index filter = static_cast<Index>(tile.group) * K_PER_GROUP + tile.first_k;
    exists_ = 0;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      offset_[i] = first_filter_element(filter + column(i)) + row(i) * Index(W_STRIDE_C);
      exists_ |= static_cast<unsigned>(column(i) < filters) << i;
    }
  }

  // Starts copying a chunk to the tile at `address`.
  template <class Tile>
  __device__ __forceinline__ void copy(const CopiedChunk& chunk, unsigned address) const {
    const TW* const from = w_ + (Index(TAP_W[chunk.tap]) + chunk.channel * Index(W_STRIDE_C));
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      if (COUNT * LINE_STEP != LINES && line_ + i * LINE_STEP >= LINES) continue;
      const bool exists = (K_PER_GROUP % BLOCK_N == 0 || (exists_ >> i & 1u) != 0) && chunk.has(row(i));
      start_copy<W_RUN * sizeof(TW), false>(address + byte_of_copy<Tile, LINE_STEP>(row(0), column(0), i),
                                            element_at(from, offset_[i]), exists);
    }
  }

 private:
  __device__ __forceinline__ int column(int i) const {
    return W_ALONG_K ? first_ : line_ + i * LINE_STEP;
  }
  __device__ __forceinline__ int row(int i) const {
    return W_ALONG_K ? line_ + i * LINE_STEP : first_;
  }

  const TW* w_;
  int first_, line_;
  Index offset_[COUNT];
  unsigned exists_;  // a bit for each line
};
