#include "kiln/grid_sample.h"

#include "operation_call.h"

namespace kiln {
namespace {

template <class Call>
void say_grid_sample(Call& call, const GridSampleOptions& options, const Tensor& images) {
  call.word("mode", options.mode);
  call.word("padding", options.padding);
  call.word("ends", options.ends);
  say_common(call, options, images);
  call.user_code(options.epilogue);
}

}  // namespace

void grid_sample(Context& context, const Tensor& x, const Tensor& grid, const Tensor& y,
                 const GridSampleOptions& options, Stream stream) {
  run_call<"grid_sample">(context, stream, [&](auto& call) {
    call.operand("x", x);
    call.operand("grid", grid);
    call.operand("y", y);
    say_grid_sample(call, options, x);
  });
}

void grid_sample_backward_data(Context& context, const Tensor& dy, const Tensor& grid, const Tensor& dx,
                               const GridSampleOptions& options, Stream stream) {
  run_call<"grid_sample_backward_data">(context, stream, [&](auto& call) {
    call.operand("dy", dy);
    call.operand("grid", grid);
    call.operand("dx", dx);
    say_grid_sample(call, options, dy);
  });
}

void grid_sample_backward_grid(Context& context, const Tensor& dy, const Tensor& x, const Tensor& grid,
                               const Tensor& dgrid, const GridSampleOptions& options, Stream stream) {
  run_call<"grid_sample_backward_grid">(context, stream, [&](auto& call) {
    call.operand("dy", dy);
    call.operand("x", x);
    call.operand("grid", grid);
    call.operand("dgrid", dgrid);
    say_grid_sample(call, options, dy);
  });
}

}  // namespace kiln
