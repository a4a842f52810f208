#include "kiln/generator/run_values.h"

#include "kiln/generator/operation.h"

namespace kiln {

RunValues usual_values(const Request& request) {
  RunValues values;
  values.alpha = request.blend.alpha == Scale::zero ? 0.0f : 1.0f;
  values.beta = request.blend.beta == Scale::zero ? 0.0f : 1.0f;
  const Operation& definition = operation(request.operation);
  for (size_t i = 0; i < definition.scalars().size(); ++i) values.scalars[i] = definition.scalars()[i].usual;
  for (size_t i = 0; i < definition.integers().size(); ++i) values.integers[i] = definition.integers()[i].usual;
  return values;
}

}  // namespace kiln
