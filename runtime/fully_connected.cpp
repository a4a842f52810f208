// Fully connected layers: matrix products where the inputs of an image are one run in memory, and what computes the
// same of any strides where they are not.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/conv.h"
#include "kiln/gemm.h"
#include "memory_run.h"

namespace kiln {
namespace {

[[noreturn]] void refuse(const std::string& what, const char* hint) {
  throw Error(ErrorCode::invalid_argument, "gemm: of a fully connected layer, " + what, hint);
}

// Refuses an x and a w that are not of one layer.
void check_layer(const Tensor& x, std::string_view x_name, const Tensor& w, std::string_view w_name) {
  if (x.rank() < 2 || x.rank() != w.rank()) {
    refuse(fmt::format("{} has {} dimensions and {} has {}", x_name, x.rank(), w_name, w.rank()),
           "x is N,C and w is K,C, or both have the same further dimensions");
  }
  if (x.rank() > 5) refuse(fmt::format("{} has {} dimensions", x_name, x.rank()), "it has N,C and up to three more");
  for (int i = 1; i < x.rank(); ++i) {
    if (x.extent(i) == w.extent(i)) continue;
    refuse(fmt::format("dimension {} of {} is {} and that of {} {}", i, x_name, x.extent(i), w_name, w.extent(i)),
           "behind the first, the extents of x and w are equal");
  }
}

void require_matrix(const Tensor& tensor, std::string_view name) {
  if (tensor.rank() != 2) refuse(fmt::format("{} has {} dimensions", name, tensor.rank()), "it is N,K");
}

// Dimensions of `like` behind the first, the one of the largest stride first. Dimensions of extent 1, whose strides say
// nothing, are left out.
std::vector<int> memory_order(const Tensor& like) {
  std::vector<int> order;
  for (int i = 1; i < like.rank(); ++i) {
    if (like.extent(i) != 1) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](int i, int j) { return like.stride(i) > like.stride(j); });
  return order;
}

// `tensor` as a matrix: its dimensions behind the first, outermost first as in `order`, are one run. Nothing if they
// are not.
std::optional<Tensor> as_matrix(const Tensor& tensor, const std::vector<int>& order) {
  const std::optional<int64_t> stride = stride_of_run(tensor, order);
  if (!stride) return std::nullopt;
  int64_t inputs = 1;
  for (const int dimension : order) inputs *= tensor.extent(dimension);
  return Tensor(tensor.data(), tensor.dtype(), {tensor.extent(0), inputs}, {tensor.stride(0), *stride});
}

// Two tensors with an element for each input as matrices, if they are.
std::optional<std::pair<Tensor, Tensor>> as_matrices(const Tensor& one, const Tensor& other) {
  const std::vector<int> order = memory_order(one);
  const std::optional<Tensor> first = as_matrix(one, order), second = as_matrix(other, order);
  if (!first || !second) return std::nullopt;
  return std::pair(*first, *second);
}

// N,K with spatial dimensions of 1 behind them.
Tensor as_image(const Tensor& matrix, int rank) {
  std::vector<int64_t> extents(static_cast<size_t>(rank), 1), strides(static_cast<size_t>(rank), 1);
  for (const int i : {0, 1}) {
    extents[static_cast<size_t>(i)] = matrix.extent(i);
    strides[static_cast<size_t>(i)] = matrix.stride(i);
  }
  return {matrix.data(), matrix.dtype(), extents, strides};
}

// The epilogue of a product as that of a convolution. Its user code would not be the same: the channel has another
// name.
Epilogue of_images(const Epilogue& epilogue, int rank) {
  if (epilogue.code()) {
    refuse("user code needs inputs that are one run in memory, and those of x or of w are not",
           "give x and w one layout without gaps behind the first dimension, or copy with tensor_transform()");
  }
  if (!epilogue.residual() || epilogue.residual()->rank() != 2) return epilogue;
  return epilogue.with_residual(as_image(*epilogue.residual(), rank));
}

// The gradients of a layer as products, one for each place of the inputs: of all dimensions but the first and that with
// most elements, which are the rows and columns.
class Places {
 public:
  explicit Places(const Tensor& inputs) : rank_(inputs.rank()) {
    for (int i = 2; i < rank_; ++i) {
      if (inputs.extent(i) > inputs.extent(columns_)) columns_ = i;
    }
  }

