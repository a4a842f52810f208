// One kernel of CUTLASS. The prelude in front of it defines types and tiles: PEER_A, PEER_B and PEER_C (elements of the
// operands and of the result), PEER_SUM and PEER_SCALE, PEER_TARGET, PEER_BLOCK, PEER_WARP, PEER_INSTRUCTION (shapes),
// PEER_STAGES, PEER_OPERATOR, PEER_SWIZZLE, PEER_ALIGN_A, PEER_ALIGN_B and PEER_ALIGN_C (elements of one access).
//
// Each source has two kernels: `peer` is CUTLASS's; `peer_parameters` makes its parameters by CUTLASS's constructors.
#include "cutlass/cutlass.h"
#include "cutlass/epilogue/thread/linear_combination.h"
#include "cutlass/gemm/threadblock/threadblock_swizzle.h"
#include "cutlass_arguments.h"

using A = PEER_A;
using B = PEER_B;
using C = PEER_C;
using Block = cutlass::gemm::GemmShape<PEER_BLOCK>;
using Warp = cutlass::gemm::GemmShape<PEER_WARP>;
using Instruction = cutlass::gemm::GemmShape<PEER_INSTRUCTION>;
using Scale = cutlass::epilogue::thread::LinearCombination<C, PEER_ALIGN_C, PEER_SUM, PEER_SCALE>;

template <class Kernel>
__device__ void run_kernel(const typename Kernel::Params& parameters) {
  extern __shared__ int shared[];
  Kernel kernel;
  kernel(parameters, *reinterpret_cast<typename Kernel::SharedStorage*>(shared));
}

template <class Kernel>
__device__ void leave(const typename Kernel::Params& parameters, bool accepted, char* to,
                      kiln::bench::CutlassLaunch* launch) {
  memcpy(to, &parameters, sizeof parameters);
  const dim3 grid = PEER_SWIZZLE::get_grid_shape(parameters.grid_tiled_shape);
  *launch = {accepted,
             {int(grid.x), int(grid.y), int(grid.z)},
             Kernel::kThreadCount,
             int(sizeof(typename Kernel::SharedStorage)),
             int(sizeof parameters),
             {},
             {},
             0};
}
