// The check against planted bugs, on a device made of host memory (host_driver.h).
#include "kiln/checking/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "host_driver.h"
#include "kiln/base/error.h"

namespace kiln::checking::check_test {
namespace {

using testing::HasSubstr;

/// Arguments of one call, as a kernel sees them.
struct Call {
  const float* x;
  float* y;
  char* workspace;
  int64_t n;
  float alpha, beta;
};

class CheckTest : public testing::Test {
 protected:
  static constexpr int64_t columns = 7;

  /// y = alpha * softmax(x) + beta * y over rows of `columns`, with row stride `pitch`.
  static void softmax(const Call& call, int64_t rows, int64_t pitch = columns) {
    for (int64_t row = 0; row < rows; ++row) {
      const float* x = call.x + row * pitch;
      float* y = call.y + row * pitch;
      double sum = 0;
      for (int64_t i = 0; i < columns; ++i) sum += std::exp(static_cast<double>(x[i]));
      for (int64_t i = 0; i < columns; ++i) {
        const double value = call.alpha * std::exp(static_cast<double>(x[i])) / sum;
        y[i] = static_cast<float>(call.beta == 0 ? value : value + static_cast<double>(call.beta) * y[i]);
      }
    }
  }

  execution::Executable load(std::function<void(const Call&)> kernel, int64_t workspace = 0) {
    const std::string name = "k" + std::to_string(driver.kernels.size());
    driver.kernels[name] = [kernel = std::move(kernel)](void** parameters) {
      kernel({*static_cast<const float**>(parameters[0]), *static_cast<float**>(parameters[1]),
              *static_cast<char**>(parameters[2]), *static_cast<int64_t*>(parameters[3]),
              *static_cast<float*>(parameters[4]), *static_cast<float*>(parameters[5])});
    };
    execution::CompiledProgram compiled;
    compiled.program.sources = {"source"};
    compiled.images = {{"ptx", "cubin", {}}};
    compiled.program.workspace_bytes = workspace;
    Launch launch;
    launch.entry = name;
    launch.arguments = {OperandArgument{"x"}, OperandArgument{"y"}, WorkspaceArgument{0}, Scalar::n,
                        Scalar::alpha,        Scalar::beta};
    compiled.program.steps = {launch};
    return {driver.context(), compiled, {"x", "y"}};
  }

  Checker checker_for(const std::string& line, CheckOptions options = {}) {
    return {driver.context(), Request::parse(line), std::move(options)};
  }
  Checker checker() { return checker_for("softmax_forward x=f32:3x7:nc"); }

