#include "report/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "kiln/generator/roofline.h"
#include "report/chart.h"
#include "report/layer_section.h"
#include "report/plots.h"
#include "report/text.h"
#include "words.h"

namespace kiln::cli {
namespace {

using tuner::JobResult;

// A layer that has a time, or the estimate that stands for one.
struct Layer {
  size_t number;
  const JobResult* result;
  LayerTimes times;
  double tuned, fallback;  // seconds with its count
};

std::vector<Layer> layers_of(const TuneReport& report) {
  std::vector<Layer> layers;
  for (size_t i = 0; i < report.results.size(); ++i) {
    const JobResult& result = report.results[i];
    const std::optional<LayerTimes> times = times_of(result);
    if (!times || !(times->best > 0)) continue;
    const auto count = static_cast<double>(result.count);
    layers.push_back({i + 1, &result, *times, count * times->best, count * times->heuristic});
  }
  return layers;
}

std::string numbered(const Layer& layer) {
  return fmt::format("{}: {}", layer.number, summary(layer.result->request));
}

const Choice& choice_of(const Layer& layer) {
  return layer.result->best ? layer.result->best->choice : layer.result->fallback->choice;
}

// "12.00 us, 3 times, 24.0% of the time".
std::string share_text(double seconds, const Layer& layer, double sum) {
  const auto count = static_cast<double>(layer.result->count);
  return fmt::format("{}{}{}, {} of the time", layer.times.estimated ? "~" : "", time_text(seconds / count),
                     layer.result->count == 1 ? "" : fmt::format(", {} times", layer.result->count),
                     percent_text(seconds / sum));
}

// The layers in the order of their tuned time; those that are too little to be seen together at the end.
std::vector<Part> parts_of(const std::vector<Layer>& layers, double Layer::*seconds) {
  constexpr double least_share = 0.025;
  constexpr size_t most_parts = 12;
  double tuned = 0, sum = 0;
  std::vector<const Layer*> order;
  for (const Layer& layer : layers) {
    order.push_back(&layer);
    tuned += layer.tuned;
    sum += layer.*seconds;
  }
  std::stable_sort(order.begin(), order.end(), [](const Layer* a, const Layer* b) { return a->tuned > b->tuned; });
  std::vector<Part> parts;
  Part others;
  for (size_t i = 0; i < order.size(); ++i) {
    const Layer& layer = *order[i];
    if (i + 1 < order.size() && (i >= most_parts || layer.tuned < least_share * tuned)) break;
    parts.push_back({layer.number, summary(layer.result->request),
                     fmt::format("{}: {}", numbered(layer), share_text(layer.*seconds, layer, sum)), layer.*seconds});
  }
  for (size_t i = parts.size(); i < order.size(); ++i) others.seconds += order[i]->*seconds;
  if (parts.size() < order.size()) {
    others.label = fmt::format("{} others", order.size() - parts.size());
    others.title = fmt::format("{}: {}, {} of the time", others.label, time_text(others.seconds),
                               percent_text(others.seconds / sum));
    parts.push_back(others);
  }
  return parts;
}

// The parts of the tuned bar by their names.
std::string names_of(const std::vector<Part>& parts, double sum) {
  std::string text = "<ul class=\"parts\">\n";
  for (const Part& part : parts) {
    const std::string name = escaped(part.label);
    text += part.number == 0
                ? fmt::format("<li><b></b><span>{}", name)
                : fmt::format("<li><b>{}</b><span><a href=\"{}\">{}</a>", part.number, layer_anchor(part.number), name);
    text += fmt::format(" <small>{}</small></span></li>\n", percent_text(part.seconds / sum));
  }
  return text + "</ul>\n";
}

double sum_of(const std::vector<Layer>& layers, double Layer::*seconds) {
  double sum = 0;
  for (const Layer& layer : layers) sum += layer.*seconds;
  return sum;
}

std::string where_time_goes(const TuneReport& report, const std::vector<Layer>& layers) {
  const double tuned = sum_of(layers, &Layer::tuned), fallback = sum_of(layers, &Layer::fallback);
  const double whole = std::max(tuned, fallback);
  const std::vector<Part> parts = parts_of(layers, &Layer::tuned);
  return fmt::format(
      "<section>\n<h2>Where the time goes</h2>\n<figure class=\"stacks\">\n<p>{}tuned: <strong>{}</strong> {}</p>\n{}\n"
      "<p>{}default choices: <strong>{}</strong> {}</p>\n{}\n{}<figcaption>One pass through all layers. Each part is "
      "the "
      "time of a layer, times its count, with the layer's number; the longest come first, and what is too short to be "
      "seen stands together at the end.</figcaption>\n</figure>\n</section>\n",
      glyph(Mark::tuned), time_text(tuned), kind_of_time(report.apparatus), stacked_bar(parts, whole, Mark::tuned),
      glyph(Mark::fallback), time_text(fallback), kind_of_time(report.apparatus),
      stacked_bar(parts_of(layers, &Layer::fallback), whole, Mark::fallback), names_of(parts, tuned));
}

RooflinePoint point_of(const TuneReport& report, const Layer& layer, const Roofline& bound, double sum) {
  const bool compared = layer.times.compared && !layer.times.estimated;
  const double rate = bound.flops / layer.times.best;
  const Choice& choice = choice_of(layer);
  std::string title = fmt::format("{}: {} {}: {}{} {}, {}, {} of its roof", numbered(layer), choice.algorithm,
                                  choice.config.print(), layer.times.estimated ? "~" : "", time_text(layer.times.best),
                                  layer.times.estimated ? "estimated" : kind_of_time(report.apparatus),
                                  rate_text(rate, "FLOP/s"), percent_text(bound.seconds() / layer.times.best));
  return {layer.number,
          std::move(title),
          bound.flops / bound.bytes,
          rate,
          compared ? bound.flops / layer.times.heuristic : 0,
          layer.tuned / sum};
}

// Layers that compute nothing have no place on logarithmic axes.
std::string on_the_roofline(const TuneReport& report, const std::vector<Layer>& layers) {
  const double sum = sum_of(layers, &Layer::tuned);
  std::map<MathClass, Roof> roofs;
  std::vector<RooflinePoint> points;
  double bytes_per_second = 0;
  for (const Layer& layer : layers) {
    const Roofline bound = roofline(layer.result->request, report.apparatus.target.arch, report.apparatus.figures);
    if (!(bound.flops > 0 && bound.bytes > 0 && bound.flops_per_second > 0 && bound.bytes_per_second > 0)) continue;
    bytes_per_second = bound.bytes_per_second;
    roofs[bound.math] = {std::string(to_string(bound.math)), bound.flops_per_second};
    points.push_back(point_of(report, layer, bound, sum));
  }
  if (points.empty()) return {};
  std::vector<Roof> levels;
  for (const auto& [math, roof] : roofs) levels.push_back(roof);
  const size_t absent = layers.size() - points.size();
  const std::string remark = absent == 0 ? ""
                                         : fmt::format(" Not here: {}, without any arithmetic.",
                                                       absent == 1 ? "1 layer" : fmt::format("{} layers", absent));
  return fmt::format(
      "<section>\n<h2>Roofline</h2>\n<figure>\n{}\n<figcaption>Each dot is a layer, the larger the more of the time it "
      "takes: what it computes for each byte that it must move, and how fast it does that, by {} times. A thin line "
      "rises to it from the default choice. No variant passes the dashed lines: the memory's full bandwidth, and the "
      "peak "
      "of the arithmetic that a layer permits.{}</figcaption>\n</figure>\n</section>\n",
      roofline_plot(bytes_per_second, std::move(levels), std::move(points)), kind_of_time(report.apparatus), remark);
}

std::string gains(const std::vector<Layer>& layers) {
  std::vector<Gain> all;
  bool any = false;
  for (const Layer& layer : layers) {
    const bool known = layer.times.compared && !layer.times.estimated;
    any = any || known;
    all.push_back({layer.number,
                   fmt::format("{}: default {}, tuned {}: {}", numbered(layer), time_text(layer.times.heuristic),
                               time_text(layer.times.best), gain_text(*layer.result)),
                   known ? layer.times.heuristic / layer.times.best : 0});
  }
  if (!any) return {};
  return "<section>\n<h2>Gains by tuning</h2>\n<figure>\n" + gain_plot(all) +
         "\n<figcaption>How many times as fast each layer is as with its default choice. Layers without a bar: one of "
         "the two has no time.</figcaption>\n</figure>\n</section>\n";
}

}  // namespace

std::string figures(const TuneReport& report) {
  const std::vector<Layer> layers = layers_of(report);
  if (layers.empty()) return {};
  return where_time_goes(report, layers) + on_the_roofline(report, layers) + gains(layers);
}

}  // namespace kiln::cli
