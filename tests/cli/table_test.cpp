#include "table.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace kiln::cli::table_test {
namespace {

TEST(Table, AlignsWordsLeftAndNumbersRightWithoutTrailingSpace) {
  Table table({"name", ">count"});
  table.add({"a", "1000"});
  table.add({"longer", "2"});
  EXPECT_EQ(table.print(),
            "name    count\n"
            "a        1000\n"
            "longer      2\n");
}

TEST(Table, NarrowsItsWidestColumnsToTheWidthThatThereIs) {
  Table table({"layer", ">modelled time", "parameters"});
  table.add({"conv 1x64x56x56, bias", "1.25 us", "TILE=32,ROWS=8,PAD=1,UNROLL=4"});
  EXPECT_EQ(table.print(48),
            "layer               modelled  parameters\n"
            "                        time\n"
            "conv 1x64x56x56,     1.25 us  TILE=32,ROWS=8,\n"
            "bias                          PAD=1,UNROLL=4\n");
  EXPECT_EQ(table.print(100), table.print()) << "nothing changes where all fits";
}

TEST(Table, BreaksNamesOfNodesAtTheirSlashes) {
  Table table({"layer", "nodes"});
  table.add({"conv 1x64x56x56", "features/features.0/conv/Conv, features/features.1/relu/Relu"});
  EXPECT_EQ(table.print(40),
            "layer            nodes\n"
            "conv 1x64x56x56  features/features.0/\n"
            "                 conv/Conv,\n"
            "                 features/features.1/\n"
            "                 relu/Relu\n");
}

TEST(Table, NarrowsWhatCanBeBrokenBeforeItCutsAWord) {
  Table table({"variant", "nodes"});
  table.add({"implicit_gemm_of_a_long_name", "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o"});
  EXPECT_EQ(table.print(44),
            "variant                       nodes\n"
            "implicit_gemm_of_a_long_name  a/b/c/d/e/f/g/\n"
            "                              h/i/j/k/l/m/n/\n"
            "                              o\n");
}

TEST(Table, BreaksALongWordButNoCharacterAndLeavesNothingOut) {
  Table table({"word", "more"});
  table.add({std::string(40, 'x'), "a\xC3\xA4\xC3\xB6\xC3\xBC\xC3\xA4\xC3\xB6\xC3\xBC\xC3\xA4"});
  const std::string text = table.print(25);
  EXPECT_EQ(std::count(text.begin(), text.end(), 'x'), 40);
  for (const std::string& line :
       {text.substr(0, text.find('\n')), text.substr(text.rfind('\n', text.size() - 2) + 1)}) {
    EXPECT_LE(line.size(), 26U);
  }
  EXPECT_EQ(text.find("\n\xA4"), std::string::npos) << "a line begins within a character";
}

TEST(Table, IsAsNarrowAsItCanWhereNothingFits) {
  Table table({"a", "b"});
  table.add({std::string(30, 'a'), std::string(30, 'b')});
  const std::string text = table.print(3);
  EXPECT_EQ(std::count(text.begin(), text.end(), 'b'), 31);
}

}  // namespace
}  // namespace kiln::cli::table_test
