#include "launches.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "kiln/base/error.h"

namespace kiln::bench {
namespace {

std::vector<std::string> split(std::string line, char separator) {
  if (line.ends_with('\r')) line.pop_back();
  std::vector<std::string> cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, separator);) cells.push_back(cell);
  return cells;
}

// A line of the file by the names of its columns.
class Cells {
 public:
  Cells(const std::vector<std::string>& names, std::string line, std::string where) : where_(std::move(where)) {
    const std::vector<std::string> cells = split(std::move(line), ',');
    if (cells.size() != names.size()) fail(fmt::format("it has {} cells in place of {}", cells.size(), names.size()));
    for (size_t i = 0; i < names.size(); ++i) cells_[names[i]] = cells[i];
  }

  const std::string& text(const std::string& name) const {
    const auto found = cells_.find(name);
    if (found == cells_.end()) fail(fmt::format("the file has no column {}", name));
    return found->second;
  }

  uint32_t number(const std::string& name) const { return number_in(text(name), name); }

  double milliseconds() const {
    const std::string& cell = text("ms");
    char* end = nullptr;
    const double value = std::strtod(cell.c_str(), &end);
    if (end == cell.c_str() || *end != '\0' || !(value > 0)) fail(fmt::format("ms is {}, and has to be a time", cell));
    return value;
  }

  // "64x32x1"
  timing::Extents extents(const std::string& name) const {
    const std::vector<std::string> parts = split(text(name), 'x');
    if (parts.size() != 3) fail(fmt::format("{} is {}, and has to be like 64x32x1", name, text(name)));
    return {number_in(parts[0], name), number_in(parts[1], name), number_in(parts[2], name)};
  }

  // Bytes, two digits each.
  std::string bytes(const std::string& name) const {
    const std::string& digits = text(name);
    std::string result;
    for (size_t i = 0; i + 1 < digits.size(); i += 2) {
      uint8_t byte = 0;
      const auto [end, error] = std::from_chars(digits.data() + i, digits.data() + i + 2, byte, 16);
      if (error != std::errc() || end != digits.data() + i + 2) fail(fmt::format("{} has no byte {}", name, i / 2));
      result += static_cast<char>(byte);
    }
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::parse_error, fmt::format("{}: {}", where_, what), "tensor_kernels.py writes such files");
  }

  uint32_t number_in(const std::string& cell, const std::string& name) const {
    uint32_t value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc() || end != cell.data() + cell.size()) {
      fail(fmt::format("{} is {}, and has to be a whole number", name, cell));
    }
    return value;
  }

  std::string where_;
  std::map<std::string, std::string> cells_;
};

}  // namespace

std::vector<LaunchTable> read_launches(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(ErrorCode::io_error, fmt::format("cannot read {}", path));
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = split(line, ',');
  std::vector<LaunchTable> tables;
  for (int number = 2; std::getline(file, line); ++number) {
    const Cells cells(names, line, fmt::format("{}, line {}", path, number));
    MeasuredLaunch one;
    one.row = cells.text("row");
    one.milliseconds = cells.milliseconds();
    one.card = timing::card_for({cells.text("device"), cells.number("arch"), cells.number("sms"),
                                 cells.number("clock_mhz"), cells.number("l2_bytes"), cells.number("dram_gbs")});
    one.cubin = std::filesystem::path(path).replace_filename(cells.text("cubin")).string();
    one.kernel = cells.text("kernel");
    one.launch.grid = cells.extents("grid");
    one.launch.block = cells.extents("block");
    one.launch.dynamic_shared_bytes = cells.number("shared");
    one.launch.parameters = cells.bytes("parameters");
    const std::string& name = cells.text("table");
    const auto known =
        std::find_if(tables.begin(), tables.end(), [&](const auto& other) { return other.name == name; });
    LaunchTable& table = known == tables.end() ? tables.emplace_back() : *known;
    table.name = name;
    table.device = cells.text("device");
    table.launches.push_back(std::move(one));
  }
  if (tables.empty()) throw Error(ErrorCode::parse_error, fmt::format("{} has no launches", path));
  return tables;
}

}  // namespace kiln::bench
