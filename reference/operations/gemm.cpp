// Reference of gemm: the sum of its definition.
#include "kiln/generator/operations/gemm.h"

#include "evaluator.h"
#include "product_sum.h"

namespace kiln::reference {
namespace {

class GemmEvaluator final : public Oracle::Evaluator {
 public:
  GemmEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        gemm_(Gemm::of(request())),
        cores_(TensorCores::of(request(), bindings, "a", "b")),
        a_(tensor("a")),
        b_(tensor("b")) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    Coordinate a(coordinate.begin(), coordinate.end()), b = a;
    const size_t column = a.size() - 1, row = a.size() - 2;
    for (size_t i = 0; i < row; ++i) {
      if (gemm_.a.extents[i] == 1) a[i] = 0;
      if (gemm_.b.extents[i] == 1) b[i] = 0;
    }
    ProductSum sum(cores_);
    for (int64_t k = 0; k < gemm_.k(); ++k) {
      a[column] = b[row] = k;
      sum.add(a_[a], b_[b]);
    }
    return sum.finished();
  }

 private:
  Gemm gemm_;
  TensorCores cores_;
  Tensor a_, b_;
};

}  // namespace

Reference gemm_reference() {
  return {make_evaluator<GemmEvaluator>};
}

}  // namespace kiln::reference
