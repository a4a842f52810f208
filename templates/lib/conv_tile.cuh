// Convolution as a matrix product: sums[m][n] over k, with m the output pixels (image, p, q), n the output channels of
// one group, and k the elements of a filter.
//
// The elements of a filter are numbered as lib/conv_operands.cuh says and cut into chunks of BLOCK_K rows.
// CHANNELS_INNER: k = (t, r, s, c), and a chunk is BLOCK_K channels of one tap, loaded a few channels at a time.
// Otherwise k = (c, t, r, s), and a chunk is any BLOCK_K consecutive k, loaded along the pixels. Rows beyond the
// filter, taps outside the image and pixels beyond the last are zero in shared memory. How x gets there is the business
// of lib/im2col_pixels.cuh and lib/pointwise_pixels.cuh.
//
// A Product says how chunks are multiplied: F32Lanes (lib/gemm_tile.cuh) on the f32 lanes, TensorLanes
// (lib/tensor_lanes.cuh) and TensorCopies (lib/copy_pipeline.cuh) on tensor cores. It has
// - Tile<COLUMNS, Loader>, BLOCK_K rows of an operand in shared memory, which the loader fills;
// - Tiles<A, B>, those of both operands in all stages;
// - add_chunks(), which brings chunks there by the loaders (lib/register_pipeline.cuh says what these have to tell, and
//   lib/copy_pipeline.cuh) and adds their products;
// - Position, the place of a thread's sums, or of a warp's, in the block's tile;
// - Sums, these sums, with gather() for what several threads have of one sum, and for_each_output_run() of them.
//
// From the prelude: the problem; POINTWISE, whether every pixel of x is one of y: one tap, no gaps, no borders; X_RUN,
// W_RUN and Y_RUN, the elements that one access of x, w and y moves, which stay in their group, filter or image;
// Y_ALONG_K, whether those of y are channels, not pixels; W_ALONG_K, whether neighbouring lanes, and accesses, read w
// along its filters, not along the elements of one; WHOLE_CHANNELS, whether TAPS divides BLOCK_K; BLOCK_M, BLOCK_N and
// BLOCK_K, the extents of the block's tile and of a chunk; THREADS, those of a block; STAGES, the tiles of each operand
// in shared memory; SHARED_BYTES, what the launch asks for.
#include "lib/block_memory.cuh"
#include "lib/conv_operands.cuh"
#include "lib/operands_ahead.cuh"
#include "lib/select.cuh"
#include "lib/vector.cuh"

__host__ __device__ constexpr int chunks_per_tap() {
  return ceil_div<int>(C_PER_GROUP, BLOCK_K);
}
__host__ __device__ constexpr int chunks_of_filter() {
  return CHANNELS_INNER ? TAPS * chunks_per_tap() : ceil_div<int>(FILTER_ELEMENTS, BLOCK_K);
}
// A number that the compiler knows nothing of. NVRTC 13.0 divides a number of few chunks in 8 bits and then moves a
// term of the result past the mask: the first chunk of a tap, and the first tap of a row, read 256 elements too far.
__device__ __forceinline__ int opaque(int number) {
  asm("" : "+r"(number));
  return number;
}
// Tap of chunk number `chunk` where CHANNELS_INNER, and its first channel in the group.
__device__ __forceinline__ int tap_of_chunk(int chunk) {
  const int tap = chunk / chunks_per_tap();
  return TAPS == 1 || !CHANNELS_INNER ? tap : opaque(tap);
}
__device__ __forceinline__ int channel_of_chunk(int chunk, int tap) {
  const int number = TAPS == 1 ? chunk % chunks_per_tap() : chunk - tap * chunks_per_tap();
  return number * BLOCK_K;
}
// Tiles along the channels of one group.
__host__ __device__ constexpr int tiles_of_group() {
  return ceil_div<int>(K_PER_GROUP, BLOCK_N);
}

using KeptX = typename UserKept<TX>::type;

