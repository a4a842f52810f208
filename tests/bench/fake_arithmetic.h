// Arithmetic of the fake cuDNN, on the host: the emulated device's memory is host memory.
#pragma once

#include <cstdint>
#include <vector>

namespace fake_cudnn {

/// f32 with two spatial axes: N, C, H, W.
struct Tensor {
  std::vector<int64_t> extents, strides;
  float* data = nullptr;

  int64_t offset(int64_t n, int64_t c, int64_t h, int64_t w) const {
    return n * strides[0] + c * strides[1] + h * strides[2] + w * strides[3];
  }
  float& at(int64_t n, int64_t c, int64_t h, int64_t w) const { return data[offset(n, c, h, w)]; }
  /// The element at a position of a larger tensor: extents of 1 stand for all positions.
  float broadcast(int64_t n, int64_t c, int64_t h, int64_t w) const {
    return at(extents[0] == 1 ? 0 : n, extents[1] == 1 ? 0 : c, extents[2] == 1 ? 0 : h, extents[3] == 1 ? 0 : w);
  }
  /// Bytes from the first element to behind the last.
  int64_t bytes() const;
};

/// Calls visit(n, c, h, w) for every position.
template <class Visit>
void for_each(const Tensor& tensor, const Visit& visit) {
  for (int64_t n = 0; n < tensor.extents[0]; ++n) {
    for (int64_t c = 0; c < tensor.extents[1]; ++c) {
      for (int64_t h = 0; h < tensor.extents[2]; ++h) {
        for (int64_t w = 0; w < tensor.extents[3]; ++w) visit(n, c, h, w);
      }
    }
  }
}

struct Windows {
  std::vector<int64_t> extents, pads, strides, dilations;  // of two axes
};

enum class Pooling { max, average_inside, average_all };

/// Which tensor of a convolution is computed from the other two.
enum class Computed { y, x, w };

/// y = scale * (x * w), with the groups that the channels say; or the gradient by x, in its place, or that by w, given
/// the gradient by y in the place of y.
void convolve(const Tensor& x, const Tensor& w, const Tensor& y, const Windows& windows, Computed computed,
              float scale);
void pool(const Tensor& x, const Tensor& y, const Windows& windows, Pooling mode, float scale);
/// Over C for each position, or over all of C, H, W for each N.
void softmax(const Tensor& x, const Tensor& y, bool whole_instance, bool logarithm);

}  // namespace fake_cudnn
