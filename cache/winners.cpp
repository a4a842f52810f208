#include "kiln/cache/winners.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "all_times.h"
#include "front.h"
#include "kiln/base/error.h"
#include "kiln/cache/machine_clock.h"
#include "pack_index.h"
#include "pack_reader.h"
#include "standings.h"
#include "winner_table.h"

namespace kiln::cache {
namespace {

// Requests that a Winners remembers although no source knows them, and those that some source knows, together: some
// 6 MB. Beyond that, requests that nobody knows are asked for at each look-up.
constexpr std::size_t most_remembered = 16384;

// A variant that a source bars on a device.
struct Barred {
  const AlgorithmVersion* algorithm = nullptr;
  std::string_view config;
  std::string_view outcome;
  const WinnerSource* source = nullptr;
  const DeviceEntry* device = nullptr;
  Standing standing = Standing::measured_here;  // or same_architecture, or predicted: then only predictions are barred
  std::string_view source_digest;               // of what ran
  bool current = true;                          // else only that very program is barred
  bool own = false;                             // found by a run on the user's own database

  Bar bar() const { return {outcome, device->id, source->name, own}; }
};

// Ranks a record found on this device, or in an earlier layer, before one that was found elsewhere.
template <class Found>  // WinnerGroup or Barred
auto authority(const Found& found) {
  return std::tuple(found.standing, found.source->origin, found.source->order);
}

struct HashOfKey {
  std::size_t operator()(const KeyHash& key) const { return key.low; }
};

// A variant by name, also of several digests where all of them count as current.
using Variant = std::pair<std::string_view, std::string_view>;  // algorithm, config

struct HashOfVariant {
  std::size_t operator()(const Variant& variant) const {
    const std::hash<std::string_view> hash;
    return hash(variant.first) * 31 + hash(variant.second);
  }
};

// The strongest bars of one variant.
struct Verdict {
  const Barred* own = nullptr;
  const Barred* others = nullptr;
  bool lifted = false;  // somebody of more authority has a time of it
};

// All that is barred of a request.
struct Bars {
  std::vector<Barred> all;
  std::unordered_map<Variant, Verdict, HashOfVariant> variants;  // of current algorithms
  std::unordered_map<std::string_view, const Barred*> programs;  // by source digest; an own bar before others
};

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
  if (group.standing == Standing::predicted) choice.clock = machine_clock_of(group.device->name)->text;
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
    case Standing::estimated:
      return "estimated";
  }
  return "unknown";
}

class Winners::Impl {
 public:
  Impl(DeviceEntry device, IsCurrent is_current, AnnouncePack announce)
      : standings_(std::move(device)), is_current_(std::move(is_current)), announce_(std::move(announce)) {}

  const DeviceEntry& device() const { return standings_.device(); }

  const WinnerGroup* find(std::string_view request) {
    const KeyHash key = hash_key(request);
    if (const WinnerGroup* head = table_.find(key)) return head;
    with_lock([&] { read_all(key, request); });
    return table_.find(key);
  }

  void load(const Database& database) {
    with_lock([&] {
      Source& source = source_of(database);
      source.database = database.share();
      quarantined_ = database.quarantined(device().id);
      for (const auto& [key, request] : asked_) read_again(source, key, request);
    });
  }

  void load_pack(const std::string& path, Origin layer) {
    load_pack(path, layer, [&] { return std::make_unique<const PackFile>(path); });
  }

  void load_pack_text(std::string_view text, const std::string& name, Origin layer) {
    load_pack(name, layer, [&] { return std::make_unique<const PackFile>(PackFile::Text{std::string(text)}); });
  }

  // From `database` itself, which may know more than the file of the same name.
  void refresh(const Database& database, std::string_view request) {
    with_lock([&] {
      const KeyHash key = hash_key(request);
      Source& source = source_of(database);
      read_all(key, request);
      if (!asked_.contains(key)) asked_.emplace(key, arena_.copy(request));
      Hearing hearing(*this, key, request);
      hearing.listen_to(source.about);
      database.visit_fronts(hearing, request);
      hearing.publish();
      quarantined_ = database.quarantined(device().id);
    });
    database.deliver_announcement();
  }

