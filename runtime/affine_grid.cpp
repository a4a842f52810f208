#include "kiln/affine_grid.h"

#include "operation_call.h"

namespace kiln {
namespace {

template <class Call>
void say_affine_grid(Call& call, const AffineGridOptions& options, const Tensor& matrices) {
  call.word("ends", options.ends);
  say_common(call, options, matrices);
  call.user_code(options.epilogue);
}

}  // namespace

void affine_grid(Context& context, const Tensor& theta, const Tensor& grid, const AffineGridOptions& options,
                 Stream stream) {
  run_call<"affine_grid">(context, stream, [&](auto& call) {
    call.operand("theta", theta);
    call.operand("grid", grid);
    say_affine_grid(call, options, theta);
  });
}

void affine_grid_backward(Context& context, const Tensor& dgrid, const Tensor& dtheta, const AffineGridOptions& options,
                          Stream stream) {
  run_call<"affine_grid_backward">(context, stream, [&](auto& call) {
    call.operand("dgrid", dgrid);
    call.operand("dtheta", dtheta);
    say_affine_grid(call, options, dtheta);
  });
}

}  // namespace kiln
