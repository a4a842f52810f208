// Elements of the rows of x as kernels compute with them: as they are stored, or what the user's prologue makes of
// them.
#include "lib/rows.cuh"
#include "lib/user_code.cuh"

using KeptX = typename UserKept<TX>::type;
using Elements = Vector<KeptX, VECTOR>;

// VECTOR neighbours from the one at `first` on.
__device__ __forceinline__ Elements load_elements(const TX* first, const UserArguments& user) {
  return user_kept<false>(load_neighbours<X_RUN, X_STEP>(first), 0, user);
}
