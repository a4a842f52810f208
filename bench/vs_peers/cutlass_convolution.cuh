// A convolution of CUTLASS, or a gradient of one. The prelude also defines PEER_PASS (DefaultConv2dFprop, ...Dgrad,
// ...Wgrad), PEER_ITERATOR (kAnalytic, kOptimized) and PEER_STRIDES (kUnity, kStrided).
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

// `a` and `b` in the order of the pass: x and w, dy and w, dy and x.
extern "C" __global__ void peer_parameters(kiln::bench::CutlassConvolution of, A* a, B* b, C* c, float alpha,
                                           float beta, int* semaphore, char* to, kiln::bench::CutlassLaunch* launch) {
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
  const typename Kernel::Arguments arguments(problem, {a, a_layout}, {b, b_layout}, {c, c_layout}, {c, c_layout},
                                             {PEER_SCALE(alpha), PEER_SCALE(beta)});
  const bool accepted = Kernel::Mma::IteratorA::can_implement(problem) == cutlass::Status::kSuccess &&
                        Kernel::Mma::IteratorB::can_implement(problem) == cutlass::Status::kSuccess;
  leave<Kernel>(typename Kernel::Params(arguments, semaphore), accepted, to, launch);
}
