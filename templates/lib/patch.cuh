// The patch of a tile of outputs: all of x that its windows meet, in shared memory once, with zeros outside the image.
// For kernels on tensor cores whose groups have few channels, any strides.
//
// A pixel of the patch is whole words, so channels that are missing are zeros too. The pixels under a row of taps stand
// side by side: a *run* of S * PIXEL elements, of which a window has T * R.
//
//   a row of the patch, C_PER_GROUP 3 of f16, S 7, STRIDE_W 2:
//
//      |c c c 0|c c c 0|c c c 0|c c c 0|c c c 0|c c c 0|c c c 0|c c c 0|c c c 0| ...
//      |____________________ run of output q __________________|
//                      |_________________ run of output q + 1 _________________|
//
// Pixels of 16 channels, or a multiple, would meet in the same banks: a piece lies between two of them.
//
// From the prelude: TX, Index, the extents, strides and windows of x; TILE_P and TILE_Q, the outputs of a tile;
// THREADS; and how x is loaded, in *strips* of X_PIXELS neighbouring pixels, which are inside the image together. One
// pixel is loaded X_RUN channels at a time, more by accesses of X_PIXELS elements: neighbours in memory, or pixels of a
// channel.
#include "lib/copies.cuh"
#include "lib/index.cuh"
#include "lib/vector.cuh"

constexpr int WORD = 4 / sizeof(TX);                       // elements
constexpr int PIXEL = ceil_div(C_PER_GROUP, WORD) * WORD;  // elements in the patch
constexpr int PIECE = 16 / sizeof(TX);
constexpr int PITCH = PIXEL % 16 == 0 ? PIXEL + PIECE : PIXEL;  // elements from one pixel to the next
constexpr int RUN = S * PIXEL;

constexpr int P_TILES = ceil_div<long long>(P, TILE_P);
constexpr int Q_TILES = ceil_div<long long>(Q, TILE_Q);
constexpr Index TILES_PER_IMAGE = Index(Z) * P_TILES * Q_TILES;

// Elements from the first of a run to that number `element`.
__device__ __forceinline__ constexpr int place_in_run(int element) {
  return PITCH == PIXEL ? element : element / PIXEL * PITCH + element % PIXEL;
}

static_assert(DILATION_W == 1 || S == 1, "taps of a row stand side by side");
static_assert(C_PER_GROUP % X_RUN == 0, "an access stays in its group");
static_assert(X_PIXELS == 1 || (W % X_PIXELS == 0 && TILE_Q * STRIDE_W % X_PIXELS == 0), "strips end with the image");
static_assert(X_PIXELS == 1 || X_STRIDE_W == 1 || (X_STRIDE_C == 1 && X_STRIDE_W == C_PER_GROUP && C == C_PER_GROUP),
              "a strip is one run, or one for each channel");

// The tile that a block works on: its image and first output.
struct PatchPlace {
  Index image, z, p, q;

  __device__ __forceinline__ explicit PatchPlace(Index tile) {
    q = take_coordinate(tile, Q_TILES) * TILE_Q;
    p = take_coordinate(tile, P_TILES) * TILE_P;
    z = take_coordinate(tile, Z);
    image = tile;
  }
};

// The pixels of x that a tile's windows meet, and those that complete their strips.
struct alignas(16) Patch {
  static constexpr int PLANES = (T - 1) * DILATION_D + 1;
  static constexpr int ROWS = (TILE_P - 1) * STRIDE_H + (R - 1) * DILATION_H + 1;
  static constexpr int LEFT = ((-PAD_LEFT) % X_PIXELS + X_PIXELS) % X_PIXELS;  // pixels ahead of the first window
  static constexpr int COLUMNS = ceil_div(LEFT + (TILE_Q - 1) * STRIDE_W + S, X_PIXELS) * X_PIXELS;
  // Parts of a long pixel, an access each: neighbouring threads load them, and so touch few lines of memory.
  static constexpr int PARTS = X_PIXELS == 1 && X_RUN == PIECE && C_PER_GROUP >= 4 * PIECE ? C_PER_GROUP / PIECE : 1;
  static constexpr int STRIPS = PLANES * ROWS * (COLUMNS / X_PIXELS) * PARTS;
  static constexpr int STRIP = X_PIXELS * PIXEL / PARTS;                        // elements
  static constexpr int COUNT = ceil_div(STRIPS, THREADS);                       // of a thread
  static constexpr int AT_ONCE = smaller(COUNT, larger(1, 48 * WORD / STRIP));  // loaded before they are stored
  static constexpr int STORED = smaller(STRIP & -STRIP, PIECE);                 // elements of a store

