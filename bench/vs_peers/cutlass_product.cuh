// A matrix product of CUTLASS. The prelude also defines PEER_LAYOUT_A and PEER_LAYOUT_B (RowMajor, ColumnMajor). The
// result is row-major.
#include "cutlass/gemm/kernel/default_gemm.h"
#include "cutlass_common.cuh"

using RowMajor = cutlass::layout::RowMajor;
using Kernel =
    typename cutlass::gemm::kernel::DefaultGemm<A, cutlass::layout::PEER_LAYOUT_A, PEER_ALIGN_A, B,
                                                cutlass::layout::PEER_LAYOUT_B, PEER_ALIGN_B, C, RowMajor, PEER_SUM,
                                                cutlass::arch::OpClassTensorOp, PEER_TARGET, Block, Warp, Instruction,
                                                Scale, PEER_SWIZZLE, PEER_STAGES, true, PEER_OPERATOR>::GemmKernel;

extern "C" __global__ void __launch_bounds__(Kernel::kThreadCount) peer(typename Kernel::Params parameters) {
  run_kernel<Kernel>(parameters);
}

extern "C" __global__ void peer_parameters(kiln::bench::CutlassProduct of, A* a, B* b, C* c, float alpha, float beta,
                                           int* semaphore, C*, char* to, kiln::bench::CutlassLaunch* launch) {
  const cutlass::gemm::GemmCoord problem(of.m, of.n, of.k), block(Block::kM, Block::kN, Block::kK);
  const cutlass::TensorRef<C, RowMajor> result{c, of.c};
  const auto tiled = PEER_SWIZZLE::get_tiled_shape(problem, block, of.slices);
  const typename Kernel::Params parameters(problem, tiled, {a, of.a}, {b, of.b}, result, result,
                                           {PEER_SCALE(alpha), PEER_SCALE(beta)}, semaphore);
  const bool accepted =
      Kernel::can_implement(problem, {a, of.a}, {b, of.b}, result, result) == cutlass::Status::kSuccess;
  leave<Kernel>(parameters, accepted, to, launch);
}
