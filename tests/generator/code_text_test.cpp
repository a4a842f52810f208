#include "kiln/generator/code_text.h"

#include <gtest/gtest.h>

namespace kiln {
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

TEST(CodeText, EndsALiteralThatIsNotClosedWithItsLine) {
  EXPECT_EQ(code_of("\"open\n// comment\nx"), "\"open\nx");
  EXPECT_EQ(code_of("#error don't\n// comment\nx"), "#error don't\nx");
  EXPECT_EQ(code_of("\"\\"), "\"\\");
  EXPECT_EQ(code_of("R\"(open"), "R\"(open");
  EXPECT_EQ(code_of("R\"open"), "R\"open");
}

}  // namespace
}  // namespace kiln
