#include "kiln/call.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "boundary.h"
#include "handles.h"
#include "tensor.h"

namespace kiln::capi {
namespace {

// The arguments of one call, as C++ has them.
class Arguments {
 public:
  Arguments(const char* function, const kiln_context* context, const char* what, const kiln_named_tensor* tensors,
            size_t tensor_count, const kiln_call_options* given)
      : function_(function) {
    require(context, function, "context");
    require(what, function, "what");
    const kiln_call_options c = read(given, kiln_call_options_default(), function);
    require_zero(c.reserved, function, "reserved");
    if (tensor_count > 0) require(tensors, function, "tensors");
    for (size_t i = 0; i < tensor_count; ++i) {
      const std::string_view name = named(tensors[i].name, "tensors", i);
      tensors_.push_back({name, tensor_of(tensors[i].tensor, function, name)});
    }
    if (c.number_count > 0) require(c.numbers, function, "numbers");
    for (size_t i = 0; i < c.number_count; ++i) {
      require_zero(c.numbers[i].reserved, function, "reserved of a number");
      numbers_.push_back({named(c.numbers[i].name, "numbers", i), c.numbers[i].value});
    }
    if (c.integer_count > 0) require(c.integers, function, "integers");
    for (size_t i = 0; i < c.integer_count; ++i) {
      integers_.push_back({named(c.integers[i].name, "integers", i), c.integers[i].value});
    }
    options_ = {.numbers = numbers_,
                .integers = integers_,
                .epilogue = epilogue_of(c.epilogue),
                .workspace = c.workspace,
                .workspace_bytes = c.workspace_bytes};
  }

  std::span<const NamedTensor> tensors() const { return tensors_; }
  const CallOptions& options() const { return options_; }

 private:
  std::string_view named(const char* name, std::string_view list, size_t i) const {
    if (name == nullptr) require(name, function_, fmt::format("the name of {}[{}]", list, i));
    return name;
  }

  std::string_view function_;
  std::vector<NamedTensor> tensors_;
  std::vector<NamedScalar> numbers_;
  std::vector<NamedInteger> integers_;
  CallOptions options_;
};

}  // namespace
}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_call(kiln_context* context, const char* what, const kiln_named_tensor* tensors, size_t tensor_count,
                      const kiln_call_options* options, kiln_stream stream) {
  return guarded([&] {
    const Arguments arguments("kiln_call", context, what, tensors, tensor_count, options);
    kiln::call(*context->context, what, arguments.tensors(), arguments.options(), stream);
  });
}

kiln_status kiln_call_plan(kiln_context* context, const char* what, const kiln_named_tensor* tensors,
                           size_t tensor_count, const kiln_call_options* options, kiln_plan** plan) {
  return guarded([&] {
    const Arguments arguments("kiln_call_plan", context, what, tensors, tensor_count, options);
    require(plan, "kiln_call_plan", "plan");
    *plan = new_plan(*context, kiln::plan_of_call(*context->context, what, arguments.tensors(), arguments.options()));
  });
}
