// Reference of im2col and col2im: tap by tap.
#include "kiln/generator/operations/im2col.h"

#include <cmath>
#include <vector>

#include "evaluator.h"
#include "operations/norm.h"
#include "operations/window.h"

namespace kiln::reference {
namespace {

// The window of columns, and which of its taps stands in a channel of theirs.
struct Columns {
  std::vector<WindowAxis> windows;
  int64_t taps = 1;

  explicit Columns(std::vector<WindowAxis> axes) : windows(std::move(axes)) {
    for (const WindowAxis& axis : windows) taps *= axis.window;
  }
  /// Number of tap `index`, counted with the last axis fastest, along each axis.
  PerAxis tap(int64_t index) const {
    PerAxis number{};
    for (size_t axis = windows.size(); axis-- > 0;) {
      number[axis] = index % windows[axis].window;
      index /= windows[axis].window;
    }
    return number;
  }
};

class Im2colEvaluator final : public Oracle::Evaluator {
 public:
  Im2colEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output), columns_(axes_of(Im2col::of(request()))), x_(tensor("x")) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    const PerAxis tap = columns_.tap(coordinate[1] % columns_.taps);
    PerAxis position{};
    for (size_t axis = 0; axis < columns_.windows.size(); ++axis) {
      position[axis] = columns_.windows[axis].position(coordinate[2 + axis], tap[axis]);
      if (!columns_.windows[axis].inside(position[axis])) return {};
    }
    const Place place(coordinate[0], coordinate[1] / columns_.taps, position, columns_.windows.size());
    const double element = static_cast<float>(x_[place]);  // as kernels read i32
    return {.value = element, .magnitude = std::fabs(element), .quantum = quantum_of(element)};
  }

 private:
  Columns columns_;
  Tensor x_;
};

class Col2imEvaluator final : public Oracle::Evaluator {
 public:
  Col2imEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output), columns_(axes_of(Col2im::of(request()))), x_(tensor("x")) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    Expected sum;
    for (int64_t i = 0; i < columns_.taps; ++i) {
      const PerAxis tap = columns_.tap(i);
      PerAxis output{};
      bool exists = true;
      for (size_t axis = 0; axis < columns_.windows.size(); ++axis) {
        const WindowAxis& window = columns_.windows[axis];
        const int64_t distance = coordinate[2 + axis] - window.position(0, tap[axis]);
        output[axis] = distance / window.stride;
        exists = exists && distance >= 0 && distance % window.stride == 0 && output[axis] < window.outputs;
      }
      if (!exists) continue;
      add_term(sum, x_[Place(coordinate[0], coordinate[1] * columns_.taps + i, output, columns_.windows.size())]);
    }
    return sum;
  }

 private:
  Columns columns_;
  Tensor x_;
};

}  // namespace

Reference im2col_reference() {
  return {.evaluator = make_evaluator<Im2colEvaluator>};
}

Reference col2im_reference() {
  return {.evaluator = make_evaluator<Col2imEvaluator>};
}

}  // namespace kiln::reference
