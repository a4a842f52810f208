#include "operation_call.h"

#include <fmt/format.h>

#include "kiln/base/error.h"

namespace kiln {
namespace {

[[noreturn]] void refuse_workspace(const LoadedPlan& plan, const std::string& what) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: the workspace {}, expected {} bytes", plan.request.operation, what,
                          plan.executable.workspace_bytes()),
              "plan_of_call() says how much a call needs");
}

}  // namespace

void run_plan(Context::Impl& context, const LoadedPlan& plan, Stream stream, std::span<const Address> operands,
              const RunValues& values, const Workspace& workspace) {
  context.log_call(plan);
  context.note_use(plan);
  const int64_t needed = plan.executable.workspace_bytes();
  if (workspace.bytes < 0) refuse_workspace(plan, fmt::format("has {} bytes", workspace.bytes));
  if (needed == 0) return plan.run(stream, operands, {}, values);
  if (workspace.memory == nullptr && workspace.bytes > 0) {
    refuse_workspace(plan, fmt::format("of {} bytes is null", workspace.bytes));
  }
  if (workspace.memory == nullptr) return context.run_with_workspace(plan, stream, operands, values);
  if (workspace.bytes < needed) refuse_workspace(plan, fmt::format("has {} bytes", workspace.bytes));
  plan.run(stream, operands, {.workspace = workspace.memory}, values);
}

}  // namespace kiln
