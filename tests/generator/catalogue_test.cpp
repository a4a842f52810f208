#include "kiln/generator/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/base/error.h"
#include "kiln/generator/roofline.h"

namespace kiln::catalogue_test {
namespace {

using testing::HasSubstr;

struct Tiling {
  int tile, rows;
};

const Target target{Arch::of(9, 0), 13, 0};
const DeviceFigures device{132, 1.98e9, 4.8e12, 60 << 20};
const Request request = Request::parse("softmax_forward x=f32:64x8");

// Predicts that larger tiles are faster, so that the ranking is known.
Algorithm tiled(const std::string& name, double seconds, const std::string& operation = "softmax_forward") {
  return describe<Tiling>(name, operation, "op/k.cu")
      .param("TILE", &Tiling::tile, {16, 32})
      .param("ROWS", &Tiling::rows, {4, 32})
      .rule("ROWS divides TILE", [](const Tiling& t, const Request&, const Target&) { return t.tile % t.rows == 0; })
      .applies([](const Request& r, const Target&) -> std::optional<std::string> {
        if (r.at("x").dtype != DType::f32) return "x is not f32";
        return std::nullopt;
      })
      .program([](const Tiling& t, const Request&, const Target&, const Emitter& emit) {
        Program program;
        program.sources = {emit.source(Prelude().constant("TILE", t.tile).constant("ROWS", t.rows))};
        return program;
      })
      .estimate([seconds](const Tiling& t, const Request&, const Target&, const DeviceFigures&) {
        Estimate estimate;
        estimate.seconds = seconds / t.tile;
        return estimate;
      });
}

SourceLibrary library(const std::string& kernel = "int k();\n") {
  return SourceLibrary({{"lib/types.cuh", "using f32 = float;\n"}, {"op/k.cu", kernel}, {"op/k.cpp", "descriptor"}});
}

Catalogue catalogue() {
  return Catalogue(library(), {tiled("slow", 2.0), tiled("quick", 1.0)});
}

TEST(Catalogue, KnowsEveryLegalPointOfAnAlgorithm) {
  std::vector<std::string> points;
  for (const Config& config : tiled("slow", 2.0).on(request, target).legal()) points.push_back(config.print());
  EXPECT_THAT(points, testing::UnorderedElementsAre("ROWS=4,TILE=16", "ROWS=4,TILE=32", "ROWS=32,TILE=32"));
}

TEST(Catalogue, RanksEveryLegalCandidateByItsEstimate) {
  const Candidates all = catalogue().candidates(request, target, device);
  std::vector<std::string> names;
  for (const Candidate& candidate : all.ranked) {
    names.push_back(candidate.choice.algorithm + " " + candidate.choice.config.print());
  }
  EXPECT_THAT(names, testing::ElementsAre("quick ROWS=4,TILE=32", "quick ROWS=32,TILE=32", "quick ROWS=4,TILE=16",
                                          "slow ROWS=4,TILE=32", "slow ROWS=32,TILE=32", "slow ROWS=4,TILE=16"));
  EXPECT_EQ(catalogue().heuristic(request, target, device).algorithm, "quick");
}

TEST(Catalogue, SaysWhyAnAlgorithmDoesNotApply) {
  const Request half = Request::parse("softmax_forward x=f16:64x8");
  const Candidates all = catalogue().candidates(half, target, device);
  EXPECT_TRUE(all.ranked.empty());
  ASSERT_EQ(all.refused.size(), 2u);
  EXPECT_EQ(all.refused[0].reason, "x is not f32");
  try {
    catalogue().heuristic(half, target, device);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("slow: x is not f32"));
  }
}

TEST(Catalogue, RefusesChoicesFromOutsideWithTheReason) {
  const auto why = [](const std::string& algorithm, const std::string& config, const Request& r) {
    return catalogue().refusal(r, target, {algorithm, Config::parse(config)}).value_or("legal");
  };
  EXPECT_EQ(why("quick", "ROWS=4,TILE=32", request), "legal");
  EXPECT_THAT(why("gone", "-", request), HasSubstr("no algorithm gone"));
  EXPECT_THAT(why("quick", "ROWS=32,TILE=16", request), HasSubstr("ROWS divides TILE"));
  EXPECT_THAT(why("quick", "ROWS=4,TILE=32", Request::parse("pool_forward x=f32:1x1x4x4 mode=max window=2")),
              HasSubstr("serves softmax_forward"));
  EXPECT_THROW(catalogue().program(request, target, {"quick", Config::parse("ROWS=32,TILE=16")}), Error);
}

TEST(Catalogue, EqualKeysGiveByteEqualSources) {
  const Choice choice{"quick", Config::parse("ROWS=4,TILE=32")};
  const Program a = catalogue().program(request, target, choice);
  const Program b = catalogue().program(Request::parse(request.key()), target, choice);
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.digest(), b.digest());
  EXPECT_THAT(a.sources[0].code, HasSubstr("constexpr int TILE = 32;"));
  EXPECT_NE(a.digest(), catalogue().program(request, target, {"quick", Config::parse("ROWS=4,TILE=16")}).digest());
}

