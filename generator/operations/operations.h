// The definitions themselves, one per file of this folder: dropout_operation() is that of dropout.
#pragma once

#include "kiln/generator/operation.h"
#include "kiln/generator/operation_list.h"

namespace kiln {

#define KILN_DECLARE(name) const Operation& name##_operation();
KILN_OPERATIONS(KILN_DECLARE)
#undef KILN_DECLARE

}  // namespace kiln
