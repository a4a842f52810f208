// Algorithms that make contractions on tensor cores, by one launch or two.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "contraction/tensor_tiling.h"

namespace kiln::descriptor {

/// The kernel NAME of FOLDER/NAME.cu, whose blocks each multiply all chunks, brought as `bring` says: the algorithm
/// NAME`suffix`.
Algorithm tensor_contraction(const std::string& template_path, const std::string& operation, ContractionMaker make,
                             Bring bring, ContractionRefusal refusal = no_refusal, const std::string& suffix = "");

/// The suffix of algorithms whose makers pack operands (Contractions::packed).
inline constexpr const char* packed_suffix = "_packed";

/// The same kernel, as the algorithm NAME_f16_sums, with the sums of single steps in f16.
template <ContractionMaker make>
Algorithm f16_sums_contraction(const std::string& template_path, const std::string& operation, Bring bring,
                               ContractionRefusal refusal = no_refusal) {
  return tensor_contraction(template_path, operation, with_f16_sums<make>, bring, refusal, "_f16_sums");
}

/// The kernel NAME of FOLDER/NAME.cu, whose blocks each take TILES tiles of rows, one after the other, while copies for
/// the next ones run: for depths of few chunks.
Algorithm persistent_tensor_contraction(const std::string& template_path, const std::string& operation,
                                        ContractionMaker make, ContractionRefusal refusal = no_refusal);

/// The kernels NAME and NAME_reduce of FOLDER/NAME.cu: one launch of the first, which cuts the depth into one of
/// `splits` pieces, and one of the second, which adds them: the algorithm NAME`suffix`.
Algorithm split_tensor_contraction(const std::string& template_path, const std::string& operation,
                                   ContractionMaker make, Bring bring, std::vector<int64_t> splits,
                                   ContractionRefusal refusal = no_refusal, const std::string& suffix = "");

}  // namespace kiln::descriptor
