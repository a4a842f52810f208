// Descriptors of user templates: every mistake is an error that names file and field, and no text does harm.
#include "user_templates/user_descriptor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "kiln/base/error.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/fill.h"
#include "kiln/templates/catalogue.h"
#include "kiln/templates/user_templates.h"

namespace kiln::user_descriptor_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

const std::string& example() {
  static const std::string text = read(std::filesystem::path(KILN_EXAMPLES) / "user_template" / "conv_stem.json");
  return text;
}

// Holds the names of the kernels that the descriptors here launch.
const char* const kernels = "extern \"C\" __global__ void conv_stem() {}\nextern \"C\" __global__ void k() {}\n";

// Error of parsing and of checking the names, or nothing.
std::string error_of(const std::string& json) {
  try {
    (void)parse_user_descriptor("t", "t.json", json);
    (void)user_algorithms(SourceLibrary({{"user/t.cu", kernels}, {"user/t.json", json}}));
    return {};
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ErrorCode::parse_error || error.code() == ErrorCode::invalid_argument) << error.what();
    return error.what();
  }
}

// The example with `value` in place of what stands at `pointer`.
std::string with(const std::string& pointer, const nlohmann::ordered_json& value) {
  auto document = nlohmann::ordered_json::parse(example());
  document[nlohmann::ordered_json::json_pointer(pointer)] = value;
  return document.dump();
}

// The constants of an operation in general, and the numbers of its calls.
TEST(UserDescriptor, MayBeOfAnyOperation) {
  for (const Operation* operation : operations()) {
    const std::string operand = operation->operands().front().name;
    nlohmann::ordered_json arguments = {operand};
    for (const ScalarDefinition& scalar : operation->scalars()) arguments.push_back(scalar.name);
    for (const IntegerDefinition& integer : operation->integers()) arguments.push_back(integer.name);
    const nlohmann::ordered_json document = {
        {"kiln_template", 1},
        {"operation", operation->name()},
        {"applies", {{"alpha is 1", "ALPHA == 1 && !USER_CODE"}}},
        {"launches", {{{"kernel", "k"}, {"grid", {"1"}}, {"block", {"32"}}, {"arguments", arguments}}}}};
    EXPECT_EQ(error_of(document.dump()), "") << operation->name();
  }
}

// Several outer dimensions are one where the rows of each operand are evenly apart.
TEST(UserDescriptor, SeesRowsThatAreEvenlyApart) {
  const nlohmann::ordered_json document = {
      {"kiln_template", 1},
      {"operation", "softmax_forward"},
      {"applies", {{"rows apart by 8 and 7", "CONTIGUOUS_ROWS && X_ROW_STRIDE == 8 && Y_ROW_STRIDE == 7"}}},
      {"launches", {{{"kernel", "k"}, {"grid", {"1"}}, {"block", {"32"}}, {"arguments", {"x", "y"}}}}}};
  const std::vector<Algorithm> algorithms =
      user_algorithms(SourceLibrary({{"user/t.cu", kernels}, {"user/t.json", document.dump()}}));
  const auto applies = [&](const std::string& operands) {
    return !algorithms.front().on(Request::parse("softmax_forward axis=-1 " + operands), Target{}).refusal();
  };
  EXPECT_TRUE(applies("x=f32:5x7:8,1 y=f32:5x7"));
  EXPECT_TRUE(applies("x=f32:3x5x7:40,8,1 y=f32:3x5x7"));
  EXPECT_TRUE(applies("x=f32:2x3x5x7:120,40,8,1 y=f32:2x3x5x7"));
  EXPECT_TRUE(applies("x=f32:2x1x5x7:40,99,8,1 y=f32:2x1x5x7"));
  EXPECT_FALSE(applies("x=f32:3x5x7:48,8,1 y=f32:3x5x7")) << "those of x have a gap";
  EXPECT_FALSE(applies("x=f32:3x5x7:40,8,1 y=f32:3x5x7:42,7,1")) << "those of y have one";
  EXPECT_FALSE(applies("x=f32:2x3x5x7:140,40,8,1 y=f32:2x3x5x7"));
  EXPECT_FALSE(applies("x=f32:5x7:14,2 y=f32:5x7")) << "a row has gaps";
  EXPECT_FALSE(applies("x=f32:3x5x7:8,24,1 y=f32:3x5x7")) << "the rows of x and y are in different orders";
}