std::string digest_of(const Algorithm& algorithm, const SourceLibrary& library) {
  CodeDigests codes(library);
  return algorithm.digest(codes);
}

TEST(Catalogue, DigestChangesWithTheTemplate) {
  const Algorithm algorithm = tiled("quick", 1.0);
  EXPECT_EQ(digest_of(algorithm, library()), digest_of(algorithm, library()));
  EXPECT_NE(digest_of(algorithm, library()), digest_of(algorithm, library("int edited();\n")));
  EXPECT_NE(digest_of(algorithm, library()), digest_of(tiled("slow", 1.0), library()));
}

TEST(Catalogue, DigestChangesWithWhatDescriptorsShare) {
  const auto with_shared = [](const std::string& shared) {
    auto files = library().files();
    files["op/k.cpp"] = "#include \"op/tiling.h\"\n#include \"kiln/generator/algorithm.h\"\n";
    files["op/tiling.h"] = "struct Tiling;\n";
    files["op/tiling.cpp"] = shared;
    return digest_of(tiled("quick", 1.0), SourceLibrary(files));
  };
  EXPECT_EQ(with_shared("int tile = 1;\n"), with_shared("int tile = 1;\n"));
  EXPECT_NE(with_shared("int tile = 1;\n"), with_shared("int tile = 2;\n"));
}

TEST(Catalogue, RefusesTwoAlgorithmsOfOneName) {
  EXPECT_THROW(Catalogue(library(), {tiled("same", 1.0), tiled("same", 2.0)}), Error);
}

TEST(Catalogue, RefusesAnAlgorithmOfNoOperation) {
  try {
    (void)Catalogue(library(), {tiled("tiled", 1.0, "softmax_froward")});
    FAIL() << "it was taken";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "tiled is an algorithm of softmax_froward, which is no operation");
  }
}

TEST(Roofline, IsTheLargerOfArithmeticAndTraffic) {
  const Request conv = Request::parse("conv_forward x=f32:32x256x56x56 w=f32:256x256x3x3 pad=1");
  EXPECT_NEAR(roofline_seconds(conv, target, device), 2.0 * 32 * 256 * 56 * 56 * 256 * 9 / (2.0 * 128 * 132 * 1.98e9),
              1e-9);
  const Roofline bound = roofline(conv, target.arch, device);
  EXPECT_DOUBLE_EQ(bound.flops, 2.0 * 32 * 256 * 56 * 56 * 256 * 9);
  EXPECT_DOUBLE_EQ(bound.bytes, 4.0 * (2 * 32 * 256 * 56 * 56 + 256 * 256 * 9));
  const Request fast = Request::parse("conv_forward x=f32:32x256x56x56 w=f32:256x256x3x3 pad=1 fast");
  EXPECT_DOUBLE_EQ(roofline_seconds(fast, target, device), roofline_seconds(conv, target, device) / 4);
  const Request softmax = Request::parse("softmax_forward x=f32:65536x1024");
  EXPECT_NEAR(roofline_seconds(softmax, target, device), 2.0 * 65536 * 1024 * 4 / 4.8e12, 1e-9);
}

TEST(Roofline, CountsTensorCoresWhereTheTypeHasThem) {
  const auto of = [](const std::string& line, int major = 9, int minor = 0) {
    return roofline(Request::parse(line), Arch::of(major, minor), device);
  };
  const double f32 = of("gemm a=f32:4096x4096 b=f32:4096x4096").arithmetic();
  EXPECT_EQ(of("gemm a=f32:4096x4096 b=f32:4096x4096").math, MathClass::f32_lanes);
  EXPECT_DOUBLE_EQ(of("gemm a=f16:4096x4096 b=f16:4096x4096").arithmetic(), f32 / 16);
  EXPECT_DOUBLE_EQ(of("gemm a=bf16:4096x4096 b=bf16:4096x4096").arithmetic(), f32 / 16);
  EXPECT_DOUBLE_EQ(of("gemm a=f32:4096x4096 b=f32:4096x4096 tf32").arithmetic(), f32 / 8);
  EXPECT_EQ(of("gemm a=f16:4096x4096 b=bf16:4096x4096").math, MathClass::f32_lanes) << "neither holds the other";
  EXPECT_EQ(of("gemm a=bf16:4096x4096 b=bf16:4096x4096", 7, 5).math, MathClass::f32_lanes);
  EXPECT_EQ(of("gemm a=f16:4096x4096 b=f16:4096x4096", 7, 5).math, MathClass::tensor_f16);
  EXPECT_EQ(of("gemm a=f32:4096x4096 b=f32:4096x4096 tf32", 7, 5).math, MathClass::f32_lanes);
  EXPECT_EQ(of("gemm a=f8e4m3:4096x4096 b=f8e4m3:4096x4096").math, MathClass::tensor_fp8);
  EXPECT_EQ(of("gemm a=f8e5m2:4096x4096 b=f8e4m3:4096x4096").math, MathClass::tensor_fp8) << "one of each";
  EXPECT_EQ(of("gemm a=f8e5m2:4096x4096 b=f8e5m2:4096x4096", 8, 0).math, MathClass::tensor_f16) << "which holds them";
  EXPECT_EQ(of("gemm a=u8:4096x4096 b=i8:4096x4096").math, MathClass::tensor_int8);
  EXPECT_EQ(of("gemm a=f16:4096x4096 b=i8:4096x4096").math, MathClass::tensor_f16) << "weights alone in 8 bits";
  EXPECT_EQ(of("gemm a=f8e4m3:4096x4096 b=bf16:4096x4096").math, MathClass::tensor_f16);
  EXPECT_EQ(of("gemm a=f8e4m3:4096x4096 b=f32:4096x4096").math, MathClass::f32_lanes) << "without tf32";
  EXPECT_EQ(of("gemm a=f8e4m3:4096x4096 b=i8:4096x4096").math, MathClass::tensor_f16) << "which holds both";
  EXPECT_EQ(of("softmax_forward x=f16:64x1000").math, MathClass::f32_lanes);
  for (const char* line :
       {"conv_forward x=f16:1x8x9x9 w=f16:8x8x3x3", "conv_backward_data dy=f16:1x8x7x7 w=f16:8x8x3x3",
        "conv_backward_filter x=f16:1x8x9x9 dy=f16:1x8x7x7 dw=f16:8x8x3x3"}) {
    EXPECT_EQ(of(line).math, MathClass::tensor_f16) << line;
  }
}

