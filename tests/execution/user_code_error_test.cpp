// Lines of NVRTC's log that are shown where user code does not compile.
#include "kiln/execution/user_code_error.h"

#include <gtest/gtest.h>

#include <string>

#include "kiln/generator/expression.h"

namespace kiln::execution::user_code_error_test {
namespace {

const std::string file(user_code_file);

TEST(UserCodeErrors, NameLineAndColumn) {
  EXPECT_EQ(user_code_errors("conv.cu(7): warning: unused\n" + file + "(3): error: identifier \"foo\" is undefined\n" +
                             "    acc + foo\n          ^\n\n1 error detected\n"),
            "the " + file +
                " does not compile:\nline 3, column 9: identifier \"foo\" is undefined\n    acc + foo\n          ^");
  EXPECT_EQ(user_code_errors(file + "(12): error #20: expected a \")\"\n\n1 error detected\n"),
            "the " + file + " does not compile:\nline 12: expected a \")\"");
  EXPECT_EQ(user_code_errors(file + "(12): error: at the end"),
            "the " + file + " does not compile:\nline 12: at the end");
}

// The compiler's next line is Kiln's: nobody who wrote "acc +" knows it.
TEST(UserCodeErrors, NameTheEndOfAnExpressionThatIsCutShort) {
  EXPECT_EQ(user_code_errors(file + "(2): error: expected an expression\n    );\n    ^\n\n1 error detected\n"),
            "the " + file + " does not compile:\nline 1, at its end: expected an expression");
  EXPECT_EQ(user_code_errors(file + "(3): error: expected a \")\"\n      );\n      ^\n"),
            "the " + file + " does not compile:\nline 3, column 5: expected a \")\"\n      );\n      ^")
      << "a line of the user's own";
}

TEST(UserCodeErrors, ShowsAStatementWithoutAReturnAndFiveAtMost) {
  EXPECT_EQ(user_code_errors("x.cu(9): warning #940-D: missing return statement at end of non-void function "
                             "\"user_code::epilogue\"\n"),
            "the " + file + " does not compile:\nits statements end without a return");
  EXPECT_FALSE(
      user_code_errors("x.cu(9): warning #940-D: missing return statement at end of non-void function \"f\"\n"));
  std::string log, shown = "the " + file + " does not compile:";
  for (int i = 1; i <= 7; ++i) {
    log += file + "(" + std::to_string(i) + "): error: e" + std::to_string(i) + "\n";
    if (i <= 5) shown += "\nline " + std::to_string(i) + ": e" + std::to_string(i);
  }
  EXPECT_EQ(user_code_errors(log), shown);
}

TEST(UserCodeErrors, AreNoneOfOtherFilesWarningsAndOtherTexts) {
  for (const std::string& log :
       {std::string(), std::string("conv.cu(3): error: identifier \"foo\" is undefined"),
        file + "(3): warning: identifier \"foo\" is unused", file + " 3): error: what", file + "(3) error: what",
        file + "(3): error", file, "in " + file + "(3): error: what"}) {
    EXPECT_FALSE(user_code_errors(log)) << log;
  }
}

}  // namespace
}  // namespace kiln::execution::user_code_error_test
