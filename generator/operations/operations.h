// The definitions themselves, one per file of this folder: dropout_operation() is that of dropout.
#pragma once

#include <string>
#include <string_view>

#include "kiln/generator/operation.h"
#include "kiln/generator/operation_list.h"

namespace kiln {

#define KILN_DECLARE(name) const Operation& name##_operation();
KILN_OPERATIONS(KILN_DECLARE)
#undef KILN_DECLARE

/// Names similar to one that no operation has, else all names.
std::string hint_of_unknown(std::string_view operation);

}  // namespace kiln
