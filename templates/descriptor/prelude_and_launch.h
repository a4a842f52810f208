// Parts of most descriptors: the common constants of a prelude, grids that follow the batch, argument lists.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/generator/algorithm.h"
#include "kiln/generator/program.h"
#include "kiln/generator/request.h"
#include "kiln/generator/specialise.h"

namespace kiln::descriptor {

/// The number of lib/blend.cuh for a class.
int64_t scale_code(Scale scale);

/// ALPHA and BETA, as lib/blend.cuh names the classes; with a prefix, as "DMEANS_", those of another output.
void add_blend(Prelude& prelude, const Blend& blend, const std::string& prefix = "");

/// N (the bucket's top if dynamic) and DYNAMIC_N: whether the argument n counts instead.
void add_batch(Prelude& prelude, int64_t n, bool dynamic);

/// Blocks for `per_image` items in each of n images, `per_block` items a block; n is the call's if `dynamic`.
Count blocks_for(int64_t per_image, int64_t n, bool dynamic, int64_t per_block);

/// Bytes of an element of an input as kernels keep it (UserKept of lib/user_code.cuh): as it is stored, or f32 after a
/// prologue that does not round.
int kept_bytes_of(const Request& request, std::string_view input);

/// Steps for which a kernel has registers: those that there are, or in an open kernel the next power of two.
int64_t steps_to_keep(const Emitter& emit, int64_t steps);
/// The same for rows whose threads take elements `steps` times: in an open kernel of a warp a row 4 where that is
/// enough, else `most`.
int64_t steps_to_keep(const Emitter& emit, int lanes, int64_t steps, int64_t most);

/// One launch of `entry` with blocks of `threads`. The grid is the caller's to set.
Launch launch_of(std::string entry, int threads, std::vector<Argument> arguments = {});
/// The same with the arguments x, y, alpha, beta, user, n.
Launch unary_launch(std::string entry, int threads);

/// The program of one source and one launch. A list of steps in braces would cost each descriptor a quarter of its
/// compile time.
Program program_of(Source source, const Launch& launch);

/// Adds arguments at the end.
void append(Launch& launch, std::initializer_list<Argument> arguments);

}  // namespace kiln::descriptor
