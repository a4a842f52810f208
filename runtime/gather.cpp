#include "kiln/gather.h"

#include "operation_call.h"

namespace kiln {

void gather(Context& context, const Tensor& x, const Tensor& indices, const Tensor& y, const GatherOptions& options,
            Stream stream) {
  run_call<"gather">(context, stream, [&](auto& call) {
    call.operand("x", x);
    call.operand("indices", indices);
    call.operand("y", y);
    call.ints("axis", {options.axis});
    say_common(call, options, y);  // x and indices may repeat
    call.user_code(options.epilogue);
  });
}

}  // namespace kiln
