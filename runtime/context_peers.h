// The Contexts of this process that read one database on one device: what one of them finds wrong, the others must not
// go on serving.
#pragma once

#include <functional>
#include <string>

#include "kiln/cache/database.h"
#include "kiln/generator/request.h"

namespace kiln {

/// The membership of one Context. Thread-safe.
class ContextPeers {
 public:
  using Learn = std::function<void(const cache::Database&, const Request&)>;

  /// `learn` is called, on the thread of another Context's tuner, when that has tuned a request. It must not wait for a
  /// tuning session. It is not called any more once the destructor has returned.
  ContextPeers(std::string database, std::string device, Learn learn);
  ~ContextPeers();
  ContextPeers(const ContextPeers&) = delete;
  ContextPeers& operator=(const ContextPeers&) = delete;

  /// Tells all others of the same database and device.
  void tell(const cache::Database& database, const Request& request) const;

 private:
  std::string database_, device_;
  Learn learn_;
};

}  // namespace kiln
