// Parts shared by all kernels of Winograd's minimal filtering: how tiles cover y, and how patches, filters and outputs
// move.
//
// Tiles of TILE x TILE outputs cover each plane of y from its first element on; those at the end reach beyond it. They
// are numbered through planes and images. Filters are transformed into the workspace:
//
// filters: [POSITIONS][GROUPS][...] f32, FILTER_C x FILTER_K elements a position and group, at least C_PER_GROUP x
// K_PER_GROUP, of which those beyond are zero; channels side by side if FILTER_C_INNER, else filters.
//
// From the prelude, besides the problem: TILE, FILTER_C, FILTER_K, FILTER_C_INNER, FILTER_THREADS; Y_RUN, the
// neighbouring outputs of a row that one store moves.
#include "lib/conv_operands.cuh"
#include "lib/winograd.cuh"

constexpr int PATCH = TILE + 2;
constexpr int POSITIONS = PATCH * PATCH;
constexpr int TILES_P = ceil_div(P, TILE), TILES_Q = ceil_div(Q, TILE);
constexpr Index TILES_PER_IMAGE = Index(Z) * TILES_P * TILES_Q;

static_assert(T == 1 && R == 3 && S == 3 && STRIDE_H == 1 && STRIDE_W == 1 && DILATION_H == 1 && DILATION_W == 1,
              "filters are 3x3, with unit stride");
static_assert(Z == D && STRIDE_D == 1 && PAD_FRONT == 0, "planes are independent");
static_assert(GROUPS == 1 || X_STRIDE_G == C_PER_GROUP * X_STRIDE_C, "groups are further channels of x");
static_assert(!IMAGES_INNER, "tiles are counted image by image");
static_assert(TILE % Y_RUN == 0 && Q % Y_RUN == 0, "a run ends with its row");

// Where a tile is.
struct TilePlace {
  Index image, plane;
  Index top, left;  // of its first output
  bool exists;

  TilePlace() = default;
  __device__ __forceinline__ TilePlace(Index number, bool is_there) : exists(is_there) {
    left = take_coordinate(number, TILES_Q) * TILE;
    top = take_coordinate(number, TILES_P) * TILE;
    plane = take_coordinate(number, Z);
    image = number;
  }
};

// The inputs of a tile in channel `channel` of x, after the user's prologue; zero where x has none.
__device__ __forceinline__ void load_patch(const TX* x, const TilePlace& tile, Index channel, bool channel_exists,
                                           const UserArguments& user, float (&patch)[PATCH][PATCH]) {
  const Index top = tile.top - PAD_TOP, left = tile.left - PAD_LEFT;
  const TX* const corner = x + Input::at(tile.image, channel, tile.plane, top, left);
  const bool exists = tile.exists && channel_exists;
#pragma unroll
  for (int i = 0; i < PATCH; ++i) {
    const bool row_exists = exists && static_cast<UnsignedIndex>(top + i) < UnsignedIndex(H);
#pragma unroll
    for (int j = 0; j < PATCH; ++j) {
      const bool inside = row_exists && static_cast<UnsignedIndex>(left + j) < UnsignedIndex(W);
      const TX value = inside ? load_readonly<1>(corner + Input::at(0, 0, 0, i, j))[0] : TX{};
      patch[i][j] = user_entered_if(inside, value, static_cast<int>(channel), user);
    }
  }
}

// Transforms the filters; one a thread. The body of a kernel of FILTER_THREADS threads.
__device__ __forceinline__ void transform_filters(const TW* w, float* filters) {
  constexpr Index PLACES = Index(GROUPS) * FILTER_C * FILTER_K;  // of a position
  const Index place = global_thread<FILTER_THREADS, Index>();
  if (place >= PLACES) return;
  Index group = place;
  Index c, k;
  if constexpr (FILTER_C_INNER) {
    c = take_coordinate(group, FILTER_C);
    k = take_coordinate(group, FILTER_K);
  } else {
    k = take_coordinate(group, FILTER_K);
    c = take_coordinate(group, FILTER_C);
  }
  const bool exists = (FILTER_C == C_PER_GROUP || c < C_PER_GROUP) && (FILTER_K == K_PER_GROUP || k < K_PER_GROUP);
  const TW* const first = w + (first_filter_element(group * K_PER_GROUP + k) + c * Index(W_STRIDE_C));
  float taps[3][3], transformed[PATCH][PATCH];
#pragma unroll
  for (int r = 0; r < 3; ++r) {
#pragma unroll
    for (int s = 0; s < 3; ++s) {
      const Index offset =
          Index(MIRRORED ? 2 - r : r) * Index(W_STRIDE_R) + Index(MIRRORED ? 2 - s : s) * Index(W_STRIDE_S);
      taps[r][s] = exists ? to_float(first[offset]) : 0.0f;
    }
  }
  transform_filter<TILE>(taps, transformed);
#pragma unroll
  for (int i = 0; i < PATCH; ++i) {
#pragma unroll
    for (int j = 0; j < PATCH; ++j) filters[(i * PATCH + j) * PLACES + place] = transformed[i][j];
  }
}

// Finishes and stores the outputs of a tile in channel k.
__device__ __forceinline__ void finish_tile(TY* y, const TilePlace& tile, Index k, const float (&sums)[PATCH][PATCH],
                                            const EpilogueArguments& arguments) {
  float outputs[TILE][TILE];
  transform_output<TILE>(sums, outputs);
#pragma unroll
  for (int i = 0; i < TILE; ++i) {
    if (P % TILE != 0 && tile.top + i >= P) break;
#pragma unroll
    for (int j = 0; j < TILE; j += Y_RUN) {
      if (Q % TILE != 0 && tile.left + j >= Q) break;
      float run[Y_RUN];
#pragma unroll
      for (int a = 0; a < Y_RUN; ++a) run[a] = outputs[i][j + a];
      finish_outputs<false>(y, OutputPixel(tile.image, tile.plane, tile.top + i, tile.left + j), k, run, arguments);
    }
  }
}
