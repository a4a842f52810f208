// Passes that make a graph cheaper without changing its results, beyond rounding.
#pragma once

#include "kiln/graph/cost.h"
#include "kiln/graph/graph.h"

namespace kiln::graph {

/// Removes nodes that no output depends on.
void remove_dead(Graph& graph);

/// Multiplies the scales of a norm_inference into the constant filter of the convolution before it, and makes its
/// shifts the bias, where nothing else reads the convolution's result: w' = w s, bias' = (bias - mean) s + b, with s =
/// scale / sqrt(variance + epsilon) for each channel, in double and rounded once.
void fold_normalisations(Graph& graph);

/// Makes one norm_forward of a layer normalisation that stands as arithmetic, as exporters write it before opset 17:
/// ReduceMean, Sub, Pow (or Mul), ReduceMean, Add, Sqrt, Div, and then Mul and Add; of an RMS normalisation likewise. A
/// group normalisation that stands as an InstanceNormalization of groups becomes one norm_forward
/// that strides can say in every layout.
void recognise_normalisations(Graph& graph);

/// Makes one attention_forward of the chain that exporters write: a product of queries and keys, a factor or divisor,
/// masks that are added or that select scores, the softmax, zeros in the place of its NaN, and the product with the
/// values; where nothing else reads what stands between, and the call costs less than those. Two biases become one by a
/// tensor_op, and so does a mask that puts in a finite number. A constant triangle becomes attribute `right`.
void recognise_attention(Graph& graph, const Cost& cost);

/// Lets calls do what follows them in stages of their epilogues: `bias`, `add`, `relu` and `clip`, in that order, where
/// nothing else reads what stands between.
void fuse_stages(Graph& graph);

/// Lets calls do the element-wise calls that follow them, as user code of their epilogues (docs/user-code.md): any
/// number of calls whose results only the others read, but for the last one's. Code reads at most eight tensors and
/// eight numbers; constants of one element are numbers.
void fuse_elements(Graph& graph);

/// Lets calls that load each element of their input about once do the element-wise calls before it, as prologues of
/// user code: convolutions of one position, or of elements of 16 bits, products, reductions and pooling of whole
/// channels. Numbers, and tensors with an element for each channel, are read besides. A normalisation over the channels
/// of an image, or groups of them, becomes a norm_affine, whose scale and shift are such tensors. Only where nothing
/// else reads what stands between, and the calls that are left cost less.
void fuse_prologues(Graph& graph, const Cost& cost);

/// All of them, in that order.
void optimise(Graph& graph, const Cost& cost);

}  // namespace kiln::graph
