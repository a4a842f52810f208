// CallNumbers: what every call of an operation writes down to find its plan and to run it. No text, no allocation.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "call_key.h"
#include "call_shape.h"
#include "kiln/epilogue.h"
#include "kiln/generator/run_values.h"
#include "kiln/plan.h"
#include "overlap.h"
#include "user_tensors.h"

namespace kiln {

/// The class of a scale's value.
inline Scale scale_of(float value) {
  return value == 1.0f ? Scale::one : value == 0.0f ? Scale::zero : Scale::any;
}

/// Takes the parts of one call in the order in which its function says them; CallRequest takes the same. Names are for
/// that one: here the order says what is meant.
class CallNumbers {
 public:
  /// `form`: tells ways apart in which calls of one operation are written down.
  explicit CallNumbers(const CallShape& shape, int64_t form = 0) : shape_(shape) {
    key_.add(shape.number | form << 16);
  }

  /// One of Operation::operands(): all of them, in their order; null for what is not there.
  void operand(std::string_view /*name*/, const Tensor* tensor) {
    const size_t number = operands_++;
    if (tensor == nullptr) return;
    present_ |= int64_t{1} << number;
    place(*tensor, number);
  }
  void operand(std::string_view name, const Tensor& tensor) { operand(name, &tensor); }
  void operand(std::string_view name, const std::optional<Tensor>& tensor) {
    operand(name, tensor ? &*tensor : nullptr);
  }

  /// A word of an attribute, in 32 bits: an unknown word keeps its number and is never taken for another.
  template <class Word>
  void word(std::string_view /*name*/, Word word) {
    key_.add(static_cast<int64_t>(word));
  }
  /// One of two words.
  void word(std::string_view /*name*/, bool which, std::string_view /*yes*/, std::string_view /*no*/) { flag(which); }
  template <class Int>
  void ints(std::string_view /*name*/, std::span<const Int> values) {
    key_.add(static_cast<int64_t>(values.size()));
    for (const Int value : values) key_.add(value);
  }
  void ints(std::string_view name, std::initializer_list<int64_t> values) {
    ints(name, std::span(values.begin(), values.size()));
  }
  /// Values that follow from the tensors' extents, which are in the key.
  template <class Make>
  void derived_ints(std::string_view /*name*/, const Make& /*make*/) {
    key_.add(int64_t{-1});  // no count of ints()
  }
  /// A value for each spatial axis of `like`: d, h and w as far as it has them.
  void per_axis(std::string_view /*name*/, const Tensor& /*like*/, const std::array<int64_t, 3>& values) {
    key_.add(values[0], values[1], values[2], int64_t{0});
  }
  /// The same of values at the begin and at the end of each axis.
  void per_axis(std::string_view /*name*/, const Tensor& /*like*/, const std::array<int64_t, 3>& begin,
                const std::array<int64_t, 3>& end) {
    key_.add(begin[0], begin[1], begin[2], end[0], end[1], end[2]);
  }

  void arithmetic(const Arithmetic& permitted) {
    flag(permitted.tf32);
    flag(permitted.fast);
    flag(permitted.deterministic);
  }
  /// alpha and beta of the result.
  void blend(float alpha, float beta) {
    values_.alpha = alpha;
    values_.beta = beta;
    classes(alpha, beta);
  }
  /// Both factors of a FurtherBlend, which are two numbers of the operation.
  void blend(std::string_view name, float alpha, float beta) {
    number(name, alpha);
    number(name, beta);
    further_classes(name, alpha, beta);
  }
  /// The classes of a FurtherBlend alone.
  void further_classes(std::string_view /*name*/, float alpha, float beta) { classes(alpha, beta); }
  /// One of Operation::scalars(): all of them, in their order.
  void number(std::string_view /*name*/, float value) { values_.operation_scalars[numbers_++] = value; }
  /// One of Operation::integers(): all of them, in their order.
  void integer(std::string_view /*name*/, uint64_t value) { values_.operation_integers[integers_++] = value; }
  /// Whether one plan serves every batch of a bucket. `images`: an operand that has the batch.
  void dynamic_batch(bool dynamic, const Tensor& images) {
    flag(dynamic);
    if (dynamic) values_.n = images.extent(0);
  }

