// Rows whose runs of neighbours stand side by side in memory, as the channels of a group do in channels last: shared by
// the descriptors of kernels that have sums for each neighbour (lib/norm_merge.cuh).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "norm/norm_rows.h"

namespace kiln::descriptor {

struct ChannelRows {
  NormRows groups;    ///< Rows as the request has them.
  NormRows channels;  ///< Each neighbour of their runs as a row; operands that stand aside have one element.
  int64_t run = 1;

  /// `aside`: operands that kernels for channels do not touch.
  static ChannelRows of(NormRows groups, const std::vector<std::string_view>& aside);
};

/// Parameters of such kernels: RowBlocks whose threads take rows side by side.
struct ChannelBlocks : RowBlocks {
  ChannelBlocks() : RowBlocks{.across = 1, .lanes = 0, .vector = 0, .threads = 0, .splits = 0} {}
};

/// Why kernels for channels are not for these rows.
std::optional<std::string> refuse_channel_rows(const ChannelRows& rows, const Target& target);

/// Adapts a condition of channels as rows.
template <class Holds>
auto of_channels(Holds holds) {
  return [holds](const ChannelBlocks& blocks, const ChannelRows& rows, const Target& target) {
    return holds(blocks, rows.channels, target);
  };
}

/// Declares the parameters of ChannelBlocks, their rules and refuse_channel_rows(). View is ChannelRows or derives from
/// it.
template <class View>
Describe<ChannelBlocks, View>&& with_channel_blocks(Describe<ChannelBlocks, View>&& algorithm) {
  return std::move(algorithm)
      .param("LANES", &ChannelBlocks::lanes, {8, 16, 4, 32, 2})
      .param("VECTOR", &ChannelBlocks::vector, {2, 1, 4, 8})
      .param("THREADS", &ChannelBlocks::threads, {256, 128})
      .param("SPLITS", &ChannelBlocks::splits, {64, 256, 16, 4})
      .applies(refuse_channel_rows)
      .takes_prologue()
      .rule("VECTOR divides the channels", of_channels(vectors_divide))
      .pruning("alignment makes VECTOR pay", of_channels(vectors_suit))
      .rule("channels side by side fill sectors", of_channels(lanes_fill_warps))
      .pruning("at least half of the threads have work", of_channels(threads_have_work))
      .pruning("parts of rows are worth more blocks", of_channels(splitting_pays))
      .rule("sums fit shared memory",
            of_channels([](const ChannelBlocks& blocks, const NormRows& channels, const Target& target) {
              return sums_fit(blocks, target, channels.words());
            }));
}

/// Adds what lib/norm_merge.cuh asks for: RUN, GROUP_EXTENTS from `numbers`, the dimensions that number the rows,
/// innermost first, and for operands of these names X_GROUP_STRIDES.
void add_groups(Prelude& prelude, const Rows& rows, int64_t run, const std::vector<RowDimension>& numbers,
                const std::vector<std::string_view>& names);

}  // namespace kiln::descriptor
