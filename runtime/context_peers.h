// The Contexts of this process that read one database on one device: what one of them finds wrong, the others must not
// go on serving.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kiln/cache/database.h"
#include "kiln/generator/request.h"

namespace kiln {

/// The membership of one Context. Thread-safe.
class ContextPeers {
 public:
  using Learn = std::function<void(const cache::Database&, const Request&)>;

  /// `learn` is called, on the threads of other Contexts' tuners, when these have tuned a request. It may take long,
  /// and make and end other memberships. It must not wait for a tuning session. It is not called any more once the
  /// destructor has returned.
  ContextPeers(std::string database, std::string device, Learn learn);
  ~ContextPeers();
  ContextPeers(const ContextPeers&) = delete;
  ContextPeers& operator=(const ContextPeers&) = delete;

  /// Tells all others of the same database and device.
  void tell(const cache::Database& database, const Request& request) const;

 private:
  class Member;
  struct Members;
  static Members& members();

  std::shared_ptr<Member> self_;
};

}  // namespace kiln