// Tile of one block: BLOCK_M pixels from first_pixel on, BLOCK_N channels of `group` from first_k on, of region
// blockIdx.z where regions have blocks of their own.
struct BlockTile {
  Region region;
  Index first_pixel;
  Index pixels;  // of all images
  int group;
  int first_k;

  // The grid's x and y only count: blocks that run side by side share their pixels, and differ in channels.
  __device__ __forceinline__ BlockTile(const GridBlock& block, long long n)
      : region(REGIONS_OF_PIXELS || REGIONS_OF_TAPS ? static_cast<Index>(blockIdx.z) : 0) {
    const unsigned number = block.y * gridDim.x + block.x;
    const int tile = static_cast<int>(number % (GROUPS * tiles_of_group()));
    first_pixel = static_cast<Index>(number / (GROUPS * tiles_of_group())) * BLOCK_M;
    pixels = images_of(n) * PIXELS_PER_IMAGE;
    group = tile / tiles_of_group();
    first_k = tile % tiles_of_group() * BLOCK_N;
  }

  // Whether there is a pixel of that number: those that only larger regions have do not count.
  __device__ __forceinline__ bool holds(Index pixel) const { return pixel < pixels && has_pixel(region, pixel); }
  // Its number among all pixels of y, or of the region.
  __device__ __forceinline__ Index number_of(Index pixel) const { return pixel; }

  // Whether there is tap number `tap` of the filters, and how far its elements are from those of the first region.
  __device__ __forceinline__ bool has_tap(int tap) const {
    if constexpr (UNEVEN_TAPS) {
      const int s = take_coordinate(tap, S);
      const int r = take_coordinate(tap, R);
      return s < region.columns && r < region.rows && tap < region.planes;
    }
    return true;
  }
  __device__ __forceinline__ Index filters_of_tap(int) const { return filters_of(region); }
};

// Loader of w, W_RUN elements of one filter at a time: consecutive lanes read consecutive elements. Or, W_ALONG_K, one
// element of W_RUN filters at a time, and consecutive lanes read consecutive filters.
template <class Tile>
class Filters {
 public:
  using Kept = TW;
  static constexpr int RUN = W_RUN;
  static constexpr int COUNT = ceil_div(BLOCK_K * BLOCK_N / RUN, THREADS);
  static constexpr bool DOWN = !W_ALONG_K;

