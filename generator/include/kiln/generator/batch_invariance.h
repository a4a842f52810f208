// Batch invariance: what `batch_invariant` in a request demands, and what requests of all batches have in common.
//
// A sum in floating point depends on the order of its terms. Variants differ in that order, and the best variant
// differs with the batch, so a row may have other bits beside 7 others than alone. Requests with `batch_invariant` that
// differ in nothing but the batch are served in one order of sums. It is chosen by estimates for reference batches,
// which none of these requests has a part in (Variants).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "kiln/generator/arch.h"
#include "kiln/generator/request.h"

namespace kiln {

/// Why other strides than those of the batch depend on it, in words for a user: images do not follow each other in
/// memory, or something that repeats in other requests does not. Nothing if they do not.
std::optional<std::string> why_batch_is_inside(const Request& request);

/// `request`, which is complete, with `batch_invariant` where its operation has an order of sums, its images do not mix
/// and its batch is in front of all else; else as it is.
Request batch_invariant_if_it_can_be(Request request);

/// Whether the strides of an image of `spec` are the same with any number of images: its `images` leading dimensions
/// count them, and each is outside of the others.
bool images_follow_each_other(const TensorSpec& spec, size_t images);

/// Batches for which the order of sums is judged. Few, some, many.
inline constexpr std::array<int64_t, 3> reference_batches{1, 16, 256};

/// `request` for a batch of `n`, with operands at multiples of 16 bytes whose images do not touch: equal for all
/// requests that differ in batch, in the distance of images and in alignment alone. Where several dimensions count
/// images or rows, `n` is the extent of the last and the others are 1.
Request with_reference_batch(const Request& request, int64_t n);

/// A device that is no particular one: all devices of an architecture have one order of sums.
DeviceFigures reference_figures();

}  // namespace kiln