  void check_packs() {
    with_lock([&] {
      for (Source& source : sources_) {
        if (source.pack) guarded(source, [&] { source.pack->check(); });
      }
    });
  }

  std::vector<std::string> requests() {
    std::vector<std::string> result, of_packs;
    std::vector<Database> databases;
    with_lock([&] {
      for (Source& source : sources_) {
        if (source.database) databases.push_back(source.database->share());
        if (!source.pack) continue;
        guarded(source, [&] {
          source.pack->visit_requests([&](std::string_view request) { of_packs.emplace_back(request); });
        });
      }
    });
    for (const Database& database : databases) {
      for (const DeviceEntry& device : database.devices()) {
        if (!standings_.serves(device)) continue;
        for (std::string& request : database.request_keys(device.id)) result.push_back(std::move(request));
      }
    }
    std::ranges::move(of_packs, std::back_inserter(result));
    return result;
  }

  std::vector<TimedVariant> times(std::string_view request) {
    AllTimes all(standings_, [&](const AlgorithmVersion& algorithm) { return version_of(algorithm).current; });
    with_lock([&] {
      for (Source& source : sources_) read(source, hash_key(request), request, all);
    });
    return std::move(all).best();
  }

  std::optional<Bar> bar(KeyHash key, std::string_view algorithm, std::string_view config) {
    const std::lock_guard lock(mutex_);
    const auto bars = barred_.find(key);
    if (bars == barred_.end()) return std::nullopt;
    const auto found = bars->second.variants.find({algorithm, config});
    if (found == bars->second.variants.end() || found->second.lifted) return std::nullopt;
    for (const Barred* barred : {found->second.own, found->second.others}) {
      if (barred != nullptr && barred->standing < Standing::predicted) return barred->bar();
    }
    return std::nullopt;
  }

  std::optional<Bar> bars_program(std::string_view request, std::string_view source_digest) {
    find(request);
    const std::lock_guard lock(mutex_);
    const auto bars = barred_.find(hash_key(request));
    if (bars == barred_.end()) return std::nullopt;
    const auto found = bars->second.programs.find(source_digest);
    return found == bars->second.programs.end() ? std::nullopt : std::optional(found->second->bar());
  }

  bool has_passed(std::string_view request, std::string_view algorithm, std::string_view config) {
    const std::lock_guard lock(mutex_);
    const OwnTimes& times = own_times(hash_key(request), request, algorithm);
    const auto found = times.lower_bound({std::string(config), std::string()});
    return found != times.end() && found->first == config;
  }

  bool is_quarantined(std::string_view source_digest) {
    const std::lock_guard lock(mutex_);
    return quarantined_.contains(source_digest);
  }

  bool has_quarantine() {
    const std::lock_guard lock(mutex_);
    return !quarantined_.empty();
  }

  std::vector<std::string> problems() {
    const std::lock_guard lock(mutex_);
    return problems_;
  }

 private:
  using OwnTimes = std::set<std::pair<std::string, std::string>>;  // configurations, and ids of devices

  struct Version {
    AlgorithmVersion algorithm;
    bool current = true;
  };

  // A database or a pack; a pack that cannot be used is neither.
  struct Source {
    WinnerSource about;
    std::optional<Database> database;
    std::unique_ptr<PackIndex> pack;
  };

  // Groups and bars of a request, changed source by source and published as a whole.
  class Hearing : public FrontVisitor {
   public:
    Hearing(Impl& impl, KeyHash key, std::string_view request) : impl_(impl), key_(key), request_(request) {
      for (const WinnerGroup* group = impl_.table_.find(key); group != nullptr; group = group->next) {
        if (group->source != nullptr) groups_.push_back(*group);
      }
      if (const auto found = impl_.barred_.find(key); found != impl_.barred_.end()) barred_ = found->second.all;
      impl_.own_times_.erase(key);
    }

    /// Begins the records of `source`, in the place of its earlier ones.
    void listen_to(const WinnerSource& source) {
      source_ = &source;
      std::erase_if(groups_, [&](const WinnerGroup& group) { return group.source == &source; });
      std::erase_if(barred_, [&](const Barred& barred) { return barred.source == &source; });
    }

    bool wants(const DeviceEntry& device) override { return impl_.standings_.serves(device); }

