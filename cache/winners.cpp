#include "kiln/cache/winners.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <unordered_map>

#include "front.h"
#include "kiln/base/error.h"
#include "pack_fronts.h"
#include "winner_table.h"

namespace kiln::cache {
namespace {

// A variant that a source bars on a device.
struct Barred {
  const AlgorithmVersion* algorithm = nullptr;
  std::string_view config;
  std::string_view outcome;
  const WinnerSource* source = nullptr;
  const DeviceEntry* device = nullptr;
  Standing standing = Standing::measured_here;  // or same_architecture
  std::string_view source_digest;               // of what ran
  bool current = true;                          // else only that very program is barred
};

// What was found on this device, or in an earlier layer, is believed rather than what was found elsewhere.
template <class Found>  // WinnerGroup or Barred
auto authority(const Found& found) {
  return std::tuple(found.standing, found.source->origin, found.source->order);
}

struct HashOfKey {
  std::size_t operator()(const KeyHash& key) const { return key.low; }
};

// The order of precedence. Within a Standing the layer comes first: the user's own database wins over packs.
bool precedes(const WinnerGroup& a, const WinnerGroup& b) {
  const auto rank = [](const WinnerGroup& g) {
    return std::tuple(g.standing, g.source->origin, g.source->order, g.sm_distance, std::string_view(g.device->id));
  };
  return rank(a) < rank(b);
}

Choice choice_of(const WinnerGroup& group, const FrontEntry& entry) {
  Choice choice;
  choice.algorithm = entry.algorithm->name;
  choice.algorithm_digest = entry.algorithm->digest;
  choice.config = entry.config;
  choice.seconds = entry.seconds;
  choice.workspace_bytes = entry.workspace_bytes;
  choice.deterministic = entry.deterministic;
  choice.kind = entry.kind;
  choice.standing = group.standing;
  choice.origin = group.source->origin;
  choice.source = group.source->name;
  choice.device = group.device->id;
  return choice;
}

}  // namespace

std::string_view to_string(Standing standing) {
  switch (standing) {
    case Standing::measured_here:
      return "measured here";
    case Standing::same_architecture:
      return "same architecture";
    case Standing::predicted:
      return "predicted";
  }
  return "unknown";
}

class Winners::Impl {
 public:
  Impl(DeviceEntry device, IsCurrent is_current) : device_(std::move(device)), is_current_(std::move(is_current)) {}

  const DeviceEntry& device() const { return device_; }
  const WinnerGroup* find(KeyHash key) const { return table_.find(key); }

  void load(const Database& database) {
    const std::lock_guard lock(mutex_);
    const WinnerSource& source = source_of(database);
    stale_.erase(&source);
    Loading loading(*this, source, true);
    database.visit_fronts(loading);
    load_quarantine(database);
  }

  void load_pack(const std::string& path, Origin layer) {
    load_pack(path, layer, [&](FrontVisitor& visitor) { return visit_pack_file_fronts(path, visitor); });
  }

  void load_pack_text(std::string_view text, const std::string& name, Origin layer) {
    load_pack(name, layer, [&](FrontVisitor& visitor) { return visit_pack_fronts(text, visitor); });
  }

  void refresh(const Database& database, std::string_view request) {
    const std::lock_guard lock(mutex_);
    const WinnerSource& source = source_of(database);
    const KeyHash key = hash_key(request);
    if (const auto found = barred_.find(key); found != barred_.end()) {
      std::erase_if(found->second, [&](const Barred& barred) { return barred.source == &source; });
    }
    replace(key, source, nullptr, {});  // what vanished from the front must not stay
    Loading loading(*this, source, false);
    database.visit_fronts(loading, request);
    load_quarantine(database);
  }

  std::optional<Bar> bar(KeyHash key, std::string_view algorithm, std::string_view config) {
    const std::lock_guard lock(mutex_);
    const auto found = barred_.find(key);
    if (found == barred_.end()) return std::nullopt;
    const Barred* first = nullptr;
    for (const Barred& barred : found->second) {
      if (!barred.current || barred.algorithm->name != algorithm || barred.config != config) continue;
      if (first == nullptr || authority(barred) < authority(*first)) first = &barred;
    }
    if (first == nullptr) return std::nullopt;
    return Bar{first->outcome, first->device->id, first->source->name};
  }

