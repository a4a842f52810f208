// CallRequest: the request of an operation call, for the first call of its shape.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "call_shape.h"
#include "kiln/epilogue.h"
#include "kiln/generator/request.h"
#include "kiln/tensor.h"
#include "user_tensors.h"

namespace kiln {

/// Takes the parts of one call as CallNumbers does, by their names. Throws Error(internal) where these are not those of
/// the operation, all of them, operands and numbers in its order.
class CallRequest {
 public:
  explicit CallRequest(const CallShape& shape);

  void operand(std::string_view name, const Tensor* tensor);
  void operand(std::string_view name, const Tensor& tensor) { operand(name, &tensor); }
  void operand(std::string_view name, const std::optional<Tensor>& tensor) {
    operand(name, tensor ? &*tensor : nullptr);
  }

  template <class Word>
  void word(std::string_view name, Word word) {
    const std::string_view text = to_string(word);
    attribute(name, text == "?" ? std::to_string(static_cast<int>(word)) : std::string(text));
  }
  void word(std::string_view name, bool which, std::string_view yes, std::string_view no) {
    attribute(name, std::string(which ? yes : no));
  }
  template <class Int>
  void ints(std::string_view name, std::span<const Int> values) {
    attribute(name, std::vector<int64_t>(values.begin(), values.end()));
  }
  void ints(std::string_view name, std::initializer_list<int64_t> values) {
    ints(name, std::span(values.begin(), values.size()));
  }
  template <class Make>
  void derived_ints(std::string_view name, const Make& make) {
    attribute(name, std::vector<int64_t>(make()));
  }
  void per_axis(std::string_view name, const Tensor& like, const std::array<int64_t, 3>& values);
  void per_axis(std::string_view name, const Tensor& like, const std::array<int64_t, 3>& begin,
                const std::array<int64_t, 3>& end);

  void arithmetic(const Arithmetic& permitted) { request_.arithmetic = permitted; }
  void blend(float alpha, float beta);
  void blend(std::string_view name, float alpha, float beta);
  void further_classes(std::string_view name, float alpha, float beta);
  void number(std::string_view name, float value);
  void integer(std::string_view name, uint64_t value);
  void dynamic_batch(bool dynamic, const Tensor& /*images*/) { request_.dynamic_batch = dynamic; }

  /// Throws Error(invalid_argument) for a stage without its tensor: one made by itself, Epilogue(EpilogueStage::bias).
  void epilogue(const Epilogue& epilogue, std::span<const Tensor> tensors);
  void epilogue(const Epilogue& given) { epilogue(given, user_tensors_of(given)); }
  void user_code(const Epilogue& epilogue, std::span<const Tensor> tensors) {
    has_said_code_ = true;
    code_ = epilogue.code();
    user_tensors_ = tensors;
  }
  void user_code(const Epilogue& given) { user_code(given, user_tensors_of(given)); }
  /// Attributes, arithmetic, stages and `n=?` as requests have them. Throws Error(parse_error), and
  /// Error(invalid_argument) for what a call says otherwise: operands, the classes of scales, user code.
  void text(std::string_view text);

  /// Throws Error(invalid_argument) for a request that makes no sense.
  Request finished() const;

 private:
  void attribute(std::string_view name, AttributeValue value);
  void require_all_said() const;

  const CallShape& shape_;
  Request request_;
  bool has_text_ = false;  // of a call by name, which says only what it does not leave to defaults
  size_t operands_ = 0, numbers_ = 0, integers_ = 0;
  std::optional<Tensor> result_;
  const Expression* code_ = nullptr;
  bool has_said_code_ = false;  // or that there is none
  std::span<const Tensor> user_tensors_;
};

}  // namespace kiln