    void front(const DeviceEntry& device, KeyHash, std::span<const FrontEntry> entries) override {
      std::vector<FrontEntry> taken, estimated;
      std::int64_t stale = 0;
      for (const FrontEntry& entry : entries) {
        const Version& version = impl_.version_of(*entry.algorithm);
        if (!version.current) {
          ++stale;
          continue;
        }
        FrontEntry& kept = (entry.kind == TimeKind::predicted ? estimated : taken).emplace_back(entry);
        kept.algorithm = &version.algorithm;
        kept.config = impl_.arena_.copy(entry.config);
      }
      const DeviceEntry& known = impl_.device_of(device);
      const std::optional<Standing> standing = impl_.standings_.standing_of(known);
      if (!standing) return;
      offer(known, taken, *standing, stale);
      if (*standing != Standing::predicted) offer(known, estimated, Standing::estimated, 0);
    }

    void barred(const DeviceEntry& device, KeyHash, const BarredEntry& entry) override {
      const Version& version = impl_.version_of(*entry.algorithm);
      const DeviceEntry& known = impl_.device_of(device);
      barred_.push_back({&version.algorithm, impl_.arena_.copy(entry.config), impl_.arena_.copy(entry.outcome), source_,
                         &known, impl_.standings_.authority_of(known), impl_.arena_.copy(entry.source_digest),
                         version.current, entry.own});
    }

    bool has_heard() const { return !groups_.empty() || !barred_.empty(); }

    void publish() {
      std::ranges::stable_sort(groups_, {}, [&](const WinnerGroup& group) {
        return impl_.standings_.precedence(group.standing, *group.source, *group.device);
      });
      Bars bars = index_of(std::move(barred_));
      const WinnerGroup* head = groups_.empty() ? &impl_.nothing_ : nullptr;
      for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) {
        admit(*group, bars);
        group->next = head;
        head = impl_.arena_.copy(std::span<const WinnerGroup>(&*group, 1)).data();
      }
      if (bars.all.empty()) {
        impl_.barred_.erase(key_);
      } else {
        impl_.barred_[key_] = std::move(bars);
      }
      impl_.table_.publish(key_, head);
    }

   private:
    void offer(const DeviceEntry& device, std::span<const FrontEntry> entries, Standing standing, std::int64_t stale) {
      if (entries.empty() && stale == 0) return;
      const std::span<const FrontEntry> offered = impl_.arena_.copy(entries);
      groups_.push_back({nullptr, offered, source_, &device, standing, offered, {}, stale});
    }

    static Bars index_of(std::vector<Barred> barred) {
      Bars bars;
      bars.all = std::move(barred);
      for (const Barred& one : bars.all) {
        if (one.standing != Standing::predicted && !one.source_digest.empty()) {
          const Barred*& program = bars.programs.try_emplace(one.source_digest, &one).first->second;
          if (one.own && !program->own) program = &one;
        }
        if (!one.current) continue;
        Verdict& verdict = bars.variants[{one.algorithm->name, one.config}];
        const Barred*& strongest = one.own ? verdict.own : verdict.others;
        if (strongest == nullptr || authority(one) < authority(*strongest)) strongest = &one;
      }
      return bars;
    }

    // Divides what is offered: what somebody of at least the same authority bars is doubted at the most, and what the
    // user's own database bars is left out unless that has a time of it itself.
    void admit(WinnerGroup& group, Bars& bars) {
      group.entries = group.offered;
      group.doubted = {};
      if (bars.all.empty()) return;
      std::vector<FrontEntry> left, doubted;
      for (const FrontEntry& entry : group.offered) {
        const auto found = bars.variants.find({entry.algorithm->name, entry.config});
        if (found == bars.variants.end()) {
          left.push_back(entry);
          continue;
        }
        Verdict& verdict = found->second;
        const auto outranks = [&](const Barred* bar) {
          return bar != nullptr && bar->algorithm == entry.algorithm && authority(*bar) <= authority(group);
        };
        const bool is_final = verdict.own != nullptr && verdict.own->algorithm == entry.algorithm &&
                              verdict.own->standing < Standing::predicted && !is_own_time(group, entry);
        if (is_final || outranks(verdict.own)) continue;
        if (outranks(verdict.others)) {
          doubted.push_back(entry);
          continue;
        }
        left.push_back(entry);
        if (group.standing < Standing::predicted) verdict.lifted = true;
      }
      if (left.size() == group.offered.size()) return;
      group.entries = impl_.arena_.copy(std::span<const FrontEntry>(left));
      group.doubted = impl_.arena_.copy(std::span<const FrontEntry>(doubted));
    }

