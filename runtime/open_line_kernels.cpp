#include "kiln/runtime/open_line_kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <sstream>
#include <string_view>
#include <tuple>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/base/parallel.h"
#include "kiln/execution/bundle.h"
#include "kiln/generator/operation.h"
#include "kiln/runtime/open_line.h"
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

// For lines whose extents depend on each other.
constexpr std::string_view advice =
    "leave out what follows from other operands, or say how it follows, as in dy=f32:?nx64x?(h-1)/2+1x?(w-1)/2+1";

constexpr size_t drawn_sizes = 300;
constexpr double slowest_of_them = 1.3;  // that a size may take, in times of the best estimate

// The line with all open numbers alike.
std::string with_extents(const OpenLine& line, int64_t same) {
  std::map<std::string, int64_t> values;
  for (const OpenName& name : line.names) values[name.name] = std::min(same, name.most);
  return line.with(values);
}

// Sizes of a line, the same ones each time.
class Sizes {
 public:
  explicit Sizes(const OpenLine& line) : line_(line) {
    for (const OpenName& name : line.names) most_[name.name] = name.most;
  }

  std::set<std::string> draw() && {
    add([](size_t /*place*/) { return std::numeric_limits<int64_t>::max(); });
    add_with_ones();
    for (const std::vector<int64_t>& alike : usual_extents()) {
      for (const int64_t same : alike) add([&](size_t /*place*/) { return same; });
    }
    // NOLINTNEXTLINE(cert-msc32-c,cert-msc51-cpp): equal lines have equal bundles
    std::mt19937 draw(39);
    for (size_t i = 0; i < drawn_sizes && !most_.empty(); ++i) {
      add([&](size_t /*place*/) {
        const std::vector<int64_t>& alike = usual_extents()[draw() % usual_extents().size()];
        return alike[draw() % alike.size()];
      });
    }
    return std::move(sizes_);
  }

 private:
  // Adds the size with these numbers, `number(i)` for the i-th name in order, each at most what the line allows.
  template <typename Number>
  void add(const Number& number) {
    std::map<std::string, int64_t> values;
    size_t place = 0;
    for (const auto& [name, limit] : most_) values[name] = std::min(number(place++), limit);
    try {
      sizes_.insert(line_.with(values));
    } catch (const Error&) {
      // An expression that has no value there makes no size.
    }
  }

  // Adds the sizes of which some extents are 1, which leaves several names for one layout, and changes what may be
  // fixed.
  void add_with_ones() {
    constexpr size_t most_names = 6;
    if (most_.size() > most_names) return;
    for (const int64_t others : {13, 64}) {
      for (size_t ones = 1; ones < (size_t{1} << most_.size()); ++ones) {
        add([&](size_t place) { return (ones >> place & 1) != 0 ? 1 : others; });
      }
    }
  }

  const OpenLine& line_;
  std::map<std::string, int64_t> most_;  // by name
  std::set<std::string> sizes_;
};

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

struct Kernel {
  OpenLineKernel chosen;
  double slowdown;                // against the best estimate of the size
  std::set<std::string> sources;  // digests
};

// Kernels that one size can take, by their sources; where there are none, why.
struct Takes {
  std::map<std::string, Kernel> kernels{};
  std::string why_none{};
};

// Sizes of a line with what each can take, and what is chosen of that.
class Choosing {
 public:
  explicit Choosing(std::set<std::string>& served) : served_(served) {}

  void add(const Request& request, Takes takes) {
    Size& size = sizes_.emplace_back(Size{request, {}});
    for (const auto& [name, kernel] : takes.kernels) size.can_take.emplace(name, kernel.slowdown);
    kernels_.merge(takes.kernels);
  }

  bool empty() const { return sizes_.empty(); }

  // Chooses first the kernels that most sizes can take.
  std::vector<OpenLineKernel> choose() {
    std::vector<std::string> names;
    while (const std::string* const best = that_serves_most()) {
      names.push_back(*best);
      const std::set<std::string>& sources = kernels_.at(*best).sources;
      served_.insert(sources.begin(), sources.end());
    }
    for (const Size& size : sizes_) {
      auto taken = std::ranges::find_if(names, [&](const std::string& name) { return size.can_take.contains(name); });
      if (taken == names.end()) {
        const auto covered = std::ranges::find_if(
            size.can_take, [&](const auto& kernel) { return is_there(kernels_.at(kernel.first)); });
        kernels_.at(covered->first).chosen.is_covered = true;
        taken = names.insert(names.end(), covered->first);
      }
      kernels_.at(*taken).chosen.sizes.push_back(size.request);
    }
    std::vector<OpenLineKernel> chosen;
    for (const std::string& name : names) chosen.push_back(std::move(kernels_.at(name).chosen));
    return chosen;
  }

 private:
  struct Size {
    Request request;
    std::map<std::string, double> can_take;  // slowdowns by names of kernels
  };

  struct Worth {
    int sizes = 0;         // that nothing serves yet
    double slowdowns = 0;  // their sum
  };

  bool is_there(const Kernel& kernel) const { return std::ranges::includes(served_, kernel.sources); }

