#include "kiln/generator/specialise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "kiln/base/error.h"

namespace kiln::specialise_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

SourceLibrary library() {
  return SourceLibrary({{"lib/types.cuh", "#pragma once\nusing f32 = float;\n"},
                        {"lib/fp8.cuh", "struct f8e4m3;\n"},
                        {"op/codes.cu", "template <long long CODE>\n#include \"types/by_code\"\n"},
                        {"lib/a.cuh", "#pragma once\n#include \"lib/b.cuh\"\nint a();\n"},
                        {"lib/b.cuh", "int b();\n"},
                        {"lib/loop.cuh", "#include \"lib/loop.cuh\"\n"},
                        {"op/k.cu", "// kernel\n#include \"lib/a.cuh\"\n#include \"lib/b.cuh\"\nint k();\n"},
                        {"op/classes.cu", "#include \"lib/b.cuh\"\n#include \"per_class/lib/a.cuh\"\nint k();\n"},
                        {"op/bad.cu", "#include \"lib/none.cuh\"\n"},
                        {"op/loop.cu", "#include \"lib/loop.cuh\"\n"}});
}

TEST(Specialise, InlinesEachPieceOnceAfterTypesAndParameters) {
  const std::string source = specialise(library(), "op/k.cu", Prelude().constant("TILE", 32), "key\nname");
  EXPECT_EQ(source,
            "// key\n// name\n// ---- lib/types.cuh\nusing f32 = float;\n// ---- parameters\nconstexpr int TILE = 32;\n"
            "// ---- op/k.cu\n// kernel\n// ---- lib/a.cuh\n// ---- lib/b.cuh\nint b();\nint a();\nint k();\n");
}

TEST(Specialise, RepeatsForEachClassWhatDoesNotStandAboveIt) {
  const std::vector<Prelude> classes = {Prelude().constant("C", 8).constant("TAPS", 4).constant("K", 2),
                                        Prelude().constant("C", 8).constant("TAPS", 1).constant("K", 2)};
  const std::string source = specialise(library(), "op/classes.cu", Prelude::of_classes(classes), "key");
  EXPECT_EQ(source,
            "// key\n// ---- lib/types.cuh\nusing f32 = float;\n// ---- parameters\nconstexpr int CLASSES = 2;\n"
            "constexpr int C = 8;\nconstexpr int K = 2;\n// ---- op/classes.cu\n// ---- lib/b.cuh\nint b();\n"
            "namespace class_0 {\nconstexpr int CLASS = 0;\nconstexpr int TAPS = 4;\n// ---- lib/a.cuh\nint a();\n"
            "}  // namespace class_0\n"
            "namespace class_1 {\nconstexpr int CLASS = 1;\nconstexpr int TAPS = 1;\n// ---- lib/a.cuh\nint a();\n"
            "}  // namespace class_1\n"
            "#define FOR_EACH_CLASS(DO) DO(class_0) DO(class_1)\nint k();\n");
  EXPECT_THROW(specialise(library(), "op/classes.cu", Prelude(), ""), Error);
}

TEST(Specialise, TakesClassesThatDeclareTheSameNames) {
  const Prelude one = Prelude().constant("C", 8).flag("PADDED", false);
  const auto of_classes = [&](const Prelude& other) { return Prelude::of_classes({one, other}); };
  EXPECT_THAT(of_classes(Prelude().flag("C", true).flag("PADDED", false)).class_texts(),
              ElementsAre("constexpr int C = 8;\n", "constexpr bool C = true;\n"));
  EXPECT_THROW(of_classes(Prelude().constant("C", 8)), Error);
  EXPECT_THROW(of_classes(Prelude().constant("C", 8).flag("PADDED", false).constant("K", 2)), Error);
  EXPECT_THROW(of_classes(Prelude().flag("PADDED", false).constant("C", 8)), Error);
}

TEST(Specialise, ClosureNamesEveryFileThatShapesTheKernel) {
  EXPECT_THAT(closure(library(), "op/k.cu"),
              ElementsAre("op/k.cu", "lib/a.cuh", "lib/b.cuh", "lib/types.cuh", "lib/fp8.cuh"));
  EXPECT_THAT(closure(library(), "op/classes.cu"),
              ElementsAre("op/classes.cu", "lib/b.cuh", "lib/a.cuh", "lib/types.cuh", "lib/fp8.cuh"));
}

