#include "neighbours.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <tuple>
#include <utility>

#include "kiln/base/error.h"
#include "plausible_time.h"

namespace kiln {
namespace {

// Weights of a neighbour at a distance, and of the estimates, which have none. Chosen with times of nine layers on an
// A100 in sight (bench/results/2026-11-28-neighbours.md).
constexpr double nearest_distance = 0.5;
constexpr double weight_of_estimates = 0.5;
// Sizes of one class, nearest first, for which the sources are asked: many may have no two times that count.
constexpr size_t most_asked = 200;
constexpr double longest_seconds = 3600;  // that a time from outside may say

std::string variant_name(const Choice& choice) {
  return fmt::format("{} {}", choice.algorithm, choice.config.print());
}

// The other size, as the first operand that differs: "x=8x64x56x56".
std::string difference(const Request& neighbour, const Request& request) {
  for (size_t i = 0; i < neighbour.operands.size() && i < request.operands.size(); ++i) {
    const auto& [name, spec] = neighbour.operands[i];
    if (spec.extents != request.operands[i].spec.extents)
      return fmt::format("{}={}", name, fmt::join(spec.extents, "x"));
  }
  return "with other strides";
}

// The request of a stored line: text from outside. Of one class with `like`, so that user code is the same.
std::optional<Request> parsed(const std::string& key, const Request& like) {
  try {
    Request request = Request::parse(key);
    request.user_code = like.user_code;
    return request;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

double Neighbours::Lesson::factor(const std::string& variant, const std::string& algorithm) const {
  if (const auto found = variants.find(variant); found != variants.end()) return found->second;
  const auto found = algorithms.find(algorithm);
  return found != algorithms.end() ? found->second : 1;
}

Candidates Neighbours::ranked(Variants& variants, Candidates candidates) {
  const KeyedRequest& request = variants.request();
  const std::vector<Neighbour> neighbours = neighbours_of(request, variants.target());
  if (neighbours.empty()) return candidates;
  const auto has_time = [&](const std::string& variant) {
    return std::ranges::any_of(neighbours,
                               [&](const Neighbour& one) { return one.lesson->variants.contains(variant); });
  };
  std::vector<Candidate> first, rest;
  std::vector<std::string> names;  // of `first`
  for (Candidate& candidate : candidates.ranked) {
    std::string name = variant_name(candidate.choice);
    if (first.size() >= most_ranked && !has_time(name)) {
      rest.push_back(std::move(candidate));
      continue;
    }
    first.push_back(std::move(candidate));
    names.push_back(std::move(name));
  }
  double weights = weight_of_estimates;
  std::vector<double> sums(first.size());
  for (const Neighbour& neighbour : neighbours) {
    const double weight = 1 / (nearest_distance + neighbour.distance);
    weights += weight;
    const Lesson& lesson = *neighbour.lesson;
    for (size_t i = 0; i < first.size(); ++i) {
      sums[i] += weight * std::log(lesson.factor(names[i], first[i].choice.algorithm) * lesson.level);
    }
  }
  for (size_t i = 0; i < first.size(); ++i) first[i].estimate.seconds *= std::exp(sums[i] / weights);
  std::ranges::stable_sort(first, {}, [](const Candidate& candidate) { return candidate.estimate.seconds; });
  candidates.basis = fmt::format("from {} neighbour{}, nearest {}", neighbours.size(), neighbours.size() > 1 ? "s" : "",
                                 difference(neighbours.front().lesson->request, request));
  candidates.ranked = std::move(first);
  std::ranges::move(rest, std::back_inserter(candidates.ranked));
  return candidates;
}

void Neighbours::learn(std::string_view key) {
  const std::lock_guard lock(mutex_);
  ++learnt_since_;
  insert(key);  // also before there is an index, which may be in the making
  if (const auto known = lessons_.find(key); known != lessons_.end()) {
    lessons_.erase(known);
    std::erase(order_, key);
  }
}

std::vector<Neighbours::Neighbour> Neighbours::neighbours_of(const KeyedRequest& request, const Target& target) {
  std::vector<Neighbour> found;
  for (Neighbour& one : nearest(request.key())) {
    if (found.size() == most_used) break;
    one.lesson = lesson_of(one.key, request, target);
    if (one.lesson) found.push_back(std::move(one));
  }
  return found;
}

// The nearest of the request's class, nearest first, whatever they teach.
std::vector<Neighbours::Neighbour> Neighbours::nearest(const std::string& key) {
  const LayerClass layer = layer_class_of(key);
  index();
  const std::lock_guard lock(mutex_);
  const auto found = classes_.find(layer.text);
  if (found == classes_.end()) return {};
  std::vector<std::pair<double, const std::string*>> all;
  for (const auto& [other, sizes] : found->second) {
    if (other != key) all.emplace_back(distance_between(sizes, layer.sizes), &other);
  }
  const size_t count = std::min(all.size(), most_asked);
  std::ranges::partial_sort(all, all.begin() + static_cast<std::ptrdiff_t>(count), [](const auto& a, const auto& b) {
    return std::tie(a.first, *a.second) < std::tie(b.first, *b.second);
  });
  std::vector<Neighbour> result;
  for (const auto& [distance, other] : std::span(all).first(count)) result.push_back({*other, distance, nullptr});
  return result;
}

void Neighbours::index() {
  {
    const std::lock_guard lock(mutex_);
    if (indexed_) return;
  }
  const std::vector<std::string> requests = winners_.requests();  // announces what it meets, so without the lock
  const std::lock_guard lock(mutex_);
  for (const std::string& request : requests) {
    if (count_ >= most_indexed) break;
    insert(request);  // again, if another thread was first
  }
  indexed_ = true;
}

// With the lock held.
void Neighbours::insert(std::string_view key) {
  LayerClass layer = layer_class_of(key);
  if (std::ranges::find(layer.sizes, 0) != layer.sizes.end()) return;  // nothing is computed
  count_ += classes_[std::move(layer.text)].try_emplace(std::string(key), std::move(layer.sizes)).second;
}

std::shared_ptr<const Neighbours::Lesson> Neighbours::lesson_of(const std::string& key, const KeyedRequest& like,
                                                                const Target& target) {
  uint64_t before = 0;
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = lessons_.find(key); known != lessons_.end()) return known->second;
    before = learnt_since_;
  }
  std::shared_ptr<const Lesson> lesson = read(key, like, target);
  const std::lock_guard lock(mutex_);
  if (learnt_since_ != before) return lesson;  // it may have been tuned while it was read: read again next time
  if (lessons_.contains(key)) return lesson;
  order_.push_back(key);  // first: where memory runs out, no lesson is left that would never go
  lessons_.emplace(key, lesson);
  if (order_.size() > most_learnt) {
    lessons_.erase(order_.front());
    order_.pop_front();
  }
  return lesson;
}

std::shared_ptr<const Neighbours::Lesson> Neighbours::read(const std::string& key, const KeyedRequest& like,
                                                           const Target& target) const {
  const std::vector<cache::TimedVariant> times = winners_.times(key);
  std::optional<Request> request = times.empty() ? std::nullopt : parsed(key, like);
  if (!request) return nullptr;
  Variants variants = catalogue_.on(*request, target);
  auto lesson = std::make_shared<Lesson>();
  lesson->request = std::move(*request);
  std::map<std::string, size_t> counts;
  double sum = 0;
  for (const cache::TimedVariant& time : times) {
    if (time.of_pack && impossible_time(lesson->request, target.arch, time.device, time.seconds)) continue;
    Choice choice;
    try {
      choice = {time.algorithm, Config::parse(time.config)};
    } catch (const Error&) {
      continue;  // text from outside
    }
    if (variants.refusal(choice)) continue;
    const double estimate = variants.estimate(choice, figures_).seconds;
    if (!(estimate > 0) || !(time.seconds > 0) || time.seconds > longest_seconds) continue;
    const double log = std::log(time.seconds / estimate);
    if (!lesson->variants.try_emplace(variant_name(choice), log).second) continue;
    lesson->algorithms[choice.algorithm] += log;
    ++counts[choice.algorithm];
    sum += log;
  }
  if (lesson->variants.size() < 2) return nullptr;  // one alone is neither fast nor slow
  const double level = sum / static_cast<double>(lesson->variants.size());
  lesson->level = std::exp(level);
  for (auto& [name, log] : lesson->variants) log = std::exp(log - level);
  for (auto& [name, log] : lesson->algorithms) log = std::exp(log / static_cast<double>(counts[name]) - level);
  return lesson;
}

}  // namespace kiln
