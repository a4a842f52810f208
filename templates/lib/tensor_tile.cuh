// Products of lib/conv_tile.cuh on tensor cores: sums[m][n] += a[k][m] * b[k][n] over the BLOCK_K rows k of two operand
// tiles in shared memory, sums in f32. m < BLOCK_M, n < BLOCK_N.
//
// Every warp owns WARP_M x WARP_N sums. It takes fragments of 32 bytes along the depth at a time out of the tiles
// (lib/tensor_cores.cuh): 16 elements of f16 or bf16, 8 of f32, which count as tf32, or 32 of fp8 or of
// 8-bit integers.
//
// From the prelude: TX, TW, BLOCK_M, BLOCK_N, BLOCK_K, WARP_M, WARP_N, THREADS; Factor, the type that tiles hold, or
// one as long; PROMOTES, whether products of fp8 are summed for one step alone and added to sums in f32; F16_SUMS,
// whether products of f16 are summed for one step alone in f16, and added to sums in f32.
#include "lib/block_memory.cuh"
#include "lib/index.cuh"
#include "lib/select.cuh"
#include "lib/tensor_cores.cuh"
#include "lib/vector.cuh"

constexpr int FRAGMENT = 16;                     // rows or columns of a fragment
constexpr int STEP_DEPTH = 32 / sizeof(Factor);  // elements of a fragment along the depth
constexpr int WARPS_M = BLOCK_M / WARP_M;
constexpr int WARPS_N = BLOCK_N / WARP_N;
constexpr int FRAGMENTS_M = WARP_M / FRAGMENT;
constexpr int FRAGMENTS_N = WARP_N / FRAGMENT;
constexpr int STEPS = BLOCK_K / STEP_DEPTH;

static_assert(WARP_M % FRAGMENT == 0 && WARP_N % FRAGMENT == 0, "a warp owns whole fragments");
static_assert(WARPS_M * WARP_M == BLOCK_M && WARPS_N * WARP_N == BLOCK_N, "warps tile the block");
static_assert(THREADS == WARPS_M * WARPS_N * 32, "the threads of a block are those of its warps");

// The elements that a tile holds of an operand: its own, or wider ones where the other operand, or ldmatrix, needs
// them.
template <class Kept>
using FactorOf = typename Select<sizeof(Kept) == sizeof(Factor), Kept, Factor>::type;

// Types of integers whose products have sums in i32.
template <class T>
constexpr bool IS_INTEGER = false;
template <>
constexpr bool IS_INTEGER<i8> = true;
template <>
constexpr bool IS_INTEGER<u8> = true;

using Sum = Select<IS_INTEGER<TX> && IS_INTEGER<TW>, int, float>::type;

static_assert(sizeof(TX) <= sizeof(Factor) && sizeof(TW) <= sizeof(Factor), "a factor holds the operands' values");

// BLOCK_K rows of COLUMNS elements in lines of 16-byte pieces. A line is a column if DOWN, and a row otherwise: loads
// and stores move neighbours in a line. The pieces of a line are exchanged so that what the lanes of a warp read at
// once lies in different banks: the same piece of eight lines, or, IN_WORDS, eight neighbours in each of four lines.
template <class T, int COLUMNS, bool DOWN>
struct TensorTile {
  using Element = T;

  static constexpr bool IS_DOWN = DOWN;
  static constexpr bool IN_WORDS = !DOWN && sizeof(T) == 4;  // ldmatrix turns elements of 16 bits alone
  static constexpr int PIECE = 16 / sizeof(T);               // elements
  static constexpr int LINES = DOWN ? COLUMNS : BLOCK_K;
  static constexpr int PIECES = (DOWN ? BLOCK_K : COLUMNS) / PIECE;  // of a line
  static constexpr int LINE_BYTES = PIECES * 16;
  static constexpr int LINES_AT_ONCE = PIECES < 8 ? 8 / PIECES : 1;  // those that fill all banks
  static_assert((PIECES & (PIECES - 1)) == 0 && PIECES > 1, "pieces are exchanged within a power of two");
  static_assert(DOWN || sizeof(T) > 1, "ldmatrix does not turn elements of 8 bits");
  static_assert(!IN_WORDS || PIECES >= 8, "four lines' pairs of pieces fill all banks");

