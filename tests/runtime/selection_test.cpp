#include "selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes.h"

namespace kiln {
namespace {

using tuner::fakes::toy;

TEST(Selector, OffersWhatVariesOnlyWhereNobodyDemandsOtherwise) {
  const Catalogue catalogue =
      tuner::fakes::toy_catalogue({toy("varies", {1}, 1e-3, false, 0, false), toy("repeats", {1}, 2e-3)});
  const cache::Winners winners({"fake", "Fake", 9, 0, 132, true},
                               [](std::string_view, std::string_view) { return true; });
  const tuner::fakes::FakeLaboratory laboratory;
  const Target& target = laboratory.apparatus().target;
  const DeviceFigures& figures = laboratory.apparatus().figures;
  const auto best = [&](const cache::Filter& filter, const Request& request) {
    const Bundles none({}, {}, {});
    const Selector selector{catalogue, winners, none, target, figures, filter};
    return selector.estimated(request, 1).at(0).choice.algorithm;
  };
  cache::Filter reproducible;
  reproducible.deterministic_only = true;
  const Request request = tuner::fakes::toy_request();
  Request demanding = request;
  demanding.arithmetic.deterministic = true;
  EXPECT_EQ(best({}, request), "varies");
  EXPECT_EQ(best(reproducible, request), "repeats") << "the Context demands it";
  EXPECT_EQ(best({}, demanding), "repeats") << "the request demands it";
}

}  // namespace
}  // namespace kiln
