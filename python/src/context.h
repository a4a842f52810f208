// A Context as Python holds it.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kiln/context.h"
#include "tensors.h"

namespace kiln::python {

class PythonContext {
 public:
  /// `announce`: called with each message, by any thread. `allocate` and `release` make up a WorkspaceAllocator, or
  /// both are None. Made without the GIL.
  PythonContext(ContextOptions options, nb::object announce, nb::object allocate, nb::object release);
  /// With the GIL, which it gives up while the Context ends its work.
  ~PythonContext();
  PythonContext(const PythonContext&) = delete;
  PythonContext& operator=(const PythonContext&) = delete;

  Context& get() { return *context_; }
  bool emulated() const { return emulated_; }

  /// Throws Error(invalid_argument) for a tensor that this device does not reach, or one of `written` that cannot be
  /// written.
  void require(std::span<const GivenTensor> tensors, const nb::handle& written) const;

 private:
  nb::object announce_, allocate_, release_;
  std::optional<Context> context_;
  int device_;
  bool emulated_;
};

void bind_context(nb::module_& module);

}  // namespace kiln::python
