// Two optimizers, each an element-wise chain that Kiln compiles into one kernel an update.
#pragma once

#include <kiln/context.h>
#include <kiln/memory.h>
#include <kiln/tensor.h>

/// Stochastic gradient descent with momentum, as PyTorch writes it: v = momentum * v + g, w = w - rate * v.
class Sgd {
 public:
  /// `weights` and `gradients`: of one dimension, f32. They must live as long as this.
  Sgd(kiln::Context& context, const kiln::Tensor& weights, const kiln::Tensor& gradients, float rate, float momentum);
  /// Enqueues one update of the weights on the default stream.
  void step();

 private:
  kiln::Context& context_;
  kiln::Tensor weights_, gradients_;
  kiln::DeviceMemory velocity_memory_;
  kiln::Tensor velocity_;
  float rate_, momentum_;
};

/// Adam (Kingma and Ba 2015) with its usual numbers: the moments' decay 0.9 and 0.999, epsilon 1e-8.
class Adam {
 public:
  /// As Sgd.
  Adam(kiln::Context& context, const kiln::Tensor& weights, const kiln::Tensor& gradients, float rate);
  void step();

 private:
  kiln::Context& context_;
  kiln::Tensor weights_, gradients_;
  kiln::DeviceMemory mean_memory_, square_memory_;
  kiln::Tensor mean_, square_;  // running means of the gradient, and of its square
  float rate_;
  int steps_ = 0;
};
