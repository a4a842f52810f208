// The tensors that user code reads.
#pragma once

#include <span>

#include "kiln/epilogue.h"

namespace kiln {

/// All of Epilogue::tensor(), which stand side by side; none without user code.
inline std::span<const Tensor> user_tensors_of(const Epilogue& epilogue) {
  const size_t count = epilogue.code() == nullptr ? 0 : epilogue.code()->tensors().size();
  return count == 0 ? std::span<const Tensor>() : std::span(&epilogue.tensor(0), count);
}

}  // namespace kiln
