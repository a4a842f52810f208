#include "kiln/timing/card.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "cards.h"
#include "kiln/base/digest.h"
#include "kiln/base/error.h"

namespace kiln::timing {
namespace {

// Outside of its range a figure is a slip of the pen, and the model would divide by zero or keep more than there is
// room for.
struct Figure {
  uint32_t Card::*value;  // null: carveout_kb, which has several
  uint32_t least, most;

  bool allows(uint32_t number) const { return number >= least && number <= most; }
};

std::map<std::string_view, Figure> figures() {
  constexpr uint32_t most_cycles = 10'000;
  return {{"arch", {&Card::arch, 10, 999}},
          {"sms", {&Card::sms, 1, 1024}},
          {"clock_mhz", {&Card::clock_mhz, 1, 100'000}},
          {"warps", {&Card::warps, 1, 128}},
          {"blocks", {&Card::blocks, 1, 128}},
          {"registers", {&Card::registers, 256, 1 << 20}},
          {"shared_bytes", {&Card::shared_bytes, 1, 1 << 20}},
          {"carveout_kb", {nullptr, 0, 1024}},
          {"shared_reserve", {&Card::shared_reserve, 0, 1 << 16}},
          {"l1_bytes", {&Card::l1_bytes, 0, 1 << 24}},
          {"l2_bytes", {&Card::l2_bytes, 1, 1 << 30}},
          {"fma_cycles", {&Card::fma_cycles, 1, most_cycles}},
          {"imad_shares_fma", {&Card::imad_shares_fma, 0, 1}},
          {"imad_cycles", {&Card::imad_cycles, 1, most_cycles}},
          {"alu_cycles", {&Card::alu_cycles, 1, most_cycles}},
          {"half_cycles", {&Card::half_cycles, 1, most_cycles}},
          {"double_cycles", {&Card::double_cycles, 1, most_cycles}},
          {"convert_cycles", {&Card::convert_cycles, 1, most_cycles}},
          {"special_cycles", {&Card::special_cycles, 1, most_cycles}},
          {"uniform_cycles", {&Card::uniform_cycles, 1, most_cycles}},
          {"tensor_half", {&Card::tensor_half, 1, most_cycles}},
          {"tensor_float", {&Card::tensor_float, 1, most_cycles}},
          {"tensor_tf32", {&Card::tensor_tf32, 1, most_cycles}},
          {"tensor_byte", {&Card::tensor_byte, 1, most_cycles}},
          {"tensor_fp8", {&Card::tensor_fp8, 1, most_cycles}},
          {"tensor_double_cycles", {&Card::tensor_double_cycles, 1, most_cycles}},
          {"mma_percent", {&Card::mma_percent, 1, 100}},
          {"operand_bytes", {&Card::operand_bytes, 1, 4096}},
          {"bulk_latency", {&Card::bulk_latency, 0, most_cycles}},
          {"cluster_latency", {&Card::cluster_latency, 0, most_cycles}},
          {"phase_latency", {&Card::phase_latency, 0, most_cycles}},
          {"branch_cycles", {&Card::branch_cycles, 1, most_cycles}},
          {"special_latency", {&Card::special_latency, 0, most_cycles}},
          {"constant_latency", {&Card::constant_latency, 0, most_cycles}},
          {"memory_queue", {&Card::memory_queue, 1, 16}},
          {"address_cycles", {&Card::address_cycles, 1, most_cycles}},
          {"dispatch_latency", {&Card::dispatch_latency, 2, most_cycles}},
          {"lsu_cycles", {&Card::lsu_cycles, 1, most_cycles}},
          {"pass_cycles", {&Card::pass_cycles, 1, most_cycles}},
          {"shared_latency", {&Card::shared_latency, 0, most_cycles}},
          {"l1_latency", {&Card::l1_latency, 0, most_cycles}},
          {"l2_latency", {&Card::l2_latency, 0, most_cycles}},
          {"dram_latency", {&Card::dram_latency, 0, most_cycles}},
          {"l2_bytes_per_clock", {&Card::l2_bytes_per_clock, 1, 1 << 20}},
          {"dram_peak_gbs", {&Card::dram_peak_gbs, 1, 1'000'000}},
          {"dram_gbs", {&Card::dram_gbs, 1, 1'000'000}},
          {"barrier_latency", {&Card::barrier_latency, 0, most_cycles}},
          {"block_cycles", {&Card::block_cycles, 0, most_cycles}},
          {"partial_sectors", {&Card::partial_sectors, 1, 64}},
          {"launch_ns", {&Card::launch_ns, 0, 1'000'000}},
          {"event_ns", {&Card::event_ns, 0, 1'000'000}},
          {"l0_bytes", {&Card::l0_bytes, 128, 1 << 20}},
          {"l1i_bytes", {&Card::l1i_bytes, 128, 1 << 24}},
          {"l1i_latency", {&Card::l1i_latency, 0, most_cycles}},
          {"l1i_cycles", {&Card::l1i_cycles, 0, most_cycles}},
          {"l2i_latency", {&Card::l2i_latency, 0, most_cycles}},
          {"l2i_cycles", {&Card::l2i_cycles, 0, most_cycles}},
          {"prefetch_lines", {&Card::prefetch_lines, 0, 64}}};
}

// The next word of a line, which loses it: what blanks end.
std::string_view take_word(std::string_view& line) {
  constexpr std::string_view blanks = " \t\r";
  line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(blanks));
  line.remove_prefix(word.size());
  return word;
}

// "8,16,32"; none if any of them is no whole number.
std::vector<uint32_t> numbers_of(std::string_view text) {
  std::vector<uint32_t> numbers;
  while (true) {
    const std::string_view part = text.substr(0, text.find(','));
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), numbers.emplace_back());
    if (error != std::errc() || end != part.data() + part.size()) return {};
    if (part.size() == text.size()) return numbers;
    text.remove_prefix(part.size() + 1);
  }
}

// "NVIDIA GeForce RTX 5090": nvidia, geforce, rtx, 5090.
std::vector<std::string> words_of(std::string_view name) {
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

// The card's name is a word of the device's, or two or three of them in a row.
bool is_named(const std::string& card, const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    std::string name;
    for (size_t k = i; k < std::min(words.size(), i + 3); ++k) {
      name += words[k];
      if (name == card) return true;
    }
  }
  return false;
}

// GeForce cards add products of halves in single precision at half the rate of other cards of their chip.
bool is_geforce(const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), "geforce") != words.end();
}

