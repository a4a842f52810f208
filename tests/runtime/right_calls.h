// A right call of every function of an operation, with every tensor that it may have: what tests make wrong ones of.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "bad_arguments.h"

namespace kiln {

struct Named {
  std::string name;
  Tensor tensor;
};

/// A call that is right, by its tensors under the names that messages have for them. The last are its outputs.
struct RightCall {
  std::string operation;  ///< First word of messages, where it is not the function's name.
  std::vector<Named> tensors;
  std::function<void(Context&, const std::vector<Named>&)> run;
  size_t outputs = 1;
  bool reduces = false;  ///< The result takes any extents of the first tensor but the channels.
  bool any_dtype = false;
  std::map<std::string, std::set<size_t>> free_dimensions = {};  ///< By tensor: they may be of any length but 0.
  bool none_is_free = false;                                     ///< And of 0: nothing is computed.
};

class RightCalls : public BadArguments {
 protected:
  // Tensors lie so far apart that one which is larger than it should be reaches no other.
  Tensor slot(int i, std::initializer_list<int64_t> extents) const {
    return at(static_cast<size_t>(i) * 16384, extents);
  }

  using Tensors = std::vector<Named>;
  using Calls = std::map<std::string, RightCall>;
  Calls calls() const;

 private:
  void add_convolution(Calls& calls) const;
  void add_pooling(Calls& calls) const;
  void add_rows(Calls& calls) const;
  void add_elements(Calls& calls) const;
  void add_recurrent_layers(Calls& calls) const;
  void add_attention(Calls& calls) const;
  void add_products(Calls& calls) const;
  void add_losses(Calls& calls) const;
  void add_ctc_losses(Calls& calls) const;
  void add_grid_samples(Calls& calls) const;
  void add_normalisations(Calls& calls) const;
  void add_affine_normalisations(Calls& calls) const;
  void add_local_normalisations(Calls& calls) const;
};

}  // namespace kiln
