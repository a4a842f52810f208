#include "kiln/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/conv.h"
#include "kiln/generator/operations/gemm.h"
#include "memory_run.h"
#include "operation_call.h"

namespace kiln {
namespace {

CallKey key_of(const Tensor& a, const Tensor& b, const Tensor& c, const GemmOptions& options) {
  CallKey key(static_cast<int64_t>(CallKind::gemm));
  key.add(a);
  key.add(b);
  key.add(c);
  key.add(flags_of(options, word_of(options.arithmetic)));
  key.add(options.epilogue);
  return key;
}

Request request_of(const Tensor& a, const Tensor& b, const Tensor& c, const GemmOptions& options) {
  Gemm gemm;
  gemm.a = a.spec();
  gemm.b = b.spec();
  gemm.c = c.spec();
  gemm.arithmetic = options.arithmetic;
  gemm.blend = blend_of(options);
  gemm.dynamic_batch = options.dynamic_batch;
  set_stages("gemm", options.epilogue, gemm);
  return with_user_code(gemm.request(), c, options.epilogue);
}

[[noreturn]] void refuse(const std::string& what, const char* hint) {
  throw Error(ErrorCode::invalid_argument, "gemm: of a fully connected layer, " + what, hint);
}

// Dimensions of `like` behind the first, the one of the largest stride first. Those of extent 1, whose strides say
// nothing, are left out.
std::vector<int> memory_order(const Tensor& like) {
  std::vector<int> order;
  for (int i = 1; i < like.rank(); ++i) {
    if (like.extent(i) != 1) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](int i, int j) { return like.stride(i) > like.stride(j); });
  return order;
}

// `tensor` as a matrix: its dimensions behind the first, outermost first as in `order`, are one run.
Tensor as_matrix(const Tensor& tensor, const std::vector<int>& order, std::string_view name) {
  const std::optional<int64_t> stride = stride_of_run(tensor, order);
  if (!stride) {
    refuse(fmt::format("the inputs of {} are not one run in memory", name),
           "give x and w one layout without gaps behind the first dimension, or copy with tensor_transform()");
  }
  int64_t inputs = 1;
  for (const int dimension : order) inputs *= tensor.extent(dimension);
  return {tensor.data(), tensor.dtype(), {tensor.extent(0), inputs}, {tensor.stride(0), *stride}};
}

// What a layer has an element of for each image or unit and input.
struct Layer {
  Tensor x, w;
};

// The x and w of a layer as matrices.
Layer layer_of(const Tensor& x, std::string_view x_name, const Tensor& w, std::string_view w_name) {
  if (x.rank() < 2 || x.rank() != w.rank()) {
    refuse(fmt::format("{} has {} dimensions and {} has {}", x_name, x.rank(), w_name, w.rank()),
           "x is N,C and w is K,C, or both have the same further dimensions");
  }
  for (int i = 1; i < x.rank(); ++i) {
    if (x.extent(i) == w.extent(i)) continue;
    refuse(fmt::format("dimension {} of {} is {} and that of {} {}", i, x_name, x.extent(i), w_name, w.extent(i)),
           "behind the first, the extents of x and w are equal");
  }
  const std::vector<int> order = memory_order(x);
  return {as_matrix(x, order, x_name), as_matrix(w, order, w_name)};
}

void require_matrix(const Tensor& tensor, std::string_view name) {
  if (tensor.rank() != 2) refuse(fmt::format("{} has {} dimensions", name, tensor.rank()), "it is N,K");
}

}  // namespace

Tensor transposed(const Tensor& matrix) {
  if (matrix.rank() < 2) {
    throw Error(ErrorCode::invalid_argument, "a tensor of one dimension has no transpose", "give it a second, of 1");
  }
  std::array<int64_t, Tensor::max_rank> extents{}, strides{};
  for (int i = 0; i < matrix.rank(); ++i) {
    extents[static_cast<size_t>(i)] = matrix.extent(i);
    strides[static_cast<size_t>(i)] = matrix.stride(i);
  }
  const auto last = static_cast<size_t>(matrix.rank()) - 1;
  std::swap(extents[last], extents[last - 1]);
  std::swap(strides[last], strides[last - 1]);
  return {matrix.data(), matrix.dtype(), std::span(extents.data(), last + 1), std::span(strides.data(), last + 1)};
}

void gemm(Context& context, const Tensor& a, const Tensor& b, const Tensor& c, const GemmOptions& options,
          Stream stream) {
  refuse_overlap("gemm", c, "a", a, "c");
  refuse_overlap("gemm", c, "b", b, "c");
  CallOperands operands{a, b, c};
  operands.add_epilogue("gemm", c, options.epilogue, "c");
  run_call(context, key_of(a, b, c, options), operands.addresses(), staged_values_of(options, a), stream,
           [&] { return request_of(a, b, c, options); });
}

void fully_connected_forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& y,
                             const GemmOptions& options, Stream stream) {
  const Layer layer = layer_of(x, "x", w, "w");
  require_matrix(y, "y");
  gemm(context, layer.x, transposed(layer.w), y, options, stream);
}

void fully_connected_backward_data(Context& context, const Tensor& dy, const Tensor& w, const Tensor& dx,
                                   const GemmOptions& options, Stream stream) {
  const Layer layer = layer_of(dx, "dx", w, "w");
  require_matrix(dy, "dy");
  gemm(context, dy, layer.w, layer.x, options, stream);
}

void fully_connected_backward_weights(Context& context, const Tensor& x, const Tensor& dy, const Tensor& dw,
                                      const GemmOptions& options, Stream stream) {
  const Layer layer = layer_of(x, "x", dw, "dw");
  require_matrix(dy, "dy");
  gemm(context, transposed(dy), layer.x, layer.w, options, stream);
}

void fully_connected_backward_bias(Context& context, const Tensor& dy, const Tensor& db, float alpha, float beta,
                                   Stream stream) {
  require_matrix(dy, "dy");
  conv_backward_bias(context, dy, db, {.alpha = alpha, .beta = beta}, stream);
}

}  // namespace kiln