  // The pieces of a line change places with those whose number differs by these bits.
  __host__ __device__ static constexpr int turn(unsigned line) {
    return static_cast<int>(IN_WORDS ? line % 4 * 2 : line % 8 / LINES_AT_ONCE % PIECES);
  }
  // Bytes from the tile's first to an element.
  __host__ __device__ static constexpr int byte_of(int row, int column) {
    const int line = DOWN ? column : row, element = DOWN ? row : column;
    return line * LINE_BYTES + (element / PIECE ^ turn(line)) * 16 + element % PIECE * static_cast<int>(sizeof(T));
  }

  template <int COUNT>
  __device__ __forceinline__ void put_down(int row, int column, const Vector<T, COUNT>& run) {
    static_assert(DOWN && COUNT <= PIECE, "a run stays in a piece");
    put(byte_of(row, column), run);
  }
  template <int COUNT>
  __device__ __forceinline__ void put_along(int row, int column, const Vector<T, COUNT>& run) {
    static_assert(!DOWN && COUNT <= PIECE, "a run stays in a piece");
    put(byte_of(row, column), run);
  }

  uint4 pieces[LINES * PIECES];

 private:
  template <int COUNT>
  __device__ __forceinline__ void put(int byte, const Vector<T, COUNT>& run) {
    store<COUNT>(reinterpret_cast<T*>(reinterpret_cast<char*>(pieces) + byte), run);
  }
};

// Where the fragments of one operand stand in its tile: those of A if LEFT, else of B. A fragment is two matrices
// across (along m or n) by two along the depth, each of 8 lines of 16 bytes. A lane addresses the line, or piece of a
// line, of one of them.
template <class Tile, bool LEFT>
class MatrixPlaces {
  static constexpr bool DOWN = Tile::IS_DOWN;

 public:
  // Places of fragments from row or column number `first` of the block's tile on.
  __device__ __forceinline__ explicit MatrixPlaces(int first) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int across = LEFT ? lane / 8 % 2 : lane / 16;
    const int deep = LEFT ? lane / 16 : lane / 8 % 2;
    const int line = 8 * (DOWN ? across : deep) + lane % 8 + (DOWN ? first : 0);
    const int piece = DOWN ? deep : first / 8 + across;
    start_ = line * Tile::LINE_BYTES + (piece ^ Tile::turn(lane)) * 16;
  }

  // Reads the fragment number `i` across and `step` along the depth of the tile at that address. Numbers of pieces
  // differ by bits that `start_` leaves free.
  __device__ __forceinline__ void read(unsigned (&fragment)[4], unsigned tile, int i, int step) const {
    const int lines = DOWN ? i : step, pieces = DOWN ? step : i;
    load_matrices<!DOWN>(fragment,
                         tile + static_cast<unsigned>((start_ ^ (pieces * 32)) + lines * FRAGMENT * Tile::LINE_BYTES));
  }

 private:
  int start_;
};

// The same for elements of 32 bits whose neighbours are not those along the depth: a lane loads each word that it
// needs, one for each matrix of a fragment.
template <class Tile, bool LEFT>
class WordPlaces {
 public:
  __device__ __forceinline__ explicit WordPlaces(int first) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    start_ = Tile::byte_of(lane % 4, first + lane / 4);
  }

  __device__ __forceinline__ void read(unsigned (&fragment)[4], unsigned tile, int i, int step) const {
#pragma unroll
    for (int matrix = 0; matrix < 4; ++matrix) {
      const int across = LEFT ? matrix % 2 : matrix / 2, deep = LEFT ? matrix / 2 : matrix % 2;
      const int pieces = 4 * i + 2 * across, lines = step * STEP_DEPTH + 4 * deep;
      load_word(fragment[matrix], tile + static_cast<unsigned>((start_ ^ (pieces * 16)) + lines * Tile::LINE_BYTES));
    }
  }

 private:
  int start_;
};

