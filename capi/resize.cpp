#include "kiln/resize.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "boundary.h"
#include "handles.h"
#include "kiln/base/error.h"
#include "kiln/c/resize.h"
#include "tensor.h"

namespace kiln::capi {
namespace {

static_assert(KILN_RESIZE_CUBIC == static_cast<int>(ResizeMode::cubic) &&
                  KILN_RESIZE_TF_HALF_PIXEL_FOR_NN == static_cast<int>(ResizeCoordinates::tf_half_pixel_for_nn) &&
                  KILN_RESIZE_CEIL == static_cast<int>(ResizeRounding::ceil),
              "the words stand in one order");

// The word of that number, of those up to `last`.
template <class Word>
Word word_of(int32_t word, Word last, const char* what, const char* first_name) {
  if (word >= 0 && word <= static_cast<int32_t>(last)) return static_cast<Word>(word);
  throw Error(ErrorCode::invalid_argument, fmt::format("kiln_resize: {} is {}", what, word),
              fmt::format("use {} or another of these", first_name));
}

ResizeOptions options_of(const kiln_resize_options* given, const char* function) {
  const kiln_resize_options c = read(given, kiln_resize_options_default(), function);
  ResizeOptions options;
  options.mode = word_of(c.mode, ResizeMode::cubic, "the mode", "KILN_RESIZE_NEAREST");
  options.coordinates =
      word_of(c.coordinates, ResizeCoordinates::tf_half_pixel_for_nn, "coordinates", "KILN_RESIZE_HALF_PIXEL");
  options.rounding = word_of(c.rounding, ResizeRounding::ceil, "the rounding", "KILN_RESIZE_PREFER_FLOOR");
  options.excludes_outside = flag(c.exclude_outside, function, "exclude_outside");
  options.cubic = c.cubic;
  std::copy(std::begin(c.scale), std::end(c.scale), options.scale.begin());
  options.alpha = c.alpha;
  options.beta = c.beta;
  options.dynamic_batch = flag(c.dynamic_batch, function, "dynamic_batch");
  options.epilogue = epilogue_of(c.epilogue);
  return options;
}

}  // namespace
}  // namespace kiln::capi

using namespace kiln::capi;  // NOLINT(google-build-using-namespace): the C functions belong to this room

kiln_status kiln_resize(kiln_context* context, const kiln_tensor* x, const kiln_tensor* y,
                        const kiln_resize_options* options, kiln_stream stream) {
  return guarded([&] {
    const char* const function = "kiln_resize";
    require(context, function, "context");
    kiln::resize(*context->context, tensor_of(x, function, "x"), tensor_of(y, function, "y"),
                 options_of(options, function), stream);
  });
}
