#include "kiln/templates/integer_expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/base/error.h"

namespace kiln::integer_expression_test {
namespace {

using testing::HasSubstr;

std::optional<int64_t> value_of(std::string_view name) {
  if (name == "A") return 7;
  if (name == "B_2") return 3;
  if (name == "BIG") return INT64_MAX;
  return std::nullopt;
}

int64_t value(const std::string& text) {
  return IntegerExpression(text).evaluate(value_of);
}

std::string error_of(const std::string& text) {
  try {
    return std::to_string(value(text));
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(IntegerExpression, FollowsThePrecedenceOfC) {
  EXPECT_EQ(value("1 + 2 * 3"), 7);
  EXPECT_EQ(value("(1 + 2) * 3"), 9);
  EXPECT_EQ(value("10 - 4 - 3"), 3);
  EXPECT_EQ(value("A % 4 == B_2 && A > B_2"), 1);
  EXPECT_EQ(value("1 == 2 || 3 <= 3"), 1);
  EXPECT_EQ(value("!A || !(A - 7)"), 1);
  EXPECT_EQ(value("A != 7 ? 1 : B_2 >= 4 ? 2 : 3"), 3);
  EXPECT_EQ(value("-A + --A"), 0);
  EXPECT_EQ(value("!A!=1"), 1);
}

TEST(IntegerExpression, ComparesToOneOrZero) {
  struct Row {
    const char* symbol;
    int64_t below, equal, above;  // of 2 and 3, 3 and 3, 4 and 3
  };
  for (const Row& row : {Row{"<", 1, 0, 0}, Row{"<=", 1, 1, 0}, Row{">", 0, 0, 1}, Row{">=", 0, 1, 1},
                         Row{"==", 0, 1, 0}, Row{"!=", 1, 0, 1}}) {
    const auto of = [&](const char* a) { return value(std::string(a) + " " + row.symbol + " 3"); };
    EXPECT_EQ(of("2"), row.below) << row.symbol;
    EXPECT_EQ(of("3"), row.equal) << row.symbol;
    EXPECT_EQ(of("4"), row.above) << row.symbol;
  }
  for (const int64_t a : {0, 5}) {
    for (const int64_t b : {0, 7}) {
      EXPECT_EQ(value(std::to_string(a) + " && " + std::to_string(b)), a != 0 && b != 0 ? 1 : 0) << a << " " << b;
      EXPECT_EQ(value(std::to_string(a) + " || " + std::to_string(b)), a != 0 || b != 0 ? 1 : 0) << a << " " << b;
    }
  }
}

TEST(IntegerExpression, Divides) {
  struct Row {
    int64_t a, b, quotient, rest, up, whole;
  };
  for (const Row& row : {Row{0, 4, 0, 0, 0, 0}, Row{3, 4, 0, 3, 1, 4}, Row{4, 4, 1, 0, 1, 4}, Row{9, 4, 2, 1, 3, 12}}) {
    const std::string a = std::to_string(row.a), b = std::to_string(row.b);
    EXPECT_EQ(value(a + " / " + b), row.quotient);
    EXPECT_EQ(value(a + " % " + b), row.rest);
    EXPECT_EQ(value("ceil_div(" + a + ", " + b + ")"), row.up);
    EXPECT_EQ(value("round_up(" + a + ", " + b + ")"), row.whole);
  }
}

TEST(IntegerExpression, HasFunctions) {
  EXPECT_EQ(value("ceil_div(A, B_2) + ceil_div(6, 3)"), 5);
  EXPECT_EQ(value("round_up(A, 4)"), 8);
  EXPECT_EQ(value("min(A, max(B_2, 5))"), 5);
}

TEST(IntegerExpression, EvaluatesOnlyWhatDecides) {
  EXPECT_EQ(value("0 && 1 / 0"), 0);
  EXPECT_EQ(value("1 || 1 / 0"), 1);
  EXPECT_EQ(value("A ? 1 : 1 / 0"), 1);
}

TEST(IntegerExpression, SaysWhereItIsWrong) {
  EXPECT_THAT(error_of(""), HasSubstr("column 1: the expression ends"));
  EXPECT_THAT(error_of("1 +"), HasSubstr("column 4: the expression ends"));
  EXPECT_THAT(error_of("1 2"), HasSubstr("column 3: '2' was not expected"));
  EXPECT_THAT(error_of("A + $"), HasSubstr("column 5"));
  EXPECT_THAT(error_of("(1"), HasSubstr("column 3: expected ')'"));
  EXPECT_THAT(error_of("exit(1, 2)"), HasSubstr("column 1: there is no function exit"));
  EXPECT_THAT(error_of("min(1)"), HasSubstr("expected ','"));
  EXPECT_THAT(error_of("99999999999999999999"), HasSubstr("does not fit 64 bits"));
  EXPECT_THAT(error_of("A + NOTHING"), HasSubstr("column 5: there is no NOTHING"));
}

TEST(IntegerExpression, NeverOverflows) {
  EXPECT_THAT(error_of("BIG + 1"), HasSubstr("column 5: the result does not fit"));
  EXPECT_THAT(error_of("BIG * 2"), HasSubstr("does not fit"));
  EXPECT_THAT(error_of("-BIG - 2"), HasSubstr("does not fit"));
  EXPECT_THAT(error_of("-(-BIG - 1)"), HasSubstr("does not fit"));
  EXPECT_THAT(error_of("round_up(BIG, 4)"), HasSubstr("does not fit"));
  EXPECT_THAT(error_of("A / (B_2 - 3)"), HasSubstr("7 divided by 0"));
  EXPECT_THAT(error_of("-A / 2"), HasSubstr("-7 divided by 2"));
  EXPECT_THAT(error_of("(-BIG - 1) % -1"), HasSubstr("divided by -1"));
}

TEST(IntegerExpression, IsBoundedInLengthAndDepth) {
  EXPECT_THAT(error_of(std::string(3000, '1')), HasSubstr("3000 characters"));
  EXPECT_THAT(error_of(std::string(500, '(') + "1" + std::string(500, ')')), HasSubstr("nests more than 64 deep"));
  EXPECT_THAT(error_of(std::string(500, '-') + "1"), HasSubstr("nests more than 64 deep"));
  std::string long_sum = "1";
  while (long_sum.size() < 1900) long_sum += "+1";
  EXPECT_EQ(value(long_sum), 951);
}

}  // namespace
}  // namespace kiln::integer_expression_test
