// Promises of the descriptors of convolution without a device: equal keys give equal sources, legal configurations keep
// to the limits of the architecture, refusals are words, estimates order sensibly.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "kiln/generator/roofline.h"
#include "kiln/templates/catalogue.h"

namespace kiln::conv_descriptors_test {
namespace {

using testing::HasSubstr;

const Catalogue& catalogue() {
  static const Catalogue built_in = make_catalogue(embedded_sources());
  return built_in;
}

Target target(int major = 9, int minor = 0) {
  return {Arch::of(major, minor), 13, 0};
}

const DeviceFigures h200{132, 1.98e9, 4.8e12, 60 << 20};

const std::vector<std::string> requests = {
    "conv_forward x=f32:1x3x224x224:nchw w=f32:64x3x7x7:nchw pad=3,3 stride=2,2 epilogue=bias+relu",
    "conv_forward x=f16:32x64x56x56:nhwc w=f16:64x64x3x3:nhwc pad=1,1 epilogue=bias+add+relu",
    "conv_forward x=f32:1x512x7x7:nchw w=f32:512x512x3x3:nchw pad=1,1",
    "conv_forward x=bf16:256x144x28x28:nchw w=bf16:144x1x3x3:nchw groups=144 pad=1,1 epilogue=clip",
    "conv_forward x=f32:1x96x56x56:nhwc w=f32:96x1x7x7:nhwc groups=96 pad=3,3",
    "conv_forward x=f32:1x2048x7x7:nhwc w=f32:512x2048x1x1:nhwc",
    "conv_forward x=f16:8x13x11x9:nchw@2 w=f16:26x13x2x3:nchw mode=convolution n=?",
    "conv_forward x=f32:4x3x5x6:400,100,17,2 w=f32:8x3x1x1:nhwc y=f32:4x8x5x6:nchw alpha=0 beta=1",
    "conv_backward_data dy=f32:32x64x28x27:nchw w=f32:64x32x3x3:nchw pad=1 stride=2 output_pad=1 n=?",
    "local_conv_backward_data dy=f16:8x64x14x14:nhwc w=f16:1024x32x3x3:nhwc pad=1 grid=4",
};

template <class Visit>
void for_each_legal_variant(const Request& request, const Target& on, Visit visit) {
  for (const Algorithm& algorithm : catalogue().algorithms()) {
    const BoundAlgorithm bound = algorithm.on(request, on);
    for (const Config& config : bound.legal()) visit(bound, config);
  }
}

TEST(ConvDescriptors, GiveEqualSourcesForEqualKeys) {
  for (const std::string& line : requests) {
    const Request request = Request::parse(line);
    const Request again = Request::parse(request.key());
    int number = 0;
    for_each_legal_variant(request, target(), [&](const BoundAlgorithm& bound, const Config& config) {
      if (number++ % 101 != 0) return;
      const Program program = bound.program(catalogue().library(), config);
      EXPECT_EQ(program, bound.algorithm().on(again, target()).program(catalogue().library(), config));
    });
    EXPECT_GT(number, 0) << line;
  }
}

TEST(ConvDescriptors, KeepLegalConfigurationsWithinTheLimits) {
  for (const std::string& line : requests) {
    const Request request = Request::parse(line);
    for (const Target& on : {target(7, 5), target(9, 0)}) {
      int number = 0;
      for_each_legal_variant(request, on, [&](const BoundAlgorithm& bound, const Config& config) {
        if (number++ % 53 != 0) return;
        const Program program = bound.program(catalogue().library(), config);
        for (const Step& step : program.steps) {
          const auto& launch = std::get<Launch>(step);
          const unsigned threads = launch.block[0] * launch.block[1] * launch.block[2];
          EXPECT_LE(threads, 1024u) << bound.algorithm().name() << " " << config.print();
          EXPECT_EQ(threads % 32, 0u) << bound.algorithm().name() << " " << config.print();
          EXPECT_LE(launch.grid[0].at(request.batch()), int64_t{0x7fffffff});
          EXPECT_LE(launch.grid[1].at(request.batch()), 65535);
          EXPECT_LE(launch.grid[2].at(request.batch()), 65535);
          EXPECT_NE(program.sources[launch.source].code.find(" " + launch.entry + "("), std::string::npos);
        }
        EXPECT_TRUE(program.deterministic);
      });
    }
  }
}

TEST(ConvDescriptors, StartNothingForAnEmptyDynamicBatch) {
  const Request request = Request::parse(requests[6]);
  for_each_legal_variant(request, target(), [&](const BoundAlgorithm& bound, const Config& config) {
    const Program program = bound.program(catalogue().library(), config);
    // Weights are prepared whatever the batch.
    for (size_t i = program.preparation.steps; i < program.steps.size(); ++i) {
      EXPECT_EQ(std::get<Launch>(program.steps[i]).grid[0].at(0), 0) << bound.algorithm().name();
    }
  });
}

TEST(ConvDescriptors, ComputeAllClassesOfTapsInOneLaunch) {
  const Request request = Request::parse("conv_backward_data dy=f16:2x64x9x9 w=f16:64x32x3x3 pad=1 stride=2,3");
  for_each_legal_variant(request, target(), [&](const BoundAlgorithm& bound, const Config& config) {
    const Program program = bound.program(catalogue().library(), config);
    const auto packs =
        static_cast<size_t>(std::count_if(program.steps.begin(), program.steps.end(), [](const Step& step) {
          return std::get<Launch>(step).entry.starts_with("pack_");
        }));
    const bool adds_parts = packs == 0 && program.workspace_bytes > 0;
    EXPECT_EQ(program.sources.size(), 1 + packs) << bound.algorithm().name();
    EXPECT_EQ(program.steps.size(), packs + (adds_parts ? 2 : 1)) << bound.algorithm().name();
  });
}

TEST(ConvDescriptors, UseWideOffsetsForLargeTensors) {
  const auto source = [](const std::string& line) {
    const Request request = Request::parse(line);
    return catalogue().program(request, target(), {"conv_simple", Config({{"THREADS", 128}})}).sources.front().code;
  };
  const std::string filter = " w=f32:1x64x1x1:nchw";
  EXPECT_THAT(source("conv_forward x=f32:64x64x512x512:nchw" + filter), HasSubstr("using Index = int;"));
  EXPECT_THAT(source("conv_forward x=f32:128x64x512x512:nchw" + filter), HasSubstr("using Index = long long;"));
  EXPECT_THAT(source("conv_forward x=f32:1x64x8x8:nchw" + filter + " pad=1073741824,0"),
              HasSubstr("using Index = long long;"));
}

std::string reason(const std::string& algorithm, const std::string& line) {
  return catalogue().find(algorithm)->on(Request::parse(line), target()).refusal().value_or("");
}

// A stride may be as large as 2^31 - 1, and the window as the tensor.
TEST(ConvDescriptors, LoopOverTheElementsOfDxWhateverTheStride) {
  const std::string data = "conv_backward_data dy=f32:1x1x1x1 ";
  for (const char* rest : {"w=f32:1x1x1x1 dx=f32:1x1x3x3 stride=2147483647",
                           "w=f32:1x1x1x3 dx=f32:1x1x1x1000000 stride=1,2147483647 dilation=1,499999",
                           "w=f32:1x1x1x1000000000 dx=f32:1x1x1x1000000000 stride=1,2147483647"}) {
    const Request request = Request::parse(data + rest);
    for (const Algorithm& algorithm : catalogue().algorithms()) {
      if (algorithm.operation() == request.operation) (void)algorithm.on(request, target()).refusal();
    }
  }
  const std::string point = data + "w=f32:1x1x1x1 stride=2147483647 dx=f32:1x1x";
  EXPECT_EQ(reason("conv_backward_data_implicit_gemm", point + "3x3"), "");
  EXPECT_THAT(reason("conv_backward_data_implicit_gemm", point + "32x32"), HasSubstr("more than 64 classes of taps"));
}

TEST(ConvDescriptors, SayWhyTheyDoNotApply) {
  const std::string strided = "conv_forward x=f32:1x4x5x5:200,1,30,5 w=f32:4x4x3x3:nchw";
  const std::string zero = "conv_forward x=f32:1x4x5x5:nchw w=f32:4x4x3x3:nchw alpha=0";
  const std::string plain = "conv_forward x=f32:1x4x5x5:nchw w=f32:4x4x3x3:nchw";
  EXPECT_EQ(reason("conv_simple", strided), "");
  EXPECT_EQ(reason("conv_implicit_gemm", strided), "");
  EXPECT_THAT(reason("conv_depthwise_nhwc", "conv_forward x=f32:1x4x5x5:nchw w=f32:4x1x3x3:nchw groups=4"),
              HasSubstr("pixels of x stand closer together"));
  EXPECT_THAT(reason("conv_direct", zero), HasSubstr("alpha is zero"));
  EXPECT_THAT(reason("conv_1x1", plain), HasSubstr("not 1x1"));
  EXPECT_THAT(reason("conv_depthwise_nchw", plain), HasSubstr("not depthwise"));
  EXPECT_THAT(reason("conv_implicit_gemm", "conv_forward x=f32:1x4x5x5:nchw w=f32:4x4x1x1:nchw"),
              HasSubstr("conv_1x1"));
  for (const char* products : {"conv_implicit_gemm", "conv_implicit_gemm_splitk"}) {
    EXPECT_THAT(reason(products, "conv_forward x=f32:1x4x5x5 w=f32:4x1x3x3 groups=4"), HasSubstr("it is depthwise"));
    EXPECT_EQ(reason(products, "conv_forward x=f32:1x4x5x5 w=f32:8x1x3x3 groups=4"), "");
    EXPECT_EQ(reason(products, "conv_forward x=f32:1x4x25x25 w=f32:4x1x13x13 groups=4"), "") << "no depthwise kernel";
  }
}

std::string best(const std::string& line) {
  return catalogue().heuristic(Request::parse(line), target(), h200).algorithm;
}

TEST(ConvEstimates, PreferTheKernelThatWasMadeForTheShape) {
  EXPECT_EQ(best("conv_backward_filter x=f32:4x64x224x224 dy=f32:4x1x224x224 dw=f32:1x64x3x3 pad=1"),
            "conv_backward_filter_depthwise_nchw")
      << "each channel of x is read once";

  EXPECT_EQ(best("conv_forward x=f32:64x144x56x56:nchw w=f32:144x1x3x3:nchw groups=144 pad=1,1"),
            "conv_depthwise_nchw");
  EXPECT_EQ(best("conv_forward x=f32:64x144x56x56:nhwc w=f32:144x1x3x3:nhwc groups=144 pad=1,1"),
            "conv_depthwise_nhwc");
  EXPECT_EQ(best("conv_forward x=f32:64x256x28x28:nchw w=f32:256x256x1x1:nchw"), "conv_1x1");
  EXPECT_EQ(best("conv_forward x=f32:64x512x28x28:nhwc w=f32:512x512x3x3:nhwc pad=1,1"), "conv_implicit_gemm");
  EXPECT_EQ(best("conv_forward x=f32:1x512x7x7:nchw w=f32:512x512x3x3:nchw pad=1,1"), "conv_implicit_gemm_splitk");
  // Taps of different regions side by side in w: columns read each sector once.
  EXPECT_EQ(best("local_conv_backward_data dy=f32:8x256x14x14:nchw w=f32:50176x256x3x3:nchw pad=1"),
            "local_conv_backward_data_columns");
  EXPECT_EQ(best("local_conv_backward_data dy=f32:8x256x14x14:nhwc w=f32:50176x256x3x3:nhwc pad=1"),
            "local_conv_backward_data_implicit_gemm");
}

// Ratio of the seconds with a thread of 4x8 sums to those with one of 4x4.
double wide_thread_cost(int filters) {
  const Request request = Request::parse(fmt::format("conv_forward x=f32:64x64x28x28 w=f32:{}x64x3x3 pad=1", filters));
  const auto seconds = [&](const char* thread_n) {
    const std::string tile = "BLOCK_K=9,BLOCK_M=64,BLOCK_N=32,SLICES=1,STAGES=1,THREAD_M=4,THREAD_N=";
    const Choice choice{"conv_implicit_gemm", Config::parse(tile + thread_n)};
    return catalogue().estimate(request, target(), h200, choice).seconds;
  };
  return seconds("8") / seconds("4");
}

TEST(ConvEstimates, LeaveOutSumsBehindTheLastFilter) {
  EXPECT_LT(wide_thread_cost(4), 0.8 * wide_thread_cost(32)) << "the second four of a thread's eight are never stored";
}

double seconds_of(const std::string& request, const char* algorithm, const char* config) {
  return catalogue().estimate(Request::parse(request), target(), h200, {algorithm, Config::parse(config)}).seconds;
}

// With 128 channels the pixels of a filter's taps are multiples of 128 bytes apart; with 129 they are not.
TEST(ConvEstimates, CountConflictsOfBanksWhereLanesAreTaps) {
  const auto seconds = [](int channels) {
    const std::string request = fmt::format(
        "conv_backward_filter x=f32:8x{0}x28x28:nhwc dy=f32:8x128x28x28:nhwc dw=f32:128x{0}x3x3:nhwc pad=1", channels);
    return seconds_of(request, "conv_backward_filter_simple", "THREADS=64");
  };
  EXPECT_GT(seconds(128), 1.5 * seconds(129));
}

// Lanes that are neighbours in dw along one axis alone read a word each: all of one bank, 128 bytes apart, or of banks
// of their own, 132 bytes apart.
TEST(ConvEstimates, FindTheLanesOfAFilterGradientAlongEveryAxis) {
  struct Axis {
    const char *name, *same_bank, *own_banks;
  };
  const std::vector<Axis> axes = {
      {"columns of x", "x=f32:64x8x8x1000 dy=f32:64x512x8x8 dw=f32:512x8x1x32 dilation=1,32",
       "x=f32:64x8x8x1031 dy=f32:64x512x8x8 dw=f32:512x8x1x32 dilation=1,33"},
      {"rows of x", "x=f32:64x8x1000x11 dy=f32:64x512x8x11 dw=f32:512x8x32x1 dilation=32,1",
       "x=f32:64x8x1031x11 dy=f32:64x512x8x11 dw=f32:512x8x32x1 dilation=33,1"},
      {"planes of x", "x=f32:64x8x1000x1x11 dy=f32:64x512x8x1x11 dw=f32:512x8x32x1x1 dilation=32,1,1",
       "x=f32:64x8x1031x1x11 dy=f32:64x512x8x1x11 dw=f32:512x8x32x1x1 dilation=33,1,1"},
      {"channels of x in f16", "x=f16:64x256x8x8 dy=f16:64x512x8x8 dw=f16:512x256x1x1",
       "x=f16:64x256x6x11 dy=f16:64x512x6x11 dw=f16:512x256x1x1"},
      {"filters in dy", "x=f32:64x1x4x8 dy=f32:64x131072x4x8 dw=f32:131072x1x1x1",
       "x=f32:64x1x3x11 dy=f32:64x131072x3x11 dw=f32:131072x1x1x1"},
      {"filters in dy of f16", "x=f16:64x1x8x8 dy=f16:64x131072x8x8 dw=f16:131072x1x1x1",
       "x=f16:64x1x6x11 dy=f16:64x131072x6x11 dw=f16:131072x1x1x1"},
  };
  for (const Axis& axis : axes) {
    const auto seconds = [](const char* operands) {
      return seconds_of(std::string("conv_backward_filter ") + operands, "conv_backward_filter_simple", "THREADS=64");
    };
    EXPECT_GT(seconds(axis.same_bank), 3 * seconds(axis.own_banks)) << axis.name;
  }
}

// Tiles of neighbouring lanes begin two pixels apart: 1920 bytes, a multiple of 128, or 1952.
TEST(ConvEstimates, CountConflictsOfBanksWhereLanesArePixels) {
  const auto seconds = [](int channels) {
    const std::string request =
        fmt::format("conv_forward x=bf16:64x{0}x28x28:nhwc w=bf16:{0}x1x11x1:nhwc pad=5,0 groups={0}", channels);
    return seconds_of(request, "conv_depthwise_nhwc", "BLOCK_K=32,THREADS=256,TILE_P=1,TILE_Q=2,VECTOR=8") / channels;
  };
  EXPECT_GT(seconds(480), 1.05 * seconds(488));
}

// The elements of a channel's filter lie on one bank each in its turn: 25 of 5x5 for each of the block's channels.
TEST(ConvEstimates, CountConflictsOfBanksWhereFiltersAreLaidOut) {
  const auto seconds = [](const char* config) {
    return seconds_of("conv_forward x=f16:32x1152x7x7:nhwc w=f16:1152x1x5x5:nhwc pad=2 groups=1152",
                      "conv_depthwise_nhwc", config);
  };
  EXPECT_GT(seconds("BLOCK_K=128,THREADS=64,TILE_P=1,TILE_Q=1,VECTOR=2"),
            6 * seconds("BLOCK_K=32,THREADS=256,TILE_P=1,TILE_Q=1,VECTOR=2"))
      << "one pixel for each block's filters, or 16";
}

// A tile of 7 of 7 columns knows which of them are inside, and leaves out 6 of its 35 products; one of 7 of 14
// multiplies padding.
TEST(ConvEstimates, CountPaddingThatIsMultiplied) {
  const auto seconds_of_width = [](int width) {
    return seconds_of(
        fmt::format("conv_forward x=f16:512x1152x7x{0}:nhwc w=f16:1152x1x5x5:nhwc pad=2 groups=1152", width),
        "conv_depthwise_nhwc", "BLOCK_K=32,THREADS=256,TILE_P=1,TILE_Q=7,VECTOR=2");
  };
  EXPECT_GT(seconds_of_width(14), 2.05 * seconds_of_width(7));
}

// A tap is read once for all outputs of a row.
TEST(ConvEstimates, CountTapsThatNeighboursShare) {
  const auto seconds = [](const char* config) {
    return seconds_of("conv_forward x=bf16:32x96x56x56:nhwc w=bf16:96x1x7x7:nhwc pad=3 groups=96",
                      "conv_depthwise_nhwc", config);
  };
  EXPECT_GT(seconds("BLOCK_K=32,THREADS=128,TILE_P=4,TILE_Q=1,VECTOR=2"),
            2 * seconds("BLOCK_K=32,THREADS=128,TILE_P=1,TILE_Q=7,VECTOR=2"));
}

TEST(ConvEstimates, CountWarpsThatHaveColumns) {
  const auto seconds = [](const char* config) {
    return seconds_of("conv_backward_data dy=bf16:1x768x7x7:nhwc w=bf16:768x1x7x7:nhwc pad=3 groups=768",
                      "conv_backward_data_direct", config);
  };
  EXPECT_LT(seconds("THREADS=256,TILE_K=1,TILE_P=2"), 1.1 * seconds("THREADS=64,TILE_K=1,TILE_P=2"))
      << "28 columns are one warp";
}

// A column of x is waited for, the longer the fewer are on their way. By the H200's clock 7.8 and 29.8 us for one tap,
// with steps of eight columns of one row, or of one column of eight rows; 31.9 and 34.0 us for nine taps, which have
// three columns anyway.
TEST(ConvEstimates, CountColumnsThatLoadAhead) {
  const auto seconds = [](const char* filters, const char* config) {
    return seconds_of(fmt::format("conv_forward x=f32:1x64x12x12 w=f32:8x64x{}", filters), "conv_direct", config);
  };
  EXPECT_GT(seconds("1x1", "THREADS=64,TILE_K=4,TILE_P=8"), 3 * seconds("1x1", "THREADS=64,TILE_K=4,TILE_P=1"));
  EXPECT_LT(seconds("3x3", "THREADS=64,TILE_K=4,TILE_P=2"), 1.2 * seconds("3x3", "THREADS=64,TILE_K=4,TILE_P=1"));
}

TEST(ConvEstimates, CountNoProductsOfPixelsThatNoTapReaches) {
  const auto seconds = [](const char* request) {
    const Choice choice{"conv_backward_data_implicit_gemm",
                        Config::parse("BLOCK_K=8,BLOCK_M=64,BLOCK_N=64,SLICES=1,STAGES=1,THREAD_M=4,THREAD_N=4")};
    return catalogue().estimate(Request::parse(request), target(), h200, choice).seconds;
  };
  const double all = seconds("conv_backward_data dy=f32:8x512x56x56 w=f32:512x512x1x1 dx=f32:8x512x56x56");
  const double quarter = seconds("conv_backward_data dy=f32:8x512x28x28 w=f32:512x512x1x1 dx=f32:8x512x56x56 stride=2");
  EXPECT_LT(quarter, 0.3 * all);
}

TEST(ConvEstimates, LeaveOutWhatIsMadeOfConstantWeights) {
  const std::string line = "conv_forward x=f32:1x64x7x7 w=f32:64x64x3x3 pad=1 fast";
  const auto estimates = [&](const std::string& request) {
    std::map<std::string, double> of;
    for (const Candidate& candidate : catalogue().candidates(Request::parse(request), target(), h200).ranked) {
      of[candidate.choice.algorithm + " " + candidate.choice.config.print()] = candidate.estimate.seconds;
    }
    return of;
  };
  const std::map<std::string, double> whole = estimates(line), prepared = estimates(line + " constant_weights");
  ASSERT_EQ(prepared.size(), whole.size());
  for (const auto& [variant, seconds] : prepared) {
    if (variant.find("winograd") != variant.npos) {
      EXPECT_LT(seconds, whole.at(variant)) << variant;
    } else {
      EXPECT_EQ(seconds, whole.at(variant)) << variant;
    }
  }
}

TEST(ConvEstimates, NeverGoBelowTheRoofline) {
  for (const std::string& line : requests) {
    const Request request = Request::parse(line);
    if (request.blend.alpha == Scale::zero) continue;  // Its work is not the operation's.
    const double roofline = roofline_seconds(request, target(), h200);
    for (const Candidate& candidate : catalogue().candidates(request, target(), h200).ranked) {
      // Outputs that see padding need less than the roofline counts.
      EXPECT_GT(candidate.estimate.seconds, 0.8 * roofline) << line << " " << candidate.choice.config.print();
    }
  }
}

}  // namespace
}  // namespace kiln::conv_descriptors_test