bool has_half_rate(const Card& card) {
  return card.tensor_float < card.tensor_half;
}

// Another card of the same chips, which has the other rate.
Card with_other_sums(Card card) {
  const bool doubles = has_half_rate(card);
  for (uint32_t Card::*rate : {&Card::tensor_float, &Card::tensor_tf32, &Card::tensor_fp8}) {
    card.*rate = doubles ? card.*rate * 2 : std::max(1U, card.*rate / 2);
  }
  return card;
}

}  // namespace

Card parse_card(const std::string& name, std::string_view text) {
  Card card;
  card.name = name;
  const auto known = figures();
  auto missing = known;
  int number = 0;
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::parse_error, fmt::format("card {}, line {}: {}", name, number, what),
                "a line holds a name, a whole number, and where it comes from");
  };
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    ++number;
    const std::string_view key = take_word(line), value = take_word(line);
    if (key.empty() || key.starts_with('#')) continue;
    const auto found = known.find(key);
    if (found == known.end()) fail(fmt::format("no figure is called {}", key));
    if (missing.erase(key) == 0) fail(fmt::format("{} stands twice", key));
    const Figure& figure = found->second;
    const std::vector<uint32_t> values = numbers_of(value);
    const bool is_one = figure.value == nullptr ? !values.empty() : values.size() == 1;
    if (!is_one || !std::all_of(values.begin(), values.end(), [&](uint32_t v) { return figure.allows(v); })) {
      fail(fmt::format("{} is {}, and has to be a whole number from {} to {}", key, value.empty() ? "empty" : value,
                       figure.least, figure.most));
    }
    if (figure.value != nullptr) {
      card.*figure.value = values[0];
    } else {
      card.carveout_kb = values;
    }
  }
  if (!missing.empty()) {
    throw Error(ErrorCode::parse_error, fmt::format("card {}: {} is missing", name, missing.begin()->first),
                "a card has every figure that those of timing/cards have");
  }
  return card;
}

