#include "machine_tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

#include "kiln/base/parallel.h"

namespace kiln::cli {
namespace {

// Whether the device is at fault that did not open: it is not there any more, or its driver says so.
bool is_lost(const Error& error) {
  return error.code() == ErrorCode::driver_error || error.code() == ErrorCode::invalid_argument;
}

}  // namespace

std::optional<double> longest_remaining(const std::vector<std::optional<double>>& remaining) {
  std::optional<double> most = 0.0;
  for (const std::optional<double>& one : remaining) most = one && most ? std::max(most, one) : std::nullopt;
  return most;
}

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

// Says of each layer how many candidates it has, because a device takes only a few layers up at a time.
std::vector<tuner::Work> MachineTuning::counted(std::vector<tuner::Work> work, const Catalogue& catalogue,
                                                const Card& card) const {
  if (stations_.size() == 1) return work;
  for_each_index(work.size(), [&](size_t i) {
    work[i].planned = tuner::planned_candidates(catalogue, work[i].job.request,
                                                card.stations.front()->laboratory->apparatus(), options_.search);
  });
  return work;
}

void MachineTuning::prepare(const Catalogue& catalogue, cache::Database& database, const tuner::SessionOptions& options,
                            const std::vector<tuner::Work>& work, const RunLabel& label, ProgressDisplay& display) {
  options_ = options;
  label_ = label;
  display_ = &display;
  for (Card& card : cards_) {
    card.list = std::make_unique<tuner::WorkList>(counted(work, catalogue, card), card.stations.size());
    for (Station* station : card.stations) {
      station->card = &card;
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
    station.tuning->run(*station.card->list, label_);
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
  if (station.card != nullptr) station.card->remaining.reset();  // others of its kind will say again
  display_->say(
      fmt::format("kiln: {}: device {} was lost: {}", to_string(error.code()), station.choice.text, error.message()));
}

// Tells where a device stands, within all that the devices have to do.
void MachineTuning::show(Station& station, tuner::Progress progress) {
  const std::lock_guard lock(mutex_);
  if (stations_.size() == 1) {
    display_->show(progress, "");
    return;
  }
  station.card->remaining = progress.remaining;
  progress.all_candidates = progress.all_planned = 0;
  for (const Card& card : cards_) {
    const tuner::WorkList::Count counts = card.list->counts();
    progress.all_candidates += counts.tried;
    progress.all_planned += counts.planned;
  }
  progress.remaining = remaining();
  display_->show(progress, station.choice.text);
}

// Nobody does what was left to a card without devices.
std::optional<double> MachineTuning::remaining() const {
  std::vector<std::optional<double>> all;
  for (const Card& card : cards_) {
    const auto is_left = [](const Station* station) { return !station->lost; };
    if (std::any_of(card.stations.begin(), card.stations.end(), is_left)) all.push_back(card.remaining);
  }
  return longest_remaining(all);
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
