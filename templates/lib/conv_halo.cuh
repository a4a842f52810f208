// Convolution on tensor cores whose windows overlap: a block takes TILE_P x TILE_Q outputs, and copies the *halo* of
// these, all of x that their windows meet, once for all taps. lib/copy_pipeline.cuh copies x anew under each tap.
//
//   TILE_P 2, TILE_Q 4, a window of 3 x 3:    h h h h h h      o: outputs of the tile, which are also pixels of the
//                                             h o o o o h      halo where stride and dilation are 1
//                                             h o o o o h
//                                             h h h h h h
//
// The depth is worked off as lib/copied_filters.cuh has it, and with the same bits: chunk number i is BLOCK_K channels
// under tap i % TAPS. Filters come chunk by chunk, STAGES - 1 ahead. There are two halos: the taps of one are
// multiplied while the next channels are on their way to the other, a part of them with each tap.
//
//   tap                     0     1     2    ...  6      7     8   (3 x 3, STAGES 3: PARTS is 7)
//   copies to the other     p0    p1    p2   ...  p6
//   the user's prologue                 p0   ...  p4     p5    p6
//
// A part has come when chunks that were started with it have: STAGES - 1 taps later. Then the threads that copied it
// put it through the prologue where it lies, once for each element, not once for each tap.
//
// From the prelude, besides what lib/conv_tile.cuh needs: TILE_P and TILE_Q; and for each tap TAP_LINE and TAP_COLUMN,
// the pixels of the halo, and its columns, from what is under the first tap to what is under this one.
#include "lib/copied_filters.cuh"
#include "lib/tensor_tile.cuh"

static_assert(BLOCK_M == TILE_P * TILE_Q, "a tile of the product is one of outputs");
static_assert(TILE_Q % 8 == 0, "the eight lines of a matrix are neighbours");
static_assert(WARP_M % TILE_Q == 0 || TILE_Q % WARP_M == 0, "a warp has whole rows, or part of one");
static_assert(sizeof(TX) == sizeof(Factor) && sizeof(TW) == sizeof(Factor), "copies do not change what they move");
static_assert(X_RUN * sizeof(TX) == 16, "copies move whole pieces");
static_assert(!IMAGES_INNER && STAGES >= 2 && STEPS >= 2 && TAPS >= STAGES, "what the descriptor promises");
static_assert(!USER_PROLOGUE || USER_ROUNDS, "the halo holds what a prologue makes as x is stored");

constexpr int P_TILES = ceil_div<long long>(P, TILE_P);
constexpr int Q_TILES = ceil_div<long long>(Q, TILE_Q);

// The tile of a block: outputs of one image, and channels. Outputs are numbered row by row.
struct HaloTile {
  Region region;
  Index first_pixel = 0;
  Index image, z, p, q;
  int group;
  int first_k;

  __device__ __forceinline__ explicit HaloTile(const GridBlock& block) : region(0) {
    Index number = static_cast<Index>(block.x);
    q = take_coordinate(number, Q_TILES) * TILE_Q;
    p = take_coordinate(number, P_TILES) * TILE_P;
    z = take_coordinate(number, Z);
    image = number;
    group = static_cast<int>(block.y) / tiles_of_group();
    first_k = static_cast<int>(block.y) % tiles_of_group() * BLOCK_N;
  }

  __device__ __forceinline__ bool holds(Index pixel) const {
    const bool in_rows = p + pixel / TILE_Q < Index(P), in_columns = q + pixel % TILE_Q < Index(Q);
    return in_rows & in_columns;  // not &&: a branch costs more than a comparison
  }
  __device__ __forceinline__ Index number_of(Index pixel) const {
    return ((image * Index(Z) + z) * Index(P) + (p + pixel / TILE_Q)) * Index(Q) + (q + pixel % TILE_Q);
  }
};

