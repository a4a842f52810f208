#include "context_peers.h"

#include <mutex>
#include <set>
#include <utility>

namespace kiln {
namespace {

struct Members {
  std::mutex mutex;
  std::set<const ContextPeers*> all;
};

// Never destroyed: a Context may outlive what static destructors leave.
Members& members() {
  static Members& members = *new Members;  // NOLINT(cppcoreguidelines-owning-memory)
  return members;
}

}  // namespace

ContextPeers::ContextPeers(std::string database, std::string device, Learn learn)
    : database_(std::move(database)), device_(std::move(device)), learn_(std::move(learn)) {
  const std::lock_guard lock(members().mutex);
  members().all.insert(this);
}

ContextPeers::~ContextPeers() {
  const std::lock_guard lock(members().mutex);
  members().all.erase(this);
}

void ContextPeers::tell(const cache::Database& database, const Request& request) const {
  const std::lock_guard lock(members().mutex);
  for (const ContextPeers* other : members().all) {
    if (other != this && other->database_ == database_ && other->device_ == device_) other->learn_(database, request);
  }
}

}  // namespace kiln
