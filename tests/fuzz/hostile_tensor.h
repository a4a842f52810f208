// Values that nobody expects, and tensors of them.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <vector>

#include "choices.h"

namespace kiln::fuzz {

/// How far a model is from what ONNX allows: at each place where it may differ, it does so for that many in a hundred.
class Oddity {
 public:
  Oddity(Choices& choices, std::size_t percent) : choices_(choices), percent_(percent) {}

  bool odd() { return choices_.holds(percent_); }
  /// Rarer, for oddities that end most models early.
  bool very_odd() { return odd() && odd(); }
  Choices& choices() { return choices_; }

  int64_t integer();               ///< An integer that overflows, divides by 0, or is just beyond a limit.
  int64_t extent();                ///< Such an integer, seldom below 0 or above 2^40, which ends early.
  double real();                   ///< NaN, infinities and the same.
  int32_t type();                  ///< Any element type, those that do not exist too.
  std::vector<int64_t> extents();  ///< Extents of any rank, often 0 to 9, seldom more.

  int64_t integer(int64_t usual) { return odd() ? integer() : usual; }
  int64_t extent(int64_t usual) { return odd() ? extent() : usual; }
  double real(double usual) { return odd() ? real() : usual; }
  int32_t type(int32_t usual) { return odd() ? type() : usual; }

 private:
  Choices& choices_;
  std::size_t percent_;
};

/// The nearest integer of 64 bits towards zero; 0 for NaN.
int64_t integer_near(double value);

/// Infinite where a float cannot hold it.
float single_near(double value);

/// Sets type, extents and elements: `elements`, or small numbers if there are none. Data are inside or in one of the
/// files of ModelTrial; odd ones are too many, too few, of other types, or nowhere.
void fill(onnx::TensorProto& tensor, int32_t type, const std::vector<int64_t>& extents,
          const std::vector<double>& elements, Oddity& oddity);

}  // namespace kiln::fuzz
