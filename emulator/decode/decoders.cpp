#include "decoders.h"

#include <algorithm>
#include <vector>

namespace kiln::emulator {
namespace {

std::vector<DecoderEntry> all_decoders() {
  std::vector<DecoderEntry> all;
  for (const auto family :
       {integer_decoders(), bit_decoders(), float_decoders(), compare_decoders(), convert_decoders(), move_decoders(),
        memory_decoders(), atomic_decoders(), mbarrier_decoders(), control_decoders(), exchange_decoders(),
        matrix_decoders(), hint_decoders()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  std::sort(all.begin(), all.end(), [](const auto& x, const auto& y) { return x.opcode < y.opcode; });
  return all;
}

}  // namespace

Decoder find_decoder(std::string_view opcode) {
  static const std::vector<DecoderEntry> sorted = all_decoders();
  const auto at =
      std::lower_bound(sorted.begin(), sorted.end(), opcode,
                       [](const DecoderEntry& entry, std::string_view word) { return entry.opcode < word; });
  return at != sorted.end() && at->opcode == opcode ? at->decode : nullptr;
}

}  // namespace kiln::emulator