TEST(Arch, HasARateForEachClassOfArithmetic) {
  const auto rates = [](int major, int minor) {
    std::vector<int> all;
    for (const MathClass math : {MathClass::f32_lanes, MathClass::tensor_tf32, MathClass::tensor_f16,
                                 MathClass::tensor_fp8, MathClass::tensor_int8})
      all.push_back(Arch::of(major, minor).products_per_clock(math));
    return all;
  };
  EXPECT_EQ(rates(7, 5), (std::vector{64, 0, 512, 0, 1024}));
  EXPECT_EQ(rates(8, 0), (std::vector{64, 512, 1024, 0, 2048}));
  EXPECT_EQ(rates(8, 9), (std::vector{128, 256, 512, 1024, 1024}));
  EXPECT_EQ(rates(9, 0), (std::vector{128, 1024, 2048, 4096, 4096}));
  EXPECT_EQ(math_class(DType::i8, {}, Arch::of(7, 5)), MathClass::tensor_int8);
}

TEST(Count, RoundsUp) {
  EXPECT_EQ((Count{5, 0, 2}.at(9)), 3);
  EXPECT_EQ((Count{0, 7, 4}.at(3)), 6);
  EXPECT_EQ((Count{0, 7, 4}.at(0)), 0);
}

// A Problem may be costly to make: it is made once for all questions about the request.
TEST(Variants, MakeOneProblemOfARequestForAllQuestions) {
  int problems = 0, programs = 0;
  const auto make_problem = [&](const Request& of) {
    ++problems;
    return of.at("x").elements();
  };
  std::vector<Algorithm> algorithms;
  algorithms.push_back(
      describe<Tiling>("counted", "softmax_forward", "quick.cu", make_problem)
          .trusted()
          .param("TILE", &Tiling::tile, {16, 32, 64})
          .rule("TILE fits", [](const Tiling& t, const int64_t& elements, const Target&) { return t.tile <= elements; })
          .program([&](const Tiling&, const int64_t&, const Target&, const Emitter&) {
            ++programs;
            return Program{};
          })
          .estimate([](const Tiling& t, const int64_t& elements, const Target&, const DeviceFigures&) {
            return Estimate{.seconds = static_cast<double>(elements + t.tile)};
          }));
  const Catalogue counted(SourceLibrary({{"quick.cu", ""}, {"quick.cpp", ""}, {"lib/types.cuh", ""}}), algorithms);
  const Request eight = Request::parse("softmax_forward x=f32:4x8");  // 32 elements
  Variants variants = counted.on(eight, target);
  EXPECT_EQ(variants.candidates(device).ranked.size(), 2u);
  EXPECT_EQ(variants.refusal({"counted", Config::parse("TILE=64")}), "TILE fits (TILE=64): legal with TILE=16 or 32");
  const Choice choice{"counted", Config::parse("TILE=32")};
  EXPECT_EQ(variants.estimate(choice, device).seconds, 64);
  EXPECT_EQ(programs, 0) << "nobody has asked for one";
  LazyProgram program(variants, choice);
  EXPECT_EQ(program.get(), program.get());
  EXPECT_EQ(programs, 1);
  EXPECT_EQ(problems, 1);
}

TEST(KeyedRequest, HasTheRequestAndItsKey) {
  const Request plain = Request::parse("softmax_forward x=f32:4x8");
  const KeyedRequest keyed = plain, copy = keyed;
  EXPECT_EQ(keyed.key(), plain.key());
  EXPECT_EQ(*copy, plain);
  EXPECT_EQ(&copy.key(), &keyed.key()) << "printed once";
}

}  // namespace
}  // namespace kiln::catalogue_test
