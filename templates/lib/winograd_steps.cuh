// Winograd's minimal filtering in four steps: filters, inputs, their products, outputs. The products are those of a
// convolution with 1x1 filters and POSITIONS * GROUPS groups, which kernels of conv_1x1 compute.
//
// inputs, products: [POSITIONS][channels of x, of y][tiles] f32 if channels are outer there, else [tiles][POSITIONS]
// [channels]; a tile's place among them is its slot. Where the batch is fixed, slots are counted through the images,
// and those behind the last tile (SLOTS is a multiple of what accesses move) hold zeros; else each image has SLOTS.
//
// From the prelude, besides that of lib/winograd_tiles.cuh: SLOTS; THREADS; strides V_STRIDE_N, V_STRIDE_C and
// V_STRIDE_TILE of the inputs, where a position has C channels, and M_STRIDE_N, M_STRIDE_K and M_STRIDE_TILE of the
// products; V_ALONG_C and M_ALONG_K: channels stand side by side.
#include "lib/winograd_tiles.cuh"

// Splits a number of a slot, counted through all images that are not one run of slots.
struct Slot {
  Index image, number;  // in the inputs and products
  Index tile;
  bool exists;

  __device__ __forceinline__ Slot(Index slot, long long n) {
    number = take_coordinate(slot, SLOTS);
    image = slot;
    if constexpr (DYNAMIC_N) {
      exists = number < TILES_PER_IMAGE;
      tile = image * TILES_PER_IMAGE + number;
    } else {
      exists = number < N * TILES_PER_IMAGE;
      tile = number;
    }
  }
};

// Images of slots.
__device__ __forceinline__ Index slot_images(long long n) {
  return DYNAMIC_N ? static_cast<Index>(n) : Index(1);
}

// Transforms the inputs: one patch a thread.
__device__ __forceinline__ void transform_inputs(const TX* x, float* inputs, const UserArguments& user, long long n) {
  Index number = global_thread<THREADS, Index>();
  if (number >= slot_images(n) * (Index(SLOTS) * C)) return;
  Index channel;
  if constexpr (V_ALONG_C) {
    channel = take_coordinate(number, C);
  } else {
    const Index in_image = take_coordinate(number, SLOTS);
    channel = take_coordinate(number, C);
    number = number * SLOTS + in_image;
  }
  const Slot slot(number, n);
  float patch[PATCH][PATCH], transformed[PATCH][PATCH];
  load_patch(x, TilePlace(slot.tile, slot.exists), channel, true, user, patch);
  transform_input<TILE>(patch, transformed);
  float* const first =
      inputs + (slot.image * Index(V_STRIDE_N) + channel * Index(V_STRIDE_C) + slot.number * Index(V_STRIDE_TILE));
#pragma unroll
  for (int i = 0; i < PATCH; ++i) {
#pragma unroll
    for (int j = 0; j < PATCH; ++j) first[(i * PATCH + j) * (C * Index(V_STRIDE_C))] = transformed[i][j];
  }
}

// Outputs of the products: one tile in one channel a thread.
__device__ __forceinline__ void transform_products(const float* products, TY* y, const EpilogueArguments& arguments,
                                                   long long n) {
  Index number = global_thread<THREADS, Index>();
  if (number >= slot_images(n) * (Index(SLOTS) * K)) return;
  Index channel;
  if constexpr (M_ALONG_K) {
    channel = take_coordinate(number, K);
  } else {
    const Index in_image = take_coordinate(number, SLOTS);
    channel = take_coordinate(number, K);
    number = number * SLOTS + in_image;
  }
  const Slot slot(number, n);
  if (!slot.exists) return;
  const float* const first =
      products + (slot.image * Index(M_STRIDE_N) + channel * Index(M_STRIDE_K) + slot.number * Index(M_STRIDE_TILE));
  float sums[PATCH][PATCH];
#pragma unroll
  for (int i = 0; i < PATCH; ++i) {
#pragma unroll
    for (int j = 0; j < PATCH; ++j) {
      sums[i][j] = load_readonly<1>(first + (i * PATCH + j) * (K * Index(M_STRIDE_K)))[0];
    }
  }
  finish_tile(y, TilePlace(slot.tile, true), channel, sums, arguments);
}
