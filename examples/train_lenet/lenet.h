// LeNet-5 (LeCun et al. 1998) with max pooling and ReLU: every layer, forward and backward, is a call of Kiln.
#pragma once

#include <kiln/context.h>
#include <kiln/memory.h>
#include <kiln/tensor.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "digits.h"

/// A contiguous tensor and its memory.
struct Buffer {
  Buffer(kiln::Context& context, kiln::DType dtype, std::initializer_list<int64_t> extents);

  kiln::DeviceMemory memory;
  kiln::Tensor tensor;
};

/// Parameters of a layer, and the gradients of the loss by them: parts of the network's two rows of numbers.
struct Parameters {
  kiln::Tensor w, b, dw, db;
};

/// A convolution 5x5 without padding, ReLU, and max pooling 2x2.
class ConvLayer {
 public:
  /// Layer for images of `side` x `side` pixels; as many channels and filters as parameters.w has.
  ConvLayer(kiln::Context& context, const Parameters& parameters, int64_t batch, int64_t side);

  const kiln::Tensor& forward(const kiln::Tensor& x);
  /// From the gradient by the output, in dy(). `dx` may be null: nobody asks for the gradient of the images.
  void backward(const kiln::Tensor& x, const kiln::Tensor* dx);
  const kiln::Tensor& y() const { return pooled_.tensor; }
  const kiln::Tensor& dy() const { return dpooled_.tensor; }

 private:
  kiln::Context& context_;
  Parameters parameters_;
  Buffer convolved_, dconvolved_, pooled_, dpooled_, maxima_;
};

/// Every input to every output, and ReLU unless it is the last.
class FullLayer {
 public:
  enum class Activation { none, relu };
  FullLayer(kiln::Context& context, const Parameters& parameters, int64_t batch, Activation activation);

  const kiln::Tensor& forward(const kiln::Tensor& x);
  /// From the gradient by the output, in dy(), which is overwritten.
  void backward(const kiln::Tensor& x, const kiln::Tensor& dx);
  const kiln::Tensor& y() const { return y_.tensor; }
  const kiln::Tensor& dy() const { return dy_.tensor; }
  const kiln::DeviceMemory& y_memory() const { return y_.memory; }

 private:
  kiln::Context& context_;
  Parameters parameters_;
  Activation activation_;
  Buffer y_, dy_;
};

/// conv 1 -> 6, conv 6 -> 16, 400 -> 120 -> 84 -> 10, for batches of one size.
class LeNet {
 public:
  /// Weights and biases are drawn uniformly within +-sqrt(6 / inputs of a neuron) (He et al. 2015).
  LeNet(kiln::Context& context, int batch, uint64_t seed);

  /// The mean cross entropy of a batch; leaves the gradients in gradients().
  float loss_and_gradients(const Batch& batch);
  /// The likeliest digit of each image.
  std::vector<int> classify(const Batch& batch);

  /// All weights and biases as one row of numbers: an optimizer is one kernel for all of them.
  const kiln::Tensor& weights() const { return weights_.tensor; }
  const kiln::Tensor& gradients() const { return gradients_.tensor; }

 private:
  Parameters parameters(size_t layer) const;
  void draw_weights(uint64_t seed);
  void forward(const Batch& batch);
  void backward();

  kiln::Context& context_;
  int batch_;
  Buffer weights_, gradients_;
  Buffer images_, labels_, loss_;
  ConvLayer conv1_, conv2_;
  FullLayer full3_, full4_, full5_;
};