    bool is_own_time(const WinnerGroup& group, const FrontEntry& entry) {
      if (group.source->origin != Origin::user_database) return false;
      return impl_.own_times(key_, request_, entry.algorithm->name)
          .contains({std::string(entry.config), group.device->id});
    }

    Impl& impl_;
    const KeyHash key_;
    const std::string_view request_;
    const WinnerSource* source_ = nullptr;
    std::vector<WinnerGroup> groups_;
    std::vector<Barred> barred_;
  };

  // Runs `body` with the lock and announces what it met without: who is told may ask for winners.
  template <class Body>
  void with_lock(const Body& body) {
    std::vector<std::string> news;
    std::vector<Database> databases;
    {
      const std::lock_guard lock(mutex_);
      body();
      for (Source& source : sources_) {
        if (source.database) databases.push_back(source.database->share());
        if (!source.pack) continue;
        for (const std::string& problem : source.pack->take_problems()) {
          news_.push_back(source.about.name + ": " + problem);
        }
      }
      news = std::exchange(news_, {});
      problems_.insert(problems_.end(), news.begin(), news.end());
    }
    for (const std::string& problem : news) {
      if (announce_) announce_(problem);
    }
    for (const Database& database : databases) database.deliver_announcement();
  }

  template <class Open>
  void load_pack(const std::string& name, Origin layer, const Open& open) {
    with_lock([&] {
      Source& source = sources_.emplace_back();
      source.about = {name, layer, sources_.size()};
      guarded(source, [&] {
        source.pack =
            std::make_unique<PackIndex>(open(), [&](const DeviceEntry& device) { return standings_.serves(device); });
      });
      for (const auto& [key, request] : asked_) read_again(source, key, request);
    });
  }

  // A pack that fails in `body` is not used any more.
  template <class Body>
  void guarded(Source& source, const Body& body) {
    try {
      body();
    } catch (const Error& error) {
      news_.emplace_back(error.what());
      source.pack.reset();
    }
  }

  void read_all(KeyHash key, std::string_view request) {
    if (table_.find(key) != nullptr) return;
    Hearing hearing(*this, key, request);
    for (Source& source : sources_) read(source, key, request, hearing);
    if (!hearing.has_heard() && asked_.size() >= most_remembered) return;  // the next look-up asks the sources again
    hearing.publish();
    asked_.emplace(key, arena_.copy(request));
  }

  // Configurations of `algorithm` that a run on the user's own database has a time of, each with its device.
  const OwnTimes& own_times(KeyHash key, std::string_view request, std::string_view algorithm) {
    const auto [known, fresh] = own_times_[key].try_emplace(std::string(algorithm));
    if (!fresh) return known->second;
    for (Source& source : sources_) {
      if (!source.database) continue;
      for (OwnTime& time : source.database->own_times(request, algorithm)) {
        const auto standing = standings_.standing_of(time.device);
        if (!standing || *standing >= Standing::predicted) continue;
        if (is_current_ && !is_current_(algorithm, time.algorithm_digest)) continue;
        known->second.emplace(std::move(time.config), time.device.id);
      }
    }
    return known->second;
  }

  void read_again(Source& source, KeyHash key, std::string_view request) {
    Hearing hearing(*this, key, request);
    read(source, key, request, hearing);
    hearing.publish();
  }

  template <class Listener>  // Hearing or AllTimes
  void read(Source& source, KeyHash key, std::string_view request, Listener& listener) {
    listener.listen_to(source.about);
    if (source.database) source.database->visit_fronts(listener, request);
    if (source.pack) guarded(source, [&] { source.pack->visit(key, listener); });
  }

  Source& source_of(const Database& database) {
    const std::string& name = database.path().empty() ? memory_name_ : database.path();
    for (Source& source : sources_) {
      if (source.about.origin == Origin::user_database && source.about.name == name) return source;
    }
    Source& source = sources_.emplace_back();
    source.about = {name, Origin::user_database, sources_.size()};
    source.database = database.share();
    return source;
  }

  const Version& version_of(const AlgorithmVersion& theirs) {
    const auto [found, fresh] = versions_.try_emplace({theirs.name, theirs.digest});
    if (fresh) found->second = {theirs, !is_current_ || is_current_(theirs.name, theirs.digest)};
    return found->second;
  }

  const DeviceEntry& device_of(const DeviceEntry& device) {
    return devices_.try_emplace(device.id, device).first->second;
  }

  const Standings standings_;
  const IsCurrent is_current_;
  const AnnouncePack announce_;
  const std::string memory_name_ = "memory";
  const WinnerGroup nothing_ = {};  // the chain of a request that nobody knows

  WinnerTable table_;  // the only member that is read without the lock

  std::mutex mutex_;  // guards what follows, and writing to the table
  Arena arena_;
  std::deque<Source> sources_;
  std::map<std::string, DeviceEntry> devices_;
  std::map<std::pair<std::string, std::string>, Version> versions_;
  std::unordered_map<KeyHash, std::string_view, HashOfKey> asked_;  // what the table knows: the request's line
  std::unordered_map<KeyHash, Bars, HashOfKey> barred_;
  std::unordered_map<KeyHash, std::map<std::string, OwnTimes, std::less<>>, HashOfKey> own_times_;  // by algorithm
  std::set<std::string, std::less<>> quarantined_;  // digests of sources, of this device
  std::vector<std::string> news_;                   // of packs; not announced yet
  std::vector<std::string> problems_;
};