// A source has the types beyond the basic ones where its prelude names one, and their codes then.
TEST(Specialise, AddsTheTypesThatAPreludeNames) {
  const std::string basic = specialise(library(), "op/codes.cu", Prelude().types("T", {DType::i8, DType::f16}), "");
  EXPECT_THAT(basic, HasSubstr("constexpr long long T[] = {4, 1};\n"));
  EXPECT_THAT(basic, HasSubstr("NthType<CODE, f32, f16, bf16, i32, i8, u8>::type;\n"));
  EXPECT_THAT(basic, Not(HasSubstr("lib/fp8.cuh")));
  for (const Prelude& prelude : {Prelude().types("T", {DType::f8e5m2}), Prelude().type("T", DType::f8e5m2),
                                 Prelude::of_classes({Prelude().constant("N", 1).type("T", DType::f8e5m2)})}) {
    const std::string text = specialise(library(), "op/codes.cu", prelude, "");
    EXPECT_THAT(text, HasSubstr("using f32 = float;\n// ---- lib/fp8.cuh\nstruct f8e4m3;\n// ---- parameters\n"));
    EXPECT_THAT(text, HasSubstr("NthType<CODE, f32, f16, bf16, i32, i8, u8, f8e4m3, f8e5m2>::type;\n"));
  }
  EXPECT_EQ(Prelude().types("T", {}).text(), "constexpr long long T[] = {0};\n");
}

TEST(Specialise, ReportsMissingFilesAndCycles) {
  EXPECT_THROW(specialise(library(), "op/bad.cu", Prelude(), ""), Error);
  EXPECT_THROW(specialise(library(), "op/loop.cu", Prelude(), ""), Error);
}

// Whatever stands around it, a line of a user template has the file and number that it was written under.
TEST(Specialise, NumbersTheLinesOfAUserTemplate) {
  const SourceLibrary library({{"lib/types.cuh", "#pragma once\nusing f32 = float;\n"},
                               {"lib/a.cuh", "#pragma once\n#include \"user/epilogue\"\nint a();\n"},
                               {"user/k.cu", "// kernel\n#include \"lib/a.cuh\"\n#include \"lib/a.cuh\"\nint k();"}});
  const Prelude prelude = Prelude().constant("TILE", 32).place("user/epilogue", "#line 1 \"user code\"\nint u();\n");
  EXPECT_EQ(specialise(library, "user/k.cu", prelude, "key"),
            "// key\n// ---- lib/types.cuh\n#line 1 \"lib/types.cuh\"\n#line 2 \"lib/types.cuh\"\nusing f32 = float;\n"
            "// ---- parameters\n#line 1 \"parameters\"\nconstexpr int TILE = 32;\n"
            "// ---- user/k.cu\n#line 1 \"k.cu\"\n// kernel\n"
            "// ---- lib/a.cuh\n#line 1 \"lib/a.cuh\"\n#line 2 \"lib/a.cuh\"\n"
            "#line 1 \"user code\"\nint u();\n#line 3 \"lib/a.cuh\"\nint a();\n"
            "#line 3 \"k.cu\"\n#line 4 \"k.cu\"\nint k();\n");
}

TEST(Prelude, WidensItsIndexTypesAlone) {
  const Prelude narrow = Prelude().constant("N", 7).index_type("Index", false).index_type("Position", true);
  const Prelude other = Prelude().constant("N", 7).index_type("Index", true).index_type("Position", true);
  EXPECT_EQ(Prelude(narrow).widen(Offsets::fitting).text(), narrow.text());
  EXPECT_EQ(Prelude(narrow).widen(Offsets::of_64_bits).text(), other.text());
  Prelude classes = Prelude::of_classes({narrow, other});
  EXPECT_THAT(classes.class_texts(), ElementsAre("using Index = int;\n", "using Index = long long;\n"));
  EXPECT_THAT(classes.widen(Offsets::of_64_bits).class_texts(), testing::Each("using Index = long long;\n"));
}

