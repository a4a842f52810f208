// One decoder per opcode, grouped by family.
#pragma once

#include <span>
#include <string_view>

#include "decode/context.h"

namespace kiln::emulator {

/// Null for an opcode that nobody decodes.
Decoder find_decoder(std::string_view opcode);

std::span<const DecoderEntry> integer_decoders();
std::span<const DecoderEntry> bit_decoders();
std::span<const DecoderEntry> float_decoders();
std::span<const DecoderEntry> compare_decoders();
std::span<const DecoderEntry> convert_decoders();
std::span<const DecoderEntry> move_decoders();
std::span<const DecoderEntry> memory_decoders();
std::span<const DecoderEntry> atomic_decoders();
std::span<const DecoderEntry> mbarrier_decoders();
std::span<const DecoderEntry> control_decoders();
std::span<const DecoderEntry> exchange_decoders();
std::span<const DecoderEntry> matrix_decoders();
std::span<const DecoderEntry> hint_decoders();

/// cp.async.bulk, behind its first two words.
void decode_bulk_copy(DecodeContext& context);

// The floating-point forms of opcodes that integers have, too.
void decode_float_add(DecodeContext& context);
void decode_float_sub(DecodeContext& context);
void decode_float_mul(DecodeContext& context);
void decode_float_fma(DecodeContext& context);
void decode_float_div(DecodeContext& context);
void decode_float_min(DecodeContext& context);
void decode_float_max(DecodeContext& context);
void decode_float_abs(DecodeContext& context);
void decode_float_neg(DecodeContext& context);

}  // namespace kiln::emulator
