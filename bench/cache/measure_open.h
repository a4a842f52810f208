// Parts shared by the programs of this folder: records as a tuning session leaves them, and how long an application
// waits for its cache.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "kiln/cache/record.h"

namespace kiln::cache {

DeviceEntry device();
std::string request(int index);
/// A candidate as a tuning session leaves it: four algorithms with four configurations each.
Record record(int request_index, int candidate, std::mt19937_64& random);

/// Files to open: the database knows the requests from 0, the pack those from `pack_first`. Either may be missing.
struct Files {
  std::string database{};
  int database_requests = 0;
  std::string pack{};
  int pack_first = 0;
  int pack_entries = 0;
};

struct Sample {
  double wall_ms = 0;      // of everything
  double cpu_ms = 0;       // of everything
  double database_ms = 0;  // CPU
  double pack_ms = 0;      // CPU
  double first_ms = 0;     // CPU: of the first look-ups
  double first_lookup_us = 0;
  double lookup_ns = 0;
};

/// The main of a program NAME [folder]: calls `run` with the folder, or with a scratch folder, which is removed behind
/// it. Started by measure_in_fresh_processes() it makes one measurement instead. Returns the exit code.
int run_main(const std::string& name, const std::vector<std::string>& arguments,
             const std::function<void(const std::string& folder)>& run);

/// Starts this program, which calls run_main(), `rounds` times again.
std::vector<Sample> measure_in_fresh_processes(const Files& files, int rounds);

/// Two lines about the medians.
std::string summary_of(const std::vector<Sample>& samples);

}  // namespace kiln::cache
