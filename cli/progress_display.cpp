#include "progress_display.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "json.h"
#include "kiln/base/printable.h"
#include "short_forms.h"

namespace kiln::cli {
namespace {

constexpr size_t bar_width = 24;
constexpr double line_interval = 10;  // seconds between plain lines of one request
constexpr double worth_naming = 2;    // seconds that a task takes before it is named

// Share of the whole: of the candidates of all requests.
double share(const tuner::Progress& progress) {
  if (progress.all_planned == 0) return 1;
  return std::min(static_cast<double>(progress.all_candidates) / static_cast<double>(progress.all_planned), 1.0);
}

std::string prefix(const std::string& device) {
  return device.empty() ? "" : fmt::format("device {}: ", device);
}

}  // namespace

std::string progress_status(const tuner::Progress& progress) {
  std::string text = fmt::format("layer {}/{}, candidate {}/{}", progress.job + 1, progress.jobs, progress.candidates,
                                 progress.planned);
  if (progress.remaining) text += fmt::format(", {} left", duration_text(*progress.remaining));
  if (progress.best != nullptr) text += fmt::format(", best {}", time_text(progress.best->seconds));
  if (progress.waiting_seconds >= worth_naming) {
    text += fmt::format("; {} for {}", progress.waiting_for, duration_text(progress.waiting_seconds));
  }
  return text;
}

std::string progress_bar(const tuner::Progress& progress, const std::string& device) {
  const auto filled = static_cast<size_t>(share(progress) * bar_width);
  return fmt::format("[{}{}] {}{}", std::string(filled, '#'), std::string(bar_width - filled, '.'), prefix(device),
                     progress_status(progress));
}

std::string progress_json(const tuner::Progress& progress, const std::string& device) {
  const auto number = [](const auto& value) { return value ? Json(*value) : Json(); };
  const std::optional<double> best =
      progress.best == nullptr ? std::nullopt : std::optional<double>(progress.best->seconds);
  Json line = {{"layer", progress.job + 1},
               {"layers", progress.jobs},
               {"request", progress.request},
               {"candidates", progress.candidates},
               {"planned", progress.planned},
               {"all_candidates", progress.all_candidates},
               {"all_planned", progress.all_planned},
               {"elapsed_seconds", progress.elapsed},
               {"remaining_seconds", number(progress.remaining)},
               {"best_seconds", number(best)},
               {"waiting_for", progress.waiting_for},
               {"waiting_seconds", progress.waiting_seconds}};
  if (!device.empty()) line.set("device", device);
  return line.line();
}

ProgressDisplay::ProgressDisplay(ProgressForm form) : form_(form), terminal_(isatty(STDERR_FILENO) != 0) {}

ProgressDisplay::~ProgressDisplay() {
  if (bar_drawn_) fmt::print(stderr, "\r\033[K");
}

void ProgressDisplay::show(const tuner::Progress& progress, const std::string& device) {
  if (form_ == ProgressForm::none) return;
  if (form_ == ProgressForm::json)
    fmt::print(stderr, "{}\n", progress_json(progress, device));
  else if (terminal_)
    show_bar(progress, device);
  else
    show_line(progress, device);
}

void ProgressDisplay::say(const std::string& line) {
  fmt::print(stderr, "{}{}\n", bar_drawn_ ? "\r\033[K" : "", printable(line));
}

void ProgressDisplay::show_bar(const tuner::Progress& progress, const std::string& device) {
  fmt::print(stderr, "\r\033[K{}", progress_bar(progress, device));
  std::fflush(stderr);
  bar_drawn_ = true;
}

void ProgressDisplay::show_line(const tuner::Progress& progress, const std::string& device) {
  Line& last = lines_[device];
  const bool same = progress.request == last.request;
  // A task that begins to take long is named at once.
  const bool is_news = progress.waiting_seconds >= worth_naming && progress.waiting_for != last.waiting_for;
  if (same && !is_news && progress.elapsed - last.shown < line_interval) return;
  if (!same)
    fmt::print(stderr, "{}layer {}/{}: {}\n", prefix(device), progress.job + 1, progress.jobs,
               summary(Request::parse(progress.request)));
  else
    fmt::print(stderr, "  {}{}\n", prefix(device), progress_status(progress));
  last = {progress.request, progress.waiting_seconds >= worth_naming ? progress.waiting_for : "", progress.elapsed};
}

}  // namespace kiln::cli
