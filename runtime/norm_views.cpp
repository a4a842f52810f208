// The usual normalisations: norm_forward() and its like along the axes of each, with shorter tensors seen as x has
// them.
#include <fmt/format.h>

#include <algorithm>
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

std::string print_extents(const Tensor& tensor, int first, int last) {
  std::string text;
  for (int i = first; i < last; ++i) text += fmt::format("{}{}", i == first ? "" : "x", tensor.extent(i));
  return text;
}

// A call by the name of a usual normalisation, along the dimensions of x, or of dy, which `like` is.
class View {
 public:
  View(std::string_view function, std::string_view general, const Tensor& like)
      : function_(function), general_(general), like_(like) {}

  int rank() const { return like_.rank(); }

  // `tensor` as the dimensions of `like` from `first` on, with extents of 1 elsewhere.
  Tensor spread(std::string_view name, const Tensor& tensor, int first) const {
    if (tensor.rank() >= rank() || first + tensor.rank() > rank())
      return tensor;  // right as it is, or refused as it is
    std::array<int64_t, Tensor::max_rank> extents{}, strides{};
    extents.fill(1);
    for (int i = 0; i < tensor.rank(); ++i) {
      const size_t at = static_cast<size_t>(first) + static_cast<size_t>(i);
      extents[at] = tensor.extent(i);
      strides[at] = tensor.stride(i);
      if (tensor.extent(i) != like_.extent(first + i) && tensor.extent(i) != 1) refuse_extents(name, tensor, first);
    }
    const auto count = static_cast<size_t>(rank());
    return {tensor.data(), tensor.dtype(), std::span(extents.data(), count), std::span(strides.data(), count)};
  }

  // All tensors of a call: parameters from dimension `of_w` on, statistics from `of_mean` on.
  NormOptions spread(const NormOptions& options, int of_w, int of_mean) const {
    NormOptions seen = options;
    spread("w", seen.w, of_w);
    spread("b", seen.b, of_w);
    spread("mean", seen.mean, of_mean);
    spread("inv_deviation", seen.inv_deviation, of_mean);
    spread("running_mean", seen.running_mean, of_mean);
    spread("running_variance", seen.running_variance, of_mean);
    return seen;
  }

  NormAffineOptions spread(const NormAffineOptions& options, int of_w) const {
    NormAffineOptions seen = options;
    spread("w", seen.w, of_w);
    spread("b", seen.b, of_w);
    return seen;
  }

  NormGradientOptions spread(const NormGradientOptions& options, int of_w, int of_mean) const {
    NormGradientOptions seen = options;
    spread("w", seen.w, of_w);
    spread("b", seen.b, of_w);
    spread("dw", seen.dw, of_w);
    spread("db", seen.db, of_w);
    spread("mean", seen.mean, of_mean);
    return seen;
  }

  // Calls the general function. Refusals name the function that was called.
  template <class Call>
  void run(const Call& call) const {
    try {
      call();
    } catch (const Error& error) {
      const std::string_view message = error.message();
      const std::string_view rest = message.substr(std::min(general_.size(), message.size()));
      if (!message.starts_with(general_) || !(rest.starts_with(": ") || rest.starts_with(" "))) throw;
      throw Error(error.code(), fmt::format("{}{}", function_, rest), error.hint());
    }
  }

 private:
  void spread(std::string_view name, std::optional<Tensor>& tensor, int first) const {
    if (tensor) tensor = spread(name, *tensor, first);
  }

  [[noreturn]] void refuse_extents(std::string_view name, const Tensor& tensor, int first) const {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}: {} has extents {}, expected {}", function_, name, print_extents(tensor, 0, tensor.rank()),
                    print_extents(like_, first, first + tensor.rank())),
        "or 1 where it repeats");
  }

  std::string_view function_, general_;
  const Tensor& like_;
};

Axes from(int first, int rank) {
  Axes axes;
  for (int i = first; i < rank; ++i) axes.axis[static_cast<size_t>(axes.count++)] = i;
  return axes;
}