// As many as tensors of normalisations have, with constants for each.
TEST(UserDescriptor, SeesSixDimensions) {
  const nlohmann::ordered_json document = {
      {"kiln_template", 1},
      {"operation", "norm_forward"},
      {"applies",
       {{"rows of 7 in six dimensions", "X_RANK == 6 && X_EXTENT_5 == 7 && X_STRIDE_5 == 2 && X_STRIDE_4 == 14"},
        {"a scale of columns", "W_EXTENT_4 == 1 && W_EXTENT_5 == 7"},
        {"no shift", "B_RANK == 0 && B_EXTENT_5 == 1 && B_STRIDE_5 == 0"}}},
      {"launches", {{{"kernel", "k"}, {"grid", {"X_EXTENT_0"}}, {"block", {"32"}}, {"arguments", {"x", "y"}}}}}};
  const std::vector<Algorithm> algorithms =
      user_algorithms(SourceLibrary({{"user/t.cu", kernels}, {"user/t.json", document.dump()}}));
  const auto refusal = [&](const std::string& x, const std::string& more = "") {
    const std::string scale = " w=f32:1x1x1x1x1x7 axes=5";
    return algorithms.front().on(Request::parse("norm_forward x=" + x + scale + more), Target{}).refusal();
  };
  EXPECT_EQ(refusal("f32:2x3x2x2x5x7:840,280,140,70,14,2"), std::nullopt);
  EXPECT_EQ(refusal("f32:2x3x2x2x5x7"), "rows of 7 in six dimensions");
  EXPECT_EQ(refusal("f32:2x3x2x2x5x7:840,280,140,70,14,2", " b=f32:1x1x1x1x1x7"), "no shift");

  const Request request = Request::parse("norm_forward x=f16:2x3x2x2x5x7:840,280,140,70,14,2 w=f32:1x1x1x1x1x7 axes=5");
  const SourceLibrary library({{"user/t.cu", kernels}, {"lib/types.cuh", ""}});
  const Program program = algorithms.front().on(request, Target{}).program(library, {});
  for (const char* line : {"using TX = f16;", "using TW = f32;", "using TInvDeviation = ", "using TRunningMean = "}) {
    EXPECT_THAT(program.sources.front().code, HasSubstr(line));
  }
}

TEST(UserDescriptor, OfTheExampleIsRead) {
  const UserDescriptor descriptor = parse_user_descriptor("conv_stem", "conv_stem.json", example());
  EXPECT_EQ(descriptor.operation, "conv_forward");
  ASSERT_EQ(descriptor.parameters.size(), 2);
  EXPECT_EQ(descriptor.parameters[0].name, "THREADS");  // in the order of the file
  EXPECT_EQ(descriptor.parameters[1].values.front(), 16);
  ASSERT_EQ(descriptor.launches.size(), 1);
  EXPECT_TRUE(descriptor.launches[0].grid[0].per_block.has_value());
  EXPECT_EQ(descriptor.launches[0].arguments.size(), 10);
  EXPECT_TRUE(descriptor.prologue);
  EXPECT_EQ(descriptor.efficiency, 25);
  EXPECT_EQ(error_of(example()), "");
}

TEST(UserDescriptor, MalformedJsonIsNamedByLineAndColumn) {
  EXPECT_THAT(error_of(""), HasSubstr("t.json: line 1, column 1: this is not JSON"));
  EXPECT_THAT(error_of("{\n  \"operation\": }"), HasSubstr("line 2, column 16"));
  EXPECT_THAT(error_of("{\"a\": 1, \"a\": 2}"), HasSubstr("the field 'a' stands twice"));
  EXPECT_THAT(error_of(std::string(100, '[')), HasSubstr("nests more than 8 deep"));
  EXPECT_THAT(error_of(std::string(300000, ' ')), HasSubstr("300000 bytes"));
  EXPECT_THAT(error_of("{\"a\": \"\xff\"}"), HasSubstr("this is not JSON"));
}

