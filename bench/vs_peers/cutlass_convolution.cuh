// A convolution of CUTLASS, or a gradient of one. The prelude also defines PEER_PASS (DefaultConv2dFprop, ...Dgrad,
// ...Wgrad), PEER_ITERATOR (kAnalytic, kOptimized) and PEER_STRIDES (kUnity, kStrided); and, where a second kernel adds
// slices, PEER_RESULT and PEER_ALIGN_RESULT: PEER_C is then the type of these.
#include "cutlass/conv/kernel/default_conv2d_dgrad.h"
#include "cutlass/conv/kernel/default_conv2d_fprop.h"
#include "cutlass/conv/kernel/default_conv2d_wgrad.h"
#include "cutlass_common.cuh"

using Layout = cutlass::layout::TensorNHWC;
using Kernel = typename cutlass::conv::kernel::PEER_PASS<
    A, Layout, B, Layout, C, Layout, PEER_SUM, cutlass::arch::OpClassTensorOp, PEER_TARGET, Block, Warp, Instruction,
    Scale, PEER_SWIZZLE, PEER_STAGES, PEER_OPERATOR, cutlass::conv::IteratorAlgorithm::PEER_ITERATOR,
    cutlass::conv::StrideSupport::PEER_STRIDES, PEER_ALIGN_A, PEER_ALIGN_B>::Kernel;

extern "C" __global__ void __launch_bounds__(Kernel::kThreadCount) peer(typename Kernel::Params parameters) {
  run_kernel<Kernel>(parameters);
}

#ifdef PEER_RESULT
#include "cutlass/reduction/kernel/reduce_split_k.h"
#include "cutlass/reduction/thread/reduction_operators.h"

// The shape that CUTLASS's profiler takes.
using Adding = cutlass::reduction::kernel::ReduceSplitK<
    cutlass::MatrixShape<4, 32 * PEER_ALIGN_RESULT>,
    cutlass::epilogue::thread::LinearCombination<PEER_RESULT, PEER_ALIGN_RESULT, PEER_SUM, PEER_SCALE>,
    cutlass::reduction::thread::ReduceAdd<PEER_SUM, PEER_SUM, PEER_ALIGN_RESULT>>;

extern "C" __global__ void __launch_bounds__(128) peer_adding(typename Adding::Params parameters) {
  typename Adding::SharedStorage shared;
  Adding()(parameters, shared);
}

// `slices` stand one behind the other, each as the result does: rows of `columns` elements.
__device__ void leave_adding(int rows, int columns, int count, C* slices, PEER_RESULT* result, float alpha, float beta,
                             char* to, kiln::bench::CutlassLaunch* launch) {
  const cutlass::MatrixCoord extents(rows, columns);
  const cutlass::layout::RowMajor layout(columns);
  const typename Adding::Params parameters(extents, count, size_t(rows) * columns, {slices, layout}, {result, layout},
                                           {result, layout}, {PEER_SCALE(alpha), PEER_SCALE(beta)});
  memcpy(to + launch->parameter_bytes, &parameters, sizeof parameters);
  const dim3 grid = Adding::grid_shape(extents), block = Adding::block_shape();
  launch->adding_grid[0] = int(grid.x);
  launch->adding_grid[1] = int(grid.y);
  launch->adding_threads[0] = int(block.x);
  launch->adding_threads[1] = int(block.y);
  launch->adding_parameter_bytes = int(sizeof parameters);
}
#endif

// `a` and `b` in the order of the pass: x and w, dy and w, dy and x. `slices` for the sums of slices, if a second
// kernel adds them.
extern "C" __global__ void peer_parameters(kiln::bench::CutlassConvolution of, A* a, B* b, void* result, float alpha,
                                           float beta, int* semaphore, C* slices, char* to,
                                           kiln::bench::CutlassLaunch* launch) {
  C* const c = of.parallel ? slices : static_cast<C*>(result);
  using cutlass::conv::Operator;
  const cutlass::conv::Conv2dProblemSize problem(of.n, of.h, of.w, of.c, of.k, of.r, of.s, of.p, of.q, of.pad_h,
                                                 of.pad_w, of.stride_h, of.stride_w, of.dilation_h, of.dilation_w,
                                                 cutlass::conv::Mode::kCrossCorrelation, of.slices);
  const auto layout = [](const int* strides) { return Layout({strides[0], strides[1], strides[2]}); };
  const Layout input = layout(of.input), filter = layout(of.filter), output = layout(of.output);
  constexpr Operator pass = Kernel::kConvolutionalOperator;
  const Layout a_layout = pass == Operator::kFprop ? input : output;
  const Layout b_layout = pass == Operator::kWgrad ? input : filter;
  const Layout c_layout = pass == Operator::kFprop ? output : pass == Operator::kDgrad ? input : filter;
  const typename Kernel::Arguments arguments(
      problem, {a, a_layout}, {b, b_layout}, {c, c_layout}, {c, c_layout},
      {PEER_SCALE(of.parallel ? 1 : alpha), PEER_SCALE(of.parallel ? 0 : beta)},
      of.parallel ? cutlass::conv::SplitKMode::kParallel : cutlass::conv::SplitKMode::kSerial);
  const bool accepted = Kernel::Mma::IteratorA::can_implement(problem) == cutlass::Status::kSuccess &&
                        Kernel::Mma::IteratorB::can_implement(problem) == cutlass::Status::kSuccess;
  leave<Kernel>(typename Kernel::Params(arguments, semaphore), accepted, to, launch);
#ifdef PEER_RESULT
  const auto elements = cutlass::conv::implicit_gemm_tensor_c_size(pass, problem);
  const int columns = pass == Operator::kFprop ? of.k : of.c;
  leave_adding(int(elements / columns), columns, of.slices, slices, static_cast<PEER_RESULT*>(result), alpha, beta, to,
               launch);
#endif
}
