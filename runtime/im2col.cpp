#include "kiln/im2col.h"

#include <vector>

#include "operation_call.h"

namespace kiln {
namespace {

// All that both calls say behind their tensors. `image`: the tensor that windows move over.
template <class Call>
void say_windows(Call& call, const Im2colOptions& options, const Tensor& image, const Tensor& x) {
  if (options.window.h == 0 && options.window.w == 0) {  // all of the image
    call.derived_ints("window", [&] {
      std::vector<int64_t> extents;
      for (int i = 2; i < image.rank(); ++i) extents.push_back(image.extent(i));
      return extents;
    });
  } else {
    call.per_axis("window", image, {options.depth.window, options.window.h, options.window.w});
  }
  say_steps(call, options, image);
  say_common(call, options, x);
  call.user_code(options.epilogue);
}

}  // namespace

void im2col(Context& context, const Tensor& x, const Tensor& y, const Im2colOptions& options, Stream stream) {
  run_call<"im2col">(context, stream, [&](auto& call) {
    call.operand("x", x);
    call.operand("y", y);
    say_windows(call, options, x, x);
  });
}

void col2im(Context& context, const Tensor& x, const Tensor& y, const Im2colOptions& options, Stream stream) {
  run_call<"col2im">(context, stream, [&](auto& call) {
    call.operand("x", x);
    call.operand("y", y);
    say_windows(call, options, y, x);
  });
}

}  // namespace kiln