  static constexpr int ELEMENTS = STRIPS / PARTS * X_PIXELS * PITCH;
  static_assert(PITCH == PIXEL || PIXEL % STORED == 0, "a store stays in its pixel");

  TX elements[ELEMENTS];

  __device__ __forceinline__ void fill(const TX* x, int group, const PatchPlace& place) {
#pragma unroll 1
    for (int first = 0; first < COUNT; first += AT_ONCE) {
      TX strips[AT_ONCE][STRIP];
#pragma unroll
      for (int i = 0; i < AT_ONCE; ++i) load_strip(strips[i], x, group, place, number_of(first + i));
#pragma unroll
      for (int i = 0; i < AT_ONCE; ++i) {
        if (number_of(first + i) < STRIPS) store_strip(strips[i], number_of(first + i));
      }
    }
  }

 private:
  __device__ __forceinline__ static int number_of(int i) {
    return static_cast<int>(threadIdx.x) + i * THREADS;
  }
  template <long long EXTENT>
  __device__ __forceinline__ static bool is_in(Index position) {
    return static_cast<UnsignedOf<Index>::type>(position) < static_cast<UnsignedOf<Index>::type>(EXTENT);
  }

  // Loads a strip of the patch, zeros if it is outside the image.
  __device__ __forceinline__ static void load_strip(TX (&strip)[STRIP], const TX* x, int group, const PatchPlace& place,
                                                    int number) {
    int rest = number;
    const int part = take_coordinate(rest, PARTS);
    const Index w = place.q * STRIDE_W - PAD_LEFT - LEFT + take_coordinate(rest, COLUMNS / X_PIXELS) * X_PIXELS;
    const Index h = place.p * STRIDE_H - PAD_TOP + take_coordinate(rest, ROWS);
    const Index d = place.z * STRIDE_D - PAD_FRONT + rest;
    const bool exists = is_in<D>(d) && is_in<H>(h) && is_in<W>(w);
    const TX* const first =
        element_at(x, Index(place.image * Index(X_STRIDE_N) + group * Index(C_PER_GROUP) * Index(X_STRIDE_C) +
                            d * Index(X_STRIDE_D) + h * Index(X_STRIDE_H) + w * Index(X_STRIDE_W) +
                            part * PIECE * Index(X_STRIDE_C)));
    constexpr int ACCESS = X_PIXELS == 1 ? X_RUN : X_PIXELS;
    constexpr bool ONE_RUN = X_PIXELS == 1 || X_STRIDE_W != 1;  // pixel after pixel
#pragma unroll
    for (int i = 0; i < STRIP; ++i) {
      if (i % PIXEL >= C_PER_GROUP) strip[i] = TX{};
    }
#pragma unroll
    for (int i = 0; i < X_PIXELS * C_PER_GROUP / PARTS; i += ACCESS) {
      Vector<TX, ACCESS> run = zeros<TX, ACCESS>();
      if (exists) {
        run = load_readonly<ACCESS>(first + (X_PIXELS == 1 ? i * Index(X_STRIDE_C)
                                             : ONE_RUN     ? Index(i)
                                                           : i / X_PIXELS * Index(X_STRIDE_C)));
      }
#pragma unroll
      for (int j = 0; j < ACCESS; ++j) {
        const int pixel = ONE_RUN ? (i + j) / C_PER_GROUP : j, c = ONE_RUN ? (i + j) % C_PER_GROUP : i / X_PIXELS;
        strip[pixel * PIXEL + c] = run[j];
      }
    }
  }

  __device__ __forceinline__ void store_strip(const TX (&strip)[STRIP], int number) {
#pragma unroll
    for (int i = 0; i < STRIP; i += STORED) {
      Vector<TX, STORED> stored;
#pragma unroll
      for (int j = 0; j < STORED; ++j) stored[j] = strip[i + j];
      store<STORED>(elements + number / PARTS * X_PIXELS * PITCH + number % PARTS * PIECE + place_in_run(i), stored);
    }
  }
};
