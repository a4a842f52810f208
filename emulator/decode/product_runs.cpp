#include "product_runs.h"

#include <algorithm>

namespace kiln::emulator {

uint32_t product_run_length(const std::vector<Operation>& operations, uint32_t first) {
  const auto fits = [&](const Operation& operation) {
    return operation.joins && operation.guard == 0 && operation.handlers.fast == operations[first].handlers.fast;
  };
  uint32_t end = first;
  while (end < operations.size() && fits(operations[end])) ++end;
  return end > first ? end - first : 1;
}

FactorSlot FactorSlots::Slots::place(const Factor& factor) {
  const auto held = std::find(held_.begin(), held_.end(), factor);
  if (held != held_.end()) return {static_cast<uint32_t>(held - held_.begin()), true};
  const uint32_t index = next_++ % static_cast<uint32_t>(held_.size());
  held_[index] = factor;
  return {index, false};
}

void FactorSlots::Slots::overwritten(uint32_t a_register) {
  for (Factor& factor : held_) {
    if (std::find(factor.begin(), factor.end(), a_register) != factor.end()) factor.clear();
  }
}

void FactorSlots::assign(uint32_t* list) {
  const ProductOperands operands(list);
  Factor a, b;
  for (uint32_t group = 0; group < operands.groups(); ++group) {
    for (uint32_t tile = 0; tile < operands.tiles(); ++tile) a.push_back(operands.a(tile, group));
    b.push_back(operands.b(group));
  }
  list[operands.slots()] = a_.place(a).number();
  list[operands.slots() + 1] = b_.place(b).number();
  for (uint32_t tile = 0; tile < operands.tiles(); ++tile) {
    for (uint32_t part = 0; part < operands.parts(); ++part) {
      a_.overwritten(operands.d(tile, part));
      b_.overwritten(operands.d(tile, part));
    }
  }
}

}  // namespace kiln::emulator
