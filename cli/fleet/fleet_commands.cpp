// kiln cache compare, choose: records of several cards.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "arch_choice.h"
#include "cache_commands.h"
#include "checks.h"
#include "command_line.h"
#include "exit_codes.h"
#include "fleet/choice.h"
#include "fleet/comparison.h"
#include "fleet/names.h"
#include "input.h"
#include "json.h"
#include "kiln/base/error.h"
#include "kiln/base/output_file.h"
#include "kiln/device/nvrtc.h"
#include "kiln/execution/bundle.h"
#include "kiln/runtime/bundling.h"
#include "kiln/runtime/pack_check.h"
#include "kiln/runtime/settings.h"
#include "kiln/version.h"
#include "modelled_times.h"
#include "output.h"
#include "short_forms.h"
#include "table.h"

namespace kiln::cli {
namespace {

struct FleetOptions {
  std::string database;
  std::vector<std::string> files, cards, expressions;
  std::string report, pack, bundle;
  double most_loss = 5;  // percent
  size_t most_variants = std::numeric_limits<size_t>::max();
  Output output;
};

cache::Pack read_records(const FleetOptions& options, const Environment& environment, bool& complete) {
  if (!options.files.empty()) return read_fleet(options.files, complete);
  return read_fleet({database_path(options.database, environment)}, complete);
}

int compare(const FleetOptions& options) {
  std::optional<OutputFile> page;  // a path that cannot be written is known at once
  if (!options.report.empty()) page.emplace("the report", options.report);
  const Environment environment = read_environment();
  const Catalogue catalogue = catalogue_of(environment);
  bool complete = true;
  const Comparison comparison =
      compare_cards(read_records(options, environment, complete), options.cards, is_not_replaced(catalogue));
  if (options.output.json)
    print_json(json_of(comparison));
  else
    fmt::print("{}", print_comparison(comparison, options.output));
  if (page) {
    page->write(print_comparison_page(comparison, fmt::format("kiln cache compare {}", fmt::join(options.files, " "))));
    page->publish();
  }
  return complete ? success : io;
}

// --- choose ---

BundlePlan plan_for(const cache::Pack& pack, const Comparison& comparison, const Catalogue& catalogue,
                    const device::Nvrtc& nvrtc, const Expressions& expressions) {
  BundleOptions what;
  what.emulated = comparison.cards.front().emulated;
  std::set<std::string> archs;
  for (const cache::DeviceEntry& card : comparison.cards)
    archs.insert(fmt::format("{}{}", card.cc_major, card.cc_minor));
  for (const std::string& arch : archs) what.archs.push_back(parse_arch(arch, &nvrtc));
  std::vector<Request> requests;
  for (const FleetLayer& layer : comparison.layers) requests.push_back(Request::parse(layer.request, expressions));
  cache::Database database = cache::Database::in_memory();
  database.merge(pack);
  return plan_bundle(requests, catalogue, nvrtc, database, {}, what);
}

// Returns how many variants it holds; nothing, after saying why, if a layer has none for an architecture.
std::optional<size_t> write_bundle(const FleetOptions& options, const Environment& environment,
                                   const Catalogue& catalogue, const cache::Pack& pack, const Comparison& comparison) {
  const auto nvrtc = device::Nvrtc::open({environment.nvrtc});
  const BundlePlan plan = plan_for(pack, comparison, catalogue, *nvrtc, read_expressions(options.expressions));
  for (const BundleGap& gap : plan.gaps) {
    fmt::print(stderr, "kiln: not in the bundle: {} for {}: {}\n", gap.request, gap.arch, gap.reason);
  }
  if (!plan.gaps.empty()) return std::nullopt;
  std::optional<store::FileStore> kernels;
  if (const auto store = kernel_store(std::nullopt, environment)) kernels.emplace(*store);
  const auto entries =
      compile_bundle(plan, catalogue, *nvrtc, comparison.cards.front().emulated, kernels ? &*kernels : nullptr);
  execution::write_bundle(options.bundle, entries, version(),
                          fmt::format("{}.{}", nvrtc->version().major, nvrtc->version().minor));
  return entries.size();
}

// The layers that a card has times of and nothing that was chosen.
std::vector<std::string> layers_with_nothing(const Comparison& comparison, const FleetChoice& choice, size_t card) {
  std::set<size_t> served;
  for (const Pick& pick : choice.picks) {
    if (comparison.layers[pick.layer].seconds[pick.variant][card] != no_time) served.insert(pick.layer);
  }
  std::vector<std::string> layers;
  for (size_t layer = 0; layer < comparison.layers.size(); ++layer) {
    const FleetLayer& of = comparison.layers[layer];
    if (!served.contains(layer) && of.best_seconds(card) != no_time) layers.push_back(of.request);
  }
  return layers;
}

// "NVIDIA T4: nothing chosen for 12 layers: conv ...; softmax ...; pool ...; and 9 more".
std::string nothing_text(const std::string& card, const std::vector<std::string>& layers) {
  constexpr size_t most_named = 3;
  std::vector<std::string> named;
  for (size_t i = 0; i < std::min(layers.size(), most_named); ++i) named.push_back(layer_text(layers[i]));
  if (layers.size() > most_named) named.push_back(fmt::format("and {} more", layers.size() - most_named));
  return fmt::format("{}: nothing chosen for {}: {}\n", card, count_text(layers.size(), "layer"),
                     fmt::join(named, "; "));
}

// Whether a card has times, and something that was chosen for each layer of which it has any.
bool has_loss(double best, double loss) {
  return best > 0 && loss != no_time;
}

void print_choice(const FleetOptions& options, const Comparison& comparison, const std::vector<LayerSeconds>& layers,
                  const FleetChoice& choice) {
  const std::vector<double> best = best_seconds(layers, comparison.cards.size());
  Table table({"card", ">its best", ">chosen", ">loss"});
  for (size_t card = 0; card < comparison.cards.size(); ++card) {
    const double loss = choice.loss[card];
    const bool is_known = has_loss(best[card], loss);
    table.add({comparison.names[card], best[card] > 0 ? time_text(best[card]) : "-",
               is_known ? time_text(best[card] * (1 + loss)) : "-",
               loss == no_time ? "layers have nothing"
               : is_known      ? percent_text(loss)
                               : "-"});
  }
  fmt::print("{}", options.output.print(table));
  for (size_t card = 0; card < comparison.cards.size(); ++card) {
    const std::vector<std::string> nothing = layers_with_nothing(comparison, choice, card);
    if (!nothing.empty()) fmt::print("{}", nothing_text(comparison.names[card], nothing));
  }
  const size_t taken = choice.picks.size();
  fmt::print("{} of {}", count_text(taken, "variant"), count_text(layers.size(), "layer"));
  if (!choice.within) {
    fmt::print(": not enough for a loss of {}%, which takes at least {}\n", options.most_loss, choice.least);
  } else {
    fmt::print(", no card loses more than {}%; fewer than {} cannot do that\n", options.most_loss, choice.least);
    if (taken > choice.least) {
      fmt::print("Whether {} could is not known: to find out takes trying all choices.\n",
                 taken - 1 == choice.least ? fmt::format("{}", choice.least)
                                           : fmt::format("{} to {}", choice.least, taken - 1));
    }
  }
}

Json json_of(const Comparison& comparison, const std::vector<LayerSeconds>& layers, const FleetChoice& choice) {
  const std::vector<double> best = best_seconds(layers, comparison.cards.size());
  Json cards = Json::array(), variants = Json::array();
  for (size_t card = 0; card < comparison.cards.size(); ++card) {
    const double loss = choice.loss[card];
    const bool is_known = has_loss(best[card], loss);
    cards.push_back({{"card", comparison.names[card]},
                     {"device", comparison.cards[card].id},
                     {"best_seconds", best[card]},
                     {"chosen_seconds", is_known ? Json(best[card] * (1 + loss)) : Json(nullptr)},
                     {"loss", is_known ? Json(loss) : Json(nullptr)},
                     {"layers_with_nothing", layers_with_nothing(comparison, choice, card)}});
  }
  for (const Pick& pick : choice.picks) {
    const FleetLayer& layer = comparison.layers[pick.layer];
    const Variant& variant = layer.variants[pick.variant];
    variants.push_back({{"request", layer.request}, {"algorithm", variant.algorithm}, {"config", variant.config}});
  }
  return {{"cards", cards},
          {"layers", layers.size()},
          {"variants", variants},
          {"within", choice.within},
          {"least", choice.least}};
}

void say_what_is_not_tuned(const Comparison& comparison) {
  for (size_t card = 0; card < comparison.cards.size(); ++card) {
    const auto lacks = [&](const FleetLayer& layer) { return layer.best_seconds(card) == no_time; };
    const auto count = std::count_if(comparison.layers.begin(), comparison.layers.end(), lacks);
    if (count == 0) continue;
    fmt::print(stderr, "kiln: {} has no time of {} of {}, which {} not in its loss\n", comparison.names[card], count,
               count_text(comparison.layers.size(), "layer"), count == 1 ? "is" : "are");
  }
}

int choose(const FleetOptions& options) {
  const auto whole = [](const std::string& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path));
  };
  if (!options.pack.empty() && !options.bundle.empty() && whole(options.pack) == whole(options.bundle)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("--pack and --bundle are one file, {}", options.pack),
                "name one for each");
  }
  if (!options.pack.empty()) require_replaceable("the pack", options.pack);
  if (!options.bundle.empty()) require_replaceable("the bundle", options.bundle);
  const Environment environment = read_environment();
  const Catalogue catalogue = catalogue_of(environment);
  bool complete = true;
  const cache::Pack contents = read_records(options, environment, complete);
  const Comparison comparison = compare_cards(contents, options.cards, is_not_replaced(catalogue));
  say_what_is_not_tuned(comparison);
  std::vector<LayerSeconds> layers;
  for (const FleetLayer& layer : comparison.layers) layers.push_back(layer.seconds);
  const FleetChoice choice =
      choose_variants(layers, comparison.cards.size(), options.most_loss / 100, options.most_variants);

  cache::Pack pack = pack_of(contents, comparison, choice);
  mark_predictions(pack);
  if (!options.pack.empty()) cache::write_pack_file(options.pack, pack, version());
  std::optional<size_t> bundled;
  try {
    if (!options.bundle.empty()) bundled = write_bundle(options, environment, catalogue, pack, comparison);
  } catch (const Error& error) {
    if (options.pack.empty()) throw;
    throw Error(error.code(), fmt::format("{}; the pack {} was written", error.message(), options.pack), error.hint());
  }
  if (options.output.json) {
    print_json(json_of(comparison, layers, choice));
  } else {
    print_choice(options, comparison, layers, choice);
    if (!options.pack.empty()) fmt::print("{}: {}\n", options.pack, count_text(pack.records.size(), "record"));
    if (bundled) fmt::print("{}: {}\n", options.bundle, count_text(*bundled, "compiled variant"));
    if (!options.bundle.empty() && !bundled) fmt::print("{}: not written\n", options.bundle);
  }
  if (!complete) return io;
  return choice.within && (options.bundle.empty() || bundled) ? success : failed_check;
}