template <class Tile, bool LEFT, bool IN_WORDS = Tile::IN_WORDS>
struct PlacesOf {
  using type = MatrixPlaces<Tile, LEFT>;
};
template <class Tile, bool LEFT>
struct PlacesOf<Tile, LEFT, true> {
  using type = WordPlaces<Tile, LEFT>;
};

// The warp's place in the block's tile.
struct TensorPosition {
  int m, n;

  __device__ __forceinline__ TensorPosition() {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    m = warp % WARPS_M * WARP_M;
    n = warp / WARPS_M * WARP_N;
  }
};

// Fragments of A and B of one step.
struct Fragments {
  unsigned a[FRAGMENTS_M][4];
  unsigned b[FRAGMENTS_N][4];  // of two products of 8 columns each

  // Half of fragments of fp8 as fragments of f16. Each lane's four neighbours along the depth become two pairs that
  // stand 8 elements apart: another order along the depth, the same in A and B.
  template <class X, class W>
  __device__ __forceinline__ Fragments half_as_f16(int half) const {
    Fragments wide;
#pragma unroll
    for (int i = 0; i < FRAGMENTS_M; ++i) {
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        as_f16_pairs(X{}, a[i][2 * half + row], wide.a[i][row], wide.a[i][row + 2]);
      }
    }
#pragma unroll
    for (int i = 0; i < FRAGMENTS_N; ++i) {
#pragma unroll
      for (int product = 0; product < 2; ++product) {
        as_f16_pairs(W{}, b[i][2 * product + half], wide.b[i][2 * product], wide.b[i][2 * product + 1]);
      }
    }
    return wide;
  }
};

// The fragments of a warp in two tiles.
template <class TileA, class TileB>
class FragmentReader {
 public:
  __device__ __forceinline__ explicit FragmentReader(const TensorPosition& position) : a_(position.m), b_(position.n) {}

  // `a` and `b` are the addresses of the tiles.
  __device__ __forceinline__ void read(Fragments& fragments, unsigned a, unsigned b, int step) const {
#pragma unroll
    for (int i = 0; i < FRAGMENTS_M; ++i) a_.read(fragments.a[i], a, i, step);
#pragma unroll
    for (int i = 0; i < FRAGMENTS_N; ++i) b_.read(fragments.b[i], b, i, step);
  }

 private:
  typename PlacesOf<TileA, true>::type a_;
  typename PlacesOf<TileB, false>::type b_;
};

// Results on their way to memory: those of 16 rows of a warp, as f32 sums or as the 16 bits that are stored. Rows are 8
// longer than needed, so that the lanes which put two neighbours each meet different banks.
template <class T>
struct ResultRows {
  static constexpr int PITCH = WARP_N + 8, QUAD = 4;

  // Sums: a pair of quads changes places in every second row, and in every second 32 columns, so that eight lanes which
  // each take the same quad of eight neighbours meet different banks too. What the number of a column differs by.
  __device__ __forceinline__ static int turn(int row, int column) {
    return sizeof(T) == 4 ? (row + column / 32) % 2 * QUAD : 0;
  }

  alignas(16) T values[FRAGMENT][PITCH];
};

// The sums of a warp, zero at first.
struct TensorSums {
  using Exchange = ResultRows<float>[WARPS_M * WARPS_N];
  static constexpr bool IN_FRAGMENTS = true;

  Sum values[FRAGMENTS_M][2 * FRAGMENTS_N][4] = {};