TEST(UserDescriptor, UnknownAndMissingFieldsAreNamed) {
  EXPECT_THAT(error_of("[]"), HasSubstr("t.json: is a list"));
  EXPECT_THAT(error_of("{}"), HasSubstr("the field 'kiln_template' is missing"));
  EXPECT_THAT(error_of(with("/rulez", 1)), HasSubstr("unknown field 'rulez'; did you mean rules?"));
  EXPECT_THAT(error_of(with("/launches/0/gird", 1)),
              HasSubstr("field 'launches[0]': there is an unknown field 'gird'"));
}

TEST(UserDescriptor, WrongTypesAndValuesAreNamed) {
  EXPECT_THAT(error_of(with("/kiln_template", 2)),
              HasSubstr("field 'kiln_template': is 2 (expected an integer from 1 to 1)"));
  EXPECT_THAT(error_of(with("/operation", "conv")), HasSubstr("field 'operation': there is no such operation"));
  EXPECT_THAT(error_of(with("/operation", 7)), HasSubstr("is 7"));
  EXPECT_THAT(error_of(with("/parameters/THREADS", "128")), HasSubstr("field 'parameters.THREADS': is a string"));
  EXPECT_THAT(error_of(with("/parameters/THREADS", nlohmann::ordered_json::array())), HasSubstr("has 0 elements"));
  EXPECT_THAT(error_of(with("/parameters/THREADS/1", 128)), HasSubstr("a value stands twice"));
  EXPECT_THAT(error_of(with("/parameters/THREADS/1", 1e9)),
              HasSubstr("field 'parameters.THREADS[1]': is 1000000000.0"));
  EXPECT_THAT(error_of(with("/parameters/THREADS/1", 18446744073709551615U)), HasSubstr("is 18446744073709551615"));
  EXPECT_THAT(error_of(with("/parameters/THREADS/1", -1)), HasSubstr("is -1"));
  EXPECT_THAT(error_of(with("/parameters/threads", {1})), HasSubstr("its name is none"));
  EXPECT_THAT(error_of(with("/parameters/K", {1})), HasSubstr("there is a constant K already"));
  EXPECT_THAT(error_of(with("/constants/THREADS", 1)), HasSubstr("there is a constant THREADS already"));
  EXPECT_THAT(error_of(with("/efficiency", 0)), HasSubstr("field 'efficiency'"));
  EXPECT_THAT(error_of(with("/deterministic", 1)), HasSubstr("expected true or false"));
  EXPECT_THAT(error_of(with("/launches", nlohmann::ordered_json::array())), HasSubstr("1 to 8 launches"));
  EXPECT_THAT(error_of(with("/launches/0/kernel", "a b")), HasSubstr("field 'launches[0].kernel': it is no name"));
  EXPECT_THAT(error_of(with("/launches/0/arguments/2", "z")),
              AllOf(HasSubstr("field 'launches[0].arguments[2]': there is no value 'z'"), HasSubstr("residual")));
  EXPECT_THAT(error_of(with("/launches/0/grid", {1, 1, 1, 1})), HasSubstr("has 4 elements"));
}

TEST(UserDescriptor, TooManyPointsAreRefused) {
  auto document = nlohmann::ordered_json::parse(example());
  for (int i = 0; i < 4; ++i) {
    for (int value = 0; value < 20; ++value)
      document["parameters"]["MORE_" + std::string(1, static_cast<char>('A' + i))].push_back(value);
  }
  EXPECT_THAT(error_of(document.dump()), HasSubstr("at most 4096"));
}

TEST(UserDescriptor, MistakesInExpressionsAreNamedByColumn) {
  EXPECT_THAT(error_of(with("/constants/FILTER", "C * R *")),
              HasSubstr("field 'constants.FILTER': 'C * R *': column 8: the expression ends"));
  EXPECT_THAT(error_of(with("/constants/FILTER", "C * RR * S")),
              HasSubstr("field 'constants.FILTER': 'C * RR * S', column 5: there is no RR"));
  EXPECT_THAT(error_of(with("/launches/0/block/0", "TREADS")), HasSubstr("there is no TREADS"));
  EXPECT_THAT(error_of(with("/applies/x", "THREADS > 1")), HasSubstr("there is no THREADS"));  // not chosen yet
}