Command add(Command parent, const char* name, const char* summary, const std::shared_ptr<FleetOptions>& options) {
  const Command command = parent.add_command(name, summary);
  const Option database =
      command.add_option("--db", options->database, "tuning database, if no files are named").type_name("FILE");
  command.add_option("files", options->files, "databases and packs to read, and folders of databases")
      .excludes(database);
  command
      .add_option("--cards", options->cards,
                  "the cards, by their names or words in them, with commas between: H100,A100 (default: all)")
      .one_list();
  return command;
}

}  // namespace

void add_cache_fleet(Command cache, int& exit_code) {
  auto options = std::make_shared<FleetOptions>();
  const Command comparing =
      add(cache, "compare", "compare cards: the best variant of each layer, and one variant for all", options);
  comparing.add_option("--report", options->report, "also write the comparison as a page: out.html");
  options->output.add_to(comparing);
  comparing.footer("Example: kiln cache compare tuned --report cards.html");
  comparing.on_chosen([options, &exit_code] { exit_code = compare(*options); });

  const Command choosing =
      add(cache, "choose", "choose the fewest variants with which no card loses more than --max-loss", options);
  choosing.add_option("--max-loss", options->most_loss, "percent of the sum of a card's best times (default 5)")
      .check(number(0, 1e6));
  choosing.add_option("--max-variants", options->most_variants, "at most so many, of all layers together")
      .check(whole_number(1, std::numeric_limits<int64_t>::max()));
  choosing.add_option("--pack", options->pack, "write the chosen variants as a pack");
  choosing.add_option("--bundle", options->bundle,
                      "compile the chosen variants into a bundle, for the architectures of the cards");
  add_expressions_to(choosing, options->expressions);
  options->output.add_to(choosing);
  choosing.footer(
      "Example: kiln cache choose tuned --cards H100,A100 --max-loss 3 --pack fleet.pack --bundle fleet.kiln");
  choosing.on_chosen([options, &exit_code] { exit_code = choose(*options); });
}

}  // namespace kiln::cli