// The spatial dimensions, which there must be.
Axes spatial(const Tensor& x, std::string_view operation, std::string_view name) {
  if (x.rank() >= 3 && x.rank() <= 5) return from(2, x.rank());
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {} has {} dimensions", operation, name, x.rank()),
              "it takes N,C and one to three spatial dimensions");
}

Axes of_batch(const Tensor& x, std::string_view operation, std::string_view name) {
  if (x.rank() < 2 || x.rank() > 5) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {} has {} dimensions", operation, name, x.rank()),
                "it takes N,C and up to three spatial dimensions");
  }
  Axes axes = from(2, x.rank());
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

  // N,C as N,G,C/G; what has one for each group, or repeats, stays as it is.
  Tensor pair(std::string_view name, const Tensor& tensor) const {
    if (tensor.rank() != 2) return tensor;
    const int64_t size = channels() / groups_;
    if (tensor.extent(1) != channels()) {
      if (tensor.extent(1) == groups_ || tensor.extent(1) == 1) return tensor;
      refuse(fmt::format("{} has extents {}, expected {}", name, print_extents(tensor, 0, 2), print_extents(x_, 0, 2)),
             fmt::format("or {} in place of {}, one for each group", groups_, channels()));
    }
    const std::array<int64_t, 3> extents{tensor.extent(0), groups_, size};
    const std::array<int64_t, 3> strides{tensor.stride(0), tensor.stride(1) * size, tensor.stride(1)};
    return {tensor.data(), tensor.dtype(), extents, strides};
  }

  // C as G,C/G; what has one for each group stays as it is.
  std::optional<Tensor> parameter(std::string_view name, const std::optional<Tensor>& w) const {
    if (!w || w->rank() != 1) return w;
    if (w->extent(0) != channels()) {
      if (w->extent(0) == groups_ || w->extent(0) == 1) return w;
      refuse(fmt::format("{} has extents {}, expected {}", name, w->extent(0), channels()),
             fmt::format("or {}, one for each group", groups_));
    }
    const std::array<int64_t, 2> extents{groups_, channels() / groups_};
    const std::array<int64_t, 2> strides{w->stride(0) * (channels() / groups_), w->stride(0)};
    return Tensor(w->data(), w->dtype(), extents, strides);
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

  [[noreturn]] void refuse_extents(std::string_view name, const Tensor& tensor, const std::string& hint) const {
    refuse(fmt::format("{} has extents {}, expected {}", name, print_extents(tensor, 0, tensor.rank()),
                       print_extents(x_, 0, x_.rank())),
           hint);
  }

  [[noreturn]] void refuse(const std::string& what, const std::string& hint) const {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", operation_, what), hint);
  }

  std::string_view operation_, name_;
  const Tensor& x_;
  int64_t groups_;
};

// Tensors that the user code of an epilogue reads, seen in groups; on the stack of the call.
class TensorsInGroups {
 public:
  // `in_groups(name, tensor)`: a tensor as it is seen.
  template <class InGroups>
  TensorsInGroups(const Epilogue& epilogue, const InGroups& in_groups) {
    if (epilogue.code() == nullptr) return;
    const std::vector<std::string>& names = epilogue.code()->tensors();
    tensors_.reserve(names.size());
    for (size_t i = 0; i < names.size(); ++i) tensors_.push_back(in_groups(names[i], epilogue.tensor(i)));
  }
  // Tensors of y's extents.
  TensorsInGroups(const Groups& groups, const Epilogue& epilogue)
      : TensorsInGroups(
            epilogue, [&](std::string_view name, const Tensor& tensor) { return groups.image_of_user(name, tensor); }) {
  }

  std::span<const Tensor> all() const { return tensors_; }

