#include "kiln/scatter.h"

#include "operation_call.h"

namespace kiln {

void scatter(Context& context, const Tensor& updates, const Tensor& indices, const Tensor& y,
             const ScatterOptions& options, Stream stream) {
  run_call<"scatter">(context, stream, [&](auto& call) {
    call.operand("updates", updates);
    call.operand("indices", indices);
    call.operand("y", y);
    call.ints("axis", {options.axis});
    call.word("mode", options.mode);
    say_common(call, options, y);  // indices may repeat
    call.user_code(options.epilogue);
  });
}

}  // namespace kiln
