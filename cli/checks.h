// Checks of the values of options, and the messages about wrong ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "command_line.h"

namespace kiln::cli {

/// One of `words`: "magic is not one of model, random; did you mean ...?".
Check one_of(std::vector<std::string> words);
/// Words that one_of() lets pass for `option`, for completion; empty for an option that takes anything.
std::vector<std::string> words_of(Option option);
/// A whole number from `least` to `most`: "0 is not a whole number from 1 to 100".
Check whole_number(int64_t least, int64_t most);
/// Makes all options and arguments of `command` and of its commands refuse an empty value, such as that of a variable
/// which is not set: it would pass for none.
void refuse_empty_values(Command command);
/// A number from `least` to `most`: "-1 is not a number from 0 to 1000000".
Check number(double least, double most);
/// A finite number above 0: "-3 is not a number above 0".
Check number_above_zero();

}  // namespace kiln::cli