  HostDriver driver;
};

TEST_F(CheckTest, PassesARightVariantAndSaysHowClose) {
  const Verdict verdict = checker().check(load([](const Call& call) { softmax(call, 3); }));
  EXPECT_TRUE(verdict.passed) << verdict.text;
  EXPECT_GT(verdict.bound, 0);
  EXPECT_LE(verdict.max_error, verdict.bound);
  EXPECT_THAT(verdict.text, HasSubstr("largest error"));
}

TEST_F(CheckTest, SaysHowCloseTheWorstOfAllRunsIs) {
  constexpr reference::Values uniform = reference::Values::uniform;
  Checker bench = checker_for("softmax_forward x=f32:3x7:nc", {.fills = {uniform, uniform}});
  const auto closeness = [&](int run_that_is_off) {
    int runs = 0;
    const Verdict verdict = bench.check(load([&](const Call& call) {
      softmax(call, 3);
      if (runs++ == run_that_is_off) call.y[5] *= 1.000001F;
    }));
    EXPECT_TRUE(verdict.passed) << verdict.text;
    EXPECT_EQ(runs, 2);
    return verdict.max_error / verdict.bound;
  };
  const double exact = closeness(-1);
  for (const int run : {0, 1}) EXPECT_GT(closeness(run), 3 * exact) << run;
}

TEST_F(CheckTest, FindsASlightlyWrongElementAndNamesIt) {
  const Verdict verdict = checker().check(load([](const Call& call) {
    softmax(call, 3);
    call.y[2 * columns + 5] *= 1.0001F;
  }));
  EXPECT_FALSE(verdict.passed);
  EXPECT_THAT(verdict.text, HasSubstr("wrong at (2,5)"));
}

TEST_F(CheckTest, FindsAnElementThatWasNotWritten) {
  const Verdict verdict = checker().check(load([](const Call& call) {
    const float kept = call.y[20];
    softmax(call, 3);
    call.y[20] = kept;
  }));
  EXPECT_FALSE(verdict.passed);
  EXPECT_THAT(verdict.text, HasSubstr("nan"));
}

TEST_F(CheckTest, FindsAWriteAfterTheOutputAndBeforeIt) {
  Checker bench = checker();
  const Verdict after = bench.check(load([](const Call& call) {
    softmax(call, 3);
    call.y[21] = 0;
  }));
  EXPECT_FALSE(after.passed);
  EXPECT_THAT(after.text, HasSubstr("after the end of y"));
  const Verdict before = bench.check(load([](const Call& call) {
    softmax(call, 3);
    call.y[-1] = 0;
  }));
  EXPECT_FALSE(before.passed);
  EXPECT_THAT(before.text, HasSubstr("before the start of y"));
}

TEST_F(CheckTest, FindsAChangedInputAndRepairsItForTheNext) {
  Checker bench = checker();
  const Verdict verdict = bench.check(load([](const Call& call) {
    softmax(call, 3);
    const_cast<float*>(call.x)[3] = 0;
  }));
  EXPECT_FALSE(verdict.passed);
  EXPECT_THAT(verdict.text, HasSubstr("changed the input x"));
  EXPECT_TRUE(bench.check(load([](const Call& call) { softmax(call, 3); })).passed);
}

TEST_F(CheckTest, CopiesInputsOnceForAllVariantsThatLeaveThemAlone) {
  Checker bench = checker();
  const auto copied_for = [&](const std::function<void(const Call&)>& kernel) {
    driver.uploaded_bytes = 0;
    bench.check(load(kernel));
    return driver.uploaded_bytes / sizeof(float);
  };
  const auto right = [](const Call& call) { softmax(call, 3); };
  EXPECT_EQ(copied_for(right), 42U);
  EXPECT_EQ(copied_for(right), 21U) << "the output alone";
  EXPECT_EQ(copied_for([](const Call& call) { call.y[0] = 5; }), 21U);
  EXPECT_EQ(copied_for(right), 42U) << "the one before was wrong";
  bench.timed_operands();
  EXPECT_EQ(copied_for(right), 42U) << "times were taken of operands elsewhere";
  driver.uploaded_bytes = 0;
  for (int i = 0; i < 2; ++i) bench.timed_operands();
  EXPECT_EQ(driver.uploaded_bytes / sizeof(float), 42U);
}

TEST_F(CheckTest, RepairsARedZoneForTheNext) {
  Checker bench = checker();
  EXPECT_FALSE(bench
                   .check(load([](const Call& call) {
                     softmax(call, 3);
                     const_cast<float*>(call.x)[-2] = 0;
                   }))
                   .passed);
  EXPECT_TRUE(bench.check(load([](const Call& call) { softmax(call, 3); })).passed);
}

TEST_F(CheckTest, FindsAWriteBeyondTheWorkspace) {
  const auto variant = [](int64_t bytes) {
    return [bytes](const Call& call) {
      for (int64_t i = 0; i < bytes; ++i) call.workspace[i] = 1;
      softmax(call, 3);
    };
  };
  Checker bench = checker();
  EXPECT_TRUE(bench.check(load(variant(100), 100)).passed);
  const Verdict verdict = bench.check(load(variant(101), 100));
  EXPECT_FALSE(verdict.passed);
  EXPECT_THAT(verdict.text, HasSubstr("after the end of the workspace"));
}

TEST_F(CheckTest, FindsAVariantThatTrustsAnEmptyWorkspace) {
  const Verdict verdict = checker().check(load(
      [](const Call& call) {
        softmax(call, 3);
        call.y[0] += *reinterpret_cast<float*>(call.workspace);  // as if it were cleared
      },
      256));
  EXPECT_FALSE(verdict.passed);
}

TEST_F(CheckTest, FindsAReadOfTheOutputWhereBetaIsZero) {
  const Verdict verdict = checker().check(load([](const Call& call) {
    std::vector<float> before(call.y, call.y + 21);
    softmax(call, 3);
    for (size_t i = 0; i < 21; ++i) call.y[i] += 0 * before[i];
  }));
  EXPECT_FALSE(verdict.passed);
}

TEST_F(CheckTest, FindsAWriteBetweenTheRowsOfASubRegion) {
  // Rows of 7 in memory with 10 elements a row.
  Checker bench = checker_for("softmax_forward x=f32:3x7:10,1 y=f32:3x7:10,1 axis=1");
  EXPECT_TRUE(bench.check(load([](const Call& call) { softmax(call, 3, 10); })).passed);
  const Verdict verdict = bench.check(load([](const Call& call) {
    softmax(call, 3, 10);
    call.y[18] = 0;
  }));
  EXPECT_FALSE(verdict.passed);
  EXPECT_THAT(verdict.text, HasSubstr("element offset 18 of y"));
}

TEST_F(CheckTest, GivesAlphaAndBetaAndTheOutputItsContents) {
  Checker bench = checker_for("softmax_forward x=f32:3x7:nc alpha=any beta=any");
  EXPECT_TRUE(bench.check(load([](const Call& call) { softmax(call, 3); })).passed);
  EXPECT_FALSE(bench
                   .check(load([](Call call) {
                     call.beta = 0;
                     softmax(call, 3);
                   }))
                   .passed);
  EXPECT_FALSE(bench
                   .check(load([](Call call) {
                     call.alpha = 1;
                     softmax(call, 3);
                   }))
                   .passed);
}

// Neither of a blend, a clip and the scalars of user code may be left out, or take another's place, unnoticed.
TEST_F(CheckTest, GivesEveryPartOfTheCallAnEffect) {
  const std::string line = "conv_forward x=f32:1x1x2x3 w=f32:1x1x1x1";
  const auto values_of = [&](const std::string& attributes) {
    return DeviceOperands(driver.context(), Request::parse(line + attributes)).values();
  };
  const RunValues plain = values_of("");
  EXPECT_EQ(plain.alpha, 1);
  EXPECT_EQ(plain.beta, 0);
  const RunValues blended = values_of(" alpha=any beta=any epilogue=clip");
  EXPECT_THAT(blended.alpha, testing::AllOf(testing::Ne(0), testing::Ne(1)));
  EXPECT_THAT(blended.beta, testing::AllOf(testing::Ne(0), testing::Ne(1), testing::Ne(blended.alpha)));
  EXPECT_THAT(blended.clip_lo, testing::AllOf(testing::Gt(-1), testing::Lt(0))) << "inputs are from -1 to 1";
  EXPECT_THAT(blended.clip_hi, testing::AllOf(testing::Lt(1), testing::Gt(0), testing::Ne(-blended.clip_lo)));
  const std::set<float> scalars(plain.scalars.begin(), plain.scalars.end());
  EXPECT_EQ(scalars.size(), plain.scalars.size());
  EXPECT_EQ(scalars.count(0), 0U);
}

TEST_F(CheckTest, RunsADynamicBatchAtTheEndsOfItsBucketOnceEach) {
  const auto batches_of = [&](const std::string& line) {
    std::vector<int64_t> batches;
    const auto run = [&](const Call& call) {
      batches.push_back(call.n);
      softmax(call, call.n);
    };
    EXPECT_TRUE(checker_for(line).check(load(run)).passed) << line;
    return batches;
  };
  EXPECT_THAT(batches_of("softmax_forward n=? x=f32:8x7:nc"), testing::ElementsAre(8, 7, 5, 1, 0));
  EXPECT_THAT(batches_of("softmax_forward n=? x=f32:1x7:nc"), testing::ElementsAre(1, 0));
}

TEST_F(CheckTest, FindsAVariantThatIgnoresTheBatchOfTheCall) {
  Checker bench = checker_for("softmax_forward n=? x=f32:8x7:nc");
  const Verdict verdict = bench.check(load([](const Call& call) { softmax(call, 8); }));
  EXPECT_FALSE(verdict.passed);
  EXPECT_THAT(verdict.text, HasSubstr("n=7: wrote at element offset 49"));
}

TEST_F(CheckTest, WantsNothingOfAnEmptyTensor) {
  Checker bench = checker_for("softmax_forward x=f32:0x7:nc");
  EXPECT_TRUE(bench.check(load([](const Call&) {})).passed);
  EXPECT_FALSE(bench.check(load([](const Call& call) { call.y[0] = 1; })).passed);
}

TEST_F(CheckTest, AlignsNoBetterThanTheRequestSays) {
  Checker bench = checker_for("softmax_forward x=f32:3x7:nc@4 y=f32:3x7:nc@8");
  EXPECT_TRUE(bench
                  .check(load([](const Call& call) {
                    EXPECT_EQ(reinterpret_cast<uintptr_t>(call.x) % 8, 4U);
                    EXPECT_EQ(reinterpret_cast<uintptr_t>(call.y) % 16, 8U);
                    softmax(call, 3);
                  }))
                  .passed);
}

TEST_F(CheckTest, TriesEveryFill) {
  // Right for ordinary numbers; the exponential of a large one overflows, because the maximum is not subtracted.
  const auto naive = [](const Call& call) { softmax(call, 64); };
  const std::string line = "softmax_forward x=f32:64x7:nc";
  EXPECT_TRUE(checker_for(line).check(load(naive)).passed);
  EXPECT_FALSE(checker_for(line, {.fills = {reference::Values::uniform, reference::Values::specials}})
                   .check(load(naive))
                   .passed);
}

// The limits are the most that is still checked in full.
TEST(InFull, IsCheckedUpToTheLimitsOfOutputsAndWork) {
  const Request request = Request::parse("gemm a=f32:3x5 b=f32:5x7");  // 21 outputs of 5 products and sums
  CheckOptions options;
  EXPECT_TRUE(is_checked_in_full(request, options));
  options.full_elements = 21;
  options.full_flops = 2 * 5 * 21;
  EXPECT_TRUE(is_checked_in_full(request, options));
  EXPECT_FALSE(needs_trusted(request, options));
  for (const auto& [elements, flops] : {std::pair(20, 210), std::pair(21, 209)}) {
    options.full_elements = elements;
    options.full_flops = flops;
    EXPECT_FALSE(is_checked_in_full(request, options)) << elements;
    EXPECT_TRUE(needs_trusted(request, options)) << elements;
  }
}

TEST(InFull, AreQuarterOfAMillionOutputsByDefault) {
  EXPECT_TRUE(is_checked_in_full(Request::parse("tensor_transform x=f32:512x512"), {}));
  EXPECT_FALSE(is_checked_in_full(Request::parse("tensor_transform x=f32:512x513"), {}));
  EXPECT_TRUE(is_checked_in_full(Request::parse("gemm a=f32:100x1000 b=f32:1000x100"), {})) << "20 million operations";
  EXPECT_FALSE(is_checked_in_full(Request::parse("gemm a=f32:100x1001 b=f32:1001x100"), {}));
}

class LargeCheckTest : public CheckTest {
 protected:
  /// Too large to be checked in full, as the options have it.
  Checker large() { return checker_for("softmax_forward x=f32:300x7:nc", {.samples = 20, .full_elements = 100}); }
};

TEST_F(LargeCheckTest, NeedsTheTrustedVariant) {
  EXPECT_THROW(large().check(load([](const Call& call) { softmax(call, 300); })), Error);
}

TEST_F(LargeCheckTest, RefusesATrustedVariantThatIsWrongWhereItIsSampled) {
  EXPECT_FALSE(large()
                   .trust(load([](const Call& call) {
                     softmax(call, 300);
                     call.y[0] = 0.5F;  // corners are always sampled
                   }))
                   .passed);
}

TEST_F(LargeCheckTest, FindsOneWrongElementAmongThousandsByTheTrustedVariant) {
  Checker bench = large();
  ASSERT_TRUE(bench.trust(load([](const Call& call) { softmax(call, 300); })).passed);
  EXPECT_TRUE(bench.check(load([](const Call& call) { softmax(call, 300); })).passed);
  const Verdict verdict = bench.check(load([](const Call& call) {
    softmax(call, 300);
    call.y[1001] *= 1.001F;
  }));
  EXPECT_FALSE(verdict.passed);
  EXPECT_THAT(verdict.text, HasSubstr("wrong at (143,0)"));
}

// Special values spread through whole rows: sampled elements would say nothing of the others.
TEST_F(LargeCheckTest, LeavesSpecialValuesToFullChecks) {
  const auto naive = [](const Call& call) { softmax(call, 300); };  // as in TriesEveryFill
  using enum reference::Values;
  for (const std::vector<reference::Values>& fills : {std::vector{uniform, specials}, std::vector{specials}}) {
    Checker bench =
        checker_for("softmax_forward x=f32:300x7:nc", {.fills = fills, .samples = 20, .full_elements = 100});
    EXPECT_TRUE(bench.trust(load(naive)).passed) << fills.size();
    EXPECT_TRUE(bench.check(load(naive)).passed) << fills.size();
  }
}

TEST_F(LargeCheckTest, TriesEveryFillButSpecialValues) {
  using enum reference::Values;
  Checker bench = checker_for("softmax_forward x=f32:300x7:nc",
                              {.fills = {uniform, integers, specials}, .samples = 20, .full_elements = 100});
  std::vector<bool> are_whole;
  const auto run = [&](const Call& call) {
    softmax(call, 300);
    are_whole.push_back(std::all_of(call.x, call.x + 300 * columns, [](float x) { return x == std::round(x); }));
  };
  EXPECT_TRUE(bench.check_with_reference(load(run)).passed);
  EXPECT_EQ(are_whole, (std::vector<bool>{false, true}));
}

TEST_F(LargeCheckTest, WithoutATrustedVariantLooksAtSamplesAlone) {
  const CheckOptions options{.samples = 20, .full_elements = 100};
  Checker bench = checker_for("softmax_forward x=f32:300x7:nc", options);
  const auto wrong_at = [&](int64_t element) {
    return load([element](const Call& call) {
      softmax(call, 300);
      call.y[element] = 0.5F;
    });
  };
  EXPECT_TRUE(bench.check_with_reference(load([](const Call& call) { softmax(call, 300); })).passed);
  EXPECT_THAT(bench.check_with_reference(wrong_at(0)).text, HasSubstr("wrong at (0,0)"));
  EXPECT_TRUE(bench.check_with_reference(wrong_at(143 * columns)).passed) << "it is no sample";
  EXPECT_THAT(bench.check_with_reference(wrong_at(300 * columns)).text, HasSubstr("after the end of y"));
}

TEST_F(CheckTest, HandsOutOperandsInOrderAfterHarm) {
  Checker bench = checker();
  bench.check(load([](const Call& call) { const_cast<float*>(call.x)[3] = 99; }));
  const DeviceOperands& operands = bench.timed_operands();
  const auto x = device::download<float>(*driver.context(), operands.all().front().device.address(), 21);
  EXPECT_NE(x[3], 99);
}

// Kernels must not rely on more than is promised, and times are of what allocators give.
TEST_F(CheckTest, ChecksOperandsThatAreAlignedNoBetterAndTimesThemAsAllocated) {
  const auto is_aligned = [](const void* address, uintptr_t bytes) {
    return reinterpret_cast<uintptr_t>(address) % bytes == 0;
  };
  Checker bench = checker_for("softmax_forward x=f32:3x7:nc y=f32:3x7:nc@4", {});
  const auto right = [&](const Call& call) {
    EXPECT_TRUE(is_aligned(call.x, 16) && !is_aligned(call.x, 32));
    EXPECT_TRUE(is_aligned(call.y, 4) && !is_aligned(call.y, 8));
    softmax(call, 3);
  };
  const Verdict before = bench.check(load(right));
  EXPECT_TRUE(before.passed) << before.text;
  const DeviceOperands& timed = bench.timed_operands();
  EXPECT_EQ(timed.all()[0].device.address() % 256, 0U);
  EXPECT_EQ(timed.all()[1].device.address() % 8, 4U) << "the caller's are aligned no better";
  const auto x = device::download<float>(*driver.context(), timed.all()[0].device.address(), 21);
  EXPECT_THAT(x, testing::Each(testing::Truly([](float value) { return value >= -1 && value <= 1; })));
  const Verdict after = bench.check(load(right));
  EXPECT_TRUE(after.passed) << after.text;
}

TEST_F(CheckTest, ReportsThatMemoryRanOut) {
  driver.free_memory = 1000;
  try {
    checker();
    ADD_FAILURE() << "there was enough";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
  }
}

}  // namespace
}  // namespace kiln::checking::check_test
