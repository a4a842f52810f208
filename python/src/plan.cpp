#include "plan.h"

#include <fmt/format.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "context.h"
#include "host_memory.h"
#include "kiln/base/error.h"
#include "kiln/call.h"
#include "without_gil.h"

namespace kiln::python {
namespace {

std::string_view role_name(OperandRole role) {
  switch (role) {
    case OperandRole::input:
      return "input";
    case OperandRole::output:
      return "output";
    case OperandRole::updated:
      return "updated";
  }
  return "?";
}

constexpr std::string_view of_user_code = "epilogue.";  // what its tensors are called begins so

// A plan is of tensors, and a run takes addresses alone: that tensors are what they should be is checked here.
class PythonPlan {
 public:
  PythonPlan(PythonContext& context, const Plan& plan) : context_(&context), plan_(plan), operands_(plan_.operands()) {
    nb::set written;
    for (const PlanOperand& operand : operands_) {
      if (operand.role != OperandRole::input) written.add(nb::str(operand.name.c_str(), operand.name.size()));
    }
    written_ = written;
  }

  const Plan& get() const { return plan_; }
  const std::vector<PlanOperand>& operands() const { return operands_; }

  void run(const Arguments& arguments, const Streams& streams, uintptr_t workspace) const {
    enqueue(arguments, streams, [&](Stream stream, std::span<const Address> addresses, const RunValues& values) {
      plan_.run(stream, addresses, reinterpret_cast<void*>(workspace), values);
    });
  }

  void run_prepared(const Arguments& arguments, const Streams& streams, uintptr_t prepared, uintptr_t workspace) const {
    enqueue(arguments, streams, [&](Stream stream, std::span<const Address> addresses, const RunValues& values) {
      plan_.run_prepared(stream, addresses, reinterpret_cast<const void*>(prepared), reinterpret_cast<void*>(workspace),
                         values);
    });
  }

  // Operands that are not weights may be missing.
  void prepare_weights(const Arguments& arguments, const Streams& streams, uintptr_t prepared) const {
    context_->require(arguments.tensors(), written_);
    const std::vector<Address> addresses = addresses_of(arguments, false);
    enqueue_on(context_->get(), arguments.tensors(), streams,
               [&](Stream stream) { plan_.prepare_weights(stream, addresses, reinterpret_cast<void*>(prepared)); });
  }

 private:
  template <class Run>
  void enqueue(const Arguments& arguments, const Streams& streams, const Run& run) const {
    context_->require(arguments.tensors(), written_);
    require_user_code(arguments.epilogue());
    const std::vector<Address> addresses = addresses_of(arguments, true);
    RunValues values = plan_.values(arguments.numbers(), arguments.integers());
    if (arguments.epilogue() != nullptr) values.scalars = arguments.epilogue()->scalars();
    if (plan_.request().dynamic_batch) values.n = batch_of(arguments);
    enqueue_on(context_->get(), arguments.tensors(), streams,
               [&](Stream stream) { run(stream, std::span<const Address>(addresses), values); });
  }

  void require_user_code(const Epilogue* given) const {
    const UserCode& own = plan_.request().user_code;
    const Expression* const code = own ? own.expression() : nullptr;
    if (code == nullptr ? given == nullptr : given != nullptr && *given->code() == *code) return;
    throw Error(ErrorCode::invalid_argument, "the epilogue is not the user code that the plan was made with",
                code == nullptr ? "leave it out" : "leave it out, or give that code with other tensors and numbers");
  }

  // The tensor that is given for an operand, or null.
  static const Tensor* tensor_of(const PlanOperand& operand, const Arguments& arguments) {
    if (!is_of_user_code(operand)) return arguments.find(operand.name);
    return arguments.epilogue() == nullptr ? nullptr : &user_tensor(*arguments.epilogue(), operand);
  }
  static bool is_of_user_code(const PlanOperand& operand) { return operand.name.starts_with(of_user_code); }
  static const Tensor& user_tensor(const Epilogue& epilogue, const PlanOperand& operand) {
    const std::span<const std::string> names = epilogue.code()->tensors();
    const auto found = std::ranges::find(names, std::string_view(operand.name).substr(of_user_code.size()));
    return epilogue.tensor(static_cast<size_t>(found - names.begin()));
  }

  // With n=? the batch that the tensors have; throws unless all have the same.
  int64_t batch_of(const Arguments& arguments) const {
    std::string_view first;
    int64_t batch = 1;
    for (const PlanOperand& operand : operands_) {
      const Tensor* const tensor = tensor_of(operand, arguments);
      if (tensor == nullptr || !operand.has_batch) continue;
      if (first.empty()) batch = tensor->extent(0);
      if (tensor->extent(0) != batch) {
        throw Error(
            ErrorCode::invalid_argument,
            fmt::format("tensor {} has a batch of {}, and {} one of {}", operand.name, tensor->extent(0), first, batch),
            "give tensors of one batch");
      }
      if (first.empty()) first = operand.name;
    }
    return batch;
  }