  __device__ __forceinline__ Filters(const TW* w, const Tile& tile) : w_(w), tile_(tile) {
    const int channels = K_PER_GROUP - tile.first_k;  // of the group from this tile on
    const Index first = static_cast<Index>(tile.group) * K_PER_GROUP + tile.first_k;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      exists_[i] = column(i) < smaller<int>(channels, BLOCK_N) && (!W_ALONG_K || row(i) < BLOCK_K);
      offset_[i] = first_filter_element(first + column(i)) + (CHUNKS_ARE_EVEN ? filter_offset(row(i)) : 0);
      if constexpr (ROWS_KEEP_TAPS) enter_region(row(i) % TAPS, exists_[i], offset_[i]);
    }
  }

  template <class Runs>
  __device__ __forceinline__ void fetch(int chunk, Runs& runs) const {
    const int tap = tap_of_chunk(chunk);
    const int c = channel_of_chunk(chunk, tap);
    const int first = CHANNELS_INNER ? tap * C_PER_GROUP + c : chunk * BLOCK_K;
    const int rows = CHANNELS_INNER ? C_PER_GROUP - c : FILTER_ELEMENTS - first;  // that exist, from this chunk on
    const bool whole = (CHANNELS_INNER ? C_PER_GROUP : FILTER_ELEMENTS) % BLOCK_K == 0;
    Index chunk_offset = CHUNKS_ARE_EVEN ? filter_offset(first) : 0;
    bool chunk_exists = true;
    if constexpr (CHANNELS_INNER) enter_region(tap, chunk_exists, chunk_offset);
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      bool inside = chunk_exists && exists_[i] && (whole || row(i) < rows);
      Index offset = offset_[i] + (CHUNKS_ARE_EVEN ? chunk_offset : filter_offset(first + row(i)));
      if constexpr (!CHANNELS_INNER && !ROWS_KEEP_TAPS) enter_region((first + row(i)) % TAPS, inside, offset);
      runs.fetch_run(*this, i, inside, 0, [&] { return w_ + offset; });
    }
  }
  __device__ __forceinline__ static Vector<TW, RUN> load_run(const TW* address, int) {
    return load_readonly<RUN>(address);
  }

  __device__ __forceinline__ static int column(int i) {
    const int number = static_cast<int>(threadIdx.x) + i * THREADS;
    return W_ALONG_K ? number % RUNS_IN_LINE * RUN : number / RUNS_IN_LINE;
  }
  __device__ __forceinline__ static int row(int i) {
    const int number = static_cast<int>(threadIdx.x) + i * THREADS;
    return W_ALONG_K ? number / RUNS_IN_LINE : number % RUNS_IN_LINE * RUN;
  }
  __device__ __forceinline__ static bool is_in_tile(int i) {
    return COUNT * THREADS * RUN == BLOCK_K * BLOCK_N || (W_ALONG_K ? row(i) < BLOCK_K : column(i) < BLOCK_N);
  }

 private:
  static constexpr int RUNS_IN_LINE = (W_ALONG_K ? BLOCK_N : BLOCK_K) / RUN;
  static_assert(!REGIONS_OF_TAPS || RUN == 1, "accesses stay in the region's taps");
  // Whether a row is of the same tap in every chunk.
  static constexpr bool ROWS_KEEP_TAPS = !CHANNELS_INNER && WHOLE_CHANNELS;
  // Whether a row is as far from its chunk's first in every chunk: a chunk is channels of one tap, or whole channels,
  // or part of one run.
  static constexpr bool CHUNKS_ARE_EVEN = CHANNELS_INNER || WHOLE_CHANNELS || ELEMENTS_OF_FILTER_ARE_ONE_RUN;

  // Moves an offset of an element of tap number `tap` to the filters that the tap has, if there are any.
  __device__ __forceinline__ void enter_region(int tap, bool& exists, Index& offset) const {
    exists = exists && tile_.has_tap(tap);
    offset += tile_.filters_of_tap(tap);
  }

  const TW* w_;
  Tile tile_;
  Index offset_[COUNT];
  bool exists_[COUNT];
};

// The shared memory of a block. The tiles are no longer needed when sums are gathered.
template <class Tiles, class Exchange>
union BlockMemory {
  Tiles tiles;
  Exchange exchange;
};

// Adds the products of the chunks [first, last) to `sums`. Pixels and Weights: the loaders of x and w.
template <class Product, class Pixels, class Weights, class Tile>
__device__ __forceinline__ void convolve_tile(const TX* x, const TW* w, const UserArguments& user, const Tile& tile,
                                              int first, int last, const typename Product::Position& position,
                                              typename Product::Sums& sums) {
  using PixelTile = typename Product::template Tile<BLOCK_M, Pixels>;
  using FilterTile = typename Product::template Tile<BLOCK_N, Weights>;
  using Memory = BlockMemory<typename Product::template Tiles<PixelTile, FilterTile>, typename Product::Sums::Exchange>;
  static_assert(sizeof(Memory) == SHARED_BYTES, "the launch asks for as much as the tiles take");
  Memory& memory = block_memory<Memory>();
  const Pixels pixels(x, user, tile);
  const Weights filters(w, tile);
  Product::add_chunks(memory.tiles, pixels, filters, first, last, position, sums);
  sums.gather(memory.exchange, position);
}

// Whether row m and column n of the block's tile are an output.
template <class Tile>
__device__ __forceinline__ bool tile_holds(const Tile& tile, int m, int n) {
  return tile.holds(tile.first_pixel + m) && tile.first_k + n < K_PER_GROUP;
}

