#include "all_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/generator/roofline.h"
#include "short_forms.h"
#include "table.h"

namespace kiln::cli {
namespace {

int64_t elements_of(const Request& request) {
  int64_t elements = 0;
  for (const Operand& operand : request.operands) elements += operand.spec.elements();
  return elements;
}

std::vector<Request> from_small_ones_on(std::vector<Request> sizes) {
  std::ranges::stable_sort(sizes, {}, elements_of);
  return sizes;
}

bool takes_long(const Request& request, const Arch& arch) {
  constexpr int64_t most_elements = int64_t{1} << 22;
  constexpr double most_operations = 1 << 28;
  return elements_of(request) > most_elements || roofline(request, arch, DeviceFigures()).flops > most_operations;
}

}  // namespace

std::vector<OpenLineKernels> all_sizes_of(const std::vector<std::string>& lines, const Catalogue& catalogue,
                                          const Target& target, const DeviceFigures& figures) {
  std::vector<OpenLineKernels> all;
  for (const std::string& line : lines) {
    OpenLineKernels chosen = OpenLineChooser(catalogue, target, figures, {}).choose(line);
    if (!chosen.why_none.empty()) {
      throw Error(ErrorCode::unsupported, fmt::format("'{}' has no open kernels: {}", line, chosen.why_none),
                  "give the extents as numbers, or name them, as in x=f32:?nx?c, and give --sweep n=1,8 --sweep c=64");
    }
    all.push_back(std::move(chosen));
  }
  return all;
}

std::string text_of(const OpenLineKernels& all, const Output& output) {
  struct Row {
    const Choice* choice;
    size_t kernels;
    std::vector<Request> sizes;
  };
  std::vector<Row> rows;
  for (const OpenLineKernel& kernel : all.kernels) {
    auto row = std::ranges::find_if(rows, [&](const Row& one) { return *one.choice == kernel.choice; });
    if (row == rows.end()) row = rows.insert(rows.end(), {&kernel.choice, 0, {}});
    ++row->kernels;
    row->sizes.insert(row->sizes.end(), kernel.sizes.begin(), kernel.sizes.end());
  }
  Table table({"open kernel", "parameters", ">kernels", ">sizes", "from", "to"});
  for (const Row& row : rows) {
    const std::vector<Request> sizes = from_small_ones_on(row.sizes);
    table.add({row.choice->algorithm, row.choice->config.print(), std::to_string(row.kernels),
               std::to_string(sizes.size()), summary(sizes.front()), summary(sizes.back())});
  }
  const std::optional<std::string> remark = all.remark();
  return fmt::format("\n{}\n{} open kernel{} for {} sizes that were drawn\n{}\n{}", all.line, all.kernels.size(),
                     all.kernels.size() == 1 ? "" : "s", all.sizes(), remark ? *remark + "\n" : "",
                     output.print(table));
}

Json json_of(const OpenLineKernels& all) {
  Json kernels = Json::array();
  for (const OpenLineKernel& kernel : all.kernels) {
    Json sizes = Json::array();
    for (const Request& size : from_small_ones_on(kernel.sizes)) sizes.push_back(size.key());
    kernels.push_back(
        {{"algorithm", kernel.choice.algorithm}, {"config", kernel.choice.config.print()}, {"sizes", sizes}});
  }
  return {{"open_line", all.line}, {"remark", all.remark().value_or("")}, {"open_kernels", kernels}};
}

std::vector<SizeToCheck> sizes_to_check(const OpenLineKernels& all, size_t count, const Arch& arch) {
  std::vector<SizeToCheck> checks;
  std::map<std::string, size_t> places;  // in `checks`, by the request's key
  for (const OpenLineKernel& kernel : all.kernels) {
    std::vector<Request> sizes = from_small_ones_on(kernel.sizes);
    const Request smallest = sizes.front();
    std::erase_if(sizes, [&](const Request& size) { return takes_long(size, arch); });
    if (sizes.empty()) sizes = {smallest};
    const size_t wanted = count == 0 ? sizes.size() : std::min(count, sizes.size());
    for (size_t i = 0; i < wanted; ++i) {
      const Request& size = sizes[wanted == 1 ? 0 : i * (sizes.size() - 1) / (wanted - 1)];
      const auto [place, is_new] = places.try_emplace(size.key(), checks.size());
      if (is_new) checks.push_back({size, {}});
      std::vector<Choice>& choices = checks[place->second].choices;
      if (std::ranges::find(choices, kernel.choice) == choices.end()) choices.push_back(kernel.choice);
    }
  }
  return checks;
}

}  // namespace kiln::cli
