#include "kiln/epilogue.h"

#include <fmt/format.h>

#include "kiln/base/error.h"

namespace kiln {

Epilogue operator+(const Epilogue& first, const Epilogue& second) {
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

}  // namespace kiln
