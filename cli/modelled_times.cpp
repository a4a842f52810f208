#include "modelled_times.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include "json.h"
#include "kiln/cache/machine_clock.h"
#include "kiln/timing/accuracy.h"
#include "kiln/timing/time_model.h"
#include "launches.h"

namespace kiln::cli {
namespace {

constexpr std::string_view emulated_name = "Kiln emulated ";
constexpr std::string_view machine_code = "machine-code clock ";
constexpr std::string_view modelled_by_ptx = "modelled from PTX alone, uncalibrated";

Json ptx_json() {
  return {{"clock", "PTX"}, {"accuracy", "uncalibrated"}, {"judged", Json::array()}};
}

// Known accuracy of a clock on the card of a device; `clock`: "machine-code clock 1", "machine-code clock 1 of
// my_a100".
struct Known {
  std::string accuracy;
  std::vector<timing::Judgement> judged;
};

Known known_of(std::string_view device_name, std::string_view clock) {
  clock.remove_prefix(machine_code.size());
  int version = 0;
  const char* const end = clock.data() + clock.size();
  const auto [rest, error] = std::from_chars(clock.data(), end, version);
  if (error != std::errc() || version != timing::model_version) {
    return {fmt::format("not the clock of this Kiln ({}), which does not know how well it does", timing::model_version),
            {}};
  }
  if (rest != end) return {"by a user's figures, which nobody has judged", {}};
  Known known{"", timing::judgements_of(device_name)};
  known.accuracy = timing::accuracy_text(known.judged);
  return known;
}

}  // namespace

std::string modelled_text(std::string_view device_name) {
  const auto clock = cache::machine_clock_of(device_name);
  if (!clock) return std::string(modelled_by_ptx);
  return fmt::format("modelled by {}: {}", clock->text, known_of(device_name, clock->text).accuracy);
}

Json modelled_json(std::string_view device_name) {
  if (!device_name.starts_with(emulated_name)) return nullptr;
  const auto clock = cache::machine_clock_of(device_name);
  if (!clock) return ptx_json();
  const Known known = known_of(device_name, clock->text);
  Json judged = Json::array();
  for (const timing::Judgement& one : known.judged) {
    judged.push_back({{"table", one.table},
                      {"rows", one.rows},
                      {"spearman", one.spearman},
                      {"mean", one.mean},
                      {"spread", one.spread},
                      {"date", one.date}});
  }
  return {{"clock", clock->text}, {"accuracy", known.accuracy}, {"judged", judged}};
}

void LaunchClocks::add(const Json& launches) {
  const std::vector<std::string> reasons = not_by_machine_code(launches);
  if (by_ptx_ == 0 && !reasons.empty()) reason_ = reasons.front();
  launches_ += launches.size();
  by_ptx_ += reasons.size();
}

std::string LaunchClocks::text() const {
  if (by_ptx_ == 0) return modelled_text(device_name_);
  std::string by_ptx = fmt::format("{}: {}", modelled_by_ptx, reason_);
  if (by_ptx_ == launches_) return by_ptx;
  return fmt::format("{}\n{} of {} launches {}", modelled_text(device_name_), by_ptx_, launches_, by_ptx);
}

Json LaunchClocks::json() const {
  if (by_ptx_ == 0) return modelled_json(device_name_);
  Json json = by_ptx_ == launches_ ? ptx_json() : modelled_json(device_name_);
  json.set("by_ptx_alone", {{"launches", by_ptx_}, {"of", launches_}, {"reason", reason_}});
  return json;
}

void mark_predictions(cache::Pack& pack) {
  for (const cache::DeviceEntry& device : pack.devices) {
    const auto clock = cache::machine_clock_of(device);
    if (!clock || clock->version != timing::model_version) continue;
    pack.accuracies[device.id] = known_of(device.name, clock->text).accuracy;
  }
}

void PredictionNotes::add(std::string_view source) {
  constexpr std::string_view predicted = "predicted by ";
  if (!source.starts_with(predicted)) return;
  source.remove_prefix(predicted.size());
  const std::string_view clock = source.substr(0, source.find(','));
  if (clock.starts_with(machine_code))
    notes_.insert(fmt::format("{}{}: {}", predicted, clock, known_of(device_name_, clock).accuracy));
}

std::string PredictionNotes::print() const {
  std::string lines;
  for (const std::string& note : notes_) lines += note + "\n";
  return lines;
}

}  // namespace kiln::cli