  bool bars_program(KeyHash key, std::string_view source_digest) {
    const std::lock_guard lock(mutex_);
    const auto found = barred_.find(key);
    return found != barred_.end() && std::any_of(found->second.begin(), found->second.end(), [&](const Barred& barred) {
             return barred.source_digest == source_digest;
           });
  }

  bool is_quarantined(std::string_view source_digest) {
    const std::lock_guard lock(mutex_);
    return quarantined_.contains(source_digest);
  }

  bool has_quarantine() {
    const std::lock_guard lock(mutex_);
    return !quarantined_.empty();
  }

  WinnersReport report() {
    const std::lock_guard lock(mutex_);
    WinnersReport result;
    result.requests = requests_;
    result.candidates = candidates_;
    result.problems = problems_;
    std::map<std::pair<std::string_view, std::string_view>, std::int64_t> counts;
    for (const auto& [source, versions] : stale_) {
      for (const auto& [version, count] : versions) counts[{version->name, version->digest}] += count;
    }
    for (const auto& [version, count] : counts) {
      result.stale += count;
      result.stale_algorithms.push_back({std::string(version.first), std::string(version.second), count});
    }
    return result;
  }

 private:
  struct Version {
    AlgorithmVersion algorithm;
    bool current = true;
  };

  // Takes the fronts of one source into the index.
  class Loading : public FrontVisitor {
   public:
    Loading(Impl& impl, const WinnerSource& source, bool count_stale)
        : impl_(impl), source_(source), count_stale_(count_stale) {}

    bool wants(const DeviceEntry& device) override {
      const DeviceEntry& here = impl_.device_;
      if (device.emulated != here.emulated) return false;
      return device.id == here.id || (device.cc_major == here.cc_major && device.cc_minor == here.cc_minor);
    }

    void front(const DeviceEntry& device, KeyHash key, std::span<const FrontEntry> entries) override {
      taken_.clear();
      predicted_.clear();
      for (const FrontEntry& entry : entries) {
        const Version& version = version_of(entry.algorithm);
        if (!version.current) {
          if (count_stale_) ++impl_.stale_[&source_][&version.algorithm];
          continue;
        }
        FrontEntry& kept = (entry.kind == TimeKind::predicted ? predicted_ : taken_).emplace_back(entry);
        kept.algorithm = &version.algorithm;
        kept.config = impl_.arena_.copy(entry.config);
      }
      impl_.add(key, source_, impl_.device_of(device), taken_, predicted_);
    }

    void barred(const DeviceEntry& device, KeyHash key, const BarredEntry& entry) override {
      const Version& version = impl_.version_of(*entry.algorithm);
      const DeviceEntry& known = impl_.device_of(device);
      const bool here = known.id == impl_.device_.id;
      impl_.barred_[key].push_back({&version.algorithm, impl_.arena_.copy(entry.config),
                                    impl_.arena_.copy(entry.outcome), &source_, &known,
                                    here ? Standing::measured_here : Standing::same_architecture,
                                    impl_.arena_.copy(entry.source_digest), version.current});
      impl_.replace(key, source_, &known, impl_.groups_of(key, source_, known));
    }

   private:
    const Version& version_of(const AlgorithmVersion* theirs) {
      if (theirs != last_theirs_) {
        const Version*& ours = versions_[theirs];
        if (ours == nullptr) ours = &impl_.version_of(*theirs);
        last_theirs_ = theirs;
        last_ = ours;
      }
      return *last_;
    }

    Impl& impl_;
    const WinnerSource& source_;
    const bool count_stale_;
    std::unordered_map<const AlgorithmVersion*, const Version*> versions_;
    const AlgorithmVersion* last_theirs_ = nullptr;
    const Version* last_ = nullptr;
    std::vector<FrontEntry> taken_;
    std::vector<FrontEntry> predicted_;
  };

  template <class Visit>
  void load_pack(const std::string& name, Origin layer, const Visit& visit) {
    const std::lock_guard lock(mutex_);
    const WinnerSource& source = sources_.emplace_back(WinnerSource{name, layer, sources_.size()});
    Loading loading(*this, source, true);
    try {
      for (const std::string& problem : visit(loading)) problems_.push_back(name + ": " + problem);
    } catch (const Error& error) {
      problems_.emplace_back(error.what());
    }
  }