std::string digest_of(const Card& card) {
  Digest digest;
  for (const auto& [name, figure] : figures()) {
    digest.add(name);
    if (figure.value != nullptr) digest.add(std::to_string(card.*figure.value));
  }
  for (const uint32_t kilobytes : card.carveout_kb) digest.add(std::to_string(kilobytes));
  return digest.hex();
}

std::string_view text_of_card(std::string_view name) {
  for (const auto& [known, text] : built_in_cards) {
    if (known == name) return text;
  }
  std::string names;
  for (const std::string& known : card_names()) names += (names.empty() ? "" : ", ") + known;
  throw Error(ErrorCode::invalid_argument, fmt::format("no card is called {}", name),
              fmt::format("there is {}", names));
}

Card find_card(std::string_view name) {
  return parse_card(std::string(name), text_of_card(name));
}

Card read_card(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || std::filesystem::is_directory(path)) {
    throw Error(ErrorCode::io_error, fmt::format("cannot read the card {}", path));
  }
  return parse_card(path, text.str());
}

Card at_clock(Card card, uint32_t clock_mhz) {
  const uint32_t to_l2 = std::min(card.l2_latency, card.dram_latency);
  const uint64_t behind = card.dram_latency - to_l2;
  card.dram_latency = static_cast<uint32_t>(to_l2 + behind * clock_mhz / card.clock_mhz);
  card.clock_mhz = clock_mhz;
  return card;
}

std::string nearest_card(const DeviceFigures& device) {
  const std::vector<std::string> words = words_of(device.name);
  std::optional<Card> closest;
  bool named = false;
  for (const std::string& name : card_names()) {
    Card card = find_card(name);
    const bool same_name = is_named(name, words);
    const bool same_machine = card.arch / 10 == device.arch / 10 && card.arch <= device.arch;
    if (!same_machine || (named && !same_name)) continue;
    const auto rank = [&](const Card& other) {
      return std::make_pair(other.arch, has_half_rate(other) == is_geforce(words));
    };
    if (closest && named == same_name && rank(*closest) >= rank(card)) continue;
    named = same_name;
    closest = std::move(card);
  }
  if (!closest) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("no card of the time model has the figures of {} (sm_{})", device.name, device.arch),
                "give a file of its figures, like those of timing/cards");
  }
  return closest->name;
}

Card card_for(const DeviceFigures& device) {
  Card card = find_card(nearest_card(device));
  const std::vector<std::string> words = words_of(device.name);
  if (!is_named(card.name, words)) {
    if (has_half_rate(card) != is_geforce(words)) card = with_other_sums(std::move(card));
    card.name = fmt::format("{} with the counts of {}", card.name, device.name);
  }
  if (device.sms != 0) card.sms = device.sms;
  if (device.clock_mhz != 0) card = at_clock(std::move(card), device.clock_mhz);
  if (device.l2_bytes != 0) card.l2_bytes = device.l2_bytes;
  if (device.dram_peak_gbs != 0) {
    const uint64_t reached = uint64_t{card.dram_gbs} * device.dram_peak_gbs / card.dram_peak_gbs;
    card.dram_gbs = static_cast<uint32_t>(std::max<uint64_t>(1, reached));  // the model divides by it
    card.dram_peak_gbs = device.dram_peak_gbs;
  }
  return card;
}

std::string card_named(std::string_view device_name) {
  const std::vector<std::string> words = words_of(device_name);
  for (const std::string& name : card_names()) {
    if (is_named(name, words)) return name;
  }
  return "";
}

std::vector<std::string> card_names() {
  std::vector<std::string> names;
  for (const auto& [known, text] : built_in_cards) names.emplace_back(known);
  return names;
}

}  // namespace kiln::timing