// ---- damaged ones

char random_byte(uint64_t bits) {
  constexpr std::string_view likely = "{}[]\",:0123456789eE+-*/%().?!&|<>= \n\\ANTKuxn";
  return bits % 3 == 0 ? static_cast<char>(bits >> 8) : likely[(bits >> 8) % likely.size()];
}

std::string damaged(const std::string& whole, uint64_t seed) {
  std::string text = whole;
  const uint64_t edits = 1 + reference::random_bits(seed, 0) % 4;
  for (uint64_t edit = 0; edit < edits && !text.empty(); ++edit) {
    const uint64_t where = reference::random_bits(seed, 3 * edit + 1) % text.size();
    const uint64_t bits = reference::random_bits(seed, 3 * edit + 2), length = 1 + (bits >> 40) % 40;
    switch (bits % 5) {
      case 0:
        text[where] = random_byte(bits >> 3);
        break;
      case 1:
        text.insert(where, 1, random_byte(bits >> 3));
        break;
      case 2:
        text.erase(where, length);
        break;
      case 3:
        text.insert(where, text.substr((bits >> 8) % text.size(), length));
        break;
      default:
        text.resize(where);
    }
  }
  return text;
}

TEST(DamagedUserDescriptors, GiveAnErrorOrADescriptorThatWorks) {
  const Request request = Request::parse("conv_forward x=f32:1x3x9x9 w=f32:16x3x3x3 y=f32:1x16x9x9:nhwc pad=1");
  const Target target{Arch::of(9, 0), 13, 0};
  int refused = 0, accepted = 0;
  for (uint64_t seed = 1; seed <= 6000; ++seed) {
    const std::string json = damaged(example(), seed);
    try {
      const SourceLibrary library({{"user/t.cu", kernels}, {"user/t.json", json}, {"lib/types.cuh", ""}});
      for (const Algorithm& algorithm : user_algorithms(library)) {
        const BoundAlgorithm bound = algorithm.on(request, target);
        for (const Config& config : bound.legal()) (void)bound.program(library, config);
      }
      ++accepted;
    } catch (const Error& error) {
      ++refused;
      ASSERT_TRUE(error.code() == ErrorCode::parse_error || error.code() == ErrorCode::invalid_argument) << json;
      ASSERT_THAT(error.what(), HasSubstr("t.json")) << json;
    }
  }
  EXPECT_GT(refused, 4000);
  EXPECT_GT(accepted, 50);  // not everything that is hit matters
}

// ---- files

class UserFiles : public testing::Test {
 protected:
  UserFiles() : folder_(std::filesystem::path(testing::TempDir()) / "kiln_user_files") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~UserFiles() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  std::string error() const {
    try {
      (void)make_catalogue(embedded_sources(), {folder_.string()});
      return {};
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::internal);
      return error.what();
    }
  }

  std::filesystem::path folder_;
};

TEST_F(UserFiles, ComeInPairs) {
  EXPECT_THAT(error(), HasSubstr("holds no user template"));
  write("a.cu", kernels);
  EXPECT_THAT(error(), HasSubstr("stands without"));
  write("a.json", example());
  EXPECT_EQ(error(), "");
}

TEST_F(UserFiles, AreRegularFiles) {
  write("a.json", example());
  std::filesystem::create_directory(folder_ / "a.cu");
  EXPECT_THAT(error(), HasSubstr("a.cu' is not a regular file"));
}

TEST_F(UserFiles, HaveNamesOfTheirOwn) {
  write("conv_direct.cu", kernels);
  write("conv_direct.json", example());
  EXPECT_THAT(error(), HasSubstr("conv_direct is called as an algorithm of Kiln"));
  std::filesystem::rename(folder_ / "conv_direct.cu", folder_ / "Conv.cu");
  EXPECT_THAT(error(), HasSubstr("no usable name"));
}

