#include "schedule_check.h"

#include "fuzz_driver.h"

namespace kiln::fuzz {
namespace {

void check_step(const graph::Schedule& made, const graph::Step& step) {
  check(step.arguments.size() == step.request.operands.size(), "every operand lies somewhere");
  const Request request = step.batch < 0 ? step.request : step.request.with_batch(step.batch);
  for (size_t i = 0; i < step.arguments.size(); ++i) {
    const graph::Buffer& buffer = made.buffers.at(step.arguments[i].buffer);
    const TensorSpec& spec = request.operands[i].spec;
    check(step.arguments[i].offset + spec.span() * size_of(spec.dtype) <= buffer.bytes, "an operand is inside");
  }
  if (step.request.user_code) return;  // whose text is not in the key
  check(Request::parse(step.request.key()) == step.request, "a request comes back from its key");
}

}  // namespace

void check_schedule(const graph::Schedule& schedule) {
  for (const graph::Step& step : schedule.once) check_step(schedule, step);
  for (const graph::Step& step : schedule.steps) check_step(schedule, step);
}

}  // namespace kiln::fuzz
