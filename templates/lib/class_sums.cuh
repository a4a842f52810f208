// Gradients by the input whose blocks share the depth of tiles (lib/conv_stream.cuh), of all classes of taps. What is
// included for each class before (lib/copied_split.cuh, lib/staged_split.cuh) names its loaders SplitPixels and
// SplitFilters.
#include "lib/class_blocks.cuh"
#include "lib/stream.cuh"

// The place behind the tiles of all classes.
__device__ __forceinline__ StreamPlace all_tiles(long long n) {
  StreamPlace place;
#define ADD_TILES(NAME) place = NAME::behind(place, NAME::streamed_tiles(n));
  FOR_EACH_CLASS(ADD_TILES)
  return place;
}

// The first launch.
template <class Product>
__device__ __forceinline__ void sum_classes(const TX* x, const TW* w, float* parts, const UserArguments& user,
                                            long long n) {
  if constexpr (BLOCKS > 0) {
    const Stream stream(all_tiles(n).chunk);
    StreamPlace place;
#define SHARE(NAME)                                                                                            \
  NAME::sum_share<Product, NAME::SplitPixels, NAME::SplitFilters>(stream, place, 1, parts, user, n, [&](int) { \
    return NAME::StreamOperands{x, w};                                                                         \
  });                                                                                                          \
  place = NAME::behind(place, NAME::streamed_tiles(n));
    FOR_EACH_CLASS(SHARE)
  } else {
    const ClassBlock block;
    const int part = static_cast<int>(blockIdx.z);
#define CONVOLVE(NAME)                                                                                              \
  if (block.is_of(NAME::CLASS)) {                                                                                   \
    NAME::convolve_part<Product, NAME::SplitPixels, NAME::SplitFilters>(block.place(), x, w, parts, user, n, part); \
  }
    FOR_EACH_CLASS(CONVOLVE)
  }
}

// The second one: y from the parts.
__device__ __forceinline__ void add_classes(const float* parts, TY* y, const EpilogueArguments& arguments,
                                            long long n) {
  const ClassBlock block;
  if constexpr (BLOCKS > 0) {
    const Stream stream(all_tiles(n).chunk);
    StreamPlace place;
#define ADD_SLOTS(NAME)                                                    \
  if (block.is_of(NAME::CLASS)) {                                          \
    NAME::add_slots(block.place(), stream, place, parts, y, arguments, n); \
  }                                                                        \
  place = NAME::behind(place, NAME::streamed_tiles(n));
    FOR_EACH_CLASS(ADD_SLOTS)
  } else {
#define ADD(NAME)                                           \
  if (block.is_of(NAME::CLASS)) {                           \
    NAME::add_parts(block.place(), parts, y, arguments, n); \
  }
    FOR_EACH_CLASS(ADD)
  }
}
