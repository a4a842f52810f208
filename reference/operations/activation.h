// The activation functions and their derivatives in double, with what f32 arithmetic may be off.
#pragma once

#include "kiln/generator/operations/activation.h"
#include "kiln/reference/reference.h"

namespace kiln::reference {

/// A number that f32 arithmetic approximates. docs/numerics.md derives the errors.
struct Approximated {
  double value = 0;
  double error = 0;   ///< Absolute, in units of 2^-24; 0 where it is exact.
  bool open = false;  ///< At a jump that roundings may cross: anything is right.
};

/// The call's Operation::scalars().
struct ActivationScalars {
  double slope = 0, offset = 0, low = 0, high = 0;
};

Approximated activated(ActivationMode mode, double x, const ActivationScalars& scalars);
Approximated activation_derivative(ActivationMode mode, double x, const ActivationScalars& scalars);
/// Derivative from y, for a mode that has_derivative_from_y().
Approximated activation_derivative_from_y(ActivationMode mode, double y, const ActivationScalars& scalars);
/// derivative * dy; where the function is constant, 0 whatever dy is.
Approximated activation_gradient(ActivationMode mode, const Approximated& derivative, double dy);

/// The first two where the argument is only known to lie within `error` of x.
Approximated activated_near(ActivationMode mode, double x, double error, const ActivationScalars& scalars);
Approximated activation_derivative_near(ActivationMode mode, double x, double error, const ActivationScalars& scalars);
/// As the last one, evaluated once where the derivative has no jump; the error may be twice as large there.
Approximated activation_derivative_around(ActivationMode mode, double x, double error,
                                          const ActivationScalars& scalars);

/// As the result of an operation.
Expected expected_of(const Approximated& result);
/// The function of a result that arithmetic may put off by `error`.
Expected activated(ActivationMode mode, const Expected& result, double error, const ActivationScalars& scalars);

}  // namespace kiln::reference
