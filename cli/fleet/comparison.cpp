#include "fleet/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "cache_commands.h"
#include "fleet/names.h"
#include "json.h"
#include "kiln/base/error.h"
#include "short_forms.h"
#include "table.h"

namespace kiln::cli {
namespace {

bool is_alphanumeric(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

std::string in_small_letters(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Whether `words` stand in `text` with no letter or digit beside them: a10 does not stand in a100. Both in small
// letters.
bool holds_words(const std::string& text, const std::string& words) {
  for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) {
    const size_t end = at + words.size();
    if ((at == 0 || !is_alphanumeric(text[at - 1])) && (end == text.size() || !is_alphanumeric(text[end]))) return true;
  }
  return false;
}

// The cards that `wanted` means: those of that name, or else those whose name or line holds it as whole words.
std::set<std::string> ids_of(const std::string& wanted, const std::vector<cache::DeviceEntry>& cards) {
  const std::string words = in_small_letters(wanted);
  std::set<std::string> named, holding;
  for (const cache::DeviceEntry& card : cards) {
    const std::string name = in_small_letters(card.name);
    if (name == words) named.insert(card.id);
    if (holds_words(name, words) || holds_words(in_small_letters(card.id), words)) holding.insert(card.id);
  }
  return named.empty() ? holding : named;
}

std::vector<std::string> names_of(const std::vector<cache::DeviceEntry>& cards) {
  std::vector<std::string> names;
  for (const cache::DeviceEntry& card : cards) names.push_back(card.name);
  return names;
}

// `all`, or those that are `wanted`.
std::vector<cache::DeviceEntry> chosen_cards(const std::vector<cache::DeviceEntry>& all,
                                             const std::vector<std::string>& wanted) {
  std::set<std::string> ids;
  for (const std::string& words : wanted) {
    const std::set<std::string> meant = ids_of(words, all);
    if (meant.empty()) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("--cards {}: there are no records of a card with this name, or with this word in it", words),
          fmt::format("there are some of: {}", fmt::join(names_of(all), ", ")));
    }
    ids.insert(meant.begin(), meant.end());
  }
  std::vector<cache::DeviceEntry> chosen = all;
  if (!wanted.empty()) std::erase_if(chosen, [&](const cache::DeviceEntry& card) { return !ids.contains(card.id); });
  return chosen;
}

void require_comparable(const std::vector<cache::DeviceEntry>& chosen) {
  if (chosen.empty()) {
    throw Error(ErrorCode::invalid_argument, "there are no records of any card", "`kiln tune` makes them");
  }
  const auto differs = [&](const cache::DeviceEntry& card) { return card.emulated != chosen.front().emulated; };
  if (std::any_of(chosen.begin(), chosen.end(), differs)) {
    throw Error(ErrorCode::invalid_argument, "times of real and of emulated cards cannot be compared",
                fmt::format("name cards of one kind by --cards; there are: {}", fmt::join(names_of(chosen), ", ")));
  }
}

// Cards of one name are told apart by a number.
std::vector<std::string> distinct_names(const std::vector<cache::DeviceEntry>& cards) {
  std::map<std::string, int> count, seen;
  for (const cache::DeviceEntry& card : cards) ++count[card.name];
  std::vector<std::string> names;
  for (const cache::DeviceEntry& card : cards) {
    const std::string name = card.name;
    names.push_back(count[name] == 1 ? name : fmt::format("{} #{}", name, ++seen[name]));
  }
  return names;
}

// The variants of one request while its records are gathered.
struct Gathered {
  std::map<Variant, std::vector<double>> seconds;
  std::set<Variant> barred;
};

FleetLayer layer_of(const std::string& request, Gathered gathered) {
  FleetLayer layer;
  layer.request = request;
  for (const Variant& variant : gathered.barred) gathered.seconds.erase(variant);
  for (auto& [variant, seconds] : gathered.seconds) {
    layer.variants.push_back(variant);
    layer.seconds.push_back(std::move(seconds));
  }
  layer.shared = shared_variant(layer.seconds);
  return layer;
}

Json number_or_null(double number) {
  return std::isfinite(number) ? Json(number) : Json(nullptr);
}

}  // namespace

