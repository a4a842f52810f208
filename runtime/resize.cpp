#include "kiln/resize.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "operation_call.h"

namespace kiln {
namespace {

// Scales along the axes of a call whose input is `x`.
struct Scales {
  std::array<int64_t, 3> up{}, down{};
  size_t axes = 0;

  Scales(const ResizeOptions& options, const Tensor& x) : axes(static_cast<size_t>(std::clamp(x.rank() - 2, 0, 3))) {
    for (size_t i = 0; i < axes; ++i) {
      const ResizeScale scale = ResizeScale::of(options.scale[i]);
      up[i] = scale.up;
      down[i] = scale.down;
    }
  }
};

// All that both calls say behind their tensors, of which `x` is the one whose batch counts.
template <class Call>
void say_resizing(Call& call, const ResizeOptions& options, const Scales& scales, const Tensor& x) {
  call.word("mode", options.mode);
  call.word("coordinates", options.coordinates);
  call.word("rounding", options.rounding);
  call.word("outside", options.excludes_outside, "excluded", "edge");
  call.ints("up", std::span<const int64_t>(scales.up.data(), scales.axes));
  call.ints("down", std::span<const int64_t>(scales.down.data(), scales.axes));
  say_common(call, options, x);
  call.number("cubic", options.cubic);
  call.user_code(options.epilogue);
}

}  // namespace

void resize(Context& context, const Tensor& x, const Tensor& y, const ResizeOptions& options, Stream stream) {
  const Scales scales(options, x);
  run_call<"resize">(context, stream, [&](auto& call) {
    call.operand("x", x);
    call.operand("y", y);
    say_resizing(call, options, scales, x);
  });
}

void resize_backward(Context& context, const Tensor& dy, const Tensor& dx, const ResizeOptions& options,
                     Stream stream) {
  const Scales scales(options, dx);
  run_call<"resize_backward">(context, stream, [&](auto& call) {
    call.operand("dy", dy);
    call.operand("dx", dx);
    say_resizing(call, options, scales, dy);
  });
}

}  // namespace kiln
