// Reference of gather.
#include "kiln/generator/operations/gather.h"

#include <cmath>

#include "evaluator.h"
#include "operations/indices.h"
#include "operations/norm.h"

namespace kiln::reference {
namespace {

class GatherEvaluator final : public Oracle::Evaluator {
 public:
  GatherEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        gather_(Gather::of(request())),
        x_(gather_.x, tensor("x")),
        indices_(gather_.indices, tensor("indices")) {
    copies_ = gather_.x.dtype == gather_.y.dtype && gather_.blend == Blend{};
  }

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    const auto axis = static_cast<size_t>(gather_.axis);
    const int64_t positions = gather_.x.extents[axis], index = static_cast<int64_t>(indices_[coordinate]);
    Expected expected;
    if (index < -positions || index >= positions) return expected;
    Coordinate named(coordinate.begin(), coordinate.end());
    named[axis] = index < 0 ? index + positions : index;
    const double element = x_[named];
    expected.value = copies_ ? element : static_cast<float>(element);  // as kernels read i32
    expected.magnitude = std::fabs(expected.value);
    expected.quantum = quantum_of(expected.value);
    expected.copied = copies_;
    return expected;
  }

 private:
  Gather gather_;
  Repeating x_, indices_;
  bool copies_ = false;
};

Filling filling_of_gather(const Request& request, std::string_view operand, Values values) {
  const std::optional<int64_t> positions = gathered_positions(request, operand);
  if (!positions) return {};
  return [positions = *positions, values](std::span<const int64_t>, uint64_t bits) {
    return static_cast<double>(draw_index(positions, values, bits));
  };
}

}  // namespace

Reference gather_reference() {
  return {.evaluator = make_evaluator<GatherEvaluator>, .filling = filling_of_gather};
}

}  // namespace kiln::reference