 private:
  alignas(Tensor) std::array<std::byte, Expression::max_tensors * sizeof(Tensor)> room_;  // not initialised
  std::pmr::monotonic_buffer_resource memory_{room_.data(), room_.size(), std::pmr::null_memory_resource()};
  std::pmr::vector<Tensor> tensors_{&memory_};
};

}  // namespace

namespace {

void norm_forward_along(std::string_view function, Context& context, int first_axis, const Tensor& x, const Tensor& y,
                        const NormOptions& options, Stream stream) {
  const int first = counted(first_axis, x, function);
  const View view(function, "norm_forward", x);
  view.run([&] { norm_forward(context, from(first, x.rank()), x, y, view.spread(options, first, 0), stream); });
}

void norm_backward_along(std::string_view function, Context& context, int first_axis,
                         const NormGradientTensors& tensors, const NormGradientOptions& options, Stream stream) {
  const Tensor &dy = tensors.dy, &x = tensors.x, &inv_deviation = tensors.inv_deviation, &dx = tensors.dx;
  const int first = counted(first_axis, dy, function);
  const View view(function, "norm_backward", dy);
  view.run([&] {
    norm_backward(context, from(first, dy.rank()), dy, x, view.spread("inv_deviation", inv_deviation, 0), dx,
                  view.spread(options, first, 0), stream);
  });
}

}  // namespace

void layer_norm_forward(Context& context, int first_axis, const Tensor& x, const Tensor& y, const NormOptions& options,
                        Stream stream) {
  norm_forward_along("layer_norm_forward", context, first_axis, x, y, options, stream);
}

void layer_norm_backward(Context& context, int first_axis, const Tensor& dy, const Tensor& x,
                         const Tensor& inv_deviation, const Tensor& dx, const NormGradientOptions& options,
                         Stream stream) {
  norm_backward_along("layer_norm_backward", context, first_axis, {dy, x, inv_deviation, dx}, options, stream);
}

void rms_norm_forward(Context& context, int first_axis, const Tensor& x, const Tensor& y, const NormOptions& options,
                      Stream stream) {
  NormOptions rms = options;
  rms.mode = NormMode::rms;
  norm_forward_along("rms_norm_forward", context, first_axis, x, y, rms, stream);
}

void rms_norm_backward(Context& context, int first_axis, const Tensor& dy, const Tensor& x, const Tensor& inv_deviation,
                       const Tensor& dx, const NormGradientOptions& options, Stream stream) {
  NormGradientOptions rms = options;
  rms.mode = NormMode::rms;
  norm_backward_along("rms_norm_backward", context, first_axis, {dy, x, inv_deviation, dx}, rms, stream);
}

void instance_norm_forward(Context& context, const Tensor& x, const Tensor& y, const NormOptions& options,
                           Stream stream) {
  const View view("instance_norm_forward", "norm_forward", x);
  const Axes axes = spatial(x, "instance_norm_forward", "x");
  view.run([&] { norm_forward(context, axes, x, y, view.spread(options, 1, 0), stream); });
}

void instance_norm_backward(Context& context, const Tensor& dy, const Tensor& x, const Tensor& inv_deviation,
                            const Tensor& dx, const NormGradientOptions& options, Stream stream) {
  const View view("instance_norm_backward", "norm_backward", dy);
  const Axes axes = spatial(dy, "instance_norm_backward", "dy");
  view.run([&] {
    norm_backward(context, axes, dy, x, view.spread("inv_deviation", inv_deviation, 0), dx, view.spread(options, 1, 0),
                  stream);
  });
}

void group_norm_forward(Context& context, int64_t groups, const Tensor& x, const Tensor& y, const NormOptions& options,
                        Stream stream) {
  const Groups grouped(groups, x, "group_norm_forward", "x");
  NormOptions seen = options;
  seen.w = grouped.parameter("w", options.w);
  seen.b = grouped.parameter("b", options.b);
  if (const std::optional<Tensor>& residual = options.epilogue.residual()) {
    seen.epilogue = options.epilogue.with_residual(grouped.image("residual", *residual));
  }
  const TensorsInGroups read(grouped, options.epilogue);
  const Tensor image = grouped.image("x", x);
  const View view("group_norm_forward", "norm_forward", image);
  view.run([&] {
    call_norm_forward(context, from(2, grouped.rank()), image, grouped.image("y", y), view.spread(seen, 1, 0),
                      read.all(), stream);
  });
}