  void load_quarantine(const Database& database) {
    quarantined_.clear();
    for (const Quarantine& entry : database.quarantine()) {
      if (entry.device == device_.id) quarantined_.insert(entry.source_digest);
    }
  }

  const WinnerSource& source_of(const Database& database) {
    const std::string& name = database.path().empty() ? memory_name_ : database.path();
    for (const WinnerSource& source : sources_) {
      if (source.origin == Origin::user_database && source.name == name) return source;
    }
    return sources_.emplace_back(WinnerSource{name, Origin::user_database, sources_.size()});
  }

  const Version& version_of(const AlgorithmVersion& theirs) {
    const auto [found, fresh] = versions_.try_emplace({theirs.name, theirs.digest});
    if (fresh) found->second = {theirs, !is_current_ || is_current_(theirs.name, theirs.digest)};
    return found->second;
  }

  const DeviceEntry& device_of(const DeviceEntry& device) {
    if (last_device_ != nullptr && last_device_->id == device.id) return *last_device_;
    last_device_ = &devices_.try_emplace(device.id, device).first->second;
    return *last_device_;
  }

  void add(KeyHash key, const WinnerSource& source, const DeviceEntry& device, std::span<const FrontEntry> taken,
           std::span<const FrontEntry> predicted) {
    std::vector<WinnerGroup>& fresh = scratch_fresh_;
    fresh.clear();
    const int distance = std::abs(device.sms - device_.sms);
    const bool here = device.id == device_.id;
    const auto offer = [&](std::span<const FrontEntry> entries, Standing standing) {
      if (entries.empty()) return;
      const std::span<const FrontEntry> offered = arena_.copy(entries);
      fresh.push_back({nullptr, offered, &source, &device, standing, distance, offered});
    };
    offer(taken, here ? Standing::measured_here : Standing::same_architecture);
    offer(predicted, Standing::predicted);
    replace(key, source, &device, fresh);
  }

  // What a source has said of `key` for a device.
  std::vector<WinnerGroup> groups_of(KeyHash key, const WinnerSource& source, const DeviceEntry& device) const {
    std::vector<WinnerGroup> groups;
    for (const WinnerGroup* group = table_.find(key); group != nullptr; group = group->next) {
      if (group->source == &source && group->device == &device) groups.push_back(*group);
    }
    return groups;
  }

  // Puts `fresh` in the place of what `source` has said of `key` for `device`, or for any device.
  void replace(KeyHash key, const WinnerSource& source, const DeviceEntry* device, std::span<const WinnerGroup> fresh) {
    const WinnerGroup* const old = table_.find(key);
    if (old == nullptr && fresh.empty()) return;
    std::vector<WinnerGroup>& chain = scratch_chain_;
    chain.assign(fresh.begin(), fresh.end());
    std::int64_t before = 0, after = 0;
    for (const WinnerGroup* group = old; group != nullptr; group = group->next) {
      before += static_cast<std::int64_t>(group->entries.size());
      const bool replaced = group->source == &source && (device == nullptr || group->device == device);
      if (!replaced && !group->offered.empty()) chain.push_back(*group);
    }
    std::sort(chain.begin(), chain.end(), precedes);
    const WinnerGroup* head = chain.empty() ? &nothing_ : nullptr;
    for (auto group = chain.rbegin(); group != chain.rend(); ++group) {
      group->entries = admitted(key, *group);
      after += static_cast<std::int64_t>(group->entries.size());
      group->next = head;
      head = arena_.copy(std::span<const WinnerGroup>(&*group, 1)).data();
    }
    candidates_ += after - before;
    requests_ += (after > 0 ? 1 : 0) - (before > 0 ? 1 : 0);
    table_.publish(key, head);
  }

