#include "tables.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "kiln/base/error.h"

namespace kiln::bench {
namespace {

uint32_t parts(uint32_t extent, int of_block) {
  return (extent + static_cast<uint32_t>(of_block) - 1) / static_cast<uint32_t>(of_block);
}

// Buffers lie far apart; where, is of no matter.
std::string pointers(std::initializer_list<uint64_t> addresses) {
  std::string bytes;
  for (const uint64_t address : addresses) bytes.append(reinterpret_cast<const char*>(&address), sizeof address);
  return bytes;
}

constexpr uint64_t first_buffer = 0x7f0000000000, second_buffer = 0x7f1000000000, third_buffer = 0x7f2000000000;

timing::Launch convolution(const Row& row) {
  const auto value = [&](const char* name) { return row.values.at(name); };
  timing::Launch launch;
  launch.block = {static_cast<uint32_t>(value("block_size_x")), static_cast<uint32_t>(value("block_size_y")), 1};
  launch.grid = {parts(4096, value("block_size_x") * value("tile_size_x")),
                 parts(4096, value("block_size_y") * value("tile_size_y")), 1};
  launch.parameters = pointers({first_buffer, second_buffer, third_buffer});
  return launch;
}

// The delays of the channels decide which input is read, so they are given.
std::vector<float> dispersion_shifts() {
  constexpr int channels = 1536;
  const double last = 1425 + 0.1953125 * (channels - 1);
  std::vector<float> shifts(channels, 0);
  for (int channel = 0; channel < channels - 1; ++channel) {
    const double f = 1425 + 0.1953125 * channel;
    shifts[channel] = static_cast<float>(4148.808 * (1 / (f * f) - 1 / (last * last)) / 0.00004096);
  }
  return shifts;
}

timing::Launch dedispersion(const Row& row) {
  const auto value = [&](const char* name) { return row.values.at(name); };
  timing::Launch launch;
  launch.block = {static_cast<uint32_t>(value("block_size_x")), static_cast<uint32_t>(value("block_size_y")), 1};
  launch.grid = {parts(25000, value("block_size_x") * value("tile_size_x")),
                 parts(2048, value("block_size_y") * value("tile_size_y")), 1};
  launch.parameters = pointers({first_buffer, second_buffer, third_buffer});
  launch.memory = [shifts = std::make_shared<std::vector<float>>(dispersion_shifts())](uint64_t address,
                                                                                       uint32_t& word) {
    const uint64_t index = (address - third_buffer) / 4;
    if (address < third_buffer || index >= shifts->size()) return false;
    std::memcpy(&word, &(*shifts)[index], sizeof word);
    return true;
  };
  return launch;
}

// Steps of a product of 8192 x 8192 x 8192, one CSV row each: bench/time_model/ladder.
constexpr uint32_t ladder_extent = 8192;

timing::Launch ladder(const Row& row) {
  const auto value = [&](const char* name) { return static_cast<uint32_t>(row.values.at(name)); };
  constexpr uint32_t depth = 64, bytes = 2, sms = 132;
  const uint32_t m = value("BLOCK_M"), n = value("BLOCK_N"), consumers = value("CONSUMERS"), cluster = value("CLUSTER");
  timing::Launch launch;
  launch.block = {(consumers + 1) * 128, 1, 1};
  launch.grid = {value("PERSISTENT") != 0 ? sms : ladder_extent / m * (ladder_extent / n), 1, 1};
  launch.cluster = {cluster, 1, 1};
  launch.dynamic_shared_bytes = value("STAGES") * (m + n) * depth * bytes;
  if (value("BULK_STORE") != 0) launch.dynamic_shared_bytes += consumers * 2 * 64 * 64 * bytes;
  constexpr size_t map_bytes = 128;
  constexpr size_t first_map = 0x30;  // that behind the beginning of the parameters, which are at 0x210, is aligned
  launch.parameters.assign(first_map + 3 * map_bytes, '\0');
  launch.parameters += pointers({first_buffer});
  for (int i = 0; i < 3; ++i) {
    launch.parameters.append(reinterpret_cast<const char*>(&ladder_extent), sizeof ladder_extent);
  }
  const std::array<uint32_t, 3> boxes = {m * depth * bytes, n / cluster * depth * bytes, 64 * 64 * bytes};
  launch.box_bytes = [boxes](uint64_t map, uint32_t& box) {
    const uint64_t which = (map - first_map) / map_bytes;
    if (which >= boxes.size()) return false;
    box = boxes[which];
    return true;
  };
  return launch;
}

std::vector<std::string> split(std::string line) {
  if (line.ends_with('\r')) line.pop_back();
  std::vector<std::string> cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
  return cells;
}

void mark_raised(std::vector<Row>& rows) {
  const auto key = [](const Row& row) {
    auto values = row.values;
    values.erase("read_only");
    return values;
  };
  std::map<std::map<std::string, int>, double> plain;
  for (const Row& row : rows) {
    const auto found = row.values.find("read_only");
    if (found != row.values.end() && found->second == 0) plain[key(row)] = row.milliseconds;
  }
  for (Row& row : rows) {
    const auto found = row.values.find("read_only");
    if (found == row.values.end() || found->second == 0 || !plain.contains(key(row))) continue;
    row.raised = row.milliseconds < 0.85 * plain[key(row)];
  }
}

}  // namespace

const std::vector<Table>& tables() {
  static const std::vector<Table> all = {
      {"convolution",
       "sm_80",
       "a100",
       765,
       "convolution_a100.csv",
       "convolution.cu",
       "convolution_kernel",
       {{"use_shmem", "1"}, {"use_cmem", "1"}, {"filter_height", "15"}, {"filter_width", "15"}},
       convolution},
      {"convolution_l1",
       "sm_80",
       "a100",
       765,
       "convolution_l1_a100.csv",
       "convolution.cu",
       "convolution_kernel",
       {{"use_shmem", "0"}, {"use_padding", "0"}, {"use_cmem", "1"}, {"filter_height", "15"}, {"filter_width", "15"}},
       convolution},
      {"dedispersion",
       "sm_80",
       "a100",
       1410,
       "dedispersion_a100.csv",
       "dedispersion.cu",
       "dedispersion_kernel",
       {{"nr_dms", "2048"},
        {"nr_samples", "25000"},
        {"nr_channels", "1536"},
        {"max_shift", "650"},
        {"nr_samples_per_channel", "25650"},
        {"dm_first", "0.0f"},
        {"dm_step", "0.02f"}},
       dedispersion},
      {"ladder",
       "sm_90a",
       "h100",
       1980,
       "ladder_h100.csv",
       "gemm_sm90.cu",
       "gemm",
       {},
       ladder,
       2.0 * ladder_extent * ladder_extent * ladder_extent}};
  return all;
}

std::vector<Row> read_rows(const Table& table, const std::string& folder) {
  const std::string path = folder + "/" + table.file;
  std::ifstream file(path);
  if (!file) throw Error(ErrorCode::io_error, fmt::format("cannot read {}", path));
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = split(line);
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = split(line);
    Row row;
    bool ran = true;
    for (size_t i = 0; i < names.size() && i < cells.size(); ++i) {
      if (names[i] == "median_ms") {
        ran = cells[i] != "failed";
        if (ran) row.milliseconds = std::stod(cells[i]);
      } else if (names[i] == "tflops") {
        row.milliseconds = table.flop / std::stod(cells[i]) * 1e-9;
      } else if (names[i] != "samples_us") {
        row.values[names[i]] = std::stoi(cells[i]);
      }
    }
    if (ran && row.milliseconds > 0) rows.push_back(std::move(row));
  }
  if (rows.empty()) throw Error(ErrorCode::parse_error, fmt::format("{} has no times", path));
  mark_raised(rows);
  return rows;
}

std::string source_of(const Table& table, const Row& row, const std::string& folder) {
  const std::string path = folder + "/" + table.source;
  std::ifstream file(path);
  if (!file) throw Error(ErrorCode::io_error, fmt::format("cannot read {}", path));
  std::string text;
  for (const auto& [name, value] : row.values) text += fmt::format("#define {} {}\n", name, value);
  for (const auto& [name, value] : table.defines) text += fmt::format("#define {} {}\n", name, value);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("#include")) text += line + "\n";  // what it would include are the lines above
  }
  return text;
}

std::string to_string(const Row& row) {
  std::string text = row.label;
  for (const auto& [name, value] : row.values) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

}  // namespace kiln::bench