  // A template, so that what does not serve the factors need not exist.
  template <class F = Factor, class X = TX, class W = TW>
  __device__ __forceinline__ void multiply(const Fragments& fragments) {
    if constexpr (F16_SUMS) {
      for_each_product(fragments, [](float(&sums)[4], const unsigned(&a)[4], const unsigned(&b)[2]) {
        unsigned step[2];
        multiply_in_f16(step, a, b);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const f16 sum = {static_cast<unsigned short>(step[i / 2] >> 16 * (i % 2))};
          sums[i] += to_float(sum);
        }
      });
    } else if constexpr (sizeof(F) > 1) {
      for_each_product(fragments, multiply_fragments<F>);
    } else if constexpr (IS_INTEGER<X>) {
      for_each_product(fragments, multiply_int8<X, W>);
    } else if constexpr (MULTIPLIES_FP8) {
      for_each_product(fragments, [](float(&sums)[4], const unsigned(&a)[4], const unsigned(&b)[2]) {
        if constexpr (PROMOTES) {
          float step[4] = {};
          multiply_fp8<X, W>(step, a, b);
#pragma unroll
          for (int i = 0; i < 4; ++i) sums[i] += step[i];
        } else {
          multiply_fp8<X, W>(sums, a, b);
        }
      });
    } else {
#pragma unroll
      for (int half = 0; half < 2; ++half)
        for_each_product(fragments.template half_as_f16<X, W>(half), multiply_fragments<f16>);
    }
  }

  // Adds a * b.
  template <class TileA, class TileB>
  __device__ __forceinline__ void add_product(const TileA& a, const TileB& b, const TensorPosition& position) {
    const FragmentReader<TileA, TileB> reader(position);
    const unsigned a_address = shared_address(&a), b_address = shared_address(&b);
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
      Fragments fragments;
      reader.read(fragments, a_address, b_address, step);
      multiply(fragments);
    }
  }

  // Makes the tiles' memory free for the sums on their way.
  __device__ __forceinline__ void gather(Exchange&, const TensorPosition&) const {
    __syncthreads();
  }

  // Calls visit(m, n, results) for what keep() makes of all sums of the warp, f32 or 16 bits, in runs of RUN along n if
  // ALONG_N, else along m, from (m, n) of the block's tile on. Lanes meet neighbours in memory: 16 rows at a time go
  // through shared memory, rows number i after before(i).
  template <bool ALONG_N, int RUN, class Keep, class Visit, class Before>
  __device__ __forceinline__ void for_each_run(const TensorPosition& position, Keep keep, Visit visit,
                                               Before before) const {
    using Kept = decltype(keep(0.0f));
    using Rows = ResultRows<Kept>;
    static_assert(sizeof(Rows) <= sizeof(ResultRows<float>), "the exchange holds them");
    int thread = static_cast<int>(threadIdx.x);
    asm volatile("" : "+r"(thread));  // the compiler would keep places in memory in registers through the main loop
    const int lane = thread % 32;
    Rows& rows = block_memory<Rows[WARPS_M * WARPS_N]>()[thread / 32];
#pragma unroll
    for (int i = 0; i < FRAGMENTS_M; ++i) {
      before(i);
      put_rows(rows, i, lane, keep);
      __syncwarp();
      for_each_place<ALONG_N, RUN>(lane, [&](int m, int n) {
        visit(position.m + i * FRAGMENT + m, position.n + n, run_of<ALONG_N, RUN>(rows, m, n));
      });
      __syncwarp();
    }
  }
  template <bool ALONG_N, int RUN, class Keep, class Visit>
  __device__ __forceinline__ void for_each_run(const TensorPosition& position, Keep keep, Visit visit) const {
    for_each_run<ALONG_N, RUN>(position, keep, visit, [](int) {});
  }

  // The same of the sums as they are: visit(m, n, sums), an array.
  template <bool ALONG_N, int RUN, class Visit>
  __device__ __forceinline__ void for_each_run(const TensorPosition& position, Visit visit) const {
    const auto keep = [](float sum) { return sum; };
    for_each_run<ALONG_N, RUN>(position, keep,
                               [&](int m, int n, const Vector<float, RUN>& run) { visit(m, n, run.data); });
  }

  // How often 16 rows go through shared memory, and how many runs a lane has of them at most.
  static constexpr int ROWS = FRAGMENTS_M;
  template <int RUN>
  static constexpr int RUNS_OF_ROWS = (FRAGMENT * WARP_N / RUN + 31) / 32;

  // Calls visit(m, n) for the runs of `count` times 16 rows of the warp from number `first` on, in the order above.
  template <bool ALONG_N, int RUN, class Visit>
  __device__ __forceinline__ static void for_each_place(const TensorPosition& position, int first, int count,
                                                        Visit visit) {
#pragma unroll 1
    for (int i = first; i < first + count; ++i) {
      for_each_place<ALONG_N, RUN>(static_cast<int>(threadIdx.x) % 32,
                                   [&](int m, int n) { visit(position.m + i * FRAGMENT + m, position.n + n); });
    }
  }

 private:
  // Calls visit(m, n) for a lane's runs of 16 rows.
  template <bool ALONG_N, int RUN, class Visit>
  __device__ __forceinline__ static void for_each_place(int lane, Visit visit) {
    constexpr int RUNS_M = FRAGMENT / (ALONG_N ? 1 : RUN), RUNS_N = WARP_N / (ALONG_N ? RUN : 1);
    static_assert(RUNS_M * RUNS_N % 32 == 0 || 32 % (RUNS_M * RUNS_N) == 0, "lanes share the runs out");
#pragma unroll 1
    for (int number = lane; number < RUNS_M * RUNS_N; number += 32) {
      const int m = ALONG_N ? number / RUNS_N : number % RUNS_M * RUN;
      const int n = ALONG_N ? number % RUNS_N * RUN : number / RUNS_M;
      visit(m, n);
    }
  }

  // Calls multiply(sums, a, b) for each product of 16 x 8 sums.
  template <class Multiply>
  __device__ __forceinline__ void for_each_product(const Fragments& fragments, Multiply multiply) {
#pragma unroll
    for (int m = 0; m < FRAGMENTS_M; ++m) {
#pragma unroll
      for (int i = 0; i < 2 * FRAGMENTS_N; ++i) {
        const int n = m % 2 == 0 ? i : 2 * FRAGMENTS_N - 1 - i;  // b's registers stay for the next row
        const unsigned b[2] = {fragments.b[n / 2][n % 2 * 2], fragments.b[n / 2][n % 2 * 2 + 1]};
        multiply(values[m][n], fragments.a[m], b);
      }
    }
  }

  // RUN neighbours from row m and column n on, multiples of RUN in their direction.
  template <bool ALONG_N, int RUN, class T>
  __device__ __forceinline__ static Vector<T, RUN> run_of(const ResultRows<T>& rows, int m, int n) {
    constexpr int QUAD = ResultRows<T>::QUAD;
    const int turn = ResultRows<T>::turn(m, n);
    Vector<T, RUN> run;
    if constexpr (ALONG_N && sizeof(T) == 4) {
      constexpr int PART = smaller(RUN, QUAD);
#pragma unroll
      for (int j = 0; j < RUN; j += PART) {
        const T* const from = RUN > QUAD ? &rows.values[m][n] + (j ^ turn) : &rows.values[m][n ^ turn];
        const Vector<T, PART> part = load<PART>(from);
#pragma unroll
        for (int k = 0; k < PART; ++k) run[j + k] = part[k];
      }
    } else if constexpr (ALONG_N) {
      run = load<RUN>(&rows.values[m][n]);
    } else {
#pragma unroll
      for (int j = 0; j < RUN; ++j) run[j] = rows.values[m + j][n ^ turn ^ (sizeof(T) == 4 ? j % 2 * QUAD : 0)];
    }
    return run;
  }

  // Puts rows [16 i, 16 i + 16) of the warp into its memory.
  template <class T, class Keep>
  __device__ __forceinline__ void put_rows(ResultRows<T>& rows, int i, int lane, Keep keep) const {
    const int row = lane / 4, column = lane % 4 * 2;
    T* const even = &rows.values[row][column ^ ResultRows<T>::turn(row, 0)];
    T* const odd = &rows.values[row][column ^ ResultRows<T>::turn(row, 32)];
#pragma unroll
    for (int n = 0; n < 2 * FRAGMENTS_N; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        Vector<T, 2> pair;
        pair[0] = keep(static_cast<float>(values[i][n][2 * half]));
        pair[1] = keep(static_cast<float>(values[i][n][2 * half + 1]));
        store<2>((n / 4 % 2 == 0 ? even : odd) + (8 * half * ResultRows<T>::PITCH + 8 * n), pair);
      }
    }
  }
};
