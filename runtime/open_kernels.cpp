// Bundles of open kernels: which ones the sizes of a request with open extents need.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common_cards.h"
#include "kiln/base/error.h"
#include "kiln/execution/bundle.h"
#include "kiln/execution/target.h"
#include "kiln/generator/open_line.h"
#include "kiln/generator/operation.h"
#include "kiln/runtime/bundling.h"
#include "selection.h"

namespace kiln {
namespace {

// Extents that accesses of equal length divide, in rows; and 1, with which tensors have several layouts.
const std::vector<std::vector<int64_t>>& usual_extents() {
  static const std::vector<std::vector<int64_t>> extents = {
      {1},           {3, 7, 13, 31, 197, 8191},      {2, 14, 50, 1002}, {4, 28, 100, 1020},
      {8, 56, 1000}, {16, 64, 256, 512, 4096, 16384}};
  return extents;
}

constexpr size_t drawn_sizes = 300;
constexpr double slowest_of_them = 1.3;  // that a size may take, in times of the best estimate

// The line with all extents alike.
std::string with_extents(const OpenLine& line, int64_t same) {
  std::map<std::string, int64_t> values;
  for (const OpenExtent& extent : line.extents) values[extent.name] = same;
  return line.with(values);
}

// Adds the sizes of which some extents are 1, which leaves several names for one layout, and changes what may be fixed.
void add_sizes_with_ones(const OpenLine& line, const std::map<std::string, int64_t>& names,
                         std::set<std::string>& sizes) {
  constexpr size_t most_names = 6;
  if (names.size() > most_names) return;
  for (const int64_t others : {13, 64}) {
    for (size_t ones = 1; ones < (size_t{1} << names.size()); ++ones) {
      std::map<std::string, int64_t> values = names;
      size_t bit = 0;
      for (auto& [name, value] : values) value = (ones >> bit++ & 1) != 0 ? 1 : others;
      sizes.insert(line.with(values));
    }
  }
}

// The sizes of a line, the same ones each time.
std::set<std::string> sizes_of(const OpenLine& line) {
  std::map<std::string, int64_t> values;
  for (const OpenExtent& extent : line.extents) values[extent.name] = 0;
  std::set<std::string> sizes = {line.with(values)};
  add_sizes_with_ones(line, values, sizes);
  for (const std::vector<int64_t>& alike : usual_extents()) {
    for (const int64_t same : alike) sizes.insert(with_extents(line, same));
  }
  std::mt19937 draw(39);  // NOLINT(cert-msc32-c,cert-msc51-cpp): equal lines have equal bundles
  for (size_t i = 0; i < drawn_sizes && !values.empty(); ++i) {
    for (auto& [name, value] : values) {
      const std::vector<int64_t>& alike = usual_extents()[draw() % usual_extents().size()];
      value = alike[draw() % alike.size()];
    }
    sizes.insert(line.with(values));
  }
  return sizes;
}

// Layers that large are left out: the estimates rank their kernels as those of smaller ones.
bool is_too_large(const Request& request) {
  constexpr int64_t most_elements = int64_t{1} << 30;
  return std::ranges::any_of(request.operands,
                             [](const Operand& operand) { return operand.spec.elements() > most_elements; });
}

// The request of a size, and the same with the layouts that larger sizes have: where some extents are 1 a tensor is
// packed in several, of which the request names the first, and an operand that is left out follows that name.
std::vector<Request> forms_of(const std::string& size, const std::optional<Request>& larger) {
  std::vector<Request> forms = {finished(Request::parse(size))};
  if (!larger) return forms;
  Request other = forms.front();
  for (Operand& operand : other.operands) {
    TensorSpec& spec = operand.spec;
    const TensorSpec* const usual = larger->find(operand.name);
    const std::optional<std::string> order = usual != nullptr ? usual->order() : std::nullopt;
    if (order && spec.order() && usual->rank() == spec.rank())
      spec = TensorSpec::packed(spec.dtype, spec.extents, *order, spec.alignment);
  }
  try {
    if (other != forms.front()) forms.push_back(finished(other));
  } catch (const Error&) {
    // These layouts make no request.
  }
  return forms;
}

// A request of the line whose layouts have one name each; nothing where extents that it fixes forbid that.
std::optional<Request> larger_size(const OpenLine& line) {
  for (const int64_t extent : {8, 64, 7}) {
    try {
      return finished(Request::parse(with_extents(line, extent)));
    } catch (const Error&) {
      continue;
    }
  }
  return std::nullopt;
}

// The few kernels that serve all sizes of a line: each size can take one of several, and those that most sizes can take
// are chosen first.
class Chooser {
 public:
  Chooser(const Catalogue& catalogue, const Target& target, const BundleOptions& options)
      : catalogue_(catalogue), target_(target), options_(options), figures_(common_figures(target.arch)) {}