// Calls visit(place, channel, values) for the sums of this thread, in runs of Y_RUN that lie side by side in y: `place`
// is the Place made of the first one's pixel number, `channel` its k. Nothing for pixels and channels that do not
// exist.
template <class Place, class Tile, class Position, class Sums, class Visit>
__device__ __forceinline__ void for_each_output_run(const Tile& tile, const Position& position, const Sums& sums,
                                                    Visit visit) {
  if constexpr (Sums::IN_FRAGMENTS) {
    sums.template for_each_run<Y_ALONG_K, Y_RUN>(position, [&](int m, int n, const float(&values)[Y_RUN]) {
      if (!tile_holds(tile, m, n)) return;
      visit(Place(tile.number_of(tile.first_pixel + m)), tile.group * K_PER_GROUP + tile.first_k + n, values);
    });
  } else {
    static_assert((Y_ALONG_K ? Sums::NEIGHBOURS_N : Sums::NEIGHBOURS_M) % Y_RUN == 0, "sums of a run are neighbours");
    if (!position.has_sums()) return;
    constexpr int STEP_M = Y_ALONG_K ? 1 : Y_RUN;
    constexpr int STEP_N = Y_ALONG_K ? Y_RUN : 1;
#pragma unroll
    for (int m = 0; m < Sums::COUNT_M; m += STEP_M) {
      const Index pixel =
          tile.first_pixel + position.m + m / Sums::NEIGHBOURS_M * Sums::DISTANCE_M + m % Sums::NEIGHBOURS_M;
      if (!tile.holds(pixel)) continue;
      const Place place(tile.number_of(pixel));
#pragma unroll
      for (int n = 0; n < Sums::COUNT_N; n += STEP_N) {
        const int in_group =
            tile.first_k + position.n + n / Sums::NEIGHBOURS_N * Sums::DISTANCE_N + n % Sums::NEIGHBOURS_N;
        if (in_group >= K_PER_GROUP) continue;
        float values[Y_RUN];
#pragma unroll
        for (int i = 0; i < Y_RUN; ++i) values[i] = Y_ALONG_K ? sums.values[m][n + i] : sums.values[m + i][n];
        visit(place, tile.group * K_PER_GROUP + in_group, values);
      }
    }
  }
}

// Whether an output depends on its sum alone, and has 16 bits: then it is rounded before it is brought in the order of
// y, which halves what goes through shared memory.
constexpr bool OUTPUTS_OF_SUMS_ALONE = !READS_Y && !READS_BIAS && !READS_RESIDUAL && !USER_EPILOGUE && sizeof(TY) == 2;

// Stores the outputs of a tile, each run as its operands come.
template <class Tile, class Position, class Sums>
__device__ __forceinline__ void finish_tile_in_turn(const Tile& tile, const Position& position, const Sums& sums, TY* y,
                                                    const EpilogueArguments& arguments) {
  for_each_output_run<OutputPixel>(tile, position, sums,
                                   [&](OutputPixel pixel, int channel, const float(&values)[Y_RUN]) {
                                     pixel.move_into(tile.region);
                                     finish_outputs<Y_ALONG_K>(y, pixel, channel, values, arguments);
                                   });
}

// How many times 16 rows of a warp have their operands in shared memory at once: as many as find room; 0 where the
// epilogue reads none that can be brought.
template <class Sums, int ROWS = Sums::ROWS>
__host__ __device__ constexpr int rows_ahead() {
  if constexpr (ROWS == 0) {
    return 0;
  } else if constexpr (OperandsAhead<Y_RUN, ROWS * Sums::template RUNS_OF_ROWS<Y_RUN>,
                                     sizeof(typename Sums::Exchange)>::serve()) {
    return ROWS;
  } else {
    return rows_ahead<Sums, ROWS / 2>();
  }
}

// Offsets of a run of outputs from row m and column n of the block's tile on, if they exist.
struct OutputRun {
  bool exists;
  Index y, residual;
  int channel;

  template <class Tile>
  __device__ __forceinline__ OutputRun(const Tile& tile, int m, int n) : exists(tile_holds(tile, m, n)) {
    if (!exists) return;
    OutputPixel pixel(tile.number_of(tile.first_pixel + m));
    pixel.move_into(tile.region);
    channel = tile.group * K_PER_GROUP + tile.first_k + n;
    y = pixel.y + channel * Index(Y_STRIDE_K);
    residual = pixel.residual + channel * Index(RESIDUAL_STRIDE_K);
  }
};

