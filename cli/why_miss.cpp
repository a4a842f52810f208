#include "why_miss.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/base/printable.h"
#include "kiln/cache/pack.h"
#include "kiln/generator/request.h"
#include "table.h"

namespace kiln::cli {
namespace {

struct Part {
  std::string name, value;
};

/// The words between blanks; those within quotes are one.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  size_t begin = 0;
  bool quoted = false;
  for (size_t i = 0; i <= line.size(); ++i) {
    if (i < line.size() && line[i] == '"') quoted = !quoted;
    if (i < line.size() && (line[i] != ' ' || quoted)) continue;
    if (i > begin) words.push_back(line.substr(begin, i - begin));
    begin = i + 1;
  }
  return words;
}

bool is_extents(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789x") == std::string_view::npos;
}

/// Parts of `dtype:extents:layout@alignment`; none for a value that is no operand's.
std::vector<Part> operand_parts(std::string_view name, std::string_view value) {
  const size_t first = value.find(':');
  if (first == std::string_view::npos) return {};
  std::string_view rest = value.substr(first + 1);
  const std::string_view extents = rest.substr(0, std::min(rest.find_first_of(":@"), rest.size()));
  if (!is_extents(extents)) return {};
  rest.remove_prefix(extents.size());
  std::vector<Part> parts = {{fmt::format("{} dtype", name), std::string(value.substr(0, first))},
                             {fmt::format("{} extents", name), std::string(extents)}};
  const size_t at = rest.find('@');
  const std::string_view layout = rest.substr(0, std::min(at, rest.size()));
  if (layout.size() > 1) parts.push_back({fmt::format("{} layout", name), std::string(layout.substr(1))});
  if (at != std::string_view::npos) {
    parts.push_back({fmt::format("{} alignment", name), std::string(rest.substr(at + 1))});
  }
  return parts;
}

std::vector<Part> parts_of(std::string_view line, std::string_view prefix) {
  std::vector<Part> parts;
  for (const std::string_view word : words_of(line)) {
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos) {
      const bool is_operation = parts.empty() && prefix.empty();
      parts.push_back(is_operation ? Part{"operation", std::string(word)} : Part{std::string(word), "yes"});
      continue;
    }
    const std::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
    std::vector<Part> of_operand = operand_parts(name, value);
    if (of_operand.empty()) of_operand.push_back({fmt::format("{}{}", prefix, name), std::string(value)});
    parts.insert(parts.end(), of_operand.begin(), of_operand.end());
  }
  return parts;
}

std::vector<Difference> differences(const std::vector<Part>& here, const std::vector<Part>& stored) {
  const auto value_of = [](const std::vector<Part>& parts, const std::string& name) {
    const auto found = std::find_if(parts.begin(), parts.end(), [&](const Part& part) { return part.name == name; });
    return found == parts.end() ? std::string("-") : found->value;
  };
  std::vector<Difference> result;
  for (const Part& part : here) {
    const std::string other = value_of(stored, part.name);
    if (other != part.value) result.push_back({part.name, part.value, other});
  }
  for (const Part& part : stored) {
    if (value_of(here, part.name) == "-") result.push_back({part.name, "-", part.value});
  }
  return result;
}

/// How far extents are apart: the factors between them as powers of two, added. Infinite for another rank.
double distance(std::string_view a, std::string_view b) {
  double sum = 0;
  while (!a.empty() && !b.empty()) {
    const auto take = [](std::string_view& text) {
      double extent = 0;
      std::from_chars(text.data(), text.data() + text.size(), extent);
      text.remove_prefix(std::min(text.find('x'), text.size() - 1) + 1);
      return std::max(extent, 0.5);  // 0 is not far from 1
    };
    sum += std::abs(std::log2(take(a)) - std::log2(take(b)));
  }
  return a.empty() && b.empty() ? sum : std::numeric_limits<double>::infinity();
}

