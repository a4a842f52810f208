#include "kiln/generator/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "kiln/base/digest.h"
#include "kiln/generator/code_text.h"

namespace kiln {
namespace {

int64_t end_of(const Launch& launch) {
  int64_t end = 0;
  for (const Argument& argument : launch.arguments) {
    if (const auto range = workspace_range(argument)) end = std::max(end, range->offset + range->bytes);
  }
  return end;
}

int64_t end_of(const ClearWorkspace& clear) {
  return clear.offset + clear.bytes;
}

void add(Digest& digest, const Launch& launch) {
  digest.add("launch").add(std::to_string(launch.source)).add(launch.entry);
  for (const Count& count : launch.grid) digest.add(identity_of(count));
  for (unsigned extent : launch.block) digest.add(std::to_string(extent));
  digest.add(std::to_string(launch.dynamic_shared_bytes));
  // Launches without them keep the digests that are stored.
  if (launch.persistent) digest.add("persistent");
  if (launch.attributes != LaunchAttributes{}) {
    const auto& [cluster, cooperative, programmatic] = launch.attributes;
    digest.add(fmt::format("cluster {} {} {} cooperative {} programmatic {}", cluster[0], cluster[1], cluster[2],
                           cooperative, programmatic));
  }
  for (const Argument& argument : launch.arguments) digest.add(identity_of(argument));
}

void add(Digest& digest, const Extent& extent) {
  digest.add("extent").add(extent.name).add(std::to_string(extent.bytes));
  for (const int64_t value : extent.values) digest.add(std::to_string(value));
}

void add(Digest& digest, const ClearWorkspace& clear) {
  digest.add("clear").add(std::to_string(clear.offset)).add(std::to_string(clear.bytes));
}

}  // namespace

int64_t workspace_end(const std::vector<Step>& steps) {
  int64_t end = 0;
  for (const Step& step : steps) {
    end = std::max(end, std::visit([](const auto& value) { return end_of(value); }, step));
  }
  return end;
}

std::string Program::digest() const {
  std::vector<std::string> codes;
  for (const Source& source : sources) codes.push_back(code_of(source.code));
  return digest_with(codes);
}

std::string Program::digest_with(std::span<const std::string> codes) const {
  Digest digest;
  for (size_t i = 0; i < sources.size(); ++i) {
    digest.add(codes[i]);
    for (const Extent& extent : sources[i].extents) add(digest, extent);
  }
  for (const Step& step : steps) {
    std::visit([&](const auto& value) { add(digest, value); }, step);
  }
  return digest.add(std::to_string(workspace_bytes)).add(deterministic ? "1" : "0").hex();
}

}  // namespace kiln
