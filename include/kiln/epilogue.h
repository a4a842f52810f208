// Epilogues: what happens to a result before it is stored. `kiln::bias(b) + kiln::relu`.
#pragma once

#include <array>
#include <limits>
#include <optional>

#include "kiln/generator/request.h"
#include "kiln/tensor.h"

namespace kiln {

/// A chain of stages, applied in the order written. No allocation.
class Epilogue {
 public:
  static constexpr int max_stages = 4;

  constexpr Epilogue() = default;
  constexpr explicit Epilogue(EpilogueStage stage) : stages_{stage}, count_(1) {}

  int count() const { return count_; }
  EpilogueStage stage(int i) const { return stages_[static_cast<size_t>(i)]; }
  const std::optional<Tensor>& bias() const { return bias_; }
  const std::optional<Tensor>& residual() const { return residual_; }
  float clip_lo() const { return clip_lo_; }
  float clip_hi() const { return clip_hi_; }

  /// Throws Error(invalid_argument) if a stage would stand twice.
  friend Epilogue operator+(const Epilogue& first, const Epilogue& second);

 private:
  friend Epilogue bias(const Tensor& values);
  friend Epilogue add(const Tensor& residual);
  friend Epilogue clip(float lo, float hi);

  std::array<EpilogueStage, max_stages> stages_{};
  int count_ = 0;
  std::optional<Tensor> bias_, residual_;
  float clip_lo_ = -std::numeric_limits<float>::infinity();
  float clip_hi_ = std::numeric_limits<float>::infinity();
};

/// Adds values[k] to channel k; `values`: K elements.
Epilogue bias(const Tensor& values);
/// Adds `residual` at the same position; the extents of y. It may be y itself, with y's dtype and strides.
Epilogue add(const Tensor& residual);
/// Limits to [lo, hi]; NaN stays NaN. Throws Error(invalid_argument) unless lo <= hi.
Epilogue clip(float lo, float hi);
/// Replaces negative values by 0; NaN stays NaN.
inline const Epilogue relu{EpilogueStage::relu};

}  // namespace kiln
