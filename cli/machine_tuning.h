// Tuning on several devices of a machine at once.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "device_choice.h"
#include "kiln/base/error.h"
#include "kiln/runtime/tuning.h"
#include "progress_display.h"

namespace kiln::cli {

/// Results of the devices of one kind. They share the layers, because records of one serve all of them.
struct CardResults {
  const tuner::Apparatus& apparatus;
  std::vector<std::string> devices;  ///< For --device
  std::vector<tuner::JobResult> results;
  size_t reused = 0;  ///< Trials that were in the database before.
  std::optional<Calibration> calibration;
};

/// A device that could not be opened, or not any more.
struct LostDevice {
  std::string device;  ///< For --device
  std::string error;
};

/// The largest of `remaining`, the seconds that each card has to go; nothing while one card cannot tell.
std::optional<double> longest_remaining(const std::vector<std::optional<double>>& remaining);

/// A measuring process for each device, a thread for each that feeds it, and a list of layers for each kind of card.
class MachineTuning {
 public:
  /// Opens all of `devices`. One that cannot be opened is lost; if none can, or for another reason than the device's,
  /// throws what the first said. `limits` as for each of them; they share the hardware threads.
  MachineTuning(const std::vector<DeviceChoice>& devices, const std::optional<store::StoreOptions>& kernels,
                DeviceChoice::Limits limits);

  /// Makes sessions for `work`. `catalogue`, `database` and `display` must outlive this. To be called once.
  void prepare(const Catalogue& catalogue, cache::Database& database, const tuner::SessionOptions& options,
               const std::vector<tuner::Work>& work, const RunLabel& label, ProgressDisplay& display);

  /// Tunes until every kind of card has all layers, the budget has ended, or no device is left. A device that is lost
  /// costs its trial at work; its layers go to others of its kind. Throws what a session throws otherwise, when all
  /// have ended. To be called once, after prepare().
  void run();

  /// Makes run() return after the trials at work. Callable from any thread and from a signal handler, after prepare().
  void stop();

  /// After run(), in the order of the devices.
  std::vector<CardResults> take_results();
  std::vector<LostDevice> lost() const;

 private:
  struct Card;
  struct Station {
    DeviceChoice choice;
    std::unique_ptr<tuner::Laboratory> laboratory;  // null if it cannot be opened
    std::optional<Error> lost{};
    Card* card = nullptr;  // null if it could not be opened
    std::unique_ptr<Tuning> tuning{};
  };
  struct Card {
    std::vector<Station*> stations;
    std::unique_ptr<tuner::WorkList> list{};
    std::optional<double> remaining{};  // seconds, as one of its devices said last
  };

  void group();
  std::vector<tuner::Work> counted(std::vector<tuner::Work> work, const Catalogue& catalogue, const Card& card) const;
  void work(Station& station);
  void lose(Station& station, const Error& error);
  void show(Station& station, tuner::Progress progress);
  std::optional<double> remaining() const;

  std::vector<Station> stations_;
  std::vector<Card> cards_;
  tuner::SessionOptions options_;
  RunLabel label_;
  ProgressDisplay* display_ = nullptr;
  std::mutex mutex_;  // guards the display, what it sums, and what follows
  std::exception_ptr failure_;
};

}  // namespace kiln::cli