std::string Variant::name() const {
  return config.empty() ? algorithm : algorithm + " " + config;
}

size_t FleetLayer::best(size_t card) const {
  size_t best = variants.size();
  for (size_t i = 0; i < variants.size(); ++i) {
    if (seconds[i][card] < (best < variants.size() ? seconds[best][card] : no_time)) best = i;
  }
  return best;
}

double FleetLayer::best_seconds(size_t card) const {
  const size_t found = best(card);
  return found < variants.size() ? seconds[found][card] : no_time;
}

Comparison::Sums Comparison::sums(size_t card) const {
  Sums sums;
  for (const FleetLayer& layer : layers) {
    if (layer.shared == layer.variants.size() || layer.best_seconds(card) == no_time) continue;
    sums.best += layer.best_seconds(card);
    sums.shared += layer.seconds[layer.shared][card];
    ++sums.layers;
  }
  return sums;
}

size_t Comparison::without_shared() const {
  return static_cast<size_t>(std::count_if(
      layers.begin(), layers.end(), [](const FleetLayer& layer) { return layer.shared == layer.variants.size(); }));
}

Comparison compare_cards(const cache::Pack& contents, const std::vector<std::string>& wanted,
                         const cache::IsCurrent& is_current) {
  Comparison comparison;
  std::map<std::string, size_t> number;
  comparison.cards = chosen_cards(contents.devices, wanted);
  require_comparable(comparison.cards);
  for (size_t card = 0; card < comparison.cards.size(); ++card) number[comparison.cards[card].id] = card;
  comparison.names = distinct_names(comparison.cards);
  std::map<std::string, Gathered> layers;
  for (const cache::Record& record : contents.records) {
    const auto card = number.find(record.device);
    if (card == number.end() || !is_current(record.algorithm, record.algorithm_digest)) continue;
    const Variant variant{record.algorithm, record.algorithm_digest, record.config};
    if (cache::bars(record.outcome)) layers[record.request].barred.insert(variant);
    if (!cache::usable(record) || record.kind == cache::TimeKind::predicted) continue;
    std::vector<double>& seconds = layers[record.request].seconds[variant];
    seconds.resize(comparison.cards.size(), no_time);
    seconds[card->second] = record.seconds;
  }
  for (auto& [request, gathered] : layers) {
    FleetLayer layer = layer_of(request, std::move(gathered));
    if (!layer.variants.empty()) comparison.layers.push_back(std::move(layer));
  }
  return comparison;
}

cache::Pack read_fleet(const std::vector<std::string>& files, bool& complete) {
  std::vector<cache::DeviceEntry> devices;
  std::vector<cache::Record> records;
  const auto add = [&](const std::string& file) {
    try {
      cache::Pack contents = read_contents(file);
      devices.insert(devices.end(), contents.devices.begin(), contents.devices.end());
      std::move(contents.records.begin(), contents.records.end(), std::back_inserter(records));
    } catch (const Error& error) {
      fmt::print(stderr, "kiln: left out: {}\n      {}\n", error.message(), error.hint());
      complete = false;
    }
  };
  for (const std::string& file : gather(files, FilesOf::databases_and_packs)) add(file);
  return cache::make_pack(std::move(devices), std::move(records));
}

