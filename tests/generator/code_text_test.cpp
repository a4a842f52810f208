#include "kiln/generator/code_text.h"

#include <gtest/gtest.h>

namespace kiln::code_text_test {
namespace {

TEST(CodeText, LeavesOutCommentsAndLayout) {
  EXPECT_EQ(code_of("// title\n\n  int  x;   // one\n\n\n\tint y; /* two\nlines */ int z;\n\n"),
            "int x;\nint y; int z;");
  EXPECT_EQ(code_of("int x;\r\nint y;"), "int x;\nint y;");
  EXPECT_EQ(code_of("a/**/b"), "a b");
  EXPECT_EQ(code_of("a / b"), "a / b");
  EXPECT_EQ(code_of(""), "");
  EXPECT_EQ(code_of("// only this"), "");
  EXPECT_EQ(code_of("/* never ends"), "");
}

TEST(CodeText, KeepsWhatTellsSourcesApart) {
  EXPECT_NE(code_of("int x;"), code_of("intx;"));
  EXPECT_NE(code_of("a + +b"), code_of("a ++b"));
  EXPECT_EQ(code_of("#define A 1\nA"), "#define A 1\nA");
  EXPECT_NE(code_of("#define A\n1"), code_of("#define A 1"));
}

TEST(CodeText, KeepsLiteralsAsTheyAre) {
  for (const char* literal :
       {R"("  // no  comment /* */  ")", R"("a \"  // b")", R"("\\")", R"('"')", R"('\'')", R"(' ')",
        "R\"(  // raw \" /* \n\n  )\"", "R\"x(  )\" // )x\"", "u8R\"(  )\"", "1'000'000"}) {
    EXPECT_EQ(code_of(std::string(literal) + "  // a comment"), literal);
  }
  EXPECT_EQ(code_of("x = 'a';  y = '  ';"), "x = 'a'; y = '  ';");
  EXPECT_EQ(code_of("R (\"  \")"), "R (\"  \")");
}

TEST(CodeText, KeepsWhatABackslashAtTheEndOfALineCarriesOn) {
  const std::string live = code_of("// note\ny = 0;"), dead = code_of("// note \\\ny = 0;");
  EXPECT_EQ(live, "y = 0;");
  EXPECT_NE(dead, live);
  EXPECT_NE(code_of("// note \\ \ny = 0;"), live);
  EXPECT_NE(code_of("// note \\\r\ny = 0;"), live);
  // Behind it a comment may begin that is none.
  EXPECT_NE(code_of("// note \\\n/* one\ny = 0; // */"), code_of("// note \\\n/* one\ny = 1; // */"));
  EXPECT_NE(code_of("#define A \\\n1"), code_of("#define A \\\n\n1"));
  EXPECT_NE(code_of("#define A \\\n1"), code_of("#define A \\ \n1"));
  EXPECT_NE(code_of("#define A \\ \n1"), code_of("#define A \\ \n\n1"));
  EXPECT_EQ(code_of("#define A \\\n  1  // one\n\n\nA"), "#define A \\\n1\nA");
  EXPECT_EQ(code_of("// a path: C:\\tmp\nx"), "x");
}

TEST(CodeText, TellsPrefixesOfLiteralsFromNamesAndNumbers) {
  EXPECT_EQ(code_of("f(u8'\"', \"  // 1\")"), "f(u8'\"', \"  // 1\")");
  EXPECT_EQ(code_of("case'\"':  \"  // 1\""), "case'\"': \"  // 1\"");
  EXPECT_EQ(code_of("0x1'f + .5'0 + 1.e1'0  // sum"), "0x1'f + .5'0 + 1.e1'0");
  EXPECT_EQ(code_of("FOR\"(\" + \"  // 1\""), "FOR\"(\" + \"  // 1\"");
  EXPECT_EQ(code_of("u8R\"(  )\" LR\"(  )\""), "u8R\"(  )\" LR\"(  )\"");
}

TEST(CodeText, EndsALiteralThatIsNotClosedWithItsLine) {
  EXPECT_EQ(code_of("\"open\n// comment\nx"), "\"open\nx");
  EXPECT_EQ(code_of("#error don't\n// comment\nx"), "#error don't\nx");
  EXPECT_EQ(code_of("\"\\"), "\"\\");
  EXPECT_EQ(code_of("R\"(open"), "R\"(open");
  EXPECT_EQ(code_of("R\"open"), "R\"open");
}

}  // namespace
}  // namespace kiln::code_text_test
