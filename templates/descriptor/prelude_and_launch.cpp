#include "descriptor/prelude_and_launch.h"

#include <bit>
#include <utility>

#include "descriptor/numbers.h"
#include "kiln/generator/operation.h"

namespace kiln::descriptor {

int64_t scale_code(Scale scale) {
  return static_cast<int64_t>(scale);
}

void add_blend(Prelude& prelude, const Blend& blend, const std::string& prefix) {
  prelude.constant(prefix + "ALPHA", scale_code(blend.alpha)).constant(prefix + "BETA", scale_code(blend.beta));
}

void add_batch(Prelude& prelude, int64_t n, bool dynamic) {
  prelude.extent("N", n).flag("DYNAMIC_N", dynamic);
}

Count blocks_for(int64_t per_image, int64_t n, bool dynamic, int64_t per_block) {
  if (dynamic) return Count{0, per_image, per_block};
  return Count{ceil_div(per_image * n, per_block), 0, 1};
}

int kept_bytes_of(const Request& request, std::string_view input) {
  const bool enters = has_prologue(request) && !has_rounded_prologue(request) &&
                      operation(request.operation).prologue_operand() == input;
  return size_of(enters ? DType::f32 : request.at(input).dtype);
}

int64_t steps_to_keep(const Emitter& emit, int64_t steps) {
  return emit.open() ? static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(steps))) : steps;
}

int64_t steps_to_keep(const Emitter& emit, int lanes, int64_t steps, int64_t most) {
  constexpr int64_t few = 4;
  if (!emit.open()) return steps;
  return lanes == 32 && steps <= few ? few : most;
}

Launch launch_of(std::string entry, int threads, std::vector<Argument> arguments) {
  Launch launch;
  launch.entry = std::move(entry);
  launch.block[0] = static_cast<unsigned>(threads);
  launch.arguments = std::move(arguments);
  return launch;
}

Launch unary_launch(std::string entry, int threads) {
  return launch_of(
      std::move(entry), threads,
      {OperandArgument{"x"}, OperandArgument{"y"}, Scalar::alpha, Scalar::beta, UserArgument{}, Scalar::n});
}

Program program_of(Source source, const Launch& launch) {
  return Program{{std::move(source)}, {launch}};
}

void append(Launch& launch, std::initializer_list<Argument> arguments) {
  launch.arguments.insert(launch.arguments.end(), arguments);
}

}  // namespace kiln::descriptor
