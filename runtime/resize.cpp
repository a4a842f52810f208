#include "kiln/resize.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "operation_call.h"

namespace kiln {

void resize(Context& context, const Tensor& x, const Tensor& y, const ResizeOptions& options, Stream stream) {
  std::array<int64_t, 3> up{}, down{};
  const auto axes = static_cast<size_t>(std::clamp(x.rank() - 2, 0, 3));
  for (size_t i = 0; i < axes; ++i) {
    const ResizeScale scale = ResizeScale::of(options.scale[i]);
    up[i] = scale.up;
    down[i] = scale.down;
  }
  run_call<"resize">(context, stream, [&](auto& call) {
    call.operand("x", x);
    call.operand("y", y);
    call.word("mode", options.mode);
    call.word("coordinates", options.coordinates);
    call.word("rounding", options.rounding);
    call.word("outside", options.excludes_outside, "excluded", "edge");
    call.ints("up", std::span<const int64_t>(up.data(), axes));
    call.ints("down", std::span<const int64_t>(down.data(), axes));
    say_common(call, options, x);
    call.number("cubic", options.cubic);
    call.user_code(options.epilogue);
  });
}

}  // namespace kiln
