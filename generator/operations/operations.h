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

/// "number" or "integer" where calls of `operation` give one of that name; else empty.
std::string_view kind_given_at_call(const Operation& operation, std::string_view name);
/// Ways to give that number or integer of a call: advice to a request that holds its value.
std::string hint_of_call(std::string_view kind, std::string_view name);
/// The same for a request that may say the number's class.
std::string hint_of_class(std::string_view name);

}  // namespace kiln
