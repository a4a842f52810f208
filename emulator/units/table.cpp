#include "units.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {

#define KILN_STRING_OF(x) #x
#define KILN_NAME_OF(x) KILN_STRING_OF(x)

const UnitTable& table() {
  static constexpr UnitTable units = {
      .name = KILN_NAME_OF(KILN_EMULATOR_ISA),
      .integer = integer,
      .carry = carry,
      .compare = compare,
      .set_pair = set_pair,
      .predicate_logic = predicate_logic,
      .pack = pack,
      .unpack = unpack,
      .floating = floating,
      .test = test,
      .fma_run = fma_run,
      .convert = convert,
      .conversion_steps = conversion_steps,
      .exchange = exchange,
      .matrix_product = matrix_product,
      .matrix_load = matrix_load,
      .matrix_store = matrix_store,
      .matrix_transpose = matrix_transpose,
      .load = load,
      .store = store,
      .atomic = atomic,
      .copy_async = copy_async,
  };
  return units;
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