  // The kernel that most of the sizes can take which none serves yet; null where there are no such sizes. Of equal ones
  // it is the faster: their names are digests, and every edit of a source would change the order of those.
  const std::string* that_serves_most() const {
    std::map<std::string_view, Worth> worths;
    for (const Size& size : sizes_) {
      const bool is_served =
          std::ranges::any_of(size.can_take, [&](const auto& kernel) { return is_there(kernels_.at(kernel.first)); });
      if (is_served) continue;
      for (const auto& [name, slowdown] : size.can_take) {
        ++worths[name].sizes;
        worths[name].slowdowns += slowdown;
      }
    }
    const auto rank = [&](const auto& kernel) {
      const Choice& choice = kernels_.find(kernel.first)->second.chosen.choice;
      const Worth& worth = kernel.second;
      return std::tuple(-worth.sizes, worth.slowdowns, choice.algorithm, choice.config.print());
    };
    const auto best = std::ranges::min_element(worths, {}, rank);
    return best == worths.end() ? nullptr : &kernels_.find(best->first)->first;
  }

  std::set<std::string>& served_;
  std::vector<Size> sizes_;
  std::map<std::string, Kernel, std::less<>> kernels_;
};

// One of the sizes, for a message: that of 64 if there is one. Throws what keeps all numbers from making one.
std::string readable_size(const std::string& text, const OpenLine& line, const std::set<std::string>& sizes) {
  try {
    return with_extents(line, 64);
  } catch (const Error& error) {
    if (!sizes.empty()) return *sizes.begin();
    throw Error(error.code(), fmt::format("no numbers make a size of '{}'; with 64: {}", text, error.message()),
                error.hint());
  }
}

// The requests of a line's sizes, those of memory that is aligned to elements alone among them.
std::vector<Request> requests_of(const OpenLineChooser::Demand& demand, OpenLineKernels& result) {
  std::vector<Request> requests;
  const OpenLine open = parse_open_line(result.line);
  const std::optional<Request> larger = larger_size(open);
  const std::set<std::string> sizes = Sizes(open).draw();
  const std::string readable = readable_size(result.line, open, sizes);
  std::optional<Error> fault;  // of that one
  for (const std::string& size : sizes) {
    ++result.drawn;
    try {
      for (const Request& form : forms_of(size, larger)) {
        if (is_too_large(form)) continue;
        const Request request = demand ? demand(form) : form;
        requests.push_back(of_any_alignment(request));
        if (requests.back() != request) requests.push_back(request);
      }
      ++result.fitting;
    } catch (const Error& error) {
      if (size == readable) fault = error;
    }
  }
  if (result.fitting > 0) return requests;
  throw Error(fault->code(),
              fmt::format("no size of '{}' makes a request; '{}': {}", result.line, readable, fault->message()),
              fault->hint().empty() ? std::string(advice) : fault->hint());
}

Takes takes_of(Variants variants, const DeviceFigures& figures, const cache::Filter& filter) {
  Takes takes;
  const Request& request = *variants.request();
  takes.why_none = fmt::format("no open kernel serves {}", variants.request().key());
  const Candidates candidates = variants.open_candidates(figures);
  for (const Candidate& candidate : candidates.ranked) {
    const double slowdown = candidate.estimate.seconds / candidates.ranked.front().estimate.seconds;
    if (slowdown > slowest_of_them) break;
    const Program program = variants.program(candidate.choice);
    if (!filter.admits(program.workspace_bytes, program.deterministic)) continue;
    std::set<std::string> sources;
    for (const Source& source : program.sources) sources.insert(execution::code_digest(source));
    const std::string name = fmt::format("{}", fmt::join(sources, " "));
    takes.kernels.try_emplace(
        name, Kernel{{request, candidate.choice, candidate.estimate.seconds}, slowdown, std::move(sources)});
  }
  return takes;
}

}  // namespace

bool is_open_line(const std::string& line) {
  return line.find('?') != std::string::npos && find_operation(operation_named_in(line)) != nullptr &&
         !parse_open_line(line).extents.empty();
}

std::vector<std::string> open_lines_in(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream rest{std::string(text)};
  for (std::string line; std::getline(rest, line);) {
    line.erase(std::min(line.size(), line.find('#')));
    line.resize(without_count(line).size());
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

size_t OpenLineKernels::sizes() const {
  size_t count = 0;
  for (const OpenLineKernel& kernel : kernels) count += kernel.sizes.size();
  return count;
}

std::optional<std::string> OpenLineKernels::remark() const {
  constexpr size_t few = 4;  // one of so many
  if (fitting * few >= drawn) return std::nullopt;
  return fmt::format(
      "only {} of the {} sizes of '{}' that were drawn make a request: extents of it depend on each other, and sizes "
      "of other kinds may lack an open kernel; {}",
      fitting, drawn, line, advice);
}

OpenLineKernels OpenLineChooser::choose(const std::string& line) {
  OpenLineKernels result{.line = line};
  const std::vector<Request> requests = requests_of(demand_, result);
  std::vector<Takes> takes(requests.size());
  for_each_index(requests.size(), [&](size_t i) {
    try {
      takes[i] = takes_of(catalogue_.on(requests[i], target_), figures_, filter_);
    } catch (const Error& error) {
      takes[i].why_none = error.message();
    }
  });
  Choosing choosing(served_);
  for (size_t i = 0; i < requests.size(); ++i) {
    if (!takes[i].kernels.empty())
      choosing.add(requests[i], std::move(takes[i]));
    else
      result.why_none = takes[i].why_none;
  }
  if (choosing.empty()) {
    if (result.why_none.empty()) result.why_none = "its sizes have more than 2^30 elements";
    return result;
  }
  result.why_none.clear();
  result.kernels = choosing.choose();
  return result;
}

}  // namespace kiln
