#include "fake_arithmetic.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fake_cudnn {
namespace {

// Calls visit(h, w, r, s) for the taps of a window that lie inside x.
template <class Visit>
void for_each_inside(const Tensor& x, const Windows& windows, int64_t p, int64_t q, const Visit& visit) {
  for (int64_t r = 0; r < windows.extents[0]; ++r) {
    for (int64_t s = 0; s < windows.extents[1]; ++s) {
      const int64_t h = p * windows.strides[0] - windows.pads[0] + r * windows.dilations[0];
      const int64_t w = q * windows.strides[1] - windows.pads[1] + s * windows.dilations[1];
      if (h >= 0 && h < x.extents[2] && w >= 0 && w < x.extents[3]) visit(h, w, r, s);
    }
  }
}

}  // namespace

int64_t Tensor::bytes() const {
  int64_t last = 0;
  for (size_t i = 0; i < extents.size(); ++i) last += (extents[i] - 1) * strides[i];
  return (last + 1) * static_cast<int64_t>(sizeof(float));
}

void convolve(const Tensor& x, const Tensor& w, const Tensor& y, const Windows& windows, Computed computed,
              float scale) {
  const Tensor& out = computed == Computed::y ? y : computed == Computed::x ? x : w;
  std::vector<double> sums(static_cast<size_t>(out.bytes()) / sizeof(float));
  const auto add = [&](int64_t offset, double a, double b) { sums[static_cast<size_t>(offset)] += a * b; };
  const int64_t groups = x.extents[1] / w.extents[1], per_group = w.extents[0] / groups;
  for_each(y, [&](int64_t n, int64_t k, int64_t p, int64_t q) {
    const int64_t of_y = y.offset(n, k, p, q);
    for (int64_t c = 0; c < w.extents[1]; ++c) {
      for_each_inside(x, windows, p, q, [&](int64_t h, int64_t column, int64_t r, int64_t s) {
        const int64_t of_x = x.offset(n, k / per_group * w.extents[1] + c, h, column), of_w = w.offset(k, c, r, s);
        if (computed == Computed::y) add(of_y, x.data[of_x], w.data[of_w]);
        if (computed == Computed::x) add(of_x, y.data[of_y], w.data[of_w]);
        if (computed == Computed::w) add(of_w, x.data[of_x], y.data[of_y]);
      });
    }
  });
  for_each(out, [&](int64_t i, int64_t j, int64_t k, int64_t l) {
    const int64_t offset = out.offset(i, j, k, l);
    out.data[offset] = scale * static_cast<float>(sums[static_cast<size_t>(offset)]);
  });
}

void pool(const Tensor& x, const Tensor& y, const Windows& windows, Pooling mode, float scale) {
  for_each(y, [&](int64_t n, int64_t c, int64_t p, int64_t q) {
    double sum = 0, largest = -std::numeric_limits<double>::infinity();
    int64_t inside = 0;
    for_each_inside(x, windows, p, q, [&](int64_t h, int64_t w, int64_t, int64_t) {
      sum += x.at(n, c, h, w);
      largest = std::max<double>(largest, x.at(n, c, h, w));
      ++inside;
    });
    const int64_t all = windows.extents[0] * windows.extents[1];
    const double average = sum / static_cast<double>(mode == Pooling::average_all ? all : std::max<int64_t>(inside, 1));
    y.at(n, c, p, q) = scale * static_cast<float>(mode == Pooling::max ? largest : average);
  });
}

void softmax(const Tensor& x, const Tensor& y, bool whole_instance, bool logarithm) {
  for_each(y, [&](int64_t n, int64_t c, int64_t h, int64_t w) {
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    const auto over_row = [&](const auto& visit) {
      for_each(x, [&](int64_t i, int64_t j, int64_t k, int64_t l) {
        if (i == n && (whole_instance || (k == h && l == w))) visit(x.at(i, j, k, l));
      });
    };
    over_row([&](double value) { largest = std::max(largest, value); });
    over_row([&](double value) { sum += std::exp(value - largest); });
    const double shifted = x.at(n, c, h, w) - largest;
    y.at(n, c, h, w) = static_cast<float>(logarithm ? shifted - std::log(sum) : std::exp(shifted) / sum);
  });
}

}  // namespace fake_cudnn
