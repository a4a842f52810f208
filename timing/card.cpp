#include "kiln/timing/card.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

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
          {"convert_cycles", &Card::convert_cycles},
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
          {"dram_peak_gbs", &Card::dram_peak_gbs},
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

// "NVIDIA GeForce RTX 5090": nvidia, geforce, rtx, 5090.
std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  return words;
}

// The card's name is a word of the device's, or two of them in a row.
bool is_named(const std::string& card, const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == card || (i + 1 < words.size() && words[i] + words[i + 1] == card)) return true;
  }
  return false;
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

Card read_card(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw Error(ErrorCode::io_error, fmt::format("cannot read the card {}", path));
  return parse_card(path, text.str());
}

Card card_for(const DeviceFigures& device) {
  const std::vector<std::string> words = words_of(device.name);
  std::optional<Card> closest;
  bool named = false;
  for (const std::string& name : card_names()) {
    Card card = find_card(name);
    const bool same_name = is_named(name, words);
    const bool same_machine = card.arch / 10 == device.arch / 10 && card.arch <= device.arch;
    if (!same_machine || (named && !same_name)) continue;
    if (closest && named == same_name && closest->arch >= card.arch) continue;
    named = same_name;
    closest = std::move(card);
  }
  if (!closest) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("no card of the time model has the figures of {} (sm_{})", device.name, device.arch),
                "give a file of its figures, like those of timing/cards");
  }
  Card card = std::move(*closest);
  if (!named) card.name = fmt::format("{} with the counts of {}", card.name, device.name);
  if (device.sms != 0) card.sms = device.sms;
  if (device.clock_mhz != 0) card.clock_mhz = device.clock_mhz;
  if (device.l2_bytes != 0) card.l2_bytes = device.l2_bytes;
  if (device.dram_peak_gbs != 0) {
    card.dram_gbs = static_cast<uint32_t>(uint64_t{card.dram_gbs} * device.dram_peak_gbs / card.dram_peak_gbs);
    card.dram_peak_gbs = device.dram_peak_gbs;
  }
  return card;
}

std::vector<std::string> card_names() {
  std::vector<std::string> names;
  for (const auto& [known, text] : built_in_cards) names.emplace_back(known);
  return names;
}

}  // namespace kiln::timing