TEST(Prelude, WritesConstantsThatCudaCanRead) {
  Prelude prelude;
  prelude.constant("N", 7).constant("BIG", int64_t{1} << 40).flag("ON", true).array("A", {1, -2}).table("T", {0, 3});
  prelude.type("X", DType::bf16).index_type("Index", true);
  EXPECT_EQ(prelude.text(),
            "constexpr int N = 7;\nconstexpr long long BIG = 1099511627776LL;\nconstexpr bool ON = true;\n"
            "constexpr long long A[] = {1, -2};\n__constant__ int T[] = {0, 3};\nusing X = bf16;\nusing Index = long "
            "long;\n");
}

TEST(Prelude, LeavesExtentsOpen) {
  Prelude prelude;
  prelude.constant("N", 7).extent("C", 3).extent("BIG", int64_t{1} << 40).extents("A", {1, -2});
  prelude.extent_table("T", {5, 6}, 3);
  EXPECT_EQ(prelude.text(),
            "constexpr int N = 7;\nconstexpr int C = 3;\nconstexpr long long BIG = 1099511627776LL;\n"
            "constexpr long long A[] = {1, -2};\n__constant__ int T[] = {5, 6};\n");
  EXPECT_THAT(prelude.open_extents(), testing::IsEmpty());
  prelude.open();
  EXPECT_EQ(
      prelude.text(),
      "constexpr int N = 7;\n__constant__ OpenExtent C;\n__constant__ long long BIG;\n__constant__ long long A[2];\n"
      "__constant__ long long T[3];\n");
  EXPECT_THAT(prelude.open_extents(),
              ElementsAre(Extent{"C", {3, int32_t(0xAAAAAAAB), 2}, 4}, Extent{"BIG", {int64_t{1} << 40}, 8},
                          Extent{"A", {1, -2}, 8}, Extent{"T", {5, 6, 0}, 8}));
}

// As lib/open_extent.cuh divides.
uint32_t quotient_of(uint32_t value, const Extent& extent) {
  const auto multiplier = static_cast<uint32_t>(extent.values[1]);
  return static_cast<uint32_t>(uint64_t{2 * value} * multiplier >> 32) >> extent.values[2];
}

TEST(Prelude, GivesOpenExtentsTheirReciprocals) {
  const auto extent_of = [](int64_t value) { return Prelude().extent("E", value).open().open_extents().at(0); };
  constexpr uint32_t most = std::numeric_limits<int32_t>::max();
  std::vector<uint32_t> divisors{2,     3,     5,     6,        7,    9,        640,           641,
                                 65535, 65536, 65537, most - 1, most, 1u << 30, (1u << 30) + 1};
  std::mt19937 random(39);
  for (int i = 0; i < 10000; ++i) divisors.push_back(1 + random() % (most >> random() % 30));
  for (const uint32_t divisor : divisors) {
    const Extent extent = extent_of(divisor);
    const uint32_t whole = most / divisor * divisor;  // where a quotient that is too small or too large shows
    for (const uint32_t value : {0u, 1u, divisor - 1, divisor, std::min(most, 2 * divisor - 1), whole - 1, whole, most,
                                 uint32_t(random()) & most}) {
      ASSERT_EQ(quotient_of(value, extent), value / divisor) << value << " / " << divisor;
    }
  }
  for (const int64_t value : {0, -1, -7}) EXPECT_EQ(extent_of(value).values, (std::vector<int64_t>{value, 0, 0}));
}

TEST(Prelude, RefusesATableThatIsLongerThanAnOpenKernelTakes) {
  Prelude prelude;
  prelude.extent_table("T", {5, 6, 7}, 2);
  EXPECT_EQ(prelude.text(), "__constant__ int T[] = {5, 6, 7};\n");
  EXPECT_THROW(prelude.open().text(), Error);
}

TEST(Prelude, WritesATableOfLongNumbers) {
  EXPECT_EQ(Prelude().table("T", {0, int64_t{1} << 31}).text(), "__constant__ long long T[] = {0, 2147483648};\n");
}

TEST(Prelude, WritesAnIntWhileTheValueFits) {
  Prelude prelude;
  prelude.constant("A", -2147483648).constant("B", 2147483647).constant("C", -2147483649).constant("D", 2147483648);
  EXPECT_EQ(prelude.text(),
            "constexpr int A = -2147483648;\nconstexpr int B = 2147483647;\nconstexpr long long C = -2147483649LL;\n"
            "constexpr long long D = 2147483648LL;\n");
}

}  // namespace
}  // namespace kiln::specialise_test
