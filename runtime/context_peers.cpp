#include "context_peers.h"

#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace kiln {

// Outlives its membership while another thread is telling it something.
class ContextPeers::Member {
 public:
  Member(std::string database, std::string device, Learn learn)
      : database_(std::move(database)), device_(std::move(device)), learn_(std::move(learn)) {}

  bool shares_with(const Member& other) const { return database_ == other.database_ && device_ == other.device_; }

  void learn(const cache::Database& database, const Request& request) {
    const Call call(*this);
    if (call.is_let_in) learn_(database, request);
  }

  /// Lets no further call in, and waits for those that are.
  void end() {
    std::unique_lock lock(mutex_);
    has_ended_ = true;
    idle_.wait(lock, [&] { return calls_ == 0; });
  }

 private:
  struct Call {
    explicit Call(Member& in) : member(in) {
      const std::lock_guard lock(member.mutex_);
      is_let_in = !member.has_ended_;
      member.calls_ += is_let_in ? 1 : 0;
    }
    ~Call() {
      const std::lock_guard lock(member.mutex_);
      member.calls_ -= is_let_in ? 1 : 0;
      if (member.calls_ == 0) member.idle_.notify_all();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    Member& member;
    bool is_let_in = false;
  };

  const std::string database_, device_;
  const Learn learn_;
  std::mutex mutex_;  // not held while learn_ runs
  std::condition_variable idle_;
  int calls_ = 0;
  bool has_ended_ = false;
};

struct ContextPeers::Members {
  std::mutex mutex;
  std::set<std::shared_ptr<Member>> all;
};

// Never destroyed: a Context may outlive what static destructors leave.
ContextPeers::Members& ContextPeers::members() {
  static Members& members = *new Members;  // NOLINT(cppcoreguidelines-owning-memory)
  return members;
}

ContextPeers::ContextPeers(std::string database, std::string device, Learn learn)
    : self_(std::make_shared<Member>(std::move(database), std::move(device), std::move(learn))) {
  const std::lock_guard lock(members().mutex);
  members().all.insert(self_);
}

ContextPeers::~ContextPeers() {
  {
    const std::lock_guard lock(members().mutex);
    members().all.erase(self_);
  }
  self_->end();
}

void ContextPeers::tell(const cache::Database& database, const Request& request) const {
  std::vector<std::shared_ptr<Member>> others;
  {
    const std::lock_guard lock(members().mutex);
    for (const std::shared_ptr<Member>& member : members().all) {
      if (member != self_ && member->shares_with(*self_)) others.push_back(member);
    }
  }
  for (const std::shared_ptr<Member>& other : others) other->learn(database, request);
}

}  // namespace kiln
