#include "machine_tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

namespace kiln::cli {
namespace {

// Whether the device is at fault that did not open: it is not there any more, or its driver says so.
bool is_lost(const Error& error) {
  return error.code() == ErrorCode::driver_error || error.code() == ErrorCode::invalid_argument;
}

}  // namespace

MachineTuning::MachineTuning(const std::vector<DeviceChoice>& devices,
                             const std::optional<store::StoreOptions>& kernels, DeviceChoice::Limits limits) {
  if (devices.size() > 1) {
    limits.compile_lanes = std::max<size_t>(1, std::thread::hardware_concurrency() / devices.size());
  }
  std::vector<std::future<std::unique_ptr<tuner::Laboratory>>> opening;
  for (const DeviceChoice& device : devices) {
    opening.push_back(std::async(std::launch::async, [&] { return device.laboratory({}, kernels, limits); }));
  }
  std::optional<Error> unusable;
  for (size_t i = 0; i < devices.size(); ++i) {
    Station& station = stations_.emplace_back(Station{.choice = devices[i], .laboratory = nullptr});
    try {
      station.laboratory = opening[i].get();
    } catch (const Error& error) {
      station.lost = error;
      if (!unusable && !is_lost(error)) unusable = error;
    }
  }
  const bool none = std::all_of(stations_.begin(), stations_.end(), [](const Station& each) { return each.lost; });
  if (none || unusable) throw Error(none ? *stations_.front().lost : *unusable);
  group();
}

// Devices of one identity are one kind of card.
void MachineTuning::group() {
  for (Station& station : stations_) {
    if (station.lost) continue;
    const std::string id = station.laboratory->apparatus().device.id();
    const auto same = [&](const Card& card) {
      return card.stations.front()->laboratory->apparatus().device.id() == id;
    };
    const auto found = std::find_if(cards_.begin(), cards_.end(), same);
    Card& card = found != cards_.end() ? *found : cards_.emplace_back();
    card.stations.push_back(&station);
  }
}

void MachineTuning::prepare(const Catalogue& catalogue, cache::Database& database, const tuner::SessionOptions& options,
                            const std::vector<tuner::Work>& work, const RunLabel& label, ProgressDisplay& display) {
  options_ = options;
  label_ = label;
  display_ = &display;
  for (Card& card : cards_) {
    card.list = std::make_unique<tuner::WorkList>(work, card.stations.size());
    for (Station* station : card.stations) {
      station->list = card.list.get();
      station->tuning =
          std::make_unique<Tuning>(catalogue, *station->laboratory, database, options,
                                   [this, station](const tuner::Progress& progress) { show(*station, progress); });
    }
  }
}

void MachineTuning::run() {
  std::vector<std::thread> threads;
  for (Station& station : stations_) {
    if (station.lost) {
      lose(station, *station.lost);
    } else {
      threads.emplace_back([this, &station] { work(station); });
    }
  }
  for (std::thread& thread : threads) thread.join();
  if (failure_) std::rethrow_exception(failure_);
}

void MachineTuning::stop() {
  for (const Station& station : stations_) {
    if (station.tuning) station.tuning->stop();
  }
}

// The thread of a device.
void MachineTuning::work(Station& station) {
  std::exception_ptr failure;
  try {
    station.tuning->run(*station.list, label_);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::driver_error) {
      lose(station, error);
      return;
    }
    failure = std::current_exception();
  } catch (...) {
    failure = std::current_exception();
  }
  if (!failure) return;
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = failure;
  }
  stop();
}

void MachineTuning::lose(Station& station, const Error& error) {
  const std::lock_guard lock(mutex_);
  station.lost = error;
  station.planned = station.candidates;
  display_->say(
      fmt::format("kiln: {}: device {} was lost: {}", to_string(error.code()), station.choice.text, error.message()));
}

// Tells where a device stands, within all that the devices have to do.
void MachineTuning::show(Station& station, tuner::Progress progress) {
  const std::lock_guard lock(mutex_);
  station.candidates = progress.all_candidates;
  station.planned = progress.all_planned;
  if (stations_.size() == 1) {
    display_->show(progress, "");
    return;
  }
  progress.all_candidates = progress.all_planned = 0;
  for (const Station& each : stations_) {
    progress.all_candidates += each.candidates;
    progress.all_planned += each.planned;
  }
  for (const Card& card : cards_) progress.all_planned += card.list->waiting() * options_.search.candidates;
  progress.remaining.reset();
  if (progress.all_candidates > 0) {
    const double each = progress.elapsed / static_cast<double>(progress.all_candidates);
    const double all = each * static_cast<double>(progress.all_planned - progress.all_candidates);
    progress.remaining = std::max(std::min(all, options_.budget_seconds - progress.elapsed), 0.0);
  }
  display_->show(progress, station.choice.text);
}

std::vector<CardResults> MachineTuning::take_results() {
  std::vector<CardResults> all;
  for (Card& card : cards_) {
    const Station& first = *card.stations.front();
    std::string why;
    CardResults results{first.laboratory->apparatus(), {}, {}, 0, first.tuning->calibration()};
    for (const Station* station : card.stations) {
      results.devices.push_back(station->choice.text);
      results.reused += station->tuning->reused();
      if (station->lost) why = fmt::format("device {} was lost: {}", station->choice.text, station->lost->message());
    }
    results.results = card.list->take_results(why);
    for (tuner::JobResult& result : results.results) first.tuning->consider_stored(result);
    all.push_back(std::move(results));
  }
  return all;
}

std::vector<LostDevice> MachineTuning::lost() const {
  std::vector<LostDevice> lost;
  for (const Station& station : stations_) {
    if (station.lost) lost.push_back({station.choice.text, station.lost->message()});
  }
  return lost;
}

}  // namespace kiln::cli