cache::Pack pack_of(const cache::Pack& contents, const Comparison& comparison, const FleetChoice& choice) {
  std::map<std::string, std::set<Variant>> chosen;  // by device and request
  const auto place = [](const std::string& device, const std::string& request) { return device + "\n" + request; };
  for (size_t card = 0; card < comparison.cards.size(); ++card) {
    std::map<size_t, Pick> fastest;
    for (const Pick& pick : choice.picks) {
      const LayerSeconds& seconds = comparison.layers[pick.layer].seconds;
      if (seconds[pick.variant][card] == no_time) continue;
      const auto [known, fresh] = fastest.try_emplace(pick.layer, pick);
      if (!fresh && seconds[pick.variant][card] < seconds[known->second.variant][card]) known->second = pick;
    }
    for (const auto& [layer, pick] : fastest) {
      const FleetLayer& of = comparison.layers[layer];
      chosen[place(comparison.cards[card].id, of.request)].insert(of.variants[pick.variant]);
    }
  }
  std::vector<cache::Record> records;
  for (const cache::Record& record : contents.records) {
    const auto found = chosen.find(place(record.device, record.request));
    const Variant variant{record.algorithm, record.algorithm_digest, record.config};
    const bool is_chosen = found != chosen.end() && found->second.contains(variant);
    const bool bars = cache::bars(record.outcome) &&
                      std::any_of(comparison.cards.begin(), comparison.cards.end(),
                                  [&](const cache::DeviceEntry& card) { return card.id == record.device; });
    if (!is_chosen && !bars) continue;
    records.push_back(record);
    records.back().samples.clear();
  }
  return cache::make_pack(comparison.cards, std::move(records));
}

std::string print_comparison(const Comparison& comparison, const Output& output) {
  Table table({"layer", "card", "best variant", ">time", "one for all cards", ">time", ">cost"});
  for (const FleetLayer& layer : comparison.layers) {
    for (size_t card = 0; card < comparison.cards.size(); ++card) {
      const double best = layer.best_seconds(card);
      if (best == no_time) {
        table.add({layer_text(layer.request), comparison.names[card], "not tuned", "-", "-", "-", "-"});
        continue;
      }
      const bool has_shared = layer.shared < layer.variants.size();
      table.add({layer_text(layer.request), comparison.names[card], layer.variants[layer.best(card)].name(),
                 time_text(best), has_shared ? layer.variants[layer.shared].name() : "none timed on all",
                 has_shared ? time_text(layer.seconds[layer.shared][card]) : "-",
                 has_shared ? ratio_text(layer.seconds[layer.shared][card] / best) : "-"});
    }
  }
  std::string text = output.print(table);
  if (!comparison.layers.empty()) {
    text += "best: the fastest; `kiln cache list` and applications may take one that is up to 1% slower (ties)\n";
  }
  for (size_t card = 0; card < comparison.cards.size(); ++card) {
    const Comparison::Sums sums = comparison.sums(card);
    text += fmt::format("{}: {}: {} with its best variants, {} with one for all cards: {}\n", comparison.names[card],
                        count_text(sums.layers, "layer"), time_text(sums.best), time_text(sums.shared),
                        ratio_text(sums.ratio()));
  }
  if (const size_t without = comparison.without_shared(); without > 0) {
    text += fmt::format("not in the sums: {} of which no variant was timed on all cards; tune with more --candidates\n",
                        count_text(without, "layer"));
  }
  return text;
}

Json json_of(const Comparison& comparison) {
  Json cards = Json::array(), layers = Json::array();
  for (size_t card = 0; card < comparison.cards.size(); ++card) {
    const Comparison::Sums sums = comparison.sums(card);
    cards.push_back({{"card", comparison.names[card]},
                     {"device", comparison.cards[card].id},
                     {"layers", sums.layers},
                     {"best_seconds", sums.best},
                     {"shared_seconds", sums.shared},
                     {"ratio", number_or_null(sums.ratio())}});
  }
  for (const FleetLayer& layer : comparison.layers) {
    const bool has_shared = layer.shared < layer.variants.size();
    Json on = Json::array();
    for (size_t card = 0; card < comparison.cards.size(); ++card) {
      const size_t best = layer.best(card);
      on.push_back(
          {{"card", comparison.names[card]},
           {"best", best < layer.variants.size() ? Json(layer.variants[best].name()) : Json(nullptr)},
           {"best_seconds", number_or_null(layer.best_seconds(card))},
           {"shared_seconds", has_shared ? number_or_null(layer.seconds[layer.shared][card]) : Json(nullptr)}});
    }
    layers.push_back({{"request", layer.request},
                      {"shared", has_shared ? Json(layer.variants[layer.shared].name()) : Json(nullptr)},
                      {"cards", on}});
  }
  return {{"cards", cards}, {"layers", layers}, {"layers_without_shared", comparison.without_shared()}};
}

}  // namespace kiln::cli
