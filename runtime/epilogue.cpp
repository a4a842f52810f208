#include "kiln/epilogue.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "kiln/base/error.h"

namespace kiln {
namespace {

void require_count(size_t given, size_t read, const char* what) {
  if (given == read) return;
  throw Error(ErrorCode::invalid_argument, fmt::format("{} {} are given, the user code reads {}", given, what, read),
              "give one value for each name that the expression lists");
}

}  // namespace

void Epilogue::refuse_stage(int i) const {
  throw Error(ErrorCode::invalid_argument, fmt::format("stage {} of an epilogue of {} stages", i, count_),
              "count from 0, below count()");
}

void Epilogue::refuse_tensor(size_t i) const {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("tensor {} of an epilogue that reads {} tensors", i, user_ ? user_->tensors.size() : 0),
              "count from 0, below code()->tensors().size()");
}

Epilogue Epilogue::with_tensors(std::span<const Tensor> tensors) const {
  if (!user_) {
    throw Error(ErrorCode::invalid_argument, "an epilogue without user code has no tensors of it to be replaced",
                "make one with kiln::expression()");
  }
  require_count(tensors.size(), user_->tensors.size(), "tensors");
  Epilogue result;
  result.user_ = std::make_shared<const User>(User{user_->code, {tensors.begin(), tensors.end()}, user_->scalars});
  return result;
}

Epilogue operator+(const Epilogue& first, const Epilogue& second) {
  if (first.user_ || second.user_) {
    throw Error(ErrorCode::invalid_argument, "user code stands alone in an epilogue",
                "write the other stages into the expression");
  }
  Epilogue sum = first;
  for (int i = 0; i < second.count(); ++i) {
    for (int j = 0; j < first.count(); ++j) {
      if (first.stage(j) != second.stage(i)) continue;
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("epilogue stage {} stands twice", to_string(second.stage(i))),
                  "each of bias, add, relu and clip may stand once");
    }
    sum.stages_[static_cast<size_t>(sum.count_++)] = second.stage(i);
  }
  if (second.bias_) sum.bias_ = second.bias_;
  if (second.residual_) sum.residual_ = second.residual_;
  for (int i = 0; i < second.count(); ++i) {
    if (second.stage(i) != EpilogueStage::clip) continue;
    sum.clip_lo_ = second.clip_lo_;
    sum.clip_hi_ = second.clip_hi_;
  }
  return sum;
}

Epilogue bias(const Tensor& values) {
  Epilogue epilogue(EpilogueStage::bias);
  epilogue.bias_ = values;
  return epilogue;
}

Epilogue add(const Tensor& residual) {
  Epilogue epilogue(EpilogueStage::add);
  epilogue.residual_ = residual;
  return epilogue;
}

Epilogue clip(float lo, float hi) {
  if (!(lo <= hi)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("clip({}, {}) is an empty range", lo, hi), "give lo <= hi");
  }
  Epilogue epilogue(EpilogueStage::clip);
  epilogue.clip_lo_ = lo;
  epilogue.clip_hi_ = hi;
  return epilogue;
}

namespace {

// The value called `name`. Throws if there is none.
template <class Named>
const Named& named(std::span<const Named> given, const std::string& name) {
  for (const Named& value : given) {
    if (value.name == name) return value;
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("the user code reads {}, which is not given", name),
              "give a value by that name");
}

}  // namespace

Epilogue expression(const Expression& code, std::span<const NamedTensor> tensors,
                    std::span<const NamedScalar> scalars) {
  Epilogue::User user{code, {}, {}};
  for (const std::string& name : code.tensors()) user.tensors.push_back(named(tensors, name).tensor);
  for (size_t i = 0; i < code.scalars().size(); ++i) user.scalars[i] = named(scalars, code.scalars()[i]).value;
  require_count(tensors.size(), code.tensors().size(), "tensors");
  require_count(scalars.size(), code.scalars().size(), "scalars");
  Epilogue epilogue;
  epilogue.user_ = std::make_shared<const Epilogue::User>(std::move(user));
  return epilogue;
}

Epilogue expression(std::string_view text, std::span<const NamedTensor> tensors, std::span<const NamedScalar> scalars) {
  std::vector<std::string> tensor_names, scalar_names;
  for (const NamedTensor& tensor : tensors) tensor_names.emplace_back(tensor.name);
  for (const NamedScalar& scalar : scalars) scalar_names.emplace_back(scalar.name);
  return expression(Expression(text, std::move(tensor_names), std::move(scalar_names)), tensors, scalars);
}

}  // namespace kiln
