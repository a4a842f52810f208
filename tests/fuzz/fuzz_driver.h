// A mutating fuzzer that needs nothing but the compiler: one process tries inputs, its parent watches it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::fuzz {

/// Subject of fuzzing.
struct Target {
  std::string name;
  /// Works on one input. Returns in a few words what became of it (accepted, or the error it got): an input that meets
  /// with words not seen before is kept and mutated further. Crashing, throwing, or taking longer than the limit is a
  /// finding; so is what check() finds.
  std::function<std::string(std::string_view input)> run;
  /// Pieces of text that are put into inputs.
  std::vector<std::string> dictionary{};
  /// Inputs are choices (choices.h): random bytes are as good as a corpus, and --count tries so many of them.
  bool made = false;
  /// Memory that one input may take beyond what the process has at first; 0: any. Asking for more is a finding.
  std::size_t most_bytes = 0;
  /// Meaning of an input, written beside a finding; may be empty.
  std::function<std::string(std::string_view input)> product{};
};

/// For conditions that must hold in a target: prints `what` and aborts unless `holds`.
void check(bool holds, std::string_view what);

/// Fuzzes as the command line says and returns the exit code: 0 if nothing was found.
///
///   fuzz_NAME [--seconds N] [--seed N] [--findings FOLDER] CORPUS...
///   fuzz_NAME --replay FILE...
///   fuzz_NAME --count N [--seed FIRST] [--findings FOLDER]     where inputs are made
///
/// First every file of the CORPUS (files, or folders of files) is tried as it is: inputs that once were findings stay
/// there for good. Then mutants of them for N seconds (default 10). A finding is written to FOLDER (default: the
/// current one) before anything is said about it, with the command that replays it, and ends the run. --count tries the
/// inputs of N seeds, goes on behind a finding, and prints how many had each outcome, by the words in front of the
/// colon that run() returns.
int fuzz_main(int argc, char** argv, const Target& target);

}  // namespace kiln::fuzz
