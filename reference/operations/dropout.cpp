// Reference of dropout: the definition of its mask, element by element.
#include "kiln/generator/operations/dropout.h"

#include "evaluator.h"
#include "operations/dropped.h"

namespace kiln::reference {

std::array<uint32_t, 4> philox4x32_10(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xD2511F53} * counter[0], second = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(second),
               static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(first)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

namespace {

class DropoutEvaluator final : public Oracle::Evaluator {
 public:
  DropoutEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        x_(tensor("x")),
        mask_{static_cast<float>(scalar("p")), integer("seed"), integer("offset")} {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    uint64_t element = 0;
    for (size_t d = 0; d < coordinate.size(); ++d) {
      element = element * static_cast<uint64_t>(output().extents[d]) + static_cast<uint64_t>(coordinate[d]);
    }
    Expected result;
    const double factor = mask_.factor(element);
    if (factor != 0) add_term(result, x_[coordinate] * factor);
    return result;
  }

 private:
  Tensor x_;
  DropoutMask mask_;
};

}  // namespace

Reference dropout_reference() {
  return {make_evaluator<DropoutEvaluator>};
}

}  // namespace kiln::reference