// The pixels under a tile's windows, a line of BLOCK_K channels each. Pieces of a line change places by the pixel's
// column, so that those of outputs side by side lie in different banks under every tap.
struct Halo {
  using Lines = TensorTile<TX, 8, true>;

  static constexpr int PLANES = (T - 1) * DILATION_D + 1;
  static constexpr int ROWS = (TILE_P - 1) * STRIDE_H + (R - 1) * DILATION_H + 1;
  static constexpr int COLUMNS = (TILE_Q - 1) * STRIDE_W + (S - 1) * DILATION_W + 1;
  static constexpr int PIXELS = PLANES * ROWS * COLUMNS;

  // A number without a sign is divided by a shift.
  __device__ __forceinline__ static int turn(int column) {
    return Lines::turn(static_cast<unsigned>(column) / static_cast<unsigned>(STRIDE_W));
  }

  uint4 pieces[PIXELS * Lines::PIECES];
};

// This thread's copies to a halo: the same piece of every STEP-th pixel.
class HaloCopies {
  static constexpr int RUNS = Halo::Lines::PIECES;
  static constexpr int STEP = THREADS / RUNS;
  static constexpr int COUNT = ceil_div(Halo::PIXELS, STEP);
  static_assert(THREADS % RUNS == 0, "threads tile the pixels");

 public:
  // Parts of the copies, one for each of the first taps.
  static constexpr int PARTS = TAPS - STAGES + 1;

  __device__ __forceinline__ HaloCopies(const TX* x, const HaloTile& tile)
      : x_(x + (tile.image * Index(X_STRIDE_N) + tile.group * Index(X_STRIDE_G))),
        piece_(static_cast<int>(threadIdx.x) % RUNS),
        pixel_(static_cast<int>(threadIdx.x) / RUNS),
        image_(static_cast<int>(tile.image)),
        first_channel_(tile.group * C_PER_GROUP),
        d_(tile.z * STRIDE_D - PAD_FRONT),
        h_(tile.p * STRIDE_H - PAD_TOP),
        w_(tile.q * STRIDE_W - PAD_LEFT) {}

  // Starts copying part number `part` of the channels from `channel` of the group on to the halo at `address`.
  __device__ __forceinline__ void copy_part(int part, int channel, unsigned address) const {
    copy<OF_PART>(part * OF_PART, channel, address);
  }
  __device__ __forceinline__ void copy_all(int channel, unsigned address) const { copy<COUNT>(0, channel, address); }

  // Puts what this thread has copied through the prologue.
  __device__ __forceinline__ void enter_part(int part, int channel, Halo& halo, const UserArguments& user) const {
    enter<OF_PART>(part * OF_PART, channel, halo, user);
  }
  __device__ __forceinline__ void enter_all(int channel, Halo& halo, const UserArguments& user) const {
    enter<COUNT>(0, channel, halo, user);
  }

 private:
  static constexpr int OF_PART = ceil_div(COUNT, PARTS);
  static constexpr int AT_ONCE = 4;  // copies on their way beside each other: a whole halo would be much code

  // A pixel of the halo: where its piece lies in x, whether it is inside, and where the piece goes.
  struct Pixel {
    Index offset;
    bool is_in_halo, is_in_x;
    unsigned byte;
  };
  __device__ __forceinline__ Pixel pixel(int i) const {
    const int number = pixel_ + i * STEP;
    int rest = number;
    const int column = take_coordinate(rest, Halo::COLUMNS);
    const Index w = w_ + column, h = h_ + take_coordinate(rest, Halo::ROWS), d = d_ + rest;
    Pixel result;
    result.offset = Input::at(0, 0, d, h, w) + piece_ * X_RUN;
    result.is_in_halo = number < Halo::PIXELS;
    result.is_in_x = is_in(d, D) && is_in(h, H) && is_in(w, W);
    result.byte = static_cast<unsigned>(number * Halo::Lines::LINE_BYTES + (piece_ ^ Halo::turn(column)) * 16);
    return result;
  }
  __device__ __forceinline__ static bool is_in(Index position, Index extent) {
    return static_cast<UnsignedIndex>(position) < static_cast<UnsignedIndex>(extent);
  }
  __device__ __forceinline__ bool has_channels(int channel) const {
    return C_PER_GROUP % BLOCK_K == 0 || channel + piece_ * X_RUN < C_PER_GROUP;
  }

