// The page of `kiln cache compare --report`: cards side by side.
#include <fmt/format.h>

#include "fleet/comparison.h"
#include "fleet/names.h"
#include "kiln/cache/record.h"
#include "kiln/version.h"
#include "modelled_times.h"
#include "report/html_text.h"
#include "report/page.h"
#include "short_forms.h"

namespace kiln::cli {
namespace {

std::string header(const Comparison& comparison) {
  const bool modelled = comparison.cards.front().emulated;
  return fmt::format(
      "<header>\n<p class=\"kicker\">Kiln: cards side by side</p>\n<h1>{}, {}</h1>\n<p>{}</p>\n</header>\n",
      count_text(comparison.cards.size(), "card"), count_text(comparison.layers.size(), "layer"),
      modelled ? "<strong>All times are modelled</strong> by emulated devices: nothing was measured."
               : "Times are measured: medians of cold-cache runs.");
}

std::string device_note(const cache::DeviceEntry& card) {
  return card.emulated ? fmt::format("{}; {}", card.id, modelled_text(card.name)) : card.id;
}

std::string sums(const Comparison& comparison) {
  std::string text =
      "<section>\n<h2>One pack for all</h2>\n<p class=\"legend\">The sum over the layers, each once: with each card's "
      "best variants, and with the one variant of each layer that all cards share at the least loss.</p>\n<table "
      "class=\"layers\">\n<thead><tr><th>card</th><th class=\"number\">layers</th><th class=\"number\">its "
      "best</th><th "
      "class=\"number\">one for all</th><th class=\"number\">cost</th></tr></thead>\n<tbody>\n";
  for (size_t card = 0; card < comparison.cards.size(); ++card) {
    const Comparison::Sums sums = comparison.sums(card);
    text += fmt::format(
        "<tr><td class=\"variant\">{}<small class=\"note\">{}</small></td><td class=\"number\" "
        "data-name=\"layers\">{}</td><td class=\"number\" data-name=\"its best\">{}</td><td class=\"number\" "
        "data-name=\"one for all\">{}</td><td class=\"number\" data-name=\"cost\">{}</td></tr>\n",
        escaped(comparison.names[card]), escaped(device_note(comparison.cards[card])), sums.layers,
        time_text(sums.best), time_text(sums.shared), ratio_text(sums.ratio()));
  }
  text += "</tbody>\n</table>\n";
  if (const size_t without = comparison.without_shared(); without > 0) {
    text += fmt::format("<p>Not in the sums: {} of which no variant was timed on all cards.</p>\n",
                        count_text(without, "layer"));
  }
  return text + "</section>\n";
}

std::string card_row(const Comparison& comparison, const FleetLayer& layer, size_t card) {
  const double best = layer.best_seconds(card);
  const bool has_shared = layer.shared < layer.variants.size() && best != no_time;
  return fmt::format(
      "<tr><td class=\"variant\">{}</td><td class=\"variant\" data-name=\"best variant\">{}</td><td class=\"number\" "
      "data-name=\"time\">{}</td><td class=\"number\" data-name=\"one for all\">{}</td><td class=\"number\" "
      "data-name=\"cost\">{}</td></tr>\n",
      escaped(comparison.names[card]),
      best == no_time ? "not tuned" : "<code>" + escaped(layer.variants[layer.best(card)].name()) + "</code>",
      best == no_time ? "-" : time_text(best), has_shared ? time_text(layer.seconds[layer.shared][card]) : "-",
      has_shared ? ratio_text(layer.seconds[layer.shared][card] / best) : "-");
}

std::string layer_table(const Comparison& comparison, const FleetLayer& layer, size_t number) {
  std::string text = fmt::format(
      "<section class=\"layer\" id=\"layer-{0}\">\n<h3><span class=\"ordinal\">{0}</span>{1}</h3>\n<p "
      "class=\"key\"><code>{2}</code></p>\n<p>One for all cards: {3}</p>\n<table "
      "class=\"layers\">\n<thead><tr><th>card</th><th>best variant</th><th class=\"number\">time</th><th "
      "class=\"number\">one for all</th><th class=\"number\">cost</th></tr></thead>\n<tbody>\n",
      number, escaped(layer_text(layer.request)), escaped(layer.request),
      layer.shared < layer.variants.size() ? "<code>" + escaped(layer.variants[layer.shared].name()) + "</code>"
                                           : "none was timed on all of them");
  for (size_t card = 0; card < comparison.cards.size(); ++card) text += card_row(comparison, layer, card);
  return text + "</tbody>\n</table>\n</section>\n";
}

}  // namespace

std::string print_comparison_page(const Comparison& comparison, const std::string& command) {
  std::string text = page_head("cards side by side") + "<body>\n" + header(comparison) + "<main>\n" + sums(comparison);
  for (size_t i = 0; i < comparison.layers.size(); ++i) text += layer_table(comparison, comparison.layers[i], i + 1);
  return text +
         fmt::format(
             "<section>\n<h2>Provenance</h2>\n<dl class=\"provenance\">\n<div><dt>command</dt><dd><code>{}</code></dd>"
             "</div>\n<div><dt>made</dt><dd><code>{}</code></dd></div>\n<div><dt>Kiln</dt><dd><code>{}</code></dd>"
             "</div>\n</dl>\n</section>\n",
             escaped(command), cache::format_utc(cache::utc_now_ms()), version()) +
         "</main>\n</body>\n</html>\n";
}

}  // namespace kiln::cli
