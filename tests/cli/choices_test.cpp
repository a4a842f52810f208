// Values of --device, of --arch and of the flags of models, and how others are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arch_choice.h"
#include "device_choice.h"
#include "kiln/base/error.h"
#include "model_flags.h"

namespace kiln::cli::choices_test {
namespace {

using testing::HasSubstr;

template <class Call>
std::string refusal(const Call& call) {
  try {
    (void)call();
    return "taken";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(DeviceChoices, AreAnOrdinalADriverOrBoth) {
  struct Row {
    const char* text;
    std::optional<std::string> driver;
    int ordinal;
  };
  for (const Row& row : {Row{"0", {}, 0},
                         {"12", {}, 12},
                         {"cuda", "cuda", 0},
                         {"cuda:1", "cuda", 1},
                         {"emulator", "emulator", 0},
                         {"emulator:10", "emulator", 10}}) {
    const DeviceChoice choice{row.text};
    EXPECT_EQ(choice.ordinal(), row.ordinal) << row.text;
    EXPECT_FALSE(choice.is_list()) << row.text;
    const Environment environment = choice.environment();
    EXPECT_TRUE(environment.shows_device);
    if (row.driver) {
      EXPECT_EQ(environment.driver, row.driver) << row.text;
    }
    ASSERT_EQ(choice.each().size(), 1U) << row.text;
    EXPECT_EQ(choice.each()[0].text, row.text);
  }
  for (const char* text : {"all", "0,2", "cuda:all", "emulator:1,0"}) {
    EXPECT_TRUE(DeviceChoice{text}.is_list()) << text;
    EXPECT_THAT(refusal([&] { return DeviceChoice{text}.ordinal(); }), HasSubstr("is not one device")) << text;
  }
  for (const char* text :
       {"", "x", "-1", "1x", "cuda:", "gpu:1", ":1", "0,", ",0", "0,-1", "0,,1", "cuda:x", "cuda1"}) {
    EXPECT_THAT(refusal([&] { return DeviceChoice{text}.is_list(); }), HasSubstr("is not a device")) << text;
  }
  for (const char* text : {"0,0", "0,1,0", "cuda:2,1,2"}) {
    EXPECT_THAT(refusal([&] { return DeviceChoice{text}.is_list(); }), HasSubstr("twice")) << text;
  }
}

TEST(ArchChoices, AreThoseThatKilnHasKernelsFor) {
  for (const Arch& arch : Arch::all()) {
    const std::string number = std::to_string(arch.major) + std::to_string(arch.minor);
    for (const std::string& text : {number, "sm_" + number}) {
      const Arch taken = parse_arch(text, nullptr);
      EXPECT_EQ(taken.major, arch.major) << text;
      EXPECT_EQ(taken.minor, arch.minor) << text;
    }
  }
  for (const char* text : {"", "sm_", "9", "sm_9", "x90", "90x", "9.0", "sm_90a", "-90", "SM_90"}) {
    EXPECT_THAT(refusal([&] { return parse_arch(text, nullptr); }), HasSubstr("is not an architecture")) << text;
  }
  for (const char* text : {"10", "70", "sm_99", "1000"}) {
    EXPECT_THAT(refusal([&] { return parse_arch(text, nullptr); }),
                testing::AllOf(HasSubstr("there are no kernels for it"), HasSubstr("with Kiln there are sm_75")))
        << text;
  }
}

TEST(ModelFlags, AreOptionsOfModels) {
  const ModelOptions usual = ModelFlags{}.options();
  EXPECT_FALSE(ModelFlags{}.any());
  EXPECT_EQ(usual.dtype, std::nullopt);
  EXPECT_EQ(usual.batch, std::nullopt);
  EXPECT_EQ(usual.layout, ModelLayout::automatic);
  EXPECT_EQ(usual.arithmetic, Arithmetic{});
  EXPECT_TRUE(usual.fuse);
  EXPECT_FALSE(usual.dynamic_batch);

  EXPECT_EQ(ModelFlags{.dtype = "bf16"}.options().dtype, DType::bf16);
  EXPECT_EQ(ModelFlags{.layout = "nhwc"}.options().layout, ModelLayout::channels_last);
  EXPECT_FALSE(ModelFlags{.no_fuse = true}.options().fuse);
  for (const ModelFlags& flags : {ModelFlags{.dtype = "f16"}, ModelFlags{.layout = "nchw"}, ModelFlags{.batch = "1"},
                                  ModelFlags{.no_fuse = true}, ModelFlags{.arithmetic = "fast"}}) {
    EXPECT_TRUE(flags.any());
  }

  struct Batch {
    const char* text;
    std::optional<int64_t> batch{};
    bool is_dynamic = false;
  };
  for (const Batch& row : {Batch{.text = "1", .batch = 1},
                           {.text = "32", .batch = 32},
                           {.text = "?", .is_dynamic = true},
                           {.text = "?1", .batch = 1, .is_dynamic = true},
                           {.text = "?7", .batch = 7, .is_dynamic = true}}) {
    const ModelOptions options = ModelFlags{.batch = row.text}.options();
    EXPECT_EQ(options.batch, row.batch) << row.text;
    EXPECT_EQ(options.dynamic_batch, row.is_dynamic) << row.text;
  }
  for (const std::string text : {"0", "-1", "x", "1x", "?0", "??", "1?", " 1", "99999999999999999999"}) {
    EXPECT_THAT(refusal([&] { return ModelFlags{.batch = text}.options().batch; }),
                HasSubstr("--batch " + text + " is not a batch"));
  }
}

TEST(ModelFlags, PermitArithmeticByWords) {
  const std::vector<std::pair<std::string, Arithmetic>> rows = {
      {"tf32", {.tf32 = true}},
      {"fast", {.fast = true}},
      {"deterministic", {.deterministic = true}},
      {"tf32,fast", {.tf32 = true, .fast = true}},
      {"deterministic,fast,tf32", {.tf32 = true, .fast = true, .deterministic = true}},
  };
  for (const auto& [text, arithmetic] : rows) {
    EXPECT_EQ(ModelFlags{.arithmetic = text}.options().arithmetic, arithmetic) << text;
    EXPECT_FALSE(ModelFlags{.arithmetic = text}.options().batch_invariant) << text;
  }
  const ModelOptions both = ModelFlags{.arithmetic = "tf32,batch_invariant"}.options();
  EXPECT_TRUE(both.batch_invariant && both.arithmetic.tf32);
  for (const auto& [text, word] : std::vector<std::pair<std::string, std::string>>{
           {"slow", "slow"}, {"tf32,x", "x"}, {",fast", ""}, {"fast,,tf32", ""}, {"fast tf32", "fast tf32"}}) {
    EXPECT_THAT(refusal([text = text] { return ModelFlags{.arithmetic = text}.options().fuse; }),
                HasSubstr("--arithmetic: '" + word + "' is unknown"));
  }
}

}  // namespace
}  // namespace kiln::cli::choices_test
