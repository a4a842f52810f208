#include "plan.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

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

  void run(const Arguments& arguments, uintptr_t stream, uintptr_t workspace) const {
    enqueue(arguments, [&](std::span<const Address> addresses, const RunValues& values) {
      plan_.run(reinterpret_cast<Stream>(stream), addresses, reinterpret_cast<void*>(workspace), values);
    });
  }

  void run_prepared(const Arguments& arguments, uintptr_t stream, uintptr_t prepared, uintptr_t workspace) const {
    enqueue(arguments, [&](std::span<const Address> addresses, const RunValues& values) {
      plan_.run_prepared(reinterpret_cast<Stream>(stream), addresses, reinterpret_cast<const void*>(prepared),
                         reinterpret_cast<void*>(workspace), values);
    });
  }

  // Operands that are not weights may be missing.
  void prepare_weights(const Arguments& arguments, uintptr_t stream, uintptr_t prepared) const {
    context_->require(arguments.tensors(), written_);
    const std::vector<Address> addresses = addresses_of(arguments, false);
    enqueue_on(context_->get(), arguments.tensors(), [&] {
      plan_.prepare_weights(reinterpret_cast<Stream>(stream), addresses, reinterpret_cast<void*>(prepared));
    });
  }

 private:
  template <class Run>
  void enqueue(const Arguments& arguments, const Run& run) const {
    context_->require(arguments.tensors(), written_);
    const std::vector<Address> addresses = addresses_of(arguments, true);
    const RunValues values = plan_.values(arguments.numbers(), arguments.integers());
    enqueue_on(context_->get(), arguments.tensors(), [&] { run(std::span<const Address>(addresses), values); });
  }

  // In the order of operands(). A plan's run takes addresses alone: that tensors are what they should be is checked
  // here.
  std::vector<Address> addresses_of(const Arguments& arguments, bool all) const {
    std::vector<Address> addresses;
    size_t found = 0;
    for (const PlanOperand& operand : operands_) {
      const Tensor* tensor = arguments.find(operand.name);
      found += tensor != nullptr;
      if (tensor != nullptr) {
        require_shape(operand, *tensor);
      } else if (all) {
        throw Error(ErrorCode::invalid_argument, fmt::format("tensor {} is not given", operand.name),
                    fmt::format("the plan is of {}", plan_.request().key()));
      }
      addresses.push_back(tensor == nullptr ? Address() : Address(*tensor));
    }
    if (found == arguments.named().size()) return addresses;
    std::string known;
    for (const PlanOperand& operand : operands_) known += fmt::format("{}{}", known.empty() ? "" : ", ", operand.name);
    throw Error(ErrorCode::invalid_argument, "a tensor is given that the plan does not have",
                fmt::format("it has {}", known));
  }

  void require_shape(const PlanOperand& operand, const Tensor& tensor) const {
    TensorSpec given = tensor.spec(), expected = operand.spec;
    given.alignment = expected.alignment;  // run() checks addresses
    given.canonicalise();
    expected.canonicalise();
    if (given == expected) return;
    throw Error(ErrorCode::invalid_argument, fmt::format("tensor {} is {}", operand.name, tensor.spec().print()),
                fmt::format("the plan is for {}", operand.spec.print()));
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

// Tensors have to be what the plan is for, and which of them a batch of n=? changes is not known here.
PythonPlan made(PythonContext& context, const Plan& plan) {
  if (plan.request().dynamic_batch) {
    throw Error(ErrorCode::unsupported, "a Plan of Python has a fixed batch, and the request says n=?",
                "leave n=? out, or use call(), which takes it");
  }
  return PythonPlan(context, plan);
}

PythonPlan plan_of_line(PythonContext& context, const std::string& line) {
  const auto plan = [&] {
    const WithoutGil without_gil;
    return context.get().plan(Request::parse(line));
  };
  return made(context, plan());
}

PythonPlan plan_of_named(PythonContext& context, const std::string& what, const Arguments& arguments) {
  const auto plan = [&] {
    const WithoutGil without_gil;
    return plan_of_call(context.get(), what, arguments.named(), arguments.options());
  };
  return made(context, plan());
}

}  // namespace

void bind_plan(nb::module_& module) {
  nb::class_<PythonPlan>(module, "Plan")
      .def("run", &PythonPlan::run, nb::arg("arguments"), nb::arg("stream"), nb::arg("workspace"))
      .def("run_prepared", &PythonPlan::run_prepared, nb::arg("arguments"), nb::arg("stream"), nb::arg("prepared"),
           nb::arg("workspace"))
      .def("prepare_weights", &PythonPlan::prepare_weights, nb::arg("arguments"), nb::arg("stream"),
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
