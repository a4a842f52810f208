#include "fleet/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "cache_commands.h"
#include "fleet/names.h"
#include "kiln/base/error.h"
#include "table.h"
#include "words.h"

namespace kiln::cli {
namespace {

using Json = nlohmann::ordered_json;

bool is_wanted(const cache::DeviceEntry& card, const std::vector<std::string>& wanted) {
  const auto names = [&](const std::string& word) { return card.name.find(word) != std::string::npos; };
  const auto is_id = [&](const std::string& word) { return card.id.find(word) != std::string::npos; };
  return wanted.empty() || std::any_of(wanted.begin(), wanted.end(), names) ||
         std::any_of(wanted.begin(), wanted.end(), is_id);
}

void require_cards(const std::vector<cache::DeviceEntry>& all, const std::vector<cache::DeviceEntry>& chosen,
                   const std::vector<std::string>& wanted) {
  std::vector<std::string> names;
  for (const cache::DeviceEntry& card : all) names.push_back(card.name);
  for (const std::string& word : wanted) {
    const auto fits = [&](const cache::DeviceEntry& card) { return is_wanted(card, {word}); };
    if (std::any_of(all.begin(), all.end(), fits)) continue;
    throw Error(ErrorCode::invalid_argument, fmt::format("--cards {}: there are no records of such a card", word),
                fmt::format("there are some of: {}", fmt::join(names, ", ")));
  }
  if (chosen.empty()) {
    throw Error(ErrorCode::invalid_argument, "there are no records of any card", "`kiln tune` makes them");
  }
  const auto differs = [&](const cache::DeviceEntry& card) { return card.emulated != chosen.front().emulated; };
  if (std::any_of(chosen.begin(), chosen.end(), differs)) {
    throw Error(ErrorCode::invalid_argument, "times of real and of emulated cards cannot be compared",
                fmt::format("name cards of one kind by --cards; there are: {}", fmt::join(names, ", ")));
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

Json number_or_null(double seconds) {
  return seconds == no_time ? Json(nullptr) : Json(seconds);
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
  for (const cache::DeviceEntry& card : contents.devices) {
    if (!is_wanted(card, wanted)) continue;
    number[card.id] = comparison.cards.size();
    comparison.cards.push_back(card);
  }
  require_cards(contents.devices, comparison.cards, wanted);
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
  for (const std::string& path : files) {
    if (!std::filesystem::is_directory(path)) {
      add(path);
      continue;
    }
    for (const std::string& file : databases_in(path)) add(file);
  }
  return cache::make_pack(std::move(devices), std::move(records));
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
  for (size_t card = 0; card < comparison.cards.size(); ++card) {
    const Comparison::Sums sums = comparison.sums(card);
    text +=
        fmt::format("{}: {} layers: {} with its best variants, {} with one for all cards: {}\n", comparison.names[card],
                    sums.layers, time_text(sums.best), time_text(sums.shared), ratio_text(sums.ratio()));
  }
  if (const size_t without = comparison.without_shared(); without > 0) {
    text += fmt::format(
        "{} layers are not in the sums: no variant of them was timed on all cards; tune with more --candidates\n",
        without);
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
                     {"ratio", sums.ratio()}});
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
