#include "measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <string_view>

#include "kiln/base/error.h"
#include "kiln/generator/request.h"

namespace kiln::bench {
namespace {

constexpr std::string_view device_head = "# device name=\"", calibration_head = "# calibration ";
constexpr std::string_view columns = "request\talgorithm\tconfig\tmicroseconds\tspread\tsamples\tsource";

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), file_(path) {
    if (!file_) throw Error(ErrorCode::io_error, fmt::format("cannot read {}", path));
  }

  MeasuredTable read() {
    bool in_head = true;
    for (std::string line; std::getline(file_, line);) {
      ++number_;
      if (line.starts_with('#')) {
        read_head(line);
      } else if (in_head) {
        if (line != columns) fail(fmt::format("the columns are not \"{}\"", columns));
        in_head = false;
      } else {
        read_row(line);
      }
    }
    if (table_.device.empty() || table_.layers.empty()) fail("the file ends without a device, or without times");
    return std::move(table_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::parse_error, fmt::format("{}, line {}: {}", path_, number_, what),
                "bench/measured/table.py writes such files");
  }

  void read_head(std::string_view line) {
    if (line.starts_with(device_head)) {
      line.remove_prefix(device_head.size());
      table_.device = line.substr(0, line.find('"'));
    } else if (line.starts_with(calibration_head)) {
      line.remove_prefix(calibration_head.size());
      table_.calibration = Calibration::parse(line);
      if (!table_.calibration) fail("no figures of a calibration");
    }
  }

  void read_row(std::string_view line) {
    std::array<std::string, 7> cells;
    for (size_t i = 0; i < cells.size(); ++i) {
      const size_t end = std::min(line.find('\t'), line.size());
      if ((end == line.size()) != (i + 1 == cells.size())) fail(fmt::format("not {} cells", cells.size()));
      cells[i] = line.substr(0, end);
      line.remove_prefix(std::min(end + 1, line.size()));
    }
    double microseconds = 0;
    const char* end = cells[3].data() + cells[3].size();
    const auto [read, error] = std::from_chars(cells[3].data(), end, microseconds);
    if (error != std::errc() || read != end || !(microseconds > 0)) fail(fmt::format("{} is no time", cells[3]));
    layer(cells[0]).variants.push_back({{cells[1], Config::parse(cells[2])}, microseconds * 1e-6, cells[6]});
  }

  MeasuredLayer& layer(const std::string& request) {
    const std::string key = Request::parse(request).key();
    const auto known =
        std::find_if(table_.layers.begin(), table_.layers.end(), [&](const auto& each) { return each.request == key; });
    return known == table_.layers.end() ? table_.layers.emplace_back(MeasuredLayer{key, {}}) : *known;
  }

  std::string path_;
  std::ifstream file_;
  int number_ = 0;
  MeasuredTable table_;
};

}  // namespace

Times MeasuredLayer::times() const {
  Times times;
  for (const MeasuredVariant& variant : variants) times[name_of(variant.choice)] = variant.seconds;
  return times;
}

MeasuredTable read_measured(const std::string& path) {
  return Reader(path).read();
}

std::string leave_out_changed(MeasuredTable& table, const Catalogue& catalogue, const Target& target, bool unchanged) {
  size_t all = 0, gone = 0, changed = 0;
  for (MeasuredLayer& layer : table.layers) {
    Variants variants = catalogue.on(Request::parse(layer.request), target);
    all += layer.variants.size();
    gone += std::erase_if(layer.variants,
                          [&](const MeasuredVariant& one) { return variants.refusal(one.choice).has_value(); });
    const auto is_changed = [&](const MeasuredVariant& one) {
      return variants.program(one.choice).digest() != one.source;
    };
    changed += static_cast<size_t>(std::count_if(layer.variants.begin(), layer.variants.end(), is_changed));
    if (unchanged) std::erase_if(layer.variants, is_changed);
  }
  std::erase_if(table.layers, [](const MeasuredLayer& layer) { return layer.variants.empty(); });
  return fmt::format("{} variants measured; of these {} are no longer there, and {} have another source now{}", all,
                     gone, changed, unchanged ? ", and are left out" : "");
}

}  // namespace kiln::bench
