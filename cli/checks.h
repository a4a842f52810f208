// Checks of the values of options, and the messages about wrong ones.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace kiln::cli {

/// One of `words`: "magic is not one of model, random; did you mean ...?".
CLI::Validator one_of(std::vector<std::string> words);
/// Words that one_of() lets pass for `option`, for completion; empty for an option that takes anything.
std::vector<std::string> words_of(const CLI::Option& option);
/// A whole number from `least` to `most`: "0 is not a whole number from 1 to 100".
CLI::Validator whole_number(int64_t least, int64_t most);
/// Makes all options and arguments of `command` and of its commands refuse an empty value, such as that of a variable
/// which is not set: it would pass for none.
void refuse_empty_values(CLI::App& command);
/// A finite number above 0: "-3 is not a number above 0".
CLI::Validator number_above_zero();

}  // namespace kiln::cli
