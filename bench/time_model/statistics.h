// How well modelled times stand for measured ones.
#pragma once

#include <vector>

namespace kiln::bench {

struct Pair {
  double measured = 0, modelled = 0;
};

struct Judgement {
  double spearman = 0;    ///< Rank correlation.
  double mean = 0;        ///< Geometric mean of modelled / measured.
  double spread = 0;      ///< exp of the standard deviation of its logarithm.
  double favourite = 0;   ///< Time of the fastest row over that of the row that the model has fastest.
  double best_of_16 = 0;  ///< The same of the best among the model's 16 fastest.
};

/// `pairs` may not be empty.
Judgement judge(const std::vector<Pair>& pairs);

}  // namespace kiln::bench