/// Parts that differ besides extents, and how far the extents are apart. Strides in numbers follow from extents.
std::pair<size_t, double> distance(const std::vector<Difference>& request) {
  std::pair<size_t, double> result{0, 0};
  for (const auto& [part, here, stored] : request) {
    const bool are_both_there = here != "-" && stored != "-";
    const auto are_strides = [&](const std::string& text) { return text.find(',') != std::string::npos; };
    if (part.ends_with(" extents") && are_both_there) {
      result.second += distance(here, stored);
    } else if (!(part.ends_with(" layout") && are_strides(here) && are_strides(stored))) {
      ++result.first;
    }
  }
  return result;
}

}  // namespace

std::vector<Difference> request_differences(std::string_view here, std::string_view stored) {
  return differences(parts_of(here, ""), parts_of(stored, ""));
}

std::vector<Difference> device_differences(std::string_view here, std::string_view stored) {
  return differences(parts_of(here, "device "), parts_of(stored, "device "));
}

Miss why_missed(const std::string& request, const std::string& device, const std::vector<StoredRequest>& stored) {
  Miss miss;
  const std::vector<Part> parts = parts_of(request, ""), device_parts = parts_of(device, "device ");
  const std::string_view operation = operation_named_in(request);
  std::optional<std::tuple<size_t, double, size_t>> least;
  for (const StoredRequest& candidate : stored) {
    if (operation_named_in(candidate.request) != operation) continue;
    std::vector<Difference> all = differences(parts, parts_of(candidate.request, ""));
    const auto [others, extents] = distance(all);
    const std::vector<Difference> of_device = differences(device_parts, parts_of(candidate.device, "device "));
    const std::tuple far(others, extents, of_device.size());
    if (least && *least <= far) continue;
    least = far;
    all.insert(all.end(), of_device.begin(), of_device.end());
    miss.nearest = candidate;
    miss.differences = std::move(all);
  }
  if (!miss.nearest) {
    miss.why = stored.empty() ? "nothing is stored at all"
                              : fmt::format("no {} is stored among {} requests", operation, stored.size());
  } else if (miss.differences.empty()) {
    miss.why = fmt::format("{} has records of this request on this device", miss.nearest->where);
  } else if (miss.nearest->request == request) {
    miss.why = fmt::format("{} has records of this request, but of another device", miss.nearest->where);
  } else {
    miss.why = fmt::format("no record of this request; the nearest of {} is in {}", stored.size(), miss.nearest->where);
  }
  return miss;
}

std::vector<StoredRequest> stored_requests(const std::optional<cache::Database>& database,
                                           const std::vector<std::string>& paths) {
  std::vector<StoredRequest> stored;
  if (database) {
    for (const cache::DeviceEntry& device : database->devices()) {
      for (std::string& request : database->request_keys(device.id)) {
        stored.push_back({std::move(request), device.id, "the database"});
      }
    }
  }
  for (const std::string& path : paths) {
    std::set<std::pair<std::string, std::string>> seen;
    try {
      for (const cache::Record& record : cache::read_pack_file(path).pack.records) {
        if (seen.emplace(record.request, record.device).second) {
          stored.push_back({record.request, record.device, fmt::format("pack {}", path)});
        }
      }
    } catch (const Error&) {
      continue;
    }
  }
  return stored;
}

std::string text_of(const Miss& miss, const Output& output) {
  std::string text = fmt::format("\nwhy missed: {}\n", printable_line(miss.why));
  if (miss.nearest && !miss.differences.empty()) {
    text += fmt::format("nearest: {}\n", printable_line(miss.nearest->request));
    Table table({"differs in", "here", "stored"});
    for (const Difference& difference : miss.differences) {
      table.add({difference.part, difference.here, printable_line(difference.stored)});
    }
    text += output.print(table);
  }
  return text;
}

Json json_of(const Miss& miss) {
  Json list = Json::array();
  for (const Difference& difference : miss.differences) {
    list.push_back({{"part", difference.part}, {"here", difference.here}, {"stored", difference.stored}});
  }
  Json nearest(nullptr);
  if (miss.nearest) {
    nearest =
        Json{{"request", miss.nearest->request}, {"device", miss.nearest->device}, {"where", miss.nearest->where}};
  }
  return {{"why", miss.why}, {"nearest", nearest}, {"differences", list}};
}

}  // namespace kiln::cli
