// OpenLineChooser: kernels for all sizes of a line, without a device.
#include "kiln/runtime/open_line_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "common_cards.h"
#include "kiln/base/error.h"
#include "kiln/generator/batch_invariance.h"
#include "kiln/templates/catalogue.h"

namespace kiln::open_line_kernels_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class OpenLineKernelsTest : public testing::Test {
 protected:
  OpenLineChooser chooser(const cache::Filter& filter = {}, OpenLineChooser::Demand demand = {}) const {
    return {catalogue_, target_, common_figures(target_.arch), filter, std::move(demand)};
  }

  // Digests of the sources that the kernels have, each once.
  std::set<std::string> codes_of(const std::vector<OpenLineKernel>& kernels) const {
    std::set<std::string> codes;
    for (const OpenLineKernel& kernel : kernels) {
      for (const Source& source : catalogue_.program(kernel.request, target_, kernel.choice).sources)
        codes.insert(source.code);
    }
    return codes;
  }

  const Catalogue catalogue_ = make_catalogue(embedded_sources());
  const Target target_{Arch::of(8, 0), 13, 0};
};

TEST_F(OpenLineKernelsTest, EachSizeTakesAKernelOfItsOwnSources) {
  const OpenLineKernels chosen = chooser().choose("softmax_forward x=f16:?300x?5000");
  EXPECT_EQ(chosen.why_none, "");
  ASSERT_FALSE(chosen.kernels.empty());
  std::set<std::string> sizes;
  for (const OpenLineKernel& kernel : chosen.kernels) {
    EXPECT_FALSE(kernel.is_covered);
    EXPECT_GT(kernel.seconds, 0);
    ASSERT_FALSE(kernel.sizes.empty()) << kernel.choice.algorithm;
    const std::set<std::string> sources = codes_of({kernel});
    for (const Request& size : kernel.sizes) {
      EXPECT_TRUE(sizes.insert(size.key()).second) << size.key();
      EXPECT_EQ(catalogue_.program(size, target_, kernel.choice).sources.front().code, *sources.begin()) << size.key();
    }
  }
  EXPECT_GT(sizes.size(), 300U);
  EXPECT_TRUE(sizes.contains(Request::parse("softmax_forward x=f16:300x5000").key())) << "the largest";
  EXPECT_TRUE(std::ranges::any_of(sizes, [](const std::string& size) { return size.find("@2") != std::string::npos; }))
      << "memory that is aligned to elements alone";
}

TEST_F(OpenLineKernelsTest, ALineWithoutOpenExtentsIsOneSize) {
  const OpenLineKernels chosen = chooser().choose("softmax_forward x=f32:33x77");
  ASSERT_EQ(chosen.kernels.size(), 1U);
  EXPECT_EQ(chosen.kernels[0].sizes.size(), 2U) << "as its memory is aligned, and to elements alone";
}

TEST_F(OpenLineKernelsTest, LaterLinesTakeWhatEarlierOnesHave) {
  OpenLineChooser both = chooser();
  const OpenLineKernels first = both.choose("softmax_forward x=f16:?300x?5000");
  const OpenLineKernels second = both.choose("softmax_forward x=f16:?300x100");
  ASSERT_FALSE(second.kernels.empty());
  const std::set<std::string> there = codes_of(first.kernels);
  for (const OpenLineKernel& kernel : second.kernels) {
    EXPECT_TRUE(kernel.is_covered) << kernel.choice.algorithm << " " << kernel.choice.config.print();
    EXPECT_FALSE(kernel.sizes.empty());
    EXPECT_TRUE(std::ranges::includes(there, codes_of({kernel})));
  }
}

TEST_F(OpenLineKernelsTest, SaysWhyThereIsNone) {
  EXPECT_THAT(chooser().choose("local_conv_forward x=f32:?x4x6x6 w=f32:16x4x3x3 pad=1 grid=2").why_none,
              HasSubstr("no open kernel serves local_conv_forward"));
  EXPECT_THAT(chooser({.workspace_limit = -1}).choose("softmax_forward x=f32:?x?").why_none,
              HasSubstr("no open kernel serves softmax_forward"))
      << "none is admitted";
  EXPECT_THROW((void)chooser().choose("softmax_forward x=f32:?0x3"), Error);
}

