#include "attention/layer.h"

#include <fmt/format.h>

#include <utility>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/rows.h"
#include "descriptor/streaming_estimate.h"

namespace kiln::descriptor {
namespace {

// Letters of an operand's dimensions: N, H of either kind of head, M of queries, L of keys, E of elements.
std::string_view dimensions_of(std::string_view operand) {
  if (operand == "lengths") return "N";
  if (operand == "lse") return "NHM";
  if (operand == "bias" || operand == "mask" || operand == "dbias") return "NHML";
  for (const std::string_view of_keys : {"k", "v", "dk", "dv"}) {
    if (operand == of_keys) return "NHLE";
  }
  return "NHME";
}

}  // namespace

AttentionLayer AttentionLayer::of(const Request& request) {
  AttentionLayer layer;
  if (request.operation == "attention_forward") {
    static_cast<Attention&>(layer) = AttentionForward::of(request);
  } else {
    static_cast<Attention&>(layer) = AttentionBackward::of(request);
  }
  layer.operands = layer_operands(request, dimensions_of);
  return layer;
}

Prelude attention_prelude(const AttentionLayer& layer) {
  Prelude prelude;
  add_operands(prelude, layer.operands);
  prelude.constant("HEADS", layer.heads()).constant("KEY_HEADS", layer.key_heads());
  prelude.extent("QUERIES", layer.queries()).extent("KEYS", layer.keys());
  prelude.constant("DEPTH", layer.depth()).constant("WIDTH", layer.width());
  prelude.constant("LEFT", layer.left).constant("RIGHT", layer.right);
  prelude.flag("AT_END", layer.align == AttentionAlign::end).flag("WITH_DROPOUT", layer.drops);
  add_batch(prelude, layer.images(), layer.dynamic_batch);
  add_blend(prelude, layer.blend);
  return prelude;
}

Launch attention_launch(const AttentionLayer& layer, std::string entry, int threads) {
  Launch launch = launch_of(std::move(entry), threads);
  append_operands(launch, layer.operands);
  append(launch, {OperationScalar{0}, OperationScalar{1}, OperationInteger{0}, OperationInteger{1}, Scalar::alpha,
                  Scalar::beta, UserArgument{}, Scalar::n});
  return launch;
}

std::string order_of_tiles(std::string_view units, const AttentionLayer& layer, int64_t rows, const KeyParts& parts) {
  const std::string first = layer.left < 0 ? "" : fmt::format(", for {} queries", rows);
  const std::string shared = parts.parts == 1 ? "" : fmt::format(" in {} parts", parts.parts);
  return fmt::format("on {}, {} keys at a time{}{}", units, parts.columns, shared, first);
}

Count attention_blocks(const AttentionLayer& layer, int64_t lines, int64_t per_block) {
  return blocks_for(ceil_div(lines, per_block) * layer.key_heads(), layer.images(), layer.dynamic_batch, 1);
}

Program parts_program(const AttentionLayer& layer, Prelude& prelude, const Emitter& emit, const Launch& launch,
                      const KeyParts& parts, int64_t per_block) {
  constexpr int join_threads = 128;
  prelude.constant("PARTS", parts.parts).constant("JOIN_THREADS", join_threads);
  const int64_t ends = parts.parts == 1 ? 0 : layer.images() * layer.heads() * layer.queries() * parts.parts;
  const int64_t sums_bytes = aligned_bytes(ends * layer.width() * 4);
  const auto with_workspace = [&](Launch made) {
    const auto place = made.arguments.begin() + static_cast<std::ptrdiff_t>(layer.operands.size());
    made.arguments.insert(place, {WorkspaceArgument{0, sums_bytes}, WorkspaceArgument{sums_bytes, ends * 8}});
    return made;
  };
  Launch main = with_workspace(launch);
  main.grid[0] = attention_blocks(layer, layer.rows(), per_block);
  main.grid[1] = Count{parts.parts};
  Program program{{emit.source(prelude)}, {}};
  program.steps.emplace_back(main);
  if (parts.parts > 1) {
    Launch join = with_workspace(attention_launch(layer, launch.entry + "_join", join_threads));
    join.grid[0] =
        blocks_for(layer.heads() * layer.queries() * layer.width(), layer.images(), layer.dynamic_batch, join_threads);
    program.steps.emplace_back(join);
  }
  return program;
}

bool parts_have_work(const AttentionLayer& layer, const KeyParts& parts, int64_t per_block) {
  constexpr int64_t enough_blocks = 512;  // for any device
  if (parts.parts == 1) return true;
  const int64_t blocks = ceil_div(layer.rows(), per_block) * layer.key_heads() * layer.images();
  return 2 * parts.parts * parts.columns <= layer.keys() && blocks * parts.parts <= 4 * enough_blocks &&
         blocks < enough_blocks;
}

double join_seconds(const AttentionLayer& layer, const KeyParts& parts, const DeviceFigures& device) {
  if (parts.parts == 1) return 0;
  const double bytes = layer.lines() * static_cast<double>(parts.parts * (layer.width() + 2)) * 8;
  return launch_seconds(1, device) + bytes / device.dram_bytes_per_second;
}

Program gradient_program(const AttentionLayer& layer, Source source, const std::string& entry, int threads,
                         int64_t per_block, int64_t memory_bytes, const GradientSlices& slices) {
  const int64_t queries = layer.images() * layer.heads() * layer.queries();
  const WorkspaceArgument row_products{0, layer.has_gradients_of_keys() ? queries * 4 : 0};
  const auto launch = [&](const std::string& name, int64_t lines, int64_t slice_count) {
    Launch made = attention_launch(layer, name, threads);
    made.arguments.insert(made.arguments.begin() + static_cast<std::ptrdiff_t>(layer.operands.size()), row_products);
    made.grid[0] = attention_blocks(layer, lines, per_block);
    made.grid[2] = Count{slice_count};
    made.dynamic_shared_bytes = static_cast<unsigned>(memory_bytes);
    return made;
  };
  Program program{{std::move(source)}, {}};
  program.steps.emplace_back(launch(entry, layer.rows(), slices.of_queries));
  if (layer.has_gradients_of_keys()) program.steps.emplace_back(launch(entry + "_keys", layer.keys(), slices.of_keys));
  return program;
}

}  // namespace kiln::descriptor
