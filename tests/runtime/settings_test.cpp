#include "kiln/runtime/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace kiln {
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

}  // namespace
}  // namespace kiln