TEST_F(OpenLineKernelsTest, RefusesALineOfWhichNoSizeMakesARequest) {
  const auto error_of = [&](const std::string& line) -> Error {
    try {
      (void)chooser().choose(line);
    } catch (const Error& error) {
      return error;
    }
    return {ErrorCode::internal, "none"};
  };
  const Error axis = error_of("softmax_forward x=f32:?nx? axis=7");
  EXPECT_EQ(axis.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(axis.message(), AllOf(HasSubstr("no size of 'softmax_forward x=f32:?nx? axis=7' makes a request"),
                                    HasSubstr("'softmax_forward x=f32:64x64 axis=7': ")));
  EXPECT_EQ(error_of("softmax_forward x=f99:?x?").code(), ErrorCode::parse_error);
  const Error pooled = error_of("pool_forward x=f32:?x?x?hx?w y=f32:?x?x7x7777 window=2 stride=2");
  EXPECT_THAT(pooled.what(), AllOf(HasSubstr("expected"), HasSubstr("makes a request")));
}

TEST_F(OpenLineKernelsTest, RemarksOnLinesOfWhichFewSizesFit) {
  const std::string line = "pool_backward dy=f32:2x3x?px?p x=f32:2x3x?hx?h mode=max window=3 stride=2 pad=1";
  const OpenLineKernels few = chooser().choose(line);
  EXPECT_LT(few.fitting * 4, few.drawn);
  EXPECT_THAT(few.remark().value_or("none"), HasSubstr("depend on each other"));
  const OpenLineKernels all = chooser().choose("softmax_forward x=f32:?40x?9");
  EXPECT_EQ(all.fitting, all.drawn);
  EXPECT_FALSE(all.remark());
  const OpenLineKernels said = chooser().choose(
      "pool_backward dy=f32:2x3x?(h-1)/2+1x?(h-1)/2+1 x=f32:2x3x?hx?h mode=max window=3 stride=2 pad=1");
  EXPECT_EQ(said.fitting, said.drawn) << "sizes of which p follows from h";
  EXPECT_GT(said.drawn, 15U);
  EXPECT_FALSE(said.remark());
  OpenLineKernels quarter;
  quarter.drawn = 8;
  quarter.fitting = 2;
  EXPECT_FALSE(quarter.remark());
  quarter.fitting = 1;
  EXPECT_TRUE(quarter.remark());
}

// Sizes for which an expression has no value are not drawn; the error of a line without any names one.
TEST_F(OpenLineKernelsTest, SizesWithoutAValueAreLeftOut) {
  const OpenLineKernels some = chooser().choose("softmax_forward x=f32:?hx?(h-60)/2");
  EXPECT_FALSE(some.kernels.empty());
  EXPECT_EQ(some.fitting, some.drawn);
  EXPECT_FALSE(chooser().choose("softmax_forward x=f32:?hx?(h-70)/2+1").kernels.empty()) << "64 makes no size";
  try {
    (void)chooser().choose("softmax_forward x=f32:?hx?h/(h-h)");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), AllOf(HasSubstr("no numbers make a size of 'softmax_forward x=f32:?hx?h/(h-h)'"),
                                       HasSubstr("64 divided by 0")));
  }
}

TEST_F(OpenLineKernelsTest, MakesRequestsAsTheyAreDemanded) {
  const OpenLineKernels chosen =
      chooser({}, batch_invariant_if_it_can_be).choose("gemm a=f32:?mx64 b=f32:64x48 c=f32:?mx48");
  ASSERT_FALSE(chosen.kernels.empty());
  for (const OpenLineKernel& kernel : chosen.kernels) {
    EXPECT_TRUE(kernel.request.batch_invariant);
    EXPECT_TRUE(std::ranges::all_of(kernel.sizes, &Request::batch_invariant));
  }
}

}  // namespace
}  // namespace kiln::open_line_kernels_test
