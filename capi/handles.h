// Objects behind the opaque handles.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kiln/context.h"
#include "kiln/epilogue.h"
#include "kiln/kiln.h"
#include "kiln/memory.h"
#include "kiln/plan.h"

struct kiln_context {
  std::shared_ptr<kiln::Context> context;  ///< Shared with its plans, so that handles may go in any order.
};

struct kiln_memory {
  kiln::DeviceMemory memory;
};

struct kiln_epilogue {
  kiln::Epilogue stages;
};

struct kiln_plan {
  std::shared_ptr<kiln::Context> context;
  kiln::Plan plan;
  std::string request, variant, source;     ///< The texts of kiln_plan_info.
  std::vector<kiln::PlanOperand> operands;  ///< Operands of kiln_operand_info,
  std::vector<std::string> operand_texts;   ///< and their tensors as text.
};

namespace kiln::capi {

/// Stages of `epilogue`, a member of some options; nothing if it is NULL.
inline Epilogue epilogue_of(const kiln_epilogue* epilogue) {
  return epilogue == nullptr ? Epilogue() : epilogue->stages;
}

/// A handle of `plan`, made by `context`, which kiln_plan_destroy() takes back.
kiln_plan* new_plan(const kiln_context& context, const Plan& plan);

}  // namespace kiln::capi
