#include "gemm/gemm_contraction.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace kiln::descriptor {
namespace {

// The matrix that `spec` ends with as a tensor of three spatial axes: its dimension `channels` (counted from the last)
// becomes the channels, the other one the dimension `lines`. It is as well aligned as every matrix of the batch.
TensorSpec tensor_of(const TensorSpec& spec, size_t channels, int lines) {
  const size_t last = spec.extents.size() - 1, others = 1 - channels;
  TensorSpec tensor{spec.dtype, {1, 1, 1, 1, 1}, {0, 0, 0, 0, 0}, spec.alignment};
  tensor.extents[dimension::channel] = spec.extents[last - channels];
  tensor.strides[dimension::channel] = spec.strides[last - channels];
  tensor.extents[static_cast<size_t>(lines)] = spec.extents[last - others];
  tensor.strides[static_cast<size_t>(lines)] = spec.strides[last - others];
  for (const int64_t stride : batch_strides(spec)) begin_at(stride, tensor);
  return tensor;
}

Contractions product_of(const Gemm& gemm) {
  Contractions parts{{"a", "b", "c"}};
  const int64_t most = std::numeric_limits<int>::max() / 2;
  if (gemm.k() == 0) parts.refusal = "K is 0: there is nothing to multiply";
  if (gemm.c.elements() == 0) parts.refusal = "c is empty: there is nothing to compute";
  if (std::max({gemm.m(), gemm.n(), gemm.k()}) > most) parts.refusal = "M, N or K is beyond 2^30";
  if (parts.refusal) return parts;

  Contraction product;
  product.bias = gemm.bias;
  product.epilogue = gemm.epilogue;
  product.blend = gemm.blend;
  product.arithmetic = gemm.arithmetic;
  product.batch = ProductBatch{batch_extents(gemm.c), batch_strides(gemm.a), batch_strides(gemm.b),
                               batch_strides(gemm.c), batch_strides(gemm.residual.value_or(gemm.c))};
  ConvolutionAddresses& addresses = product.addresses;
  const int rows = gemm.dynamic_batch ? dimension::batch : dimension::column;
  addresses.x = tensor_of(gemm.a, 0, rows);
  addresses.w = tensor_of(gemm.b, 1, dimension::batch);
  addresses.y = tensor_of(gemm.c, 0, rows);
  if (gemm.residual) addresses.residual = tensor_of(*gemm.residual, 0, rows);
  addresses.dynamic_batch = gemm.dynamic_batch;
  addresses.columns.extent = addresses.columns.outputs = addresses.y.extents[dimension::column];
  addresses.wide_index =
      needs_wide_index({&gemm.a, &gemm.b, &gemm.c}) || (gemm.residual && needs_wide_index({&*gemm.residual}));
  addresses.read_layouts();
  parts.list.push_back(std::move(product));
  return parts;
}

}  // namespace

std::array<int64_t, 3> batch_strides(const TensorSpec& spec) {
  std::array<int64_t, 3> strides{};
  const size_t batches = spec.extents.size() - 2, missing = strides.size() - batches;
  for (size_t i = 0; i < batches; ++i) {
    if (spec.extents[i] > 1) strides[missing + i] = spec.strides[i];
  }
  return strides;
}

std::array<int64_t, 3> batch_extents(const TensorSpec& c) {
  std::array<int64_t, 3> extents{1, 1, 1};
  const size_t batches = c.extents.size() - 2, missing = extents.size() - batches;
  for (size_t i = 0; i < batches; ++i) extents[missing + i] = c.extents[i];
  return extents;
}

Contractions gemm_contractions(const Request& request) {
  const Gemm gemm = Gemm::of(request);
  return finished(product_of(gemm), request);
}

}  // namespace kiln::descriptor
