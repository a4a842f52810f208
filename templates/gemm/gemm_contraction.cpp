#include "gemm/gemm_contraction.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace kiln::descriptor {
namespace {

// The matrix that `spec` ends with as a tensor of three spatial axes: its dimension `channels` (counted from the last)
// becomes the channels, the other one the dimension `pixels`. It is as well aligned as every matrix of the batch.
TensorSpec image_of(const TensorSpec& spec, size_t channels, int pixels) {
  const size_t last = spec.extents.size() - 1, others = 1 - channels;
  TensorSpec image{spec.dtype, {1, 1, 1, 1, 1}, {0, 0, 0, 0, 0}, spec.alignment};
  image.extents[dimension::channel] = spec.extents[last - channels];
  image.strides[dimension::channel] = spec.strides[last - channels];
  image.extents[static_cast<size_t>(pixels)] = spec.extents[last - others];
  image.strides[static_cast<size_t>(pixels)] = spec.strides[last - others];
  for (const int64_t stride : batch_strides(spec)) begin_at(stride, image);
  return image;
}

Contractions product_of(const Gemm& gemm) {
  Contractions parts{{"a", "b", "c"}};
  const int64_t most = std::numeric_limits<int>::max() / 2;
  if (gemm.k() == 0) parts.refusal = "K is 0: there is nothing to multiply";
  if (gemm.c.elements() == 0) parts.refusal = "c is empty: there is nothing to compute";
  if (std::max({gemm.m(), gemm.n(), gemm.k()}) > most) parts.refusal = "M, N or K is beyond 2^30";
  if (parts.refusal) return parts;

  Contraction product;
  const int pixels = gemm.dynamic_batch ? dimension::batch : dimension::column;
  product.x = image_of(gemm.a, 0, pixels);
  product.y = image_of(gemm.c, 0, pixels);
  product.w = image_of(gemm.b, 1, dimension::batch);
  product.bias = gemm.bias;
  if (gemm.residual) product.residual = image_of(*gemm.residual, 0, pixels);
  product.epilogue = gemm.epilogue;
  product.blend = gemm.blend;
  product.arithmetic = gemm.arithmetic;
  product.dynamic_batch = gemm.dynamic_batch;
  product.batch = ProductBatch{batch_extents(gemm.c), batch_strides(gemm.a), batch_strides(gemm.b),
                               batch_strides(gemm.c), batch_strides(gemm.residual.value_or(gemm.c))};
  product.columns.extent = product.columns.outputs = product.y.extents[dimension::column];
  product.wide_index =
      needs_wide_index({&gemm.a, &gemm.b, &gemm.c}) || (gemm.residual && needs_wide_index({&*gemm.residual}));
  product.read_layouts();
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
