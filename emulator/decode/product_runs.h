// Matrix products that stand one behind the other become one instruction, which unpacks a factor that several of them
// share once.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/operation.h"
#include "kernel/matrix_product.h"

namespace kiln::emulator {

/// How many operations from `first` on can run as one; 1 if none.
uint32_t product_run_length(const std::vector<Operation>& operations, uint32_t first);

/// The slots of a run's factors. A slot holds a factor until another one needs the slot, or a product overwrites one of
/// the factor's registers.
class FactorSlots {
 public:
  /// Sets the slots of the run's next product, whose operands `list` has.
  void assign(uint32_t* list);

 private:
  using Factor = std::vector<uint32_t>;  // registers

  class Slots {
   public:
    explicit Slots(uint32_t count) : held_(count) {}
    FactorSlot place(const Factor& factor);
    void overwritten(uint32_t a_register);

   private:
    std::vector<Factor> held_;
    uint32_t next_ = 0;  // to be used again
  };

  Slots a_{FactorSlot::of_a}, b_{FactorSlot::of_b};
};

}  // namespace kiln::emulator
