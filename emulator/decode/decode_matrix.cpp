// mma.
#include <algorithm>
#include <array>

#include "decoders.h"
#include "kernel/matrix_product.h"

namespace kiln::emulator {
namespace {

using ptx::Operand;
using ptx::Type;

/// A form of mma, and the first .target that has it, as ptxas has it.
struct Form {
  std::string_view shape;
  uint32_t k = 0;
  Type element = Type::none, sum = Type::none;
  int target = 0;
};

constexpr std::array forms = {
    Form{"m16n8k8", 8, Type::f16, Type::f16, 75},   Form{"m16n8k8", 8, Type::f16, Type::f32, 75},
    Form{"m16n8k16", 16, Type::f16, Type::f16, 80}, Form{"m16n8k16", 16, Type::f16, Type::f32, 80},
    Form{"m16n8k8", 8, Type::bf16, Type::f32, 80},  Form{"m16n8k16", 16, Type::bf16, Type::f32, 80},
};

void expect_words(DecodeContext& context, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    if (!context.modifiers.accept(word)) context.fail(fmt::format("expected .{}", word));
  }
}

/// The form that shape and types name: those of D, A, B and C.
const Form& form_of(DecodeContext& context) {
  std::string_view shape;
  for (const Form& form : forms) {
    if (shape.empty() && context.modifiers.accept(form.shape)) shape = form.shape;
  }
  if (shape.empty()) context.fail("this shape is not supported");
  const Type d = context.type(), a = context.type(), b = context.type(), c = context.type();
  const auto found = std::find_if(forms.begin(), forms.end(), [&](const Form& form) {
    return form.shape == shape && form.element == a && form.element == b && form.sum == c && form.sum == d;
  });
  if (found == forms.end()) context.fail(fmt::format("no mma of shape .{} has these types", shape));
  context.require_target(found->target, fmt::format("mma of shape .{} and these types", shape));
  return *found;
}

// mma.sync.aligned.shape.row.col.dtype.atype.btype.ctype d, a, b, c
void mma(DecodeContext& context) {
  expect_words(context, {"sync", "aligned", "row", "col"});
  const Form& form = form_of(context);
  context.finish(4);
  constexpr uint32_t tiles = 2, group_bytes = 16;
  const uint32_t groups = form.k * ptx::bytes(form.element) / group_bytes;
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
  Operation& operation =
      context.emit(context.units().matrix_product({.element = form.element, .sum = form.sum, .k = form.k}),
                   InstructionClass::tensor);
  operation.list = std::move(list);
  operation.multiply_adds = 16 * 8 * form.k;
}

constexpr DecoderEntry entries[] = {{"mma", mma}};

}  // namespace

std::span<const DecoderEntry> matrix_decoders() {
  return entries;
}

}  // namespace kiln::emulator
