// Convolution and its gradients as contractions, so that the same kernels serve them all.
//
// - conv_forward is one. For kernels that multiply whatever the taps are, those that stand side by side with the
// channels
//   become channels where windows do not overlap, here and in the gradient by w. In the gradient by x the phases of a
//   stride do so.
// - The gradient by x of a convolution with unit stride is the convolution of dy with the mirrored filter, C and K of w
//   swapped. With a stride, the elements of dx fall into classes: those whose position h + pad leaves the same
//   remainder divided by the stride meet the same taps, which are evenly spaced, so each class is a convolution of dy
//   with some of the taps. A class that meets none is a convolution of which nothing is multiplied. All classes are
//   computed by one launch (lib/class_blocks.cuh): they read the same dy, and write neighbouring elements of dx. There
//   is code for each, so more than 16 take a launch for every 16.
// - The gradient by w is the convolution of x, N and C swapped, with dy as the filter: its stride is the dilation, and
//   the other way round.
//
// Local convolutions are computed likewise for each region: the forward pass divides the pixels, the gradient by w,
// where outputs are taps, divides the taps. The gradient by x divides the inputs: filters depend on the tap besides
// the pixel (lib/segments.cuh).
#pragma once

#include "contraction/contractions.h"
#include "kiln/generator/operations/conv_forward.h"
#include "kiln/generator/operations/conv_pass.h"

namespace kiln::descriptor {

/// Contractions of requests of conv_forward, conv_backward_data and conv_backward_filter, and of local convolutions
/// likewise.
Contractions forward_contractions(const Request& request);
/// conv_forward, its taps merged into channels where that is possible.
Contractions forward_products(const Request& request);
Contractions data_contractions(const Request& request);
/// conv_backward_data, the phases of its strides merged into channels where that is possible.
Contractions data_products(const Request& request);
Contractions filter_contractions(const Request& request);

/// The same of the operands that they get by packing them first: what stands as copies need it stays where it is.
Contractions packed_forward(const Request& request);
Contractions packed_data(const Request& request);
Contractions packed_filter(const Request& request);

/// A forward convolution, whose blocks all kernels may arrange as they like: regions of a local one divide nothing yet.
Contraction convolution(const ConvForward& forward);

/// A contraction with parameters of `pass`, of which it may be a gradient, and without operands.
Contraction without_operands(const ConvPass& pass);

}  // namespace kiln::descriptor