  // What is offered, without what somebody of at least the same authority bars.
  std::span<const FrontEntry> admitted(KeyHash key, const WinnerGroup& group) {
    const auto found = barred_.find(key);
    if (found == barred_.end()) return group.offered;
    std::vector<FrontEntry> left(group.offered.begin(), group.offered.end());
    std::erase_if(left, [&](const FrontEntry& entry) {
      return std::any_of(found->second.begin(), found->second.end(), [&](const Barred& barred) {
        return barred.algorithm == entry.algorithm && barred.config == entry.config &&
               authority(barred) <= authority(group);
      });
    });
    return left.size() == group.offered.size() ? group.offered : arena_.copy(std::span<const FrontEntry>(left));
  }

  const DeviceEntry device_;
  const IsCurrent is_current_;
  const std::string memory_name_ = "memory";
  const WinnerGroup nothing_ = {};  // the chain of a key that has lost its candidates

  WinnerTable table_;  // the only member that find() reads

  std::mutex mutex_;  // guards what follows, and writing to the table
  Arena arena_;
  std::deque<WinnerSource> sources_;
  std::map<std::string, DeviceEntry> devices_;
  const DeviceEntry* last_device_ = nullptr;
  std::map<std::pair<std::string, std::string>, Version> versions_;
  std::map<const WinnerSource*, std::map<const AlgorithmVersion*, std::int64_t>> stale_;
  std::unordered_map<KeyHash, std::vector<Barred>, HashOfKey> barred_;
  std::set<std::string, std::less<>> quarantined_;  // digests of sources, of this device
  std::vector<std::string> problems_;
  std::int64_t requests_ = 0;
  std::int64_t candidates_ = 0;
  std::vector<WinnerGroup> scratch_fresh_;
  std::vector<WinnerGroup> scratch_chain_;
};

Winners::Winners(DeviceEntry device, IsCurrent is_current) {
  validate(device);
  impl_ = std::make_unique<Impl>(std::move(device), std::move(is_current));
}

Winners::~Winners() = default;

const DeviceEntry& Winners::device() const {
  return impl_->device();
}

void Winners::load(const Database& database) {
  impl_->load(database);
}

void Winners::load_pack(const std::string& path, Origin layer) {
  impl_->load_pack(path, layer);
}

void Winners::load_pack_text(std::string_view text, const std::string& name, Origin layer) {
  impl_->load_pack_text(text, name, layer);
}

void Winners::refresh(const Database& database, std::string_view request) {
  impl_->refresh(database, request);
}

std::optional<Choice> Winners::find(std::string_view request, const Filter& filter) const {
  return find(hash_key(request), filter);
}

std::optional<Choice> Winners::find(KeyHash key, const Filter& filter) const {
  for (const WinnerGroup* group = impl_->find(key); group != nullptr; group = group->next) {
    if (const FrontEntry* entry = choose(group->entries, filter)) return choice_of(*group, *entry);
  }
  return std::nullopt;
}

std::vector<Choice> Winners::all(std::string_view request, const Filter& filter) const {
  std::vector<Choice> result;
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const WinnerGroup* group = impl_->find(hash_key(request)); group != nullptr; group = group->next) {
    std::vector<FrontEntry> left(group->entries.begin(), group->entries.end());
    while (const FrontEntry* entry = choose(left, filter)) {
      if (seen.emplace(entry->algorithm->name, entry->config).second) result.push_back(choice_of(*group, *entry));
      left.erase(left.begin() + (entry - left.data()));
    }
  }
  return result;
}

std::optional<Bar> Winners::bar(std::string_view request, std::string_view algorithm, std::string_view config) const {
  const KeyHash key = hash_key(request);
  for (const WinnerGroup* group = impl_->find(key); group != nullptr; group = group->next) {
    if (group->standing == Standing::predicted) break;
    for (const FrontEntry& entry : group->entries) {
      if (entry.algorithm->name == algorithm && entry.config == config) return std::nullopt;
    }
  }
  return impl_->bar(key, algorithm, config);
}

bool Winners::bars_program(std::string_view request, std::string_view source_digest) const {
  return impl_->bars_program(hash_key(request), source_digest);
}

bool Winners::is_quarantined(std::string_view source_digest) const {
  return impl_->is_quarantined(source_digest);
}

bool Winners::has_quarantine() const {
  return impl_->has_quarantine();
}

WinnersReport Winners::report() const {
  return impl_->report();
}

}  // namespace kiln::cache
