#include "variants.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <vector>

#include "clock.h"
#include "kiln/base/error.h"
#include "kiln/device/context.h"
#include "kiln/runtime/settings.h"
#include "kiln/timing/accuracy.h"
#include "kiln/timing/card.h"
#include "kiln/timing/time_model.h"
#include "measured.h"
#include "place.h"
#include "statistics.h"

namespace kiln::bench {
namespace {

// "tensor_splitk" of conv_backward_filter_tensor_splitk: the same kind of kernel whatever it computes.
std::string kind_of(std::string_view algorithm) {
  for (const std::string_view operation : {"conv_backward_data_", "conv_backward_filter_", "conv_"}) {
    if (algorithm.starts_with(operation)) return std::string(algorithm.substr(operation.size()));
  }
  return std::string(algorithm);
}

void print_judgement(const std::string& which, const std::vector<Pair>& pairs) {
  if (pairs.size() < 2) return;
  const Judgement result = judge(pairs);
  fmt::print("  {:<22} {:>4} rows: Spearman {:.3f}, modelled/measured mean {:.2f} spread {:.2f}\n", which, pairs.size(),
             result.spearman, result.mean, result.spread);
}

class Verdict {
 public:
  explicit Verdict(bool every) : every_(every) {}

  void add(const MeasuredLayer& layer, const std::vector<double>& modelled) {
    std::vector<Pair> pairs;
    for (size_t i = 0; i < modelled.size(); ++i) {
      const MeasuredVariant& variant = layer.variants[i];
      if (modelled[i] == no_time) {
        fmt::print("  not timed: {} {}\n", name_of(variant.choice), layer.request);
        continue;
      }
      pairs.push_back({variant.seconds, modelled[i]});
      kinds_[kind_of(variant.choice.algorithm)].push_back(pairs.back());
      all_.push_back(pairs.back());
      if (every_) {
        fmt::print("    {:.2f}: measured {:.2f} us, modelled {:.2f}; {}\n", modelled[i] / variant.seconds,
                   variant.seconds * 1e6, modelled[i] * 1e6, name_of(variant.choice));
      }
    }
    if (pairs.empty()) return;
    const Judgement result = judge(pairs);
    fmt::print("  {:>3} rows: Spearman {:>5.2f}, mean {:.2f}, spread {:.2f}, favourite {:>3.0f}%; {}\n", pairs.size(),
               result.spearman, result.mean, result.spread, 100 * result.favourite, layer.request);
    std::fflush(stdout);
    favourites_ += std::log(result.favourite);
    ++layers_;
    if (pairs.size() < fewest_ranked) return;
    ranks_ += result.spearman;
    ++ranked_layers_;
  }

  void print(const std::string& card, const std::string& table) const {
    for (const auto& [kind, pairs] : kinds_) print_judgement(kind, pairs);
    print_judgement("all", all_);
    if (layers_ == 0) return;
    fmt::print(
        "  {} layers: favourites {:.1f}% of the fastest's speed; Spearman within {} layers of {} rows or more {:.2f}\n",
        layers_, 100 * std::exp(favourites_ / layers_), ranked_layers_, fewest_ranked,
        ranks_ / std::max(1, ranked_layers_));
    if (all_.size() < 2) return;
    const Judgement result = judge(all_);
    const timing::Judgement line{card,
                                 timing::model_version,
                                 fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))),
                                 table,
                                 static_cast<int>(all_.size()),
                                 result.spearman,
                                 result.mean,
                                 result.spread};
    fmt::print("  judged: {}\n", line.print());
  }

 private:
  static constexpr size_t fewest_ranked = 4;  // fewer say little by their ranks

  bool every_;
  std::map<std::string, std::vector<Pair>> kinds_;
  std::vector<Pair> all_;
  double favourites_ = 0, ranks_ = 0;
  int layers_ = 0, ranked_layers_ = 0;
};

}  // namespace

void judge_variants(const VariantOptions& options) {
  MeasuredTable table = read_measured(options.table);
  const Place place;
  const std::string card = timing::card_named(place.device.info().name);
  if (card != timing::card_named(table.device)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the table is of {}, the device is {}", table.device, place.device.info().name),
                "KILN_DRIVER=emulator KILN_EMULATOR_CLOCK=machine, and the card in KILN_EMULATOR_DEVICE");
  }
  TimesFile times(options.times, place.id());
  VariantClock clock(device::ContextHandle::acquire(place.device), place.nvrtc, place.catalogue, place.target,
                     kernel_store(std::nullopt, place.environment));
  fmt::print("{} against {}:\n", place.device.info().name, table.device);
  fmt::print("  {}\n", leave_out_changed(table, place.catalogue, place.target, options.unchanged));
  Verdict verdict(options.every);
  for (const MeasuredLayer& layer : table.layers) {
    const Request request = Request::parse(layer.request);
    std::vector<double> modelled;
    for (const MeasuredVariant& variant : layer.variants)
      modelled.push_back(clock.time(request, variant.choice, true, times));
    verdict.add(layer, modelled);
  }
  verdict.print(card, std::filesystem::path(options.table).stem());
}

}  // namespace kiln::bench