  void add(const std::string& line, BundlePlan& plan) {
    sizes_.clear();
    kernels_.clear();
    std::string reason;
    const OpenLine open = parse_open_line(line);
    const std::optional<Request> larger = larger_size(open);
    for (const std::string& size : sizes_of(open)) {
      try {
        for (const Request& request : forms_of(size, larger)) {
          if (is_too_large(request)) continue;
          (void)add_size(of_any_alignment(request));
          if (!add_size(request)) reason = fmt::format("no open kernel serves {}", request.key());
        }
      } catch (const Error& error) {
        if (reason.empty()) reason = fmt::format("no size of it makes a request: {}", error.message());
      }
    }
    if (sizes_.empty()) plan.gaps.push_back({line, target_.arch.name(), reason});
    while (const Kernel* const best = that_serves_most()) {
      plan.choices.push_back(best->choice);
      plan.choices.back().open_line = line;
      served_.insert(best->sources.begin(), best->sources.end());
    }
  }

 private:
  struct Kernel {
    BundleChoice choice;
    std::set<std::string> sources;
  };
  using Kernels = std::map<std::string, Kernel>;  // by their sources

  bool add_size(const Request& request) {
    Variants variants = catalogue_.on(request, target_);
    const Candidates candidates = variants.open_candidates(figures_);
    std::set<std::string> can_take;
    for (const Candidate& candidate : candidates.ranked) {
      if (candidate.estimate.seconds > slowest_of_them * candidates.ranked.front().estimate.seconds) break;
      const Program program = variants.program(candidate.choice);
      if (!options_.filter.admits(program.workspace_bytes, program.deterministic)) continue;
      std::set<std::string> sources;
      for (const Source& source : program.sources) sources.insert(execution::code_digest(source));
      const std::string name = fmt::format("{}", fmt::join(sources, " "));
      can_take.insert(name);
      kernels_.try_emplace(
          name,
          Kernel{{request, target_, candidate.choice, candidate.estimate.seconds, "open kernel", {}, 0}, sources});
    }
    if (can_take.empty()) return false;
    sizes_.push_back(std::move(can_take));
    return true;
  }

  bool is_served(const std::set<std::string>& size) const {
    return std::ranges::any_of(
        size, [&](const std::string& name) { return std::ranges::includes(served_, kernels_.at(name).sources); });
  }

  // The kernel that most of the sizes can take which none serves yet; null where there are no such sizes.
  const Kernel* that_serves_most() const {
    std::map<std::string, int> counts;
    for (const std::set<std::string>& size : sizes_) {
      if (is_served(size)) continue;
      for (const std::string& name : size) ++counts[name];
    }
    const auto best = std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; });
    return best == counts.end() ? nullptr : &kernels_.at(best->first);
  }

  const Catalogue& catalogue_;
  const Target& target_;
  const BundleOptions& options_;
  const DeviceFigures figures_;
  std::set<std::string> served_;              // sources that are in the bundle
  std::vector<std::set<std::string>> sizes_;  // of the line at hand: the names of what each can take
  Kernels kernels_;                           // likewise
};

}  // namespace

BundlePlan plan_open_kernels(std::span<const std::string> lines, const Catalogue& catalogue, const device::Nvrtc& nvrtc,
                             const BundleOptions& options) {
  BundlePlan plan;
  for (const Arch& arch : options.archs) {
    const Target target = execution::target_for(arch.major, arch.minor, nvrtc);
    Chooser chooser(catalogue, target, options);
    for (const std::string& line : lines) chooser.add(line, plan);
  }
  return plan;
}

}  // namespace kiln
