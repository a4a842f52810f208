// The usual normalisations: norm_forward() and its like along the axes of each, with shorter tensors seen as x has
// them.
#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/norm.h"
#include "norm_call.h"

namespace kiln {
namespace {

// `tensor` as the dimensions of a tensor of `rank` from `first` on, with extents of 1 elsewhere.
Tensor spread(const Tensor& tensor, int rank, int first) {
  if (tensor.rank() >= rank || first + tensor.rank() > rank) return tensor;  // right as it is, or refused as it is
  std::array<int64_t, Tensor::max_rank> extents{}, strides{};
  extents.fill(1);
  for (int i = 0; i < tensor.rank(); ++i) {
    const size_t at = static_cast<size_t>(first) + static_cast<size_t>(i);
    extents[at] = tensor.extent(i);
    strides[at] = tensor.stride(i);
  }
  const auto count = static_cast<size_t>(rank);
  return {tensor.data(), tensor.dtype(), std::span(extents.data(), count), std::span(strides.data(), count)};
}

void spread(std::optional<Tensor>& tensor, int rank, int first) {
  if (tensor) tensor = spread(*tensor, rank, first);
}

// Of all tensors of a call: parameters from dimension `of_w` on, statistics from `of_mean` on.
NormOptions spread(const NormOptions& options, int rank, int of_w, int of_mean) {
  NormOptions seen = options;
  for (std::optional<Tensor>* tensor : {&seen.w, &seen.b}) spread(*tensor, rank, of_w);
  for (std::optional<Tensor>* tensor : {&seen.mean, &seen.inv_deviation, &seen.running_mean, &seen.running_variance}) {
    spread(*tensor, rank, of_mean);
  }
  return seen;
}

NormGradientOptions spread(const NormGradientOptions& options, int rank, int of_w, int of_mean) {
  NormGradientOptions seen = options;
  for (std::optional<Tensor>* tensor : {&seen.w, &seen.b, &seen.dw, &seen.db}) spread(*tensor, rank, of_w);
  spread(seen.mean, rank, of_mean);
  return seen;
}

Axes from(int first, int rank) {
  Axes axes;
  for (int i = first; i < rank; ++i) axes.axis[static_cast<size_t>(axes.count++)] = i;
  return axes;
}

// The spatial dimensions, which there must be.
Axes spatial(const Tensor& x, std::string_view operation) {
  if (x.rank() >= 3 && x.rank() <= 5) return from(2, x.rank());
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: the tensor has {} dimensions", operation, x.rank()),
              "it takes N,C and one to three spatial dimensions");
}

Axes of_batch(int rank) {
  Axes axes = from(2, rank);
  axes.axis[static_cast<size_t>(axes.count++)] = 0;
  return axes;
}

int counted(int first_axis, const Tensor& x, std::string_view operation) {
  const int axis = first_axis < 0 ? first_axis + x.rank() : first_axis;
  if (axis >= 0 && axis < x.rank()) return axis;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: axis {} is outside the {} dimensions of x", operation, first_axis, x.rank()),
              "give the first that is normalised, or -1 for the last alone");
}

// The channels of x as groups of neighbours: N,G,C/G,... Allocates nothing: it is made for every call.
class Groups {
 public:
  // `x`, which the operation calls `name`: what has its extents in the call.
  Groups(int64_t groups, const Tensor& x, std::string_view operation, std::string_view name)
      : operation_(operation), name_(name), x_(x), groups_(groups) {
    if (x.rank() < 3 || x.rank() > 5) {
      refuse(fmt::format("{} has {} dimensions", name, x.rank()), "it takes N,C and one to three spatial dimensions");
    }
    if (groups < 1 || channels() % groups != 0) {
      refuse(fmt::format("{} channels in {} groups", channels(), groups), "the groups divide the channels");
    }
  }

  int rank() const { return x_.rank() + 1; }

  // Refuses extents other than those of x: their image might have the same.
  Tensor image(std::string_view name, const Tensor& tensor) const {
    if (!fits(tensor, false)) refuse_extents(name, tensor, fmt::format("{} and {} have equal extents", name, name_));
    return in_groups(tensor);
  }

  std::optional<Tensor> image(std::string_view name, const std::optional<Tensor>& tensor) const {
    return tensor ? std::optional(image(name, *tensor)) : std::nullopt;
  }