  // In the order of operands().
  std::vector<Address> addresses_of(const Arguments& arguments, bool all) const {
    std::vector<Address> addresses;
    size_t found = 0;
    for (const PlanOperand& operand : operands_) {
      const Tensor* const tensor = tensor_of(operand, arguments);
      if (tensor != nullptr) {
        require_shape(operand, *tensor);
      } else if (all) {
        throw Error(ErrorCode::invalid_argument, fmt::format("tensor {} is not given", operand.name),
                    fmt::format("the plan is of {}", plan_.request().key()));
      }
      found += tensor != nullptr && !is_of_user_code(operand);
      addresses.push_back(tensor == nullptr ? Address() : Address(*tensor));
    }
    if (found == arguments.named().size()) return addresses;
    std::string known;
    for (const PlanOperand& operand : operands_) known += fmt::format("{}{}", known.empty() ? "" : ", ", operand.name);
    throw Error(ErrorCode::invalid_argument, "a tensor is given that the plan does not have",
                fmt::format("it has {}", known));
  }

  void require_shape(const PlanOperand& operand, const Tensor& tensor) const {
    // User code may read one element for each channel, of which the plan makes a tensor of more dimensions.
    const bool as_made = is_of_user_code(operand) && !operand.has_batch;
    const TensorSpec of_plan = as_made ? plan_.request().at(operand.name) : operand.spec;
    TensorSpec given = tensor.spec(), expected = of_plan;
    given.alignment = expected.alignment;  // run() checks addresses
    if (operand.has_batch && given.extents.size() == expected.extents.size()) {
      const int64_t batch = std::exchange(given.extents[0], expected.extents[0]);  // run() checks it
      if (batch <= 1) given.strides[0] = expected.strides[0];                      // which leads to no element
      if (batch == 0) given.strides = expected.strides;
    }
    given.canonicalise();
    expected.canonicalise();
    if (given == expected) return;
    throw Error(ErrorCode::invalid_argument, fmt::format("tensor {} is {}", operand.name, tensor.spec().print()),
                fmt::format("the plan is for {}{}", of_plan.print(), operand.has_batch ? " and smaller batches" : ""));
  }

  PythonContext* context_;
  Plan plan_;
  std::vector<PlanOperand> operands_;
  nb::object written_;
};

// (name, role, tensor) of each.
nb::list operands_of(const PythonPlan& plan) {
  nb::list operands;
  for (const PlanOperand& operand : plan.operands()) {
    operands.append(nb::make_tuple(operand.name, std::string(role_name(operand.role)), operand.spec.print()));
  }
  return operands;
}

PythonPlan plan_of_line(PythonContext& context, const std::string& line) {
  const Expressions code = known_code_in(line);
  const Plan plan = without_gil([&] { return context.get().plan(Request::parse(line, code)); });
  return PythonPlan(context, plan);
}

PythonPlan plan_of_named(PythonContext& context, const std::string& what, const Arguments& arguments) {
  const Plan plan =
      without_gil([&] { return plan_of_call(context.get(), what, arguments.named(), arguments.options()); });
  return PythonPlan(context, plan);
}

}  // namespace

void bind_plan(nb::module_& module) {
  nb::class_<PythonPlan>(module, "Plan")
      .def("run", &PythonPlan::run, nb::arg("arguments"), nb::arg("streams"), nb::arg("workspace"))
      .def("run_prepared", &PythonPlan::run_prepared, nb::arg("arguments"), nb::arg("streams"), nb::arg("prepared"),
           nb::arg("workspace"))
      .def("prepare_weights", &PythonPlan::prepare_weights, nb::arg("arguments"), nb::arg("streams"),
           nb::arg("prepared"))
      .def_prop_ro("request", [](const PythonPlan& plan) { return plan.get().request().key(); })
      .def_prop_ro("variant", [](const PythonPlan& plan) { return plan.get().variant(); })
      .def_prop_ro("source", [](const PythonPlan& plan) { return plan.get().source(); })
      .def_prop_ro("program", [](const PythonPlan& plan) { return plan.get().program(); })
      .def_prop_ro("deterministic", [](const PythonPlan& plan) { return plan.get().deterministic(); })
      .def_prop_ro("workspace_bytes", [](const PythonPlan& plan) { return plan.get().workspace_bytes(); })
      .def_prop_ro("prepared_bytes", [](const PythonPlan& plan) { return plan.get().prepared_bytes(); })
      .def_prop_ro("prepared_workspace_bytes",
                   [](const PythonPlan& plan) { return plan.get().prepared_workspace_bytes(); })
      .def_prop_ro("operands", &operands_of,
                   nb::for_getter(nb::sig("def operands(self) -> list[tuple[str, str, str]]")));
  module.def("plan", &plan_of_line, nb::arg("context"), nb::arg("line"), nb::keep_alive<0, 1>());
  module.def("plan_of_call", &plan_of_named, nb::arg("context"), nb::arg("what"), nb::arg("arguments"),
             nb::keep_alive<0, 1>());
}

}  // namespace kiln::python
