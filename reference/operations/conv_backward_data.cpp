// Reference of conv_backward_data and local_conv_backward_data: every tap that brought an element of dx into an output
// brings that output's gradient back.
#include "kiln/generator/operations/conv_backward_data.h"

#include <cmath>
#include <utility>
#include <vector>

#include "evaluator.h"
#include "kiln/generator/operations/winograd.h"
#include "operations/window.h"
#include "operations/winograd.h"
#include "product_sum.h"

namespace kiln::reference {
namespace {

class ConvBackwardDataEvaluator final : public Oracle::Evaluator {
 public:
  ConvBackwardDataEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        conv_(ConvBackwardData::of(request())),
        regions_(conv_.regions()),
        cores_(TensorCores::of(request(), bindings, "dy", "w")),
        dy_(tensor("dy")),
        w_(tensor("w")) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    const int64_t group = coordinate[1] / conv_.c_per_group(), c = coordinate[1] % conv_.c_per_group();
    const std::vector<Meeting> met = meetings(coordinate.subspan(2));
    ProductSum products(cores_);
    for (int64_t k = group * conv_.k_per_group(); k < (group + 1) * conv_.k_per_group(); ++k) {
      for (const Meeting& meeting : met) {
        const double weight = w_[place_in_filter(conv_, meeting.region, k, c, meeting.tap)];
        if (meeting.exists) {
          products.add(dy_[Place(coordinate[0], k, meeting.output, windows_.size())], weight);
        } else if (!std::isfinite(weight)) {
          products.leave_open();  // 0 * weight is NaN, but a kernel may skip outputs that do not exist.
        }
      }
    }
    Expected sum = products.finished();
    if (winograd_) permit_winograd(sum, plane(coordinate), *(coordinate.end() - 2), coordinate.back());
    return sum;
  }

 private:
  // The convolution of dy with the mirrored filter whose outputs are one channel of dx.
  PlaneConvolution plane(std::span<const int64_t> coordinate) const {
    const int64_t n = coordinate[0];
    const int64_t group = coordinate[1] / conv_.c_per_group(), channel = coordinate[1] % conv_.c_per_group();
    const int64_t first = group * conv_.k_per_group();
    const size_t axes = windows_.size();
    PerAxis place{};
    if (axes == 3) place[0] = coordinate[2];
    // Tap r of the mirrored filter is tap 2 - r of w, which brings back output h + pad - (2 - r).
    const auto output = [this](size_t axis, int64_t position) { return position + windows_[axis].pad_begin - 2; };
    const auto exists = [this](size_t axis, int64_t at) { return at >= 0 && at < windows_[axis].outputs; };
    const auto input = [=, this](int64_t k, int64_t row, int64_t column) {
      PerAxis at = place;
      at.at(axes - 2) = output(axes - 2, row);
      at.at(axes - 1) = output(axes - 1, column);
      const bool inside = exists(axes - 2, at.at(axes - 2)) && exists(axes - 1, at.at(axes - 1));
      return inside ? dy_[Place(n, first + k, at, axes)] : 0.0;
    };
    const auto filter = [=, this](int64_t k, int64_t r, int64_t s) {
      PerAxis at{};
      at.at(axes - 2) = conv_.mirrored ? r : 2 - r;
      at.at(axes - 1) = conv_.mirrored ? s : 2 - s;
      return w_[Place(first + k, channel, at, axes)];
    };
    return {conv_.k_per_group(), input, filter};
  }

  // A tap under which an element of dx lies, in the window of `output`.
  struct Meeting {
    PerAxis tap{}, output{};
    bool exists = true;  // dy has that output
    int64_t region = 0;  // of the output
  };

  std::vector<Meeting> meetings(std::span<const int64_t> position) const {
    std::vector<Meeting> found{Meeting{}};
    for (size_t axis = 0; axis < windows_.size(); ++axis) {
      const WindowAxis& window = windows_[axis];
      std::vector<Meeting> longer;
      for (int64_t tap = 0; tap < window.window; ++tap) {
        const int64_t distance = position[axis] + window.pad_begin - tap * window.dilation;
        if (distance % window.stride != 0) continue;
        for (Meeting meeting : found) {
          meeting.tap.at(axis) = conv_.mirrored ? window.window - 1 - tap : tap;
          meeting.output.at(axis) = distance / window.stride;
          meeting.exists = meeting.exists && distance >= 0 && distance / window.stride < window.outputs;
          longer.push_back(meeting);
        }
      }
      found = std::move(longer);
    }
    if (conv_.grid.empty()) return found;
    std::erase_if(found, [](const Meeting& meeting) { return !meeting.exists; });  // no region, hence no filter
    for (Meeting& meeting : found) meeting.region = regions_.region_of(meeting.output);
    return found;
  }

  ConvBackwardData conv_;
  RegionGrid regions_;
  TensorCores cores_;
  bool winograd_ = !winograd_refusal(request());
  std::vector<WindowAxis> windows_ = axes_of(conv_);
  Tensor dy_, w_;
};

}  // namespace

Reference conv_backward_data_reference() {
  return {make_evaluator<ConvBackwardDataEvaluator>};
}

Reference local_conv_backward_data_reference() {
  return conv_backward_data_reference();
}

}  // namespace kiln::reference
