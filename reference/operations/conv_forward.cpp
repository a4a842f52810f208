// Reference of conv_forward and local_conv_forward: the sum of its definition, tap by tap.
#include "kiln/generator/operations/conv_forward.h"

#include <cmath>
#include <vector>

#include "evaluator.h"
#include "kiln/generator/operations/winograd.h"
#include "operations/window.h"
#include "operations/winograd.h"
#include "product_sum.h"

namespace kiln::reference {
namespace {

class ConvForwardEvaluator final : public Oracle::Evaluator {
 public:
  ConvForwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        conv_(ConvForward::of(request())),
        regions_(conv_.regions()),
        cores_(TensorCores::of(request(), bindings, "x", "w")),
        x_(tensor("x")),
        w_(tensor("w")) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    const int64_t k = coordinate[1];
    const int64_t region = regions_.region_of(coordinate.subspan(2));
    const int64_t first_channel = k / conv_.k_per_group() * conv_.c_per_group();
    std::vector<Tap> taps;
    for_each_tap(windows_, coordinate.subspan(2), [&](const Tap& tap) { taps.push_back(tap); });
    ProductSum products(cores_);
    for (int64_t c = 0; c < conv_.c_per_group(); ++c) {
      for (const Tap& tap : taps) {
        const double weight = w_[place_in_filter(conv_, region, k, c, conv_.mirrored ? tap.mirrored : tap.number)];
        if (tap.inside) {
          products.add(x_[Place(coordinate[0], first_channel + c, tap.position, windows_.size())], weight);
        } else if (!std::isfinite(weight)) {
          products.leave_open();  // 0 * weight is NaN, but a kernel may skip padding.
        }
      }
    }
    Expected sum = products.finished();
    if (winograd_) permit_winograd(sum, plane(coordinate), *(coordinate.end() - 2), coordinate.back());
    return sum;
  }

 private:
  // As for_each_tap() sees it from the outputs of one channel of one image (and one plane, of three dimensions).
  PlaneConvolution plane(std::span<const int64_t> coordinate) const {
    const int64_t n = coordinate[0], k = coordinate[1];
    const int64_t first_channel = k / conv_.k_per_group() * conv_.c_per_group();
    const size_t axes = windows_.size();
    PerAxis place{};
    if (axes == 3) place[0] = coordinate[2];
    const auto input = [=, this](int64_t c, int64_t row, int64_t column) {
      PerAxis at = place;
      at.at(axes - 2) = row - windows_[axes - 2].pad_begin;
      at.at(axes - 1) = column - windows_[axes - 1].pad_begin;
      const bool inside = windows_[axes - 2].inside(at.at(axes - 2)) && windows_[axes - 1].inside(at.at(axes - 1));
      return inside ? x_[Place(n, first_channel + c, at, axes)] : 0.0;
    };
    const auto filter = [=, this](int64_t c, int64_t r, int64_t s) {
      PerAxis at{};
      at.at(axes - 2) = conv_.mirrored ? 2 - r : r;
      at.at(axes - 1) = conv_.mirrored ? 2 - s : s;
      return w_[Place(k, c, at, axes)];
    };
    return {conv_.c_per_group(), input, filter};
  }

  ConvForward conv_;
  RegionGrid regions_;
  TensorCores cores_;
  bool winograd_ = !winograd_refusal(request());
  std::vector<WindowAxis> windows_ = axes_of(conv_);
  Tensor x_, w_;
};

}  // namespace

Reference conv_forward_reference() {
  return {make_evaluator<ConvForwardEvaluator>};
}

Reference local_conv_forward_reference() {
  return conv_forward_reference();
}

}  // namespace kiln::reference
