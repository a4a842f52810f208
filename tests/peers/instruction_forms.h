// Forms of the instructions that tensor kernels are made of, in PTX or in inline assembly.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace kiln::bench {

/// Forms of the products (mma), loads and stores of matrices (ldmatrix, stmatrix, movmatrix) and asynchronous copies
/// (cp.async) in `text`: modifiers without hints, in one order, and of copies the bytes and whether what is beyond the
/// source's size is filled with zeros: "cp.async.ca.global.shared 16 zfill". Bytes that are an operand of the inline
/// assembly are "%", and part of a form that is not in one piece of text "...".
std::set<std::string> instruction_forms(std::string_view text);

/// The string literals of a source in CUDA C++, without comments. Those with nothing but space between them are one; of
/// others the end is a quotation mark. Uses of macros with one parameter, from #define to #undef, are as the
/// preprocessor makes them.
std::string inline_assembly(std::string_view source);

}  // namespace kiln::bench