void group_norm_affine(Context& context, int64_t groups, const Tensor& x, const Tensor& scale, const Tensor& shift,
                       const NormAffineOptions& options, Stream stream) {
  const Groups grouped(groups, x, "group_norm_affine", "x");
  NormAffineOptions seen = options;
  seen.w = grouped.parameter("w", options.w);
  seen.b = grouped.parameter("b", options.b);
  const Tensor image = grouped.image("x", x);
  const View view("group_norm_affine", "norm_affine", image);
  const auto pair = [&](std::string_view name, const Tensor& tensor) {
    return view.spread(name, grouped.pair(name, tensor), 0);
  };
  const TensorsInGroups read(options.epilogue, pair);
  view.run([&] {
    call_norm_affine(context, from(2, grouped.rank()), image, pair("scale", scale), pair("shift", shift),
                     view.spread(seen, 1), read.all(), stream);
  });
}

void group_norm_backward(Context& context, int64_t groups, const Tensor& dy, const Tensor& x,
                         const Tensor& inv_deviation, const Tensor& dx, const NormGradientOptions& options,
                         Stream stream) {
  const Groups grouped(groups, dy, "group_norm_backward", "dy");
  NormGradientOptions seen = options;
  seen.w = grouped.parameter("w", options.w);
  seen.b = grouped.parameter("b", options.b);
  seen.dw = grouped.parameter("dw", options.dw);
  seen.db = grouped.parameter("db", options.db);
  seen.y = grouped.image("y", options.y);
  seen.residual = grouped.image("residual", options.residual);
  seen.dresidual = grouped.image("dresidual", options.dresidual);
  const TensorsInGroups read(grouped, options.epilogue);
  const Tensor image = grouped.image("dy", dy);
  const View view("group_norm_backward", "norm_backward", image);
  view.run([&] {
    call_norm_backward(
        context, from(2, grouped.rank()),
        {image, grouped.image("x", x), view.spread("inv_deviation", inv_deviation, 0), grouped.image("dx", dx)},
        view.spread(seen, 1, 0), read.all(), stream);
  });
}

void batch_norm_forward(Context& context, const Tensor& x, const Tensor& y, const NormOptions& options, Stream stream) {
  const View view("batch_norm_forward", "norm_forward", x);
  const Axes axes = of_batch(x, "batch_norm_forward", "x");
  view.run([&] { norm_forward(context, axes, x, y, view.spread(options, 1, 1), stream); });
}

void batch_norm_inference(Context& context, const Tensor& x, const Tensor& running_mean, const Tensor& running_variance,
                          const Tensor& y, const NormOptions& options, Stream stream) {
  const View view("batch_norm_inference", "norm_inference", x);
  const Axes axes = of_batch(x, "batch_norm_inference", "x");
  view.run([&] {
    norm_inference(context, axes, x, view.spread("running_mean", running_mean, 1),
                   view.spread("running_variance", running_variance, 1), y, view.spread(options, 1, 1), stream);
  });
}

void batch_norm_backward(Context& context, const Tensor& dy, const Tensor& x, const Tensor& inv_deviation,
                         const Tensor& dx, const NormGradientOptions& options, Stream stream) {
  const View view("batch_norm_backward", "norm_backward", dy);
  const Axes axes = of_batch(dy, "batch_norm_backward", "dy");
  view.run([&] {
    norm_backward(context, axes, dy, x, view.spread("inv_deviation", inv_deviation, 1), dx, view.spread(options, 1, 1),
                  stream);
  });
}

}  // namespace kiln
