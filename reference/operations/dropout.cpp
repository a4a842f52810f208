// Reference of dropout: the definition of its mask, element by element.
#include "kiln/generator/operations/dropout.h"

#include "evaluator.h"
#include "kiln/reference/philox.h"

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
        p_(static_cast<float>(scalar("p"))),
        seed_(integer("seed")),
        offset_(integer("offset")) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    uint64_t element = 0;
    for (size_t d = 0; d < coordinate.size(); ++d) {
      element = element * static_cast<uint64_t>(output().extents[d]) + static_cast<uint64_t>(coordinate[d]);
    }
    const uint64_t block = element / 4;
    const auto words = philox4x32_10({low(block), high(block), low(offset_), high(offset_)}, {low(seed_), high(seed_)});
    Expected result;
    if (static_cast<float>(words[element % 4] >> 8) * 0x1p-24F < p_) return result;
    const float scale = 1.0F / (1.0F - p_);
    add_term(result, x_[coordinate] * static_cast<double>(scale));
    return result;
  }

 private:
  static uint32_t low(uint64_t value) { return static_cast<uint32_t>(value); }
  static uint32_t high(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

  Tensor x_;
  float p_;
  uint64_t seed_, offset_;
};

}  // namespace

Reference dropout_reference() {
  return {make_evaluator<DropoutEvaluator>};
}

}  // namespace kiln::reference
