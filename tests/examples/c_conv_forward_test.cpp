// The C example by itself: what it compares, and that it gives everything back whatever fails.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "c_conv_forward_parts.h"

namespace kiln::c_conv_forward_test {
namespace {

struct Outcome {
  int exit_code;
  std::string out, err;
};

// The library fails at a call, or is wrong at an output of one of the three runs.
stand_in failing_at(int call) {
  stand_in how{};
  how.failing = call;
  return how;
}
stand_in wrong_at(int run, int k, int p, double by) {
  stand_in how{};
  how.wrong_run = run;
  how.wrong_k = k;
  how.wrong_p = p;
  how.wrong_by = by;
  return how;
}

Outcome run(const stand_in& how = {}) {
  library = how;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int exit_code = example_main();
  std::fflush(stdout);
  return {exit_code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

TEST(CExample, AgreesWithWhoComputesTheSame) {
  const Outcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(library.runs, 3) << "an operation, a plan, and code of its own";
  EXPECT_EQ(library.living, 0);
  EXPECT_EQ(library.overrun, 0);
  EXPECT_EQ(library.swish_slope, 1.5);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out.substr(0, outcome.out.find("largest")),
            "a stand-in\nplan: a stand-in (a stand-in), 1000 bytes of workspace\n");
}

TEST(CExample, GivesEverythingBackWhicheverCallFails) {
  run();
  const int calls = library.calls;
  EXPECT_GT(calls, 30);
  for (int failing = 1; failing <= calls; ++failing) {
    const Outcome outcome = run(failing_at(failing));
    EXPECT_EQ(outcome.exit_code, 1) << failing;
    EXPECT_EQ(library.living, 0) << failing;
    const bool is_of_host = failing >= 3 && failing <= 6;  // four blocks of memory, which it makes together
    EXPECT_EQ(library.calls, is_of_host ? 6 : failing) << "it goes no further";
    EXPECT_EQ(outcome.err, is_of_host ? "" : "status: the fault\n") << failing;
  }
}

TEST(CExample, PrintsAHintWhereThereIsOne) {
  stand_in how = failing_at(1);
  how.hint = "do this";
  EXPECT_EQ(run(how).err, "status: the fault\ndo this\n");
}

// Every ninth channel at four places, in each of the three ways.
TEST(CExample, FindsAWrongOutputWhereItLooks) {
  for (const int way : {1, 2, 3}) {
    for (const int k : {0, 9, 18, 27, 36, 45, 54, 63}) {
      for (const int p : {0, 5, 111, 223}) {
        EXPECT_EQ(run(wrong_at(way, k, p, 0.001)).exit_code, 1) << k << " " << p << " " << way;
      }
    }
    for (const int k : {1, 8, 10, 62}) {
      EXPECT_EQ(run(wrong_at(way, k, 5, 1)).exit_code, 0) << k;
    }
  }
}

TEST(CExample, SaysHowFarOffTheThreeAre) {
  for (const auto& [way, said] : {std::pair(1, "outputs: 0.05, by"), std::pair(2, "by the plan 0.05, with"),
                                  std::pair(3, "with our own activation 0.05\n")}) {
    const Outcome outcome = run(wrong_at(way, 9, 5, 0.05));
    EXPECT_NE(outcome.out.find(said), std::string::npos) << outcome.out;
    EXPECT_EQ(run(wrong_at(way, 9, 5, 5e-5)).exit_code, 0) << "such are roundings";
  }
}

TEST(CExample, ExpectsSumsOfWaves) {
  const auto x = [](int c, int row, int column) {
    const bool inside = row >= 0 && row < 224 && column >= 0 && column < 224;
    return inside ? std::sin(0.37F * static_cast<float>((c * 224 + row) * 224 + column)) : 0.0F;
  };
  for (const auto& [k, p, q] : {std::tuple(0, 0, 0), std::tuple(3, 0, 223), std::tuple(63, 223, 100),
                                std::tuple(7, 50, 0), std::tuple(20, 111, 223), std::tuple(1, 1, 222)}) {
    double sum = std::sin(1.3F * static_cast<float>(k));
    for (int c = 0; c < 3; ++c) {
      for (int i = 0; i < 9; ++i) {
        sum += double{x(c, p - 1 + i / 3, q - 1 + i % 3)} * std::sin(0.71F * static_cast<float>((k * 3 + c) * 9 + i));
      }
    }
    EXPECT_NEAR(expected_output(k, p, q), sum, 1e-5) << k;
  }
}

}  // namespace
}  // namespace kiln::c_conv_forward_test