  // NUMBER copies from number `first` on.
  template <int NUMBER>
  __device__ __forceinline__ void copy(int first, int channel, unsigned address) const {
    const TX* const from = x_ + channel;
#pragma unroll AT_ONCE
    for (int i = 0; i < NUMBER; ++i) {
      const Pixel to = pixel(first + i);
      if (!to.is_in_halo) continue;
      start_copy<16, false>(address + to.byte, element_at(from, to.offset), to.is_in_x && has_channels(channel));
    }
  }
  // Channels that a group does not have stay zero, as the filters are: a prologue could make an infinity of them.
  template <int NUMBER>
  __device__ __forceinline__ void enter(int first, int channel, Halo& halo, const UserArguments& user) const {
    if (!has_channels(channel)) return;
    const PrologueRun<X_RUN> prologue({first_channel_ + channel + piece_ * X_RUN, image_}, user);
    if (STEP > Halo::PIXELS && pixel_ >= Halo::PIXELS) return;
    const unsigned own = pixel(0).byte;
#pragma unroll AT_ONCE
    for (int i = 0; i < NUMBER; ++i) {
      // Copies that do not exist go the same way, to no end: without a branch several are on their way side by side.
      const Pixel at = pixel(first + i);
      char* const place = reinterpret_cast<char*>(halo.pieces) + (at.is_in_halo ? at.byte : own);
      const auto entered = prologue.enter(load<X_RUN>(reinterpret_cast<const TX*>(place)), user);
      if (at.is_in_halo && at.is_in_x) store<X_RUN>(reinterpret_cast<TX*>(place), entered);
    }
  }

  const TX* x_;
  int piece_, pixel_;
  int image_, first_channel_;
  Index d_, h_, w_;  // of the halo's first pixel
};

// Where the fragments of a warp stand in a halo. A lane addresses the pixel under one output, and half of a piece's
// neighbours along the channels (lib/tensor_tile.cuh: MatrixPlaces).
class HaloPlaces {
 public:
  __device__ __forceinline__ explicit HaloPlaces(int first) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int output = first + lane % FRAGMENT;
    deep_ = lane / FRAGMENT;
    column_ = output % TILE_Q * STRIDE_W;
    line_ = output / TILE_Q * STRIDE_H * Halo::COLUMNS + column_;
    enter_tap(0);
  }

  __device__ __forceinline__ void enter_tap(int tap) {
    const int line = line_ + static_cast<int>(TAP_LINE[tap]), column = column_ + static_cast<int>(TAP_COLUMN[tap]);
    start_ = line * Halo::Lines::LINE_BYTES + (deep_ ^ Halo::turn(column)) * 16;
  }

  // Reads fragment number `i`, of 16 outputs, and `step` along the channels of the halo at that address.
  __device__ __forceinline__ void read(unsigned (&fragment)[4], unsigned halo, int i, int step) const {
    const int lines = i * FRAGMENT / TILE_Q * STRIDE_H * Halo::COLUMNS + i * FRAGMENT % TILE_Q * STRIDE_W;
    load_matrices<false>(fragment,
                         halo + static_cast<unsigned>((start_ ^ (step * 32)) + lines * Halo::Lines::LINE_BYTES));
  }

 private:
  int line_, column_, deep_;  // under the first tap
  int start_;
};

