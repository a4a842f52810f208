// Parts shared by the descriptors of pooling: the constants of a problem, and how its operands lie.
#pragma once

#include <optional>
#include <string>

#include "descriptor/strided.h"
#include "descriptor/window.h"
#include "kiln/generator/operations/pool_forward.h"
#include "kiln/generator/specialise.h"

namespace kiln::descriptor {

/// A request as descriptors see it: its operands have three spatial dimensions (with_three_axes()), whatever the
/// request has. Where there are no indices, y stands in their place.
struct PoolProblem : PoolForward, SpatialAxes {
  static PoolProblem of(const Request& request);

  Inner inner = Inner::either;  ///< of x
  bool has_indices = false;
};

/// The codes of lib/pooling.cuh.
int mode_constant(PoolMode mode);

/// TX, TY, Index, N, DYNAMIC_N, C, the axes (add_axes()), X_STRIDE_N and the like (also of y and of indices),
/// HAS_INDICES, MODE, ALPHA and BETA.
Prelude pool_prelude(const PoolProblem& pool, FixedAxes fixed = FixedAxes::dilations);
/// PIXELS_ARE_EVEN and PIXEL_STEP: run_stride() of the pixels of x.
void add_even_pixels(Prelude& prelude, const PoolProblem& pool);

/// Why a kernel that runs along `inner` of x and gives no indices cannot serve `pool`; nothing if it can.
std::optional<std::string> order_refusal(const PoolProblem& pool, Inner inner);

/// Whether the window is all of x: one output a channel, nothing padded.
bool is_global(const PoolProblem& pool);

/// Words for the order in which elements are added: maxima have none, averages `of_averages`.
std::string order_of_pool(const PoolProblem& pool, std::string of_averages);

/// Bytes of x and y that have to move between device memory and the SMs.
double compulsory_bytes(const PoolProblem& pool);

/// Bytes that a load of `bytes` of x costs a lane on average, where neighbouring threads make neighbouring tiles of
/// `tile_p` x `tile_q` outputs: next to each other in a row, or a row, a plane or a channel further on.
double lane_bytes_of_x(const PoolProblem& pool, double bytes, int64_t tile_p, int64_t tile_q);

}  // namespace kiln::descriptor