  // The same for a tensor of user code, which may repeat along any dimension.
  Tensor image_of_user(std::string_view name, const Tensor& tensor) const {
    if (!fits(tensor, true)) {
      refuse_extents(name, tensor, fmt::format("give it the extents of {}, or 1 where it repeats", name_));
    }
    return in_groups(tensor);
  }

  // C as 1,G,C/G,1...
  std::optional<Tensor> parameter(const std::optional<Tensor>& w) const {
    if (!w || w->rank() != 1 || w->extent(0) != channels()) return w;
    const std::array<int64_t, 2> extents{groups_, channels() / groups_};
    const std::array<int64_t, 2> strides{w->stride(0) * (channels() / groups_), w->stride(0)};
    return spread(Tensor(w->data(), w->dtype(), extents, strides), rank(), 1);
  }

 private:
  int64_t channels() const { return x_.extent(1); }

  // Whether `tensor` has the extents of x, or 1 where it `may_repeat`.
  bool fits(const Tensor& tensor, bool may_repeat) const {
    if (tensor.rank() != x_.rank()) return false;
    for (int i = 0; i < x_.rank(); ++i) {
      if (tensor.extent(i) != x_.extent(i) && !(may_repeat && tensor.extent(i) == 1)) return false;
    }
    return true;
  }

  // Channels that repeat are one group of one.
  Tensor in_groups(const Tensor& tensor) const {
    const int64_t groups = tensor.extent(1) == 1 ? 1 : groups_, size = tensor.extent(1) / groups;
    std::array<int64_t, Tensor::max_rank> extents{tensor.extent(0), groups, size};
    std::array<int64_t, Tensor::max_rank> strides{tensor.stride(0), tensor.stride(1) * size, tensor.stride(1)};
    for (int i = 2; i < tensor.rank(); ++i) {
      extents[static_cast<size_t>(i) + 1] = tensor.extent(i);
      strides[static_cast<size_t>(i) + 1] = tensor.stride(i);
    }
    const auto count = static_cast<size_t>(rank());
    return {tensor.data(), tensor.dtype(), std::span(extents.data(), count), std::span(strides.data(), count)};
  }

  static std::string print_extents(const Tensor& tensor) {
    std::string text;
    for (int i = 0; i < tensor.rank(); ++i) text += fmt::format("{}{}", i == 0 ? "" : "x", tensor.extent(i));
    return text;
  }

  [[noreturn]] void refuse_extents(std::string_view name, const Tensor& tensor, const std::string& hint) const {
    refuse(fmt::format("{} has extents {}, expected {}", name, print_extents(tensor), print_extents(x_)), hint);
  }

  [[noreturn]] void refuse(const std::string& what, const std::string& hint) const {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", operation_, what), hint);
  }

  std::string_view operation_, name_;
  const Tensor& x_;
  int64_t groups_;
};

// What the user code of an epilogue reads, seen in groups; on the stack of the call.
class TensorsInGroups {
 public:
  TensorsInGroups(const Groups& groups, const Epilogue& epilogue) {
    if (epilogue.code() == nullptr) return;
    const std::vector<std::string>& names = epilogue.code()->tensors();
    tensors_.reserve(names.size());
    for (size_t i = 0; i < names.size(); ++i) tensors_.push_back(groups.image_of_user(names[i], epilogue.tensor(i)));
  }

  std::span<const Tensor> all() const { return tensors_; }

 private:
  alignas(Tensor) std::array<std::byte, Expression::max_tensors * sizeof(Tensor)> room_;  // not initialised
  std::pmr::monotonic_buffer_resource memory_{room_.data(), room_.size(), std::pmr::null_memory_resource()};
  std::pmr::vector<Tensor> tensors_{&memory_};
};

}  // namespace

void layer_norm_forward(Context& context, int first_axis, const Tensor& x, const Tensor& y, const NormOptions& options,
                        Stream stream) {
  const int first = counted(first_axis, x, "norm_forward");
  norm_forward(context, from(first, x.rank()), x, y, spread(options, x.rank(), first, 0), stream);
}

void layer_norm_backward(Context& context, int first_axis, const Tensor& dy, const Tensor& x,
                         const Tensor& inv_deviation, const Tensor& dx, const NormGradientOptions& options,
                         Stream stream) {
  const int first = counted(first_axis, dy, "norm_backward"), rank = dy.rank();
  norm_backward(context, from(first, rank), dy, x, spread(inv_deviation, rank, 0), dx, spread(options, rank, first, 0),
                stream);
}

