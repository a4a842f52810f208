#include "norm/norm_channel_rows.h"

#include <algorithm>
#include <utility>

#include "descriptor/prelude_and_launch.h"
#include "descriptor/strided.h"

namespace kiln::descriptor {
namespace {

// Axis along which elements of a row are side by side in x.
std::optional<size_t> run_of(const NormRows& rows) {
  const TensorSpec& x = rows.operands.front().spec;
  for (const int64_t axis : rows.axes) {
    const auto d = static_cast<size_t>(axis);
    if (x.extents[d] > 1 && x.strides[d] == 1) return d;
  }
  return std::nullopt;
}

// Whether the strides of x alone say in which order rows, and their channels, are numbered.
bool rows_stand_apart(const ChannelRows& rows) {
  const TensorSpec& x = rows.groups.operands.front().spec;
  std::vector<int64_t> strides;
  for (size_t d = 0; d < x.extents.size(); ++d) {
    if (!rows.groups.is_axis(d) && x.extents[d] > 1) strides.push_back(x.strides[d]);
  }
  std::sort(strides.begin(), strides.end());
  return strides.empty() ||
         (strides.front() >= rows.run && std::adjacent_find(strides.begin(), strides.end()) == strides.end());
}

}  // namespace

ChannelRows ChannelRows::of(NormRows groups, const std::vector<std::string_view>& aside) {
  ChannelRows rows;
  rows.groups = std::move(groups);
  rows.channels = rows.groups;
  NormRows& channels = rows.channels;
  const std::optional<size_t> run = run_of(rows.groups);
  if (!run) return rows;
  rows.run = channels.extents()[*run];
  std::erase(channels.axes, static_cast<int64_t>(*run));
  for (Operand& operand : channels.operands) {
    if (std::find(aside.begin(), aside.end(), operand.name) == aside.end()) continue;
    channels.wide = channels.wide || needs_wide_index({&operand.spec});
    operand.spec.extents.assign(operand.spec.extents.size(), 1);
  }
  return rows;
}

std::optional<std::string> refuse_channel_rows(const ChannelRows& rows, const Target& target) {
  if (rows.run == 1) return "no dimension of the axes is the innermost of x";
  if (auto reason = refuse_row_blocks(rows.groups, target)) return reason;
  if (rows.channels.length() == 1) return "rows are single runs of neighbours";
  if (!rows_stand_apart(rows)) return "rows of x share elements";
  const bool alone = rows.groups.per_image() == 1;
  if (!alone && across_rows(rows.channels).inner.extent == rows.run) {
    return "runs of rows are not side by side in all operands";
  }
  return std::nullopt;
}

void add_groups(Prelude& prelude, const Rows& rows, int64_t run, const std::vector<RowDimension>& numbers,
                const std::vector<std::string_view>& names) {
  prelude.extent("RUN", run).extents("GROUP_EXTENTS", extents_of(numbers, most_outer));
  for (size_t i = 0; i < rows.operands.size(); ++i) {
    const Operand& operand = rows.operands[i];
    if (std::find(names.begin(), names.end(), operand.name) == names.end()) continue;
    prelude.extents(constant_name(operand) + "_GROUP_STRIDES", strides_of(numbers, i, most_outer));
  }
}

}  // namespace kiln::descriptor
