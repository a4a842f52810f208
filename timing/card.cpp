#include "kiln/timing/card.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "cards.h"
#include "kiln/base/error.h"

namespace kiln::timing {
namespace {

std::map<std::string_view, uint32_t Card::*> fields() {
  return {{"arch", &Card::arch},
          {"sms", &Card::sms},
          {"clock_mhz", &Card::clock_mhz},
          {"warps", &Card::warps},
          {"blocks", &Card::blocks},
          {"registers", &Card::registers},
          {"shared_bytes", &Card::shared_bytes},
          {"shared_reserve", &Card::shared_reserve},
          {"l1_bytes", &Card::l1_bytes},
          {"l2_bytes", &Card::l2_bytes},
          {"fma_cycles", &Card::fma_cycles},
          {"imad_shares_fma", &Card::imad_shares_fma},
          {"imad_cycles", &Card::imad_cycles},
          {"alu_cycles", &Card::alu_cycles},
          {"pair_cycles", &Card::pair_cycles},
          {"half_cycles", &Card::half_cycles},
          {"double_cycles", &Card::double_cycles},
          {"special_cycles", &Card::special_cycles},
          {"uniform_cycles", &Card::uniform_cycles},
          {"tensor_cycles", &Card::tensor_cycles},
          {"branch_cycles", &Card::branch_cycles},
          {"special_latency", &Card::special_latency},
          {"constant_latency", &Card::constant_latency},
          {"memory_queue", &Card::memory_queue},
          {"address_cycles", &Card::address_cycles},
          {"dispatch_latency", &Card::dispatch_latency},
          {"lsu_cycles", &Card::lsu_cycles},
          {"shared_latency", &Card::shared_latency},
          {"l1_latency", &Card::l1_latency},
          {"l2_latency", &Card::l2_latency},
          {"dram_latency", &Card::dram_latency},
          {"l2_bytes_per_clock", &Card::l2_bytes_per_clock},
          {"dram_gbs", &Card::dram_gbs},
          {"barrier_latency", &Card::barrier_latency},
          {"block_cycles", &Card::block_cycles},
          {"launch_us", &Card::launch_us},
          {"l0_bytes", &Card::l0_bytes},
          {"l1i_bytes", &Card::l1i_bytes},
          {"l1i_latency", &Card::l1i_latency},
          {"l1i_cycles", &Card::l1i_cycles},
          {"l2i_latency", &Card::l2i_latency},
          {"l2i_cycles", &Card::l2i_cycles},
          {"prefetch_lines", &Card::prefetch_lines}};
}

std::vector<uint32_t> numbers_of(std::string_view text) {
  std::vector<uint32_t> numbers;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    uint32_t value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size()) return {};
    numbers.push_back(value);
    text.remove_prefix(std::min(part.size() + 1, text.size()));
  }
  return numbers;
}

}  // namespace

Card parse_card(const std::string& name, std::string_view text) {
  Card card;
  card.name = name;
  auto missing = fields();
  missing.emplace("carveout_kb", nullptr);
  int number = 0;
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::parse_error, fmt::format("card {}, line {}: {}", name, number, what),
                "a line holds a name, a whole number, and where it comes from");
  };
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    ++number;
    if (line.empty() || line[0] == '#') continue;
    const std::string_view key = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(key.size() + 1, line.size()));
    const std::vector<uint32_t> values = numbers_of(line.substr(0, line.find(' ')));
    const auto found = missing.find(key);
    if (found == missing.end()) fail(fmt::format("{} is unknown, or stands twice", key));
    if (values.empty() || (found->second != nullptr && values.size() != 1)) fail(fmt::format("{} has no number", key));
    if (found->second != nullptr) {
      card.*found->second = values[0];
    } else {
      card.carveout_kb = values;
    }
    missing.erase(found);
  }
  if (!missing.empty()) fail(fmt::format("{} is missing", missing.begin()->first));
  return card;
}

Card find_card(std::string_view name) {
  for (const auto& [known, text] : built_in_cards) {
    if (known == name) return parse_card(std::string(name), text);
  }
  std::string names;
  for (const std::string& known : card_names()) names += (names.empty() ? "" : ", ") + known;
  throw Error(ErrorCode::invalid_argument, fmt::format("no card is called {}", name),
              fmt::format("there is {}", names));
}

std::vector<std::string> card_names() {
  std::vector<std::string> names;
  for (const auto& [known, text] : built_in_cards) names.emplace_back(known);
  return names;
}

}  // namespace kiln::timing
