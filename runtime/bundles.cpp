#include "bundles.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <tuple>

#include "kiln/base/error.h"
#include "kiln/cache/machine_clock.h"
#include "kiln/device/arch.h"

namespace kiln {
namespace {

// The clock that modelled the time of a variant, if `device` has another or is real. `timed_on`: a DeviceId line.
std::string predicting_clock(const std::string& timed_on, const device::DeviceInfo& device) {
  const auto theirs = cache::machine_clock_of(timed_on), ours = cache::machine_clock_of(device.name);
  return theirs && (!ours || ours->text != theirs->text) ? std::string(theirs->text) : "";
}

}  // namespace

Bundles::Bundles(const std::vector<std::string>& paths, const device::DeviceInfo& device,
                 const std::function<void(const std::string&)>& announce) {
  const std::string arch = device::real_arch(device.cc_major, device.cc_minor);
  for (const std::string& path : paths) {
    try {
      opened_.push_back(execution::Bundle::open(path));
    } catch (const Error& error) {
      announce(error.what());
      continue;
    }
    const auto& variants = opened_.back()->variants();
    for (size_t i = 0; i < variants.size(); ++i) {
      if (variants[i].arch != arch || variants[i].emulated != device.emulated) continue;
      const BundledChoice choice{opened_.back(), i, predicting_clock(variants[i].device, device)};
      by_request_[variants[i].request].push_back(choice);
      by_program_.try_emplace(variants[i].program, choice);
      for (size_t j = 0; j < variants[i].sources.size(); ++j)
        by_source_.try_emplace(variants[i].sources[j], BundledSource{choice, j});
    }
  }
  const std::string id = device.id();
  const auto rank = [&](const BundledChoice& choice) {
    const execution::BundledVariant& variant = choice.variant();
    return std::tuple(variant.device.empty(), !choice.clock.empty(), variant.device != id,
                      std::abs(variant.sms - device.sms));
  };
  for (auto& [request, choices] : by_request_) {
    std::stable_sort(choices.begin(), choices.end(),
                     [&](const BundledChoice& a, const BundledChoice& b) { return rank(a) < rank(b); });
  }
}

std::vector<BundledChoice> Bundles::find(const std::string& key) const {
  const auto found = by_request_.find(key);
  return found == by_request_.end() ? std::vector<BundledChoice>() : found->second;
}

bool Bundles::has(const Program& program) const {
  if (empty()) return false;
  return by_program_.contains(program.digest()) || std::ranges::all_of(program.sources, [&](const Source& source) {
           return by_source_.contains(execution::code_digest(source));
         });
}

std::optional<execution::CompiledProgram> Bundles::load(const Program& program) const {
  if (empty()) return std::nullopt;
  if (const auto found = by_program_.find(program.digest()); found != by_program_.end())
    return found->second.bundle->load(found->second.index);
  execution::CompiledProgram compiled;
  compiled.program = program;
  for (const Source& source : program.sources) {
    const auto found = by_source_.find(execution::code_digest(source));
    if (found == by_source_.end()) return std::nullopt;
    const auto& [of, number] = found->second;
    const std::vector<execution::KernelImage> images = of.bundle->load(of.index).images;
    if (number >= images.size()) return std::nullopt;  // its index says otherwise
    compiled.images.push_back(images[number]);
  }
  return compiled;
}

std::string Bundles::describe() const {
  std::vector<std::string> texts;
  for (const auto& bundle : opened_) {
    std::set<std::string> archs;
    for (const execution::BundledVariant& variant : bundle->variants()) {
      archs.insert(variant.arch + (variant.emulated ? " emulated" : ""));
    }
    texts.push_back(fmt::format("{} ({})", bundle->path(), fmt::join(archs, ", ")));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace kiln
