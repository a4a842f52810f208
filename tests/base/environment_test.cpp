#include "kiln/base/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kiln/base/error.h"

namespace kiln::environment_test {
namespace {

Environment read(const std::map<std::string, std::string>& variables) {
  return Environment::read([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Environment, IsEmptyWhenNothingIsSet) {
  const Environment environment = read({});
  EXPECT_FALSE(environment.driver);
  EXPECT_FALSE(environment.log);
  EXPECT_TRUE(environment.pack_path.empty());
  EXPECT_EQ(environment.cache_home, "");
}

TEST(Environment, HasTheValueOfEachVariable) {
  struct Row {
    const char* name;
    std::optional<std::string> Environment::*value;
  };
  const Row rows[] = {{"KILN_DRIVER", &Environment::driver},
                      {"KILN_NVRTC", &Environment::nvrtc},
                      {"KILN_CACHE", &Environment::cache},
                      {"KILN_RECORD", &Environment::record},
                      {"KILN_WORKER", &Environment::worker},
                      {"KILN_TEMPLATE_PATH", &Environment::template_path},
                      {"KILN_KERNEL_STORE", &Environment::kernel_store}};
  for (const Row& row : rows) {
    const Environment environment = read({{row.name, "given"}});
    for (const Row& other : rows) {
      EXPECT_EQ((environment.*other.value).has_value(), other.name == row.name) << row.name << ", " << other.name;
    }
    EXPECT_EQ(environment.*row.value, "given") << row.name;
    EXPECT_THROW(read({{row.name, ""}}), Error) << row.name;
  }
}

TEST(Environment, LooksAtNumericsByOneOfTwoPolicies) {
  EXPECT_EQ(read({}).check_numerics, std::nullopt);
  EXPECT_EQ(read({{"KILN_CHECK_NUMERICS", "warn"}}).check_numerics, NumericsPolicy::warn);
  EXPECT_EQ(read({{"KILN_CHECK_NUMERICS", "error"}}).check_numerics, NumericsPolicy::error);
  for (const char* wrong : {"", "1", "Error", "warn "}) {
    EXPECT_THROW(read({{"KILN_CHECK_NUMERICS", wrong}}), Error) << wrong;
  }
}

TEST(Environment, SplitsPathsAndSkipsEmptyParts) {
  struct Row {
    const char* name;
    std::vector<std::string> Environment::*value;
  };
  for (const auto& [name, value] :
       {Row{"KILN_PACK_PATH", &Environment::pack_path}, Row{"KILN_BUNDLE_PATH", &Environment::bundle_path},
        Row{"KILN_USER_TEMPLATES", &Environment::user_templates}}) {
    EXPECT_THAT(read({{name, "/a::/b"}}).*value, testing::ElementsAre("/a", "/b")) << name;
    EXPECT_THAT(read({{name, ":/a:"}}).*value, testing::ElementsAre("/a")) << name;
    EXPECT_THAT(read({{name, ":"}}).*value, testing::IsEmpty()) << name;
    EXPECT_THAT(read({}).*value, testing::IsEmpty()) << name;
  }
}

TEST(Environment, RefusesAFlagThatIsNotZeroOrOne) {
  EXPECT_TRUE(read({{"KILN_LOG", "1"}}).log);
  EXPECT_FALSE(read({{"KILN_LOG", "0"}}).log);
  EXPECT_THROW(read({{"KILN_LOG", "yes"}}), Error);
}

TEST(Environment, ReadsWhetherTheKernelStoreIsShared) {
  EXPECT_FALSE(read({}).kernel_store_shared);
  EXPECT_TRUE(read({{"KILN_KERNEL_STORE_SHARED", "1"}}).kernel_store_shared);
  EXPECT_THROW(read({{"KILN_KERNEL_STORE_SHARED", "yes"}}), Error);
}

TEST(Environment, ReadsTheSizeOfTheKernelStoreAndRefusesWhatIsNone) {
  EXPECT_EQ(read({{"KILN_KERNEL_STORE_MIB", "64"}}).kernel_store_mib, 64U);
  EXPECT_EQ(read({{"KILN_KERNEL_STORE_MIB", "1"}}).kernel_store_mib, 1U);
  EXPECT_EQ(read({{"KILN_KERNEL_STORE_MIB", "1099511627776"}}).kernel_store_mib, uint64_t{1} << 40);
  EXPECT_EQ(read({}).kernel_store_mib, std::nullopt);
  for (const char* wrong : {"0", "-1", "64M", "1e3", "1099511627777", "99999999999999999999"}) {
    EXPECT_THROW(read({{"KILN_KERNEL_STORE_MIB", wrong}}), Error) << wrong;
  }
}

TEST(Environment, ReadsHowManyPlansAreKept) {
  EXPECT_EQ(read({}).kept_plans, std::nullopt);
  EXPECT_EQ(read({}).kept_plans_mib, std::nullopt);
  EXPECT_EQ(read({{"KILN_KEPT_PLANS", "12"}}).kept_plans, 12U);
  EXPECT_EQ(read({{"KILN_KEPT_PLANS_MIB", "34"}}).kept_plans_mib, 34U);
  EXPECT_THROW(read({{"KILN_KEPT_PLANS", "0"}}), Error);
  EXPECT_THROW(read({{"KILN_KEPT_PLANS_MIB", "-1"}}), Error);
}

TEST(Environment, ReadsWhatServesTheFirstCall) {
  EXPECT_EQ(read({}).first_call, std::nullopt);
  EXPECT_EQ(read({{"KILN_FIRST_CALL", "exact"}}).first_call, FirstCall::exact);
  EXPECT_EQ(read({{"KILN_FIRST_CALL", "at_once"}}).first_call, FirstCall::at_once);
  EXPECT_THROW(read({{"KILN_FIRST_CALL", "later"}}), Error);
}

TEST(Environment, RefusesAnEmptyValue) {
  EXPECT_THROW(read({{"KILN_DRIVER", ""}}), Error);
}

TEST(Environment, PrefersXdgOverHomeAndIgnoresARelativeOne) {
  EXPECT_EQ(read({{"XDG_CACHE_HOME", "/x"}, {"HOME", "/h"}}).cache_home, "/x");
  EXPECT_EQ(read({{"XDG_CACHE_HOME", "x"}, {"HOME", "/h"}}).cache_home, "/h/.cache");
  EXPECT_EQ(read({{"HOME", "/h"}}).cache_home, "/h/.cache");
  EXPECT_EQ(read({{"XDG_CACHE_HOME", ""}, {"HOME", ""}}).cache_home, "");
}

TEST(Environment, LooksForSystemDataWhereTheXdgSpecificationSays) {
  EXPECT_THAT(read({}).data_dirs, testing::ElementsAre("/usr/local/share", "/usr/share"));
  EXPECT_THAT(read({{"XDG_DATA_DIRS", ""}}).data_dirs, testing::ElementsAre("/usr/local/share", "/usr/share"));
  EXPECT_THAT(read({{"XDG_DATA_DIRS", "/a::b:/c"}}).data_dirs, testing::ElementsAre("/a", "/c"));
}

TEST(Environment, OfTheProcessMayNameWhatTheEmulatorReads) {
  ASSERT_EQ(setenv("KILN_EMULATOR_DEVICE", "h200", 1), 0);
  EXPECT_THAT(Environment::read().unknown, testing::IsEmpty());
  unsetenv("KILN_EMULATOR_DEVICE");
}

TEST(Environment, ListsMisspeltVariablesAndSaysWhatWasMeant) {
  ASSERT_EQ(setenv("KILN_DRIVR", "cuda", 1), 0);
  EXPECT_THAT(Environment::read().unknown, testing::ElementsAre("KILN_DRIVR"));
  unsetenv("KILN_DRIVR");
  EXPECT_THAT(Environment::read().unknown, testing::IsEmpty());
  EXPECT_STREQ(unknown_variable("KILN_DRIVR").what(),
               "unknown environment variable KILN_DRIVR (did you mean KILN_DRIVER?)");
  EXPECT_THAT(unknown_variable("KILN_SEVENTEEN").hint(), testing::HasSubstr("docs/environment.md"));
}

}  // namespace
}  // namespace kiln::environment_test
