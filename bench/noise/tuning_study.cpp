#include "tuning_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "kiln/base/error.h"
#include "kiln/base/parallel.h"
#include "kiln/base/tie.h"
#include "kiln/tuner/session.h"

namespace kiln::bench {
namespace {

struct Parameters {
  int number;
};

// An algorithm whose candidate i is the program `i`; the lower ones come first.
Algorithm replayed(const std::string& name, size_t candidates) {
  std::vector<int64_t> numbers(candidates);
  std::iota(numbers.begin(), numbers.end(), 0);
  auto open = describe<Parameters>(name, "softmax_forward", "replay.cu").param("NUMBER", &Parameters::number, numbers);
  auto description = name == "trusted" ? std::move(open).trusted() : std::move(open);
  return std::move(description)
      .program([](const Parameters& p, const Request&, const Target&, const Emitter&) {
        Program program;
        program.sources = {std::to_string(p.number)};
        program.steps = {Launch{.source = 0, .entry = "replay", .grid = {}, .arguments = {}}};
        return program;
      })
      .estimate([](const Parameters& p, const Request&, const Target&, const DeviceFigures&) {
        return Estimate{.seconds = 1e-3 * (1 + p.number)};
      });
}

struct Draw {
  std::vector<const SampledRow*> rows;
  Picked first, second;
};

Draw draw(const std::vector<SampledRow>& rows, const StudyOptions& options, const Method& method, size_t tuning) {
  Dice dice(options.seed * 1'000'003 + tuning);
  std::vector<const SampledRow*> deck;
  for (const SampledRow& row : rows) deck.push_back(&row);
  for (size_t i = 0; i < options.candidates; ++i) std::swap(deck[i], deck[i + dice.below(deck.size() - i)]);
  deck.resize(options.candidates);
  const auto once = [&] {
    const auto noise = static_cast<uint64_t>(dice.below(1U << 31)), others = noise + 1;
    ReplayDevice device(deck, options.noise, noise);
    return method(device, others);
  };
  Draw result;
  result.first = once();
  result.second = once();
  result.rows = std::move(deck);
  return result;
}

}  // namespace

Method tuner_method(size_t candidates, const tuner::TimingOptions& timing) {
  const auto catalogue =
      std::make_shared<Catalogue>(SourceLibrary({{"replay.cu", ""}, {"replay.cpp", ""}, {"lib/types.cuh", ""}}),
                                  std::vector<Algorithm>{replayed("replayed", candidates), replayed("trusted", 1)});
  return [=](ReplayDevice& device, uint64_t seed) {
    ReplayLaboratory laboratory(device, seed);
    tuner::SessionOptions options;
    options.search = {.kind = tuner::SearchKind::exhaustive};
    options.timing = timing;
    tuner::Session session(*catalogue, laboratory, options, {});
    const Request request = Request::parse("softmax_forward x=f32:1x1000:nc y=f32:1x1000:nc axis=1 mode=accurate");
    const tuner::JobResult result = session.run({{request, 1}}).front();
    if (!result.best) throw Error(ErrorCode::internal, "a tuning on the replayed device found nothing");
    const std::string text = result.best->choice.config.print();  // NUMBER=17
    const size_t pick = std::stoul(text.substr(text.find('=') + 1));
    return Picked{pick, laboratory.samples(), device.runs(), device.seconds()};
  };
}

Method simple_method(int samples, Statistic statistic) {
  return [=](ReplayDevice& device, uint64_t) {
    double least = 0;
    Picked picked;
    for (size_t candidate = 0; candidate < device.candidates(); ++candidate) {
      std::vector<double> taken;
      for (int i = 0; i < samples; ++i) taken.push_back(device.run(candidate));
      double value = 0;
      if (statistic == Statistic::mean) value = std::accumulate(taken.begin(), taken.end(), 0.0) / samples;
      if (statistic == Statistic::least) value = *std::min_element(taken.begin(), taken.end());
      if (statistic == Statistic::median) value = tuner::summarise(taken).median;
      if (candidate == 0 || value < least) {
        least = value;
        picked.candidate = candidate;
      }
    }
    picked.samples = picked.runs = device.runs();
    picked.seconds = device.seconds();
    return picked;
  };
}

Verdict judge(const std::vector<SampledRow>& rows, const StudyOptions& options, const Method& method) {
  if (options.candidates == 0 || options.tunings == 0) {
    throw Error(ErrorCode::invalid_argument, "a study needs at least one tuning of one candidate");
  }
  if (rows.size() < options.candidates) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} candidates are to be drawn from {} rows", options.candidates, rows.size()));
  }
  std::vector<Draw> draws(options.tunings);
  for_each_index(draws.size(), [&](size_t i) { draws[i] = draw(rows, options, method, i); });
  constexpr double near_limit = 1.01;
  size_t near = 0, same = 0, tied = 0;
  Verdict verdict;
  for (const Draw& each : draws) {
    const auto by_median = [](const SampledRow* a, const SampledRow* b) { return a->median < b->median; };
    const double best = (*std::min_element(each.rows.begin(), each.rows.end(), by_median))->median;
    const double first = each.rows[each.first.candidate]->median, second = each.rows[each.second.candidate]->median;
    near += static_cast<size_t>(first <= best * near_limit) + static_cast<size_t>(second <= best * near_limit);
    verdict.worst = std::max({verdict.worst, first / best, second / best});
    if (each.first.candidate == each.second.candidate) {
      ++same;
    } else if (std::max(first, second) <= tie_limit(std::min(first, second))) {
      ++tied;
    }
    for (const Picked* picked : {&each.first, &each.second}) {
      verdict.samples += static_cast<double>(picked->samples);
      verdict.runs += static_cast<double>(picked->runs);
      verdict.seconds += picked->seconds;
    }
  }
  const auto tunings = static_cast<double>(options.tunings);
  verdict.near = static_cast<double>(near) / (2 * tunings);
  verdict.tied = static_cast<double>(tied) / tunings;
  verdict.same = tied == options.tunings ? 1 : static_cast<double>(same) / (tunings - static_cast<double>(tied));
  verdict.samples /= 2 * tunings * static_cast<double>(options.candidates);
  verdict.runs /= 2 * tunings * static_cast<double>(options.candidates);
  verdict.seconds /= 2 * tunings;
  return verdict;
}

}  // namespace kiln::bench