TEST_F(UserFiles, HaveNamesOfLowerCaseLettersDigitsAndUnderscoresALetterFirst) {
  std::string name = "start";
  const auto error_of = [&](const std::string& other) {
    for (const char* extension : {".cu", ".json"}) {
      std::filesystem::rename(folder_ / (name + extension), folder_ / (other + extension));
    }
    name = other;
    return error();
  };
  write("start.cu", kernels);
  write("start.json", example());
  for (const char* good : {"a", "z", "az_09", "a_", "a0", "z9"}) EXPECT_EQ(error_of(good), "") << good;
  EXPECT_EQ(error_of(std::string(64, 'a')), "");
  EXPECT_THAT(error_of(std::string(65, 'a')), HasSubstr("no usable name"));
  for (const char* bad : {"0a", "_a", "aA", "Za", "a-b", "a.b", "a b", "a{", "a`", "a:"}) {
    EXPECT_THAT(error_of(bad), HasSubstr("no usable name")) << bad;
  }
}

TEST_F(UserFiles, HaveAMebibyteAtMost) {
  constexpr size_t most = size_t{1} << 20;
  const std::string large = std::string(kernels) + "\n//" + std::string(most, ' ');
  write("a.json", example());
  write("a.cu", large.substr(0, most));
  EXPECT_EQ(error(), "");
  write("a.cu", large.substr(0, most + 1));
  EXPECT_THAT(error(), HasSubstr("has 1048577 bytes, the most is 1048576"));
}

// An application and its environment may both name a folder.
TEST_F(UserFiles, OfOneFolderThatIsNamedTwiceCountOnce) {
  write("a.cu", kernels);
  write("a.json", example());
  const std::filesystem::path link = folder_ / "link", other = folder_ / "other";
  std::filesystem::create_directory_symlink(folder_, link);
  const std::string folder = folder_.string();
  EXPECT_EQ(read_user_templates({folder, folder + "/", folder + "/./", link.string()}).files().size(), 2U);
  std::filesystem::create_directory(other);
  write("other/a.cu", kernels);
  write("other/a.json", example());
  try {
    (void)read_user_templates({folder, other.string()});
    ADD_FAILURE() << "which one is meant?";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("there are two user templates 'a'"));
  }
}

TEST_F(UserFiles, ThatAreMissingAreAnError) {
  std::filesystem::remove_all(folder_);
  EXPECT_THAT(error(), HasSubstr("cannot read the folder of user templates"));
}

TEST_F(UserFiles, IncludeNothingButPieces) {
  write("a.json", example());
  for (const std::string wrong : {"lib/mth.cuh", "per_class/lib/math.cuh", "user/a.cu"}) {
    write("a.cu", "// a kernel\n#include \"lib/math.cuh\"\n#include \"" + wrong + "\"\n" + kernels);
    EXPECT_THAT(error(), AllOf(HasSubstr("a.cu: line 3: there is no \"" + wrong + "\" to include"),
                               HasSubstr("docs/adding-a-kernel.md")));
  }
}

TEST_F(UserFiles, ChangeTheDigest) {
  write("a.cu", std::string("int one;\n") + kernels);
  write("a.json", example());
  const auto digest = [&] { return make_catalogue(embedded_sources(), {folder_.string()}).digest("a"); };
  const auto first = digest();
  write("a.cu", std::string("int two;\n") + kernels);
  const auto second = digest();
  write("a.cu", std::string("// a comment\nint  two;\n") + kernels);
  write("a.json", "\n" + example() + "\n");
  EXPECT_NE(first, second);
  EXPECT_EQ(second, digest());
  write("a.json", with("/applies", {{"never", "ALPHA == 2"}}));
  EXPECT_NE(second, digest());
}

TEST_F(UserFiles, ChangeTheDigestByThePlaceOfAnInclude) {
  write("a.json", example());
  const auto digest = [&](const std::string& before) {
    write("a.cu", before + kernels);
    return make_catalogue(embedded_sources(), {folder_.string()}).digest("a");
  };
  EXPECT_NE(digest("#define unroll\n#include \"lib/index.cuh\"\n"),
            digest("#include \"lib/index.cuh\"\n#define unroll\n"));
}

}  // namespace
}  // namespace kiln::user_descriptor_test
