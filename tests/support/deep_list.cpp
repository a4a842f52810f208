// tests/deep.txt for scripts, and for tests in other languages (docs/testing.md).
#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include "deep_tests.h"

namespace {

using kiln::testing_support::DeepTests;

constexpr const char* usage =
    "usage: deep_list due TEST      says why the test has to run, or ends with status 1 if it need not\n"
    "       deep_list passed TEST   records that it did, in the deep run whose folder TEST_DEEP_RECORDS names\n"
    "       deep_list start         notes the state of the sources at the beginning of that run\n"
    "       deep_list write         makes tests/deep.txt of what passed in it\n";

int run(const std::string& command, const char* test) {
  const DeepTests& deep = DeepTests::of_project();
  if (test != nullptr && command == "due") {
    const std::optional<std::string> reason = deep.why_test_is_due(test);
    if (reason) std::puts(reason->c_str());
    return reason ? 0 : 1;
  }
  if (test != nullptr && command == "passed") {
    deep.passed(deep.subject_of_test(test));
    return 0;
  }
  const bool is_of_run = command == "start" || command == "write";
  if (test != nullptr || !is_of_run || !deep.is_deep_run()) {
    std::fputs(is_of_run && test == nullptr ? "deep_list: TEST_DEEP_RECORDS is not set\n" : usage, stderr);
    return 2;
  }
  if (command == "start") {
    deep.start();
  } else {
    deep.write_list();
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : nullptr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "deep_list: %s\n", error.what());
    return 2;
  }
}
