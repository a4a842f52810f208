// Cost of a request, for passes that choose between graphs that compute the same.
#pragma once

#include <functional>
#include <span>
#include <utility>

#include "kiln/generator/request.h"

namespace kiln::graph {

/// Seconds that requests take; infinite where nothing serves one.
class Cost {
 public:
  /// `of_one`: seconds of a request. `learn`: is told requests that of_one() will be asked for, so that it can find
  /// their seconds at the same time.
  template <class OfOne>
  Cost(OfOne of_one, std::function<void(std::span<const Request>)> learn = {})  // implicit: most are one function
      : of_one_(std::move(of_one)), learn_(std::move(learn)) {}

  double operator()(const Request& request) const { return of_one_(request); }

  double sum(std::span<const Request> requests) const {
    if (learn_) learn_(requests);
    double seconds = 0;
    for (const Request& request : requests) seconds += of_one_(request);
    return seconds;
  }

 private:
  std::function<double(const Request&)> of_one_;
  std::function<void(std::span<const Request>)> learn_;
};

}  // namespace kiln::graph