__device__ __forceinline__ void convolve_halos(const GridBlock& block, const TX* x, const TW* w, TY* y,
                                               const EpilogueArguments& arguments, long long n) {
  const HaloTile tile(block);
  if (tile.image >= images_of(n)) return;
  const TensorPosition position;
  TensorSums sums;
  if constexpr (MULTIPLIES) {
    using FilterTile = TensorTile<Factor, BLOCK_N, CopiedFilters::DOWN>;
    struct Tiles {
      Halo halos[2];
      FilterTile filters[STAGES];
    };
    using Memory = BlockMemory<Tiles, TensorSums::Exchange>;
    static_assert(sizeof(Memory) == SHARED_BYTES, "the launch asks for as much as halos and filters take");
    Memory& memory = block_memory<Memory>();
    constexpr int CHUNKS = chunks_of_filter();
    constexpr unsigned FILTER_BYTES = sizeof(FilterTile), HALO_BYTES = sizeof(Halo);

    const HaloCopies copies(x, tile);
    const CopiedFilters filters(w, tile);
    const unsigned first_halo = shared_address(memory.tiles.halos);
    int halo = 0;  // the one that is multiplied
    const unsigned first_stage = shared_address(memory.tiles.filters);
    unsigned stage = 0, free = (STAGES - 1) * FILTER_BYTES;  // those that are multiplied, and that copies fill

    CopiedChunk copied(0);
    int to_copy = CHUNKS;
    const auto copy_filters = [&](unsigned to) {
      if (to_copy-- > 0) {
        filters.copy<FilterTile>(copied, first_stage + to);
        copied.next();
      }
    };
    copies.copy_all(0, first_halo);
#pragma unroll
    for (int i = 0; i < STAGES - 1; ++i) {
      copy_filters(i * FILTER_BYTES);
      end_group();
    }
    wait_for_groups<STAGES - 2>();
    if constexpr (USER_PROLOGUE) {
      copies.enter_all(0, memory.tiles.halos[0], arguments.user);
    }
    __syncthreads();

    HaloPlaces pixels(position.m);
    const typename PlacesOf<FilterTile, false>::type columns(position.n);
    Fragments fragments[2];
    const auto read = [&](Fragments& to, int step) {
#pragma unroll
      for (int i = 0; i < FRAGMENTS_M; ++i) pixels.read(to.a[i], first_halo + halo * HALO_BYTES, i, step);
#pragma unroll
      for (int i = 0; i < FRAGMENTS_N; ++i) columns.read(to.b[i], first_stage + stage, i, step);
    };
    read(fragments[0], 0);
    int tap = 0, next_channel = BLOCK_K;
#pragma unroll 1
    for (int left = CHUNKS; left > 0; --left) {
      const int part = tap, arrived = part - (STAGES - 1);
      const bool enters = USER_PROLOGUE && arrived >= 0 && next_channel < C_PER_GROUP;
#pragma unroll
      for (int step = 0; step < STEPS; ++step) {
        if (step == STEPS - 1) {
          if (enters) {
            copies.enter_part(arrived, next_channel, memory.tiles.halos[1 - halo], arguments.user);
          }
          wait_for_groups<STAGES - 2>();
          __syncthreads();
          free = stage;
          stage = stage + FILTER_BYTES == STAGES * FILTER_BYTES ? 0 : stage + FILTER_BYTES;
          if (++tap == TAPS) {
            tap = 0;
            next_channel += BLOCK_K;
            halo = 1 - halo;
          }
          pixels.enter_tap(tap);
        }
        read(fragments[(step + 1) % 2], (step + 1) % STEPS);
        if (step == 0) {
          copy_filters(free);
          if (part < HaloCopies::PARTS && next_channel < C_PER_GROUP) {
            copies.copy_part(part, next_channel, first_halo + (1 - halo) * HALO_BYTES);
          }
          end_group();
        }
        sums.multiply(fragments[step % 2]);
      }
    }
    wait_for_groups<0>();
    sums.gather(memory.exchange, position);
  }
  finish_tile(tile, position, sums, y, arguments);
}
