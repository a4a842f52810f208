// mma, ldmatrix, stmatrix and movmatrix.
#include <algorithm>
#include <array>

#include "decoders.h"
#include "kernel/matrix_product.h"
#include "kernel/matrix_rows.h"

namespace kiln::emulator {
namespace {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

/// A form of mma, and the first .target that has it, as ptxas has it. Its factors are of `element`, or of another type
/// that may be mixed with that: u8 with s8, e5m2 with e4m3.
struct Form {
  std::string_view shape;
  uint32_t rows = 16, k = 0;
  Type element = Type::none, sum = Type::none;
  int target = 0;
};

constexpr std::array forms = {
    Form{"m16n8k8", 16, 8, Type::f16, Type::f16, 75},    Form{"m16n8k8", 16, 8, Type::f16, Type::f32, 75},
    Form{"m16n8k16", 16, 16, Type::f16, Type::f16, 80},  Form{"m16n8k16", 16, 16, Type::f16, Type::f32, 80},
    Form{"m16n8k8", 16, 8, Type::bf16, Type::f32, 80},   Form{"m16n8k16", 16, 16, Type::bf16, Type::f32, 80},
    Form{"m16n8k4", 16, 4, Type::tf32, Type::f32, 80},   Form{"m16n8k8", 16, 8, Type::tf32, Type::f32, 80},
    Form{"m8n8k16", 8, 16, Type::s8, Type::s32, 75},     Form{"m16n8k16", 16, 16, Type::s8, Type::s32, 80},
    Form{"m16n8k32", 16, 32, Type::s8, Type::s32, 80},   Form{"m16n8k16", 16, 16, Type::e4m3, Type::f16, 89},
    Form{"m16n8k16", 16, 16, Type::e4m3, Type::f32, 89}, Form{"m16n8k32", 16, 32, Type::e4m3, Type::f16, 89},
    Form{"m16n8k32", 16, 32, Type::e4m3, Type::f32, 89},
};

bool takes(const Form& form, Type type) {
  return type == form.element || (type == Type::u8 && form.element == Type::s8) ||
         (type == Type::e5m2 && form.element == Type::e4m3);
}

void expect_words(DecodeContext& context, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    if (!context.modifiers.accept(word)) context.fail(fmt::format("expected .{}", word));
  }
}

/// Types of D, A, B and C, in this order.
struct Types {
  Type d, a, b, c;
};

/// The form that shape and types name.
const Form& form_of(DecodeContext& context, const Types& types, std::string_view shape) {
  const auto found = std::find_if(forms.begin(), forms.end(), [&](const Form& form) {
    return form.shape == shape && takes(form, types.a) && takes(form, types.b) && form.sum == types.c &&
           form.sum == types.d;
  });
  if (found == forms.end()) context.fail(fmt::format("no mma of shape .{} has these types", shape));
  context.require_target(found->target, fmt::format("mma of shape .{} and these types", shape));
  return *found;
}

std::string_view take_shape(DecodeContext& context) {
  for (const Form& form : forms) {
    if (context.modifiers.accept(form.shape)) return form.shape;
  }
  context.fail("this shape is not supported");
}

// mma.sync.aligned.shape.row.col[.satfinite].dtype.atype.btype.ctype d, a, b, c
void mma(DecodeContext& context) {
  expect_words(context, {"sync", "aligned", "row", "col"});
  const std::string_view shape = take_shape(context);
  const Types types = {context.type(), context.type(), context.type(), context.type()};
  const Form& form = form_of(context, types, shape);
  const bool saturates = form.sum == Type::s32 && context.modifiers.accept("satfinite");
  context.finish(4);
  constexpr uint32_t tile_rows = 8, columns = 8, group_bytes = 16;
  const uint32_t tiles = form.rows / tile_rows, groups = form.k * ptx::bytes(form.element) / group_bytes;
  const uint32_t parts = ptx::bytes(form.sum) / 2;
  const Type sum = parts == 1 ? Type::b32 : form.sum;
  std::vector<ListEntry> list;
  for (const uint32_t number : {tiles, groups, parts}) list.push_back({ListEntry::Kind::number, number});
  const auto read = [&](size_t index, uint32_t count, Type type) {
    for (const Operand& element : context.vector(context.operand(index), count)) {
      list.push_back({ListEntry::Kind::read, context.read(element, type)});
    }
  };
  read(1, tiles * groups, Type::b32);
  read(2, groups, Type::b32);
  read(3, tiles * parts, sum);
  for (const Operand& element : context.vector(context.operand(0), tiles * parts)) {
    list.push_back({ListEntry::Kind::write, context.write(element, sum)});
  }
  for (size_t factor = 0; factor < 2; ++factor) list.push_back({ListEntry::Kind::number, FactorSlot().number()});
  const MatrixProduct product = {types.a, types.b, form.sum, form.rows, form.k, saturates, context.tensor_hardware()};
  Operation& operation = context.emit(context.units().matrix_product(product), InstructionClass::tensor);
  operation.list = std::move(list);
  operation.c_is_number = true;
  operation.c_number = 1;
  operation.joins = product.hardware == 0;
  operation.multiply_adds = form.rows * columns * form.k;
}

/// .sync.aligned.m8n8.x1 to .x4[.trans].shared.b16; the number of matrices.
MatrixAccess matrix_access(DecodeContext& context) {
  expect_words(context, {"sync", "aligned", "m8n8"});
  MatrixAccess access;
  const auto number = context.modifiers.accept_one({"x1", "x2", "x4"});
  if (!number) context.fail("expected .x1, .x2 or .x4");
  access.matrices = static_cast<uint32_t>((*number)[1] - '0');
  access.transposed = context.modifiers.accept("trans");
  if (context.modifiers.space() != Space::shared) context.fail("expected .shared");
  if (context.type() != Type::b16) context.fail("expected .b16");
  context.finish(2);
  return access;
}

/// Fills in what loads and stores have in common. `unused`: lanes whose addresses must be valid without a row.
void set_matrices(DecodeContext& context, Operation& operation, const MatrixAccess& access,
                  const DecodeContext::Address& address, Mask unused, const std::vector<ListEntry>& registers) {
  const Mask with_rows = full_mask >> (warp_lanes - access.matrices * MatrixRows::rows);
  operation.a = address.base;
  operation.immediate = address.offset;
  operation.list = {{ListEntry::Kind::number, with_rows | unused},
                    {ListEntry::Kind::number, access.transposed ? 1u : 0u}};
  operation.list.insert(operation.list.end(), registers.begin(), registers.end());
  context.note_access(Space::shared, MatrixRows::row_bytes);
}

// ldmatrix.sync.aligned.m8n8.xN[.trans].shared.b16 {d, ...}, [a]
void ldmatrix(DecodeContext& context) {
  context.require_target(75, "ldmatrix");
  MatrixAccess access = matrix_access(context);
  const DecodeContext::Address address = context.address(context.operand(1), Space::shared);
  access.address_bytes = bytes_of(context.width(address.base));
  std::vector<ListEntry> registers;
  for (const Operand& element : context.vector(context.operand(0), access.matrices)) {
    registers.push_back({ListEntry::Kind::write, context.write(element, Type::b32)});
  }
  // "For .target sm_75 or below, all threads must contain valid addresses."
  const Mask unused = context.target_capability() > 75 ? 0 : full_mask;
  Operation& operation = context.emit(context.units().matrix_load(access), InstructionClass::matrix_load);
  set_matrices(context, operation, access, address, unused, registers);
}

// stmatrix.sync.aligned.m8n8.xN[.trans].shared.b16 [a], {b, ...}
void stmatrix(DecodeContext& context) {
  context.require_target(90, "stmatrix");
  MatrixAccess access = matrix_access(context);
  const DecodeContext::Address address = context.address(context.operand(0), Space::shared);
  access.address_bytes = bytes_of(context.width(address.base));
  std::vector<ListEntry> registers;
  for (const Operand& element : context.vector(context.operand(1), access.matrices)) {
    registers.push_back({ListEntry::Kind::read, context.read(element, Type::b32)});
  }
  Operation& operation = context.emit(context.units().matrix_store(access), InstructionClass::matrix_store);
  set_matrices(context, operation, access, address, 0, registers);
}

// movmatrix.sync.aligned.m8n8.trans.b16 d, a
void movmatrix(DecodeContext& context) {
  context.require_target(75, "movmatrix");
  expect_words(context, {"sync", "aligned", "m8n8", "trans"});
  if (context.type() != Type::b16) context.fail("expected .b16");
  context.finish(2);
  const RegisterId a = context.read(context.operand(1), Type::b32), d = context.write(context.operand(0), Type::b32);
  Operation& operation = context.emit(context.units().matrix_transpose, InstructionClass::warp_exchange);
  operation.d = d;
  operation.a = a;
}

constexpr DecoderEntry matrix_entries[] = {
    {"mma", mma}, {"ldmatrix", ldmatrix}, {"stmatrix", stmatrix}, {"movmatrix", movmatrix}};

}  // namespace

std::span<const DecoderEntry> matrix_decoders() {
  return matrix_entries;
}

}  // namespace kiln::emulator
