// Elements of x that stand where indices say along one dimension.
//
// x is the first input of lib/pointwise.cuh, where it has no stride along that dimension; indices are the second. From
// the prelude: AXIS_EXTENT and AXIS_STRIDE, those of x along it.
#include "lib/pointwise.cuh"

// Where an index stands along the dimension; negative where that is outside x.
__device__ __forceinline__ i32 position_of(i32 index) {
  const i32 position = index < 0 ? index + static_cast<i32>(AXIS_EXTENT) : index;
  return position < static_cast<i32>(AXIS_EXTENT) ? position : -1;
}

// The elements that COUNT neighbours along the innermost dimension name, the first of them at `place`; 0 for those
// outside x.
template <int COUNT>
__device__ __forceinline__ Inputs<COUNT> gathered(const Vector<TB, COUNT>& indices, const Place& place,
                                                  const PointwiseArguments& arguments) {
  const Index step = Index(stride_of(0, 0));
  Inputs<COUNT> inputs;
  inputs.b = indices;
  inputs.a = zeros<KeptA, COUNT>();
  if constexpr (STEP_KINDS[1] == 0) {  // all of them name one position
    const i32 position = position_of(indices[0]);
    if (position >= 0) {
      const Index offset = place.offsets[0] + position * Index(AXIS_STRIDE);
      inputs.a = user_kept<false>(load_strided<STEP_KINDS[0], COUNT>(arguments.a, offset, step), 0, arguments.user);
    }
  } else {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      const i32 position = position_of(indices[i]);
      if (position < 0) continue;
      const Index offset = place.offsets[0] + i * step + position * Index(AXIS_STRIDE);
      inputs.a[i] = user_kept(arguments.a[offset], 0, arguments.user);
    }
  }
  return inputs;
}
