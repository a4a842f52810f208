#include "call_key.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace kiln {

uint64_t CallKey::hash() const {
  return XXH3_64bits(words_.data(), size_ * sizeof(int64_t));
}

void CallKey::add_given(const Epilogue& epilogue) {
  int64_t stages = epilogue.code() ? -1 : 0;
  for (int i = 0; i < epilogue.count(); ++i) stages |= (static_cast<int64_t>(epilogue.stage(i)) + 1) << (4 * i);
  add(stages);
  if (epilogue.bias()) add(*epilogue.bias());
  if (epilogue.residual()) add(*epilogue.residual());
  if (!epilogue.code()) return;
  for (const int64_t word : epilogue.code()->digest_words()) add(word);
  for (size_t i = 0; i < epilogue.code()->tensors().size(); ++i) add(epilogue.tensor(i));
}

}  // namespace kiln
