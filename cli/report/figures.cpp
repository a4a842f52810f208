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
#include "report/html_text.h"
#include "report/layer_section.h"
#include "report/plots.h"
#include "short_forms.h"

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
    layers.push_back({report.first_layer + i, &result, *times, count * times->best, count * times->heuristic});
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

double sum_of(const std::vector<Layer>& layers, double Layer::*seconds) {
  double sum = 0;
  for (const Layer& layer : layers) sum += layer.*seconds;
  return sum;
}

using Group = std::vector<const Layer*>;

double sum_of(const Group& group, double Layer::*seconds) {
  double sum = 0;
  for (const Layer* layer : group) sum += layer->*seconds;
  return sum;
}

// Groups that have a part of a stacked bar: layers, those with the most tuned time first; then several of one
// operation; then the rest, which even so is too short to be seen.
std::vector<Group> groups_of(const std::vector<Layer>& layers) {
  constexpr size_t most_alone = 12;
  const double least = 0.025 * sum_of(layers, &Layer::tuned);
  const auto longer = [](const Group& a, const Group& b) {
    return sum_of(a, &Layer::tuned) > sum_of(b, &Layer::tuned);
  };
  std::vector<Group> alone;
  for (const Layer& layer : layers) alone.push_back({&layer});
  std::stable_sort(alone.begin(), alone.end(), longer);
  std::vector<Group> groups;
  std::map<std::string, Group> by_operation;
  for (const Group& one : alone) {
    const Layer* const layer = one.front();
    if (groups.size() < most_alone && layer->tuned >= least) {
      groups.push_back(one);
    } else {
      by_operation[layer->result->request.operation].push_back(layer);
    }
  }
  const auto first_of_several = static_cast<std::ptrdiff_t>(groups.size());
  Group others;
  for (const auto& [operation, several] : by_operation) {
    if (several.size() > 1 && sum_of(several, &Layer::tuned) >= least) {
      groups.push_back(several);
    } else {
      others.insert(others.end(), several.begin(), several.end());
    }
  }
  std::stable_sort(groups.begin() + first_of_several, groups.end(), longer);
  if (!others.empty()) groups.push_back(others);
  return groups;
}

// "12 of conv_forward", "5 others".
std::string label_of(const Group& group) {
  const std::string& operation = group.front()->result->request.operation;
  const bool same = std::all_of(group.begin(), group.end(),
                                [&](const Layer* layer) { return layer->result->request.operation == operation; });
  return fmt::format("{} {}", group.size(), same ? "of " + operation : "others");
}

std::vector<Part> parts_of(const std::vector<Layer>& layers, double Layer::*seconds) {
  const double sum = sum_of(layers, seconds);
  std::vector<Part> parts;
  for (const Group& group : groups_of(layers)) {
    const Layer& first = *group.front();
    const double time = sum_of(group, seconds);
    if (group.size() == 1) {
      parts.push_back({first.number, summary(first.result->request),
                       fmt::format("{}: {}", numbered(first), share_text(time, first, sum)), time});
    } else {
      const std::string label = label_of(group);
      parts.push_back(
          {0, label, fmt::format("{}: {}, {} of the time", label, time_text(time), percent_text(time / sum)), time});
    }
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

std::string where_time_goes(const TuneReport& report, const std::vector<Layer>& layers) {
  const double tuned = sum_of(layers, &Layer::tuned), fallback = sum_of(layers, &Layer::fallback);
  const double whole = std::max(tuned, fallback);
  const std::vector<Part> parts = parts_of(layers, &Layer::tuned);
  double estimated = 0;
  for (const Layer& layer : layers) estimated += layer.times.estimated ? layer.tuned : 0;
  std::string kind(kind_of_time(report.apparatus));
  if (estimated > 0) kind += fmt::format(", ~{} of it estimated", time_text(estimated));
  return fmt::format(
      "<section>\n<h2>Where the time goes</h2>\n<figure class=\"stacks\">\n<p>{}tuned: <strong>{}</strong> {}</p>\n{}\n"
      "<p>{}default choices: <strong>{}</strong> {}</p>\n{}\n{}<figcaption>One pass through all layers. Each part is "
      "the time of a layer, times its count, with the layer's number. The longest come first; those that are too short "
      "to be seen stand together at the end, by operation.</figcaption>\n</figure>\n</section>\n",
      glyph(Mark::tuned), time_text(tuned), kind, stacked_bar(parts, whole, Mark::tuned), glyph(Mark::fallback),
      time_text(fallback), kind, stacked_bar(parts_of(layers, &Layer::fallback), whole, Mark::fallback),
      names_of(parts, tuned));
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