  /// Stages, whose tensors are operands, or user code. `tensors`: what that reads, as the operation sees it.
  void epilogue(const Epilogue& epilogue, std::span<const Tensor> tensors) {
    values_.clip_lo = epilogue.clip_lo();
    values_.clip_hi = epilogue.clip_hi();
    if (epilogue.count() > 0) return stages(epilogue);
    user_code_alone(epilogue, tensors);
  }
  void epilogue(const Epilogue& given) { epilogue(given, user_tensors_of(given)); }
  /// The same where the operation takes no stages. Throws Error(invalid_argument) if there are any.
  void user_code(const Epilogue& epilogue, std::span<const Tensor> tensors) {
    if (epilogue.count() > 0) refuse_stages();
    user_code_alone(epilogue, tensors);
  }
  void user_code(const Epilogue& given) { user_code(given, user_tensors_of(given)); }
  /// `text`: CallKey::max_text bytes at the most.
  void text(std::string_view text) { key_.add(text); }

  /// Memory of the call's own for what it makes in between. Not part of the key.
  void workspace(const void* memory, int64_t bytes) {
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    workspace_ = {begin, begin + static_cast<uintptr_t>(std::max<int64_t>(bytes, 0))};
  }

  /// After the last part. Throws Error(invalid_argument) if an output shares an element with an input, with an output
  /// before it or with what user code reads, unless it is one that it may be (OperandDefinition::may_be), element for
  /// element; and if the workspace shares memory with any of them.
  void finish();

  const CallKey& key() const { return key_; }
  std::span<const Address> addresses() const { return {reinterpret_cast<const Address*>(addresses_.data()), count_}; }
  RunValues& values() { return values_; }

 private:
  static constexpr size_t max_tensors = max_call_operands + Expression::max_tensors;
  static_assert(max_tensors <= 32, "the operands that are written have a bit each");

  struct Place {
    const Tensor* tensor;
    MemoryRange range;
    size_t number;  // those of user code stand behind the operation's operands
  };

  void flag(bool value) { flags_ = flags_ << 1 | int64_t{value}; }
  void classes(float alpha, float beta) {
    flags_ = flags_ << 4 | static_cast<int64_t>(scale_of(alpha)) << 2 | static_cast<int64_t>(scale_of(beta));
  }
  void user_code_alone(const Epilogue& epilogue, std::span<const Tensor> tensors) {
    if (epilogue.code() == nullptr) return key_.add(int64_t{0});
    user_tensors(epilogue, tensors);
  }
  bool is_written(const Place& place) const { return (shape_.written >> place.number & 1) != 0; }
  // Not inline: the calls of all operations would have these many times over.
  void place(const Tensor& tensor, size_t number);
  void stages(const Epilogue& epilogue);
  void user_tensors(const Epilogue& epilogue, std::span<const Tensor> tensors);
  std::string_view name_of(const Place& place) const;
  void examine(const Place& output, const Place& other) const;
  void require_own_workspace() const;
  [[noreturn]] void refuse_stages() const;

  const CallShape& shape_;
  CallKey key_;
  RunValues values_;
  int64_t present_ = 0, flags_ = 0;
  size_t operands_ = 0, numbers_ = 0, integers_ = 0;
  // Not initialised, as the key; an Address would be null.
  std::array<Place, max_tensors> places_;
  alignas(Address) std::array<std::byte, max_tensors * sizeof(Address)> addresses_;
  size_t count_ = 0;
  MemoryRange workspace_{};
  const Expression* code_ = nullptr;
};

}  // namespace kiln