// Stores the outputs of a tile, after the operands of ROWS times 16 rows have come together, where the tiles of x and w
// were.
template <int ROWS, class Tile, class Position, class Sums>
__device__ __forceinline__ void finish_tile_ahead(const Tile& tile, const Position& position, const Sums& sums, TY* y,
                                                  const EpilogueArguments& arguments) {
  using Ahead = OperandsAhead<Y_RUN, ROWS * Sums::template RUNS_OF_ROWS<Y_RUN>, sizeof(typename Sums::Exchange)>;
  int number = 0;
  const auto bring = [&](int row) {
    if (row % ROWS != 0) return;
    number = 0;
    Sums::template for_each_place<Y_ALONG_K, Y_RUN>(position, row, smaller(ROWS, Sums::ROWS - row), [&](int m, int n) {
      const OutputRun run(tile, m, n);
      if (run.exists) Ahead::start(number, run.y, run.residual, arguments);
      ++number;
    });
    end_group();
    wait_for_groups<0>();
    number = 0;
  };
  const auto keep = [](float sum) { return sum; };
  const auto finish = [&](int m, int n, const Vector<float, Y_RUN>& values) {
    const OutputRun run(tile, m, n);
    if (run.exists) {
      finish_run<Y_ALONG_K>(y, run.y, run.residual, values.data, run.channel,
                            Ahead::brought(number, run.y, run.residual, arguments));
    }
    ++number;
  };
  sums.template for_each_run<Y_ALONG_K, Y_RUN>(position, keep, finish, bring);
}

// Stores the outputs of a tile. TILES_ARE_FREE: whether nothing needs the memory of the operands' tiles any more.
template <bool TILES_ARE_FREE = true, class Tile, class Position, class Sums>
__device__ __forceinline__ void finish_tile(const Tile& tile, const Position& position, const Sums& sums, TY* y,
                                            const EpilogueArguments& arguments) {
  if constexpr (Sums::IN_FRAGMENTS && OUTPUTS_OF_SUMS_ALONE) {
    const auto keep = [&](float sum) {
      return from_float<TY>(finished(sum, 0.0f, 0, 0.0f, 0.0f, UserValues(), arguments));
    };
    sums.template for_each_run<Y_ALONG_K, Y_RUN>(position, keep, [&](int m, int n, const Vector<TY, Y_RUN>& run) {
      if (!tile_holds(tile, m, n)) return;
      OutputPixel pixel(tile.number_of(tile.first_pixel + m));
      pixel.move_into(tile.region);
      const Index channel = tile.group * K_PER_GROUP + tile.first_k + n;
      store<Y_RUN>(y + (pixel.y + channel * Index(Y_STRIDE_K)), run);
    });
  } else if constexpr (Sums::IN_FRAGMENTS && TILES_ARE_FREE) {
    constexpr int ROWS = rows_ahead<Sums>();
    if constexpr (ROWS > 0) {
      finish_tile_ahead<ROWS>(tile, position, sums, y, arguments);
    } else {
      finish_tile_in_turn(tile, position, sums, y, arguments);
    }
  } else {
    finish_tile_in_turn(tile, position, sums, y, arguments);
  }
}

// A whole convolution: every block multiplies all chunks of its tile and finishes its outputs.
template <class Product, class Pixels, class Tile = BlockTile, class Weights = Filters<Tile>>
__device__ __forceinline__ void convolve(const GridBlock& block, const TX* x, const TW* w, TY* y,
                                         const EpilogueArguments& arguments, long long n) {
  const Tile tile(block, n);
  if (tile.first_pixel >= tile.pixels) return;  // another class, or segment, has more
  const typename Product::Position position;
  typename Product::Sums sums;
  if constexpr (MULTIPLIES)
    convolve_tile<Product, Pixels, Weights>(x, w, arguments.user, tile, 0, chunks_of_filter(), position, sums);
  finish_tile(tile, position, sums, y, arguments);
}
