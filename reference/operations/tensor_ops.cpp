// References of tensor_transform, tensor_set and tensor_op.
#include "kiln/generator/operations/tensor_ops.h"

#include <cmath>
#include <optional>
#include <utility>

#include "evaluator.h"
#include "kiln/reference/tensor_op_value.h"
#include "operations/activation.h"

namespace kiln::reference {
namespace {

using enum TensorOpMode;

// Relative, in units of 2^-24: the CUDA C++ Programming Guide has expf within 2 ulp, logf within 1, powf within 4.
constexpr double exp_error = 4, log_error = 4, pow_error = 10;
constexpr double flushed = 0x1p-101;  // results below 2^-126 may become 0

// As kernels read an element: i32 may round.
double as_f32(double value) {
  return static_cast<float>(value);
}

Approximated exact(double value) {
  return {value, 0};
}

// Result of one operation that rounds correctly.
Approximated rounded(double value) {
  const bool is_exact = !std::isfinite(value) || as_f32(value) == value;
  return {value, is_exact ? 0 : std::fabs(value) + flushed};
}

Approximated relative(double value, double error) {
  return {value, std::isfinite(value) ? error * std::fabs(value) + flushed : 0};
}

Approximated truth(bool holds) {
  return exact(holds ? 1 : 0);
}

Approximated evaluated(TensorOpMode mode, double a, double b, double c) {
  const bool has_nan = std::isnan(a) || std::isnan(b);
  switch (mode) {
    case add:
      return rounded(a + b);
    case sub:
      return rounded(a - b);
    case mul:
      return rounded(a * b);
    case div:
      return rounded(a / b);
    case min:
      return exact(has_nan ? std::nan("") : std::fmin(a, b));
    case max:
      return exact(has_nan ? std::nan("") : std::fmax(a, b));
    case pow:
      return relative(std::pow(a, b), pow_error);
    case eq:
      return truth(a == b);
    case ne:
      return truth(a != b);
    case lt:
      return truth(a < b);
    case le:
      return truth(a <= b);
    case gt:
      return truth(a > b);
    case ge:
      return truth(a >= b);
    case sqrt:
      return rounded(std::sqrt(a));
    case exp:
      return relative(std::exp(a), exp_error);
    case log:
      return relative(std::log(a), log_error);
    case abs:
      return exact(std::fabs(a));
    case neg:
      return exact(-a);
    case logical_not:
      return truth(a == 0);
    case select:
      return exact(a != 0 ? b : c);
  }
  return {};
}

class TensorOpEvaluator final : public Oracle::Evaluator {
 public:
  TensorOpEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output), mode_(TensorOp::of(request()).mode) {
    for (const char* name : {"a", "b", "c"}) {
      if (request().find(name) != nullptr) inputs_.emplace_back(request().at(name), tensor(name));
    }
  }

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    double values[3] = {0, 0, 0};
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const auto& [spec, elements] = inputs_[i];
      Coordinate own(coordinate.begin(), coordinate.end());
      for (size_t d = 0; d < own.size(); ++d) {
        if (spec.extents[d] == 1) own[d] = 0;
      }
      values[i] = as_f32(elements[own]);
    }
    return expected_of(evaluated(mode_, values[0], values[1], values[2]));
  }

 private:
  TensorOpMode mode_;
  std::vector<std::pair<TensorSpec, Tensor>> inputs_;
};

class TensorTransformEvaluator final : public Oracle::Evaluator {
 public:
  TensorTransformEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output), view_(TensorTransform::of(request())), x_(tensor("x")) {
    copies_ = view_.x.dtype == view_.y.dtype && view_.blend == Blend{};
    padding_ = round_to(view_.x.dtype, scalar("value"));
  }

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    Coordinate own(coordinate.begin(), coordinate.end());
    bool inside = true;
    for (size_t d = 0; d < own.size(); ++d) {
      if (!view_.pad_begin.empty()) own[d] -= view_.pad_begin[d];
      const bool repeats = view_.x.extents[d] == 1 && (view_.pad_begin.empty() || pads(d) == 0);
      if (repeats) own[d] = 0;
      inside = inside && own[d] >= 0 && own[d] < view_.x.extents[d];
    }
    const double value = inside ? x_[own] : padding_;
    Expected expected = expected_of(exact(copies_ ? value : as_f32(value)));
    expected.copied = copies_ && inside;
    return expected;
  }

 private:
  int64_t pads(size_t dimension) const { return view_.pad_begin[dimension] + view_.pad_end[dimension]; }

  TensorTransform view_;
  Tensor x_;
  bool copies_ = false;
  double padding_ = 0;
};

class TensorSetEvaluator final : public Oracle::Evaluator {
 public:
  using Evaluator::Evaluator;

 protected:
  Expected operation_at(std::span<const int64_t>) const override { return expected_of(exact(scalar("value"))); }
};

}  // namespace

double tensor_op_value(TensorOpMode mode, double a, double b, double c) {
  return evaluated(mode, a, b, c).value;
}

Reference tensor_transform_reference() {
  return {.evaluator = make_evaluator<TensorTransformEvaluator>, .padding = 0};
}

Reference tensor_set_reference() {
  return {make_evaluator<TensorSetEvaluator>};
}

Reference tensor_op_reference() {
  return {make_evaluator<TensorOpEvaluator>, slack::of_tensor_op};
}

}  // namespace kiln::reference
