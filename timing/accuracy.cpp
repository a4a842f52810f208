#include "kiln/timing/accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "judged.h"
#include "kiln/base/error.h"
#include "kiln/timing/card.h"
#include "kiln/timing/time_model.h"

namespace kiln::timing {
namespace {

bool is_sensible(const Judgement& one) {
  return one.version > 0 && one.date.size() == 10 && one.rows > 1 && std::abs(one.spearman) <= 1 && one.mean > 0 &&
         one.spread >= 1;
}

// "0.92 to 0.99", "0.99".
std::string range_of(const std::vector<Judgement>& judgements, double (*figure)(const Judgement&),
                     std::string (*print)(double)) {
  const auto [least, most] = std::minmax_element(judgements.begin(), judgements.end(),
                                                 [&](const auto& a, const auto& b) { return figure(a) < figure(b); });
  const std::string low = print(figure(*least)), high = print(figure(*most));
  return low == high ? low : low + " to " + high;
}

}  // namespace

double Judgement::error() const {
  const double of_mean = std::log(mean), of_spread = std::log(spread);
  return std::exp(std::sqrt(of_mean * of_mean + of_spread * of_spread)) - 1;  // std::hypot would need glibc 2.35
}

std::string Judgement::print() const {
  return fmt::format("{} {} {} {} {} {:.2f} {:.2f} {:.2f}", card, version, date, table, rows, spearman, mean, spread);
}

std::vector<Judgement> parse_judgements(std::string_view text) {
  std::vector<Judgement> result;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    Judgement one;
    std::string more;
    fields >> one.card >> one.version >> one.date >> one.table >> one.rows >> one.spearman >> one.mean >> one.spread;
    if (!fields || fields >> more || !is_sensible(one)) {
      throw Error(ErrorCode::parse_error, fmt::format("judgements, line {}: {}", number, line),
                  "a line holds card, version, date, table, rows, Spearman, mean and spread");
    }
    result.push_back(std::move(one));
  }
  return result;
}

std::vector<Judgement> judgements() {
  return parse_judgements(committed_judgements);
}

std::vector<Judgement> judgements_of(std::string_view device_name) {
  const std::string card = card_named(device_name);
  std::vector<Judgement> result = judgements();
  std::erase_if(result, [&](const Judgement& one) { return one.card != card || one.version != model_version; });
  return result;
}

std::string accuracy_text(const std::vector<Judgement>& judgements) {
  if (judgements.empty()) return "not judged by measured times on this card";
  const auto ranks = range_of(
      judgements, [](const Judgement& one) { return one.spearman; }, [](double v) { return fmt::format("{:.2f}", v); });
  const auto errors = range_of(
      judgements, [](const Judgement& one) { return one.error(); },
      [](double v) { return fmt::format("{:.0f}%", 100 * v); });
  return fmt::format("rank correlation {} with measured times of {}, off by {}", ranks,
                     judgements.size() == 1 ? "1 table" : fmt::format("{} tables", judgements.size()), errors);
}

}  // namespace kiln::timing