void rms_norm_forward(Context& context, int first_axis, const Tensor& x, const Tensor& y, const NormOptions& options,
                      Stream stream) {
  NormOptions rms = options;
  rms.mode = NormMode::rms;
  layer_norm_forward(context, first_axis, x, y, rms, stream);
}

void rms_norm_backward(Context& context, int first_axis, const Tensor& dy, const Tensor& x, const Tensor& inv_deviation,
                       const Tensor& dx, const NormGradientOptions& options, Stream stream) {
  NormGradientOptions rms = options;
  rms.mode = NormMode::rms;
  layer_norm_backward(context, first_axis, dy, x, inv_deviation, dx, rms, stream);
}

void instance_norm_forward(Context& context, const Tensor& x, const Tensor& y, const NormOptions& options,
                           Stream stream) {
  norm_forward(context, spatial(x, "norm_forward"), x, y, spread(options, x.rank(), 1, 0), stream);
}

void instance_norm_backward(Context& context, const Tensor& dy, const Tensor& x, const Tensor& inv_deviation,
                            const Tensor& dx, const NormGradientOptions& options, Stream stream) {
  const int rank = dy.rank();
  norm_backward(context, spatial(dy, "norm_backward"), dy, x, spread(inv_deviation, rank, 0), dx,
                spread(options, rank, 1, 0), stream);
}

void group_norm_forward(Context& context, int64_t groups, const Tensor& x, const Tensor& y, const NormOptions& options,
                        Stream stream) {
  const Groups grouped(groups, x, "norm_forward", "x");
  NormOptions seen = options;
  seen.w = grouped.parameter(options.w);
  seen.b = grouped.parameter(options.b);
  if (const std::optional<Tensor>& residual = options.epilogue.residual()) {
    seen.epilogue = options.epilogue.with_residual(grouped.image("residual", *residual));
  }
  const TensorsInGroups read(grouped, options.epilogue);
  call_norm_forward(context, from(2, grouped.rank()), grouped.image("x", x), grouped.image("y", y),
                    spread(seen, grouped.rank(), 1, 0), read.all(), stream);
}

void group_norm_backward(Context& context, int64_t groups, const Tensor& dy, const Tensor& x,
                         const Tensor& inv_deviation, const Tensor& dx, const NormGradientOptions& options,
                         Stream stream) {
  const Groups grouped(groups, dy, "norm_backward", "dy");
  const int rank = grouped.rank();
  NormGradientOptions seen = options;
  for (std::optional<Tensor>* tensor : {&seen.w, &seen.b, &seen.dw, &seen.db}) *tensor = grouped.parameter(*tensor);
  seen.y = grouped.image("y", options.y);
  seen.residual = grouped.image("residual", options.residual);
  seen.dresidual = grouped.image("dresidual", options.dresidual);
  const TensorsInGroups read(grouped, options.epilogue);
  call_norm_backward(
      context, from(2, rank),
      {grouped.image("dy", dy), grouped.image("x", x), spread(inv_deviation, rank, 0), grouped.image("dx", dx)},
      spread(seen, rank, 1, 0), read.all(), stream);
}

void batch_norm_forward(Context& context, const Tensor& x, const Tensor& y, const NormOptions& options, Stream stream) {
  norm_forward(context, of_batch(x.rank()), x, y, spread(options, x.rank(), 1, 1), stream);
}

void batch_norm_inference(Context& context, const Tensor& x, const Tensor& running_mean, const Tensor& running_variance,
                          const Tensor& y, const NormOptions& options, Stream stream) {
  const int rank = x.rank();
  norm_inference(context, of_batch(rank), x, spread(running_mean, rank, 1), spread(running_variance, rank, 1), y,
                 spread(options, rank, 1, 1), stream);
}

void batch_norm_backward(Context& context, const Tensor& dy, const Tensor& x, const Tensor& inv_deviation,
                         const Tensor& dx, const NormGradientOptions& options, Stream stream) {
  const int rank = dy.rank();
  norm_backward(context, of_batch(rank), dy, x, spread(inv_deviation, rank, 1), dx, spread(options, rank, 1, 1),
                stream);
}

}  // namespace kiln
