#include "kiln/runtime/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace kiln::settings_test {
namespace {

using testing::ElementsAre;

TEST(CachePath, PrefersTheOptionThenTheVariableThenTheUsersFolder) {
  Environment environment;
  EXPECT_EQ(cache_path(std::nullopt, environment), std::nullopt);
  environment.cache_home = "/home/u/.cache";
  EXPECT_EQ(cache_path(std::nullopt, environment), "/home/u/.cache/kiln/tuning.db");
  environment.cache = "/v/cache.db";
  EXPECT_EQ(cache_path(std::nullopt, environment), "/v/cache.db");
  EXPECT_EQ(cache_path("/o/cache.db", environment), "/o/cache.db");
  EXPECT_EQ(cache_path("off", environment), std::nullopt);
}

TEST(KernelStore, StandsInTheUsersFolderUnlessNamedOrOff) {
  Environment environment;
  EXPECT_FALSE(kernel_store(std::nullopt, environment));
  environment.cache_home = "/home/u/.cache";
  ASSERT_TRUE(kernel_store(std::nullopt, environment));
  EXPECT_EQ(kernel_store(std::nullopt, environment)->folder, "/home/u/.cache/kiln/kernels");
  EXPECT_EQ(kernel_store(std::nullopt, environment)->limit_bytes, store::default_limit);
  environment.kernel_store = "/v/kernels";
  environment.kernel_store_mib = 3;
  EXPECT_EQ(kernel_store(std::nullopt, environment)->folder, "/v/kernels");
  EXPECT_EQ(kernel_store(std::nullopt, environment)->limit_bytes, uint64_t{3} << 20);
  EXPECT_FALSE(kernel_store(std::nullopt, environment)->shared);
  EXPECT_EQ(kernel_store("/o/kernels", environment)->folder, "/o/kernels");
  EXPECT_TRUE(kernel_store("/o/kernels", environment)->shared) << "the application knows whose it is";
  environment.kernel_store_shared = true;
  EXPECT_TRUE(kernel_store(std::nullopt, environment)->shared);
  EXPECT_FALSE(kernel_store("off", environment));
}

TEST(PackPaths, TakesTheOptionsFirstAndTheFilesOfAFolderByName) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "kiln_packs";
  std::filesystem::create_directories(folder);
  for (const char* name : {"b.pack", "a.pack", "notes.txt"}) std::ofstream(folder / name) << "x";
  Environment environment;
  environment.pack_path = {folder.string(), "/gone.pack"};
  EXPECT_THAT(pack_paths({"/mine.pack"}, environment),
              ElementsAre("/mine.pack", (folder / "a.pack").string(), (folder / "b.pack").string(), "/gone.pack"));
  std::filesystem::remove_all(folder);
}

TEST(SystemPacks, AreThoseOfEveryDataFolderByNameAndNothingElse) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "kiln_system_packs";
  std::filesystem::create_directories(folder / "first/kiln/packs");
  std::filesystem::create_directories(folder / "second/kiln/packs");
  for (const char* name : {"first/kiln/packs/b.pack", "first/kiln/packs/a.pack", "first/kiln/packs/readme",
                           "second/kiln/packs/a.pack", "second/kiln/loose.pack"}) {
    std::ofstream(folder / name) << "x";
  }
  Environment environment;
  EXPECT_THAT(system_packs(environment), ElementsAre());
  environment.data_dirs = {(folder / "first").string(), "/nonexistent", (folder / "second").string()};
  EXPECT_THAT(system_packs(environment),
              ElementsAre((folder / "first/kiln/packs/a.pack").string(), (folder / "first/kiln/packs/b.pack").string(),
                          (folder / "second/kiln/packs/a.pack").string()));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace kiln::settings_test
