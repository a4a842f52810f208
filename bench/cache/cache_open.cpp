// How long an application waits for its tuning cache: opening a database of 10,000 requests x 16 records and a pack of
// 10,000 entries in a fresh process, with the first look-up of a request of either and of one that nobody knows; and
// one look-up after that.
//
//   bench_cache_open [folder]        builds the files in a scratch folder (or keeps them in `folder`), then measures
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "kiln/cache/database.h"
#include "kiln/cache/pack.h"
#include "measure_open.h"

namespace kiln::cache {
namespace {

constexpr int requests = 10'000;
constexpr int candidates = 16;
constexpr int pack_entries = 10'000;
constexpr int rounds = 21;

void build_database(const std::string& path) {
  std::mt19937_64 random(1);
  Database db = Database::open(path, {}, [](const Announcement& a) { throw std::runtime_error(a.text()); });
  db.put_device(device());
  std::vector<Record> records;
  for (int i = 0; i < requests; ++i) {
    for (int c = 0; c < candidates; ++c) records.push_back(record(i, c, random));
    if (records.size() >= 16'000) {
      db.insert(records);
      records.clear();
    }
  }
  db.insert(records);
}

void build_pack(const std::string& path) {
  std::mt19937_64 random(2);
  std::vector<Record> records;
  for (int i = 0; i < pack_entries; ++i) records.push_back(record(requests + i, i % candidates, random));
  write_pack_file(path, make_pack({device()}, std::move(records)), "0.1.0");
}

void run(const std::string& folder) {
  const Files files = {folder + "/cache.db", requests, folder + "/shipped.pack", requests, pack_entries};
  if (!std::filesystem::exists(files.database)) build_database(files.database);
  if (!std::filesystem::exists(files.pack)) build_pack(files.pack);
  const std::vector<Sample> samples = measure_in_fresh_processes(files, rounds);
  fmt::print("database: {} requests x {} records, {:.1f} MB; pack: {} entries, {:.1f} MB\n{}", requests, candidates,
             static_cast<double>(std::filesystem::file_size(files.database)) / 1e6, pack_entries,
             static_cast<double>(std::filesystem::file_size(files.pack)) / 1e6, summary_of(samples));
  fmt::print(
      "method: {} fresh processes, one after the other; steady clock from before Database::open to after the\n"
      "look-ups of a request of the database, of one of the pack and of an unknown one; files in the page cache; "
      "later\n"
      "look-ups in batches of 4096 different keys\n",
      rounds);
}

}  // namespace
}  // namespace kiln::cache

int main(int argc, char** argv) {
  return kiln::cache::run_main("bench_cache_open", {argv + 1, argv + argc}, kiln::cache::run);
}