  Tensor matrices(const Tensor& tensor) const {
    std::vector<int64_t> extents, strides;
    const auto append = [&](int dimension) {
      extents.push_back(tensor.extent(dimension));
      strides.push_back(tensor.stride(dimension));
    };
    for (int i = 1; i < rank_; ++i) {
      if (i != columns_) append(i);
    }
    append(0);
    append(columns_);
    return {tensor.data(), tensor.dtype(), extents, strides};
  }

  // A matrix that is a factor in every place.
  Tensor repeated(const Tensor& matrix) const {
    std::vector<int64_t> extents(static_cast<size_t>(rank_), 1), strides(static_cast<size_t>(rank_), 1);
    for (const int i : {0, 1}) {
      const auto at = static_cast<size_t>(rank_) - 2 + static_cast<size_t>(i);
      extents[at] = matrix.extent(i);
      strides[at] = matrix.stride(i);
    }
    return {matrix.data(), matrix.dtype(), extents, strides};
  }

 private:
  int rank_ = 0, columns_ = 1;
};

// Refuses what only a single product can do: an epilogue with tensors, or one that tells elements apart, and a batch
// that is M.
void refuse_single_product(const GemmOptions& options, std::string_view name) {
  const Epilogue& epilogue = options.epilogue;
  const bool plain = !epilogue.code() && !epilogue.bias() && !epilogue.residual();
  if (plain && !options.dynamic_batch) return;
  refuse(fmt::format("{} needs inputs that are one run in memory, and those of {} or its partner are not",
                     plain ? "a dynamic batch" : "an epilogue with tensors or user code", name),
         plain ? "fix the batch, or give both one layout without gaps behind the first dimension"
               : "beta adds what was there before; or give both one layout without gaps behind the first dimension");
}

// The gradient `to`, of x or of w, from the other one of them: `factor` times `from`, in one product or in one for each
// place of the inputs.
void multiply(Context& context, const Tensor& factor, const Tensor& from, const Tensor& to, std::string_view to_name,
              const GemmOptions& options, Stream stream) {
  if (const auto matrices = as_matrices(from, to)) {
    gemm(context, factor, matrices->first, matrices->second, options, stream);
    return;
  }
  refuse_single_product(options, to_name);
  const Places places(to);
  gemm(context, places.repeated(factor), places.matrices(from), places.matrices(to), options, stream);
}

}  // namespace

void fully_connected_forward(Context& context, const Tensor& x, const Tensor& w, const Tensor& y,
                             const GemmOptions& options, Stream stream) {
  check_layer(x, "x", w, "w");
  require_matrix(y, "y");
  if (const auto matrices = as_matrices(x, w)) {
    gemm(context, matrices->first, transposed(matrices->second), y, options, stream);
    return;
  }
  // A convolution whose filter covers the image.
  conv_forward(context, x, w, as_image(y, x.rank()),
               {.alpha = options.alpha,
                .beta = options.beta,
                .epilogue = of_images(options.epilogue, x.rank()),
                .arithmetic = options.arithmetic,
                .dynamic_batch = options.dynamic_batch},
               stream);
}

void fully_connected_backward_data(Context& context, const Tensor& dy, const Tensor& w, const Tensor& dx,
                                   const GemmOptions& options, Stream stream) {
  check_layer(dx, "dx", w, "w");
  require_matrix(dy, "dy");
  multiply(context, dy, w, dx, "dx", options, stream);
}

void fully_connected_backward_weights(Context& context, const Tensor& x, const Tensor& dy, const Tensor& dw,
                                      const GemmOptions& options, Stream stream) {
  check_layer(x, "x", dw, "dw");
  require_matrix(dy, "dy");
  multiply(context, transposed(dy), x, dw, "dw", options, stream);
}

void fully_connected_backward_bias(Context& context, const Tensor& dy, const Tensor& db, float alpha, float beta,
                                   Stream stream) {
  require_matrix(dy, "dy");
  conv_backward_bias(context, dy, db, {.alpha = alpha, .beta = beta}, stream);
}

}  // namespace kiln