Winners::Winners(DeviceEntry device, IsCurrent is_current, AnnouncePack announce) {
  validate(device);
  impl_ = std::make_unique<Impl>(std::move(device), std::move(is_current), std::move(announce));
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

void Winners::check_packs() const {
  impl_->check_packs();
}

std::optional<Choice> Winners::find(std::string_view request, const Filter& filter) const {
  for (const WinnerGroup* group = impl_->find(request); group != nullptr; group = group->next) {
    if (const FrontEntry* entry = choose(group->entries, filter)) return choice_of(*group, *entry);
  }
  return std::nullopt;
}

namespace {

std::vector<Choice> choices(const WinnerGroup* group, std::span<const FrontEntry> WinnerGroup::*entries,
                            const Filter& filter) {
  std::vector<Choice> result;
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (; group != nullptr; group = group->next) {
    for (const FrontEntry* entry : in_order(group->*entries, filter)) {
      if (seen.emplace(entry->algorithm->name, entry->config).second) result.push_back(choice_of(*group, *entry));
    }
  }
  return result;
}

}  // namespace

std::vector<Choice> Winners::all(std::string_view request, const Filter& filter) const {
  return choices(impl_->find(request), &WinnerGroup::entries, filter);
}

std::vector<Choice> Winners::doubted(std::string_view request, const Filter& filter) const {
  return choices(impl_->find(request), &WinnerGroup::doubted, filter);
}

std::vector<std::string> Winners::requests() const {
  return impl_->requests();
}

std::vector<TimedVariant> Winners::times(std::string_view request) const {
  return impl_->times(request);
}

std::optional<Bar> Winners::bar(std::string_view request, std::string_view algorithm, std::string_view config) const {
  impl_->find(request);
  return impl_->bar(hash_key(request), algorithm, config);
}

std::optional<Bar> Winners::bars_program(std::string_view request, std::string_view source_digest) const {
  return impl_->bars_program(request, source_digest);
}

bool Winners::has_passed(std::string_view request, std::string_view algorithm, std::string_view config) const {
  return impl_->has_passed(request, algorithm, config);
}

bool Winners::is_quarantined(std::string_view source_digest) const {
  return impl_->is_quarantined(source_digest);
}

bool Winners::has_quarantine() const {
  return impl_->has_quarantine();
}

std::int64_t Winners::stale(std::string_view request) const {
  std::int64_t count = 0;
  for (const WinnerGroup* group = impl_->find(request); group != nullptr; group = group->next) count += group->stale;
  return count;
}

std::vector<std::string> Winners::problems() const {
  return impl_->problems();
}

}  // namespace kiln::cache
