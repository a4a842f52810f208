#include "gemm/gemm_parts.h"

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
  for (const int64_t stride : batch_strides(spec)) {
    image.alignment = alignment_at(image.alignment, stride * size_of(spec.dtype));
  }
  return image;
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

ConvParts gemm_parts(const Gemm& gemm) {
  ConvParts parts;
  const int64_t most = std::numeric_limits<int>::max() / 2;
  if (gemm.k() == 0) parts.refusal = "K is 0: there is nothing to multiply";
  if (gemm.c.elements() == 0) parts.refusal = "c is empty: there is nothing to compute";
  if (std::max({gemm.m(), gemm.n(), gemm.k()}) > most) parts.refusal = "M, N or K is beyond 2^30";
  if (parts.refusal) return parts;

  ConvPart part{{}, {"a"}, {"b"}, {"c"}};
  ConvProblem& conv = part.conv;
  const int pixels = gemm.dynamic_batch ? dimension::batch : dimension::column;
  conv.x = image_of(gemm.a, 0, pixels);
  conv.y = image_of(gemm.c, 0, pixels);
  conv.w = image_of(gemm.b, 1, dimension::batch);
  conv.bias = gemm.bias;
  if (gemm.residual) conv.residual = image_of(*gemm.residual, 0, pixels);
  conv.epilogue = gemm.epilogue;
  conv.blend = gemm.blend;
  conv.arithmetic = gemm.arithmetic;
  conv.dynamic_batch = gemm.dynamic_batch;
  conv.batch = ProductBatch{batch_extents(gemm.c), batch_strides(gemm.a), batch_strides(gemm.b), batch_strides(gemm.c),
                            batch_strides(gemm.residual.value_or(gemm.c))};
  conv.columns.extent = conv.columns.outputs = conv.y.extents[dimension::column];
  conv.wide_index =
      needs_wide_index({&gemm.a, &gemm.b, &gemm.c}) || (gemm.residual && needs_wide_index({&*gemm.residual}));
  conv.read_layouts();
  parts.list.push_back(std::move(part));
  return parts;
}

}  // namespace kiln::descriptor
