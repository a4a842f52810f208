// Arguments of a call or a run, by name.
#pragma once

#include <nanobind/nanobind.h>

#include <span>
#include <vector>

#include "kiln/call.h"
#include "kiln/generator/expression.h"
#include "tensors.h"

namespace kiln::python {

/// User code with the tensors and numbers that it reads.
class PythonEpilogue {
 public:
  /// Throws Error as Expression and expression() do.
  PythonEpilogue(std::string_view text, nb::dict tensors, const nb::dict& numbers);

  const Epilogue& get() const { return epilogue_; }
  std::span<const GivenTensor> tensors() const { return tensors_; }

 private:
  nb::dict held_;
  std::vector<GivenTensor> tensors_;
  Epilogue epilogue_;
};

/// Made with the GIL, read without. `epilogue` has to outlive it.
class Arguments {
 public:
  Arguments(TensorDict tensors, NumberDict numbers, IntegerDict integers, const PythonEpilogue* epilogue);

  /// Tensors that are given; those of the epilogue are among them.
  std::span<const GivenTensor> tensors() const { return tensors_; }
  std::span<const NamedTensor> named() const { return named_; }
  std::span<const NamedScalar> numbers() const { return numbers_; }
  std::span<const NamedInteger> integers() const { return integers_; }
  CallOptions options() const;
  /// Null: none is given.
  const Epilogue* epilogue() const { return epilogue_ == nullptr ? nullptr : &epilogue_->get(); }
  /// The tensor of that name, or null.
  const Tensor* find(std::string_view name) const;

 private:
  nb::dict held_, numbers_held_, integers_held_;  // what the names and tensors below are views into
  std::vector<GivenTensor> tensors_;
  std::vector<NamedTensor> named_;
  std::vector<NamedScalar> numbers_;
  std::vector<NamedInteger> integers_;
  const PythonEpilogue* epilogue_;
};

/// Has this process know user code, so that a line which names it by its digest can be used. With the GIL.
void learn_code(const Expression& code);
/// The code known so whose digest is in `text`. With the GIL.
Expressions known_code_in(std::string_view text);

void bind_arguments(nb::module_& module);

}  // namespace kiln::python
