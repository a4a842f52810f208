// Elements of ONNX tensors on the host: weights on their way to the device, and the small tensors that shapes are made
// of.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "kiln/graph/graph.h"
#include "onnx/budget.h"
#include "onnx/external_data.h"

namespace kiln::onnx_frontend {

using graph::Extents;

/// Values of TensorProto.DataType, from ONNX 1.14 on.
constexpr int32_t float8_e4m3fn = 17, float8_e5m2 = 19;

/// A tensor whose elements are known while a model is read: as many as its extents say, in logical order, and of the
/// kind that its type has. They are looked at by that kind alone. Moves; copy() makes another one.
class HostTensor {
 public:
  using Integers = std::vector<int64_t>;  ///< Elements that are integers or booleans.
  using Reals = std::vector<double>;      ///< Elements that are floating-point numbers.

  /// Zeros. Throws Error(invalid_argument) for extents that no value may have, and as Budget::take_elements().
  HostTensor(Budget& budget, int32_t type, Extents extents);
  /// Elements that are there already. Throws Error(internal) if they are not as many as the extents say, or of the
  /// other kind.
  HostTensor(int32_t type, Extents extents, Integers elements);
  HostTensor(int32_t type, Extents extents, Reals elements);
  HostTensor(HostTensor&&) = default;
  HostTensor& operator=(HostTensor&&) = default;

  /// As Budget::take_elements().
  HostTensor copy(Budget& budget) const;
  /// The same elements with other extents, as many.
  HostTensor with_extents(Extents extents) &&;

  int32_t type() const { return type_; }
  const Extents& extents() const { return extents_; }
  size_t rank() const { return extents_.size(); }
  size_t size() const;
  bool is_integer() const;

  /// The elements. Throws Error(parse_error) that names both kinds if they are of the other one.
  const Integers& integers() const;
  Integers& integers();
  const Reals& reals() const;
  Reals& reals();

  /// An element of either kind as a number.
  double real(size_t i) const;

 private:
  HostTensor(int32_t type, Extents extents, std::variant<Integers, Reals> elements);

  int32_t type_;
  Extents extents_;
  std::variant<Integers, Reals> elements_;
};

/// Whether elements of that ONNX type are integers or booleans; they are floating-point numbers otherwise.
bool is_integer_type(int32_t type);
/// The least and the largest element of a type of integers.
struct IntegerRange {
  int64_t least, largest;
};
IntegerRange range_of(int32_t type);
/// Whether so many are computed with on the host. More real numbers are weights; integers may be an index for each
/// element of a result.
bool is_few(int32_t type, int64_t elements);
/// "float", "int64", as ONNX writes it; its number for a type that is not known.
std::string type_name(int32_t type);

/// The elements of `tensor`, whose external data are among `files`. Throws Error(parse_error) if the elements are not
/// as many as its extents say, of a type without numbers, or beyond it; as ExternalData::read().
HostTensor read_tensor(const onnx::TensorProto& tensor, ExternalData& files);

/// The elements of `tensor` as those of a constant of a graph, a part at a time. Throws as read_tensor() and
/// stored_as().
graph::Bytes read_as(DType dtype, const onnx::TensorProto& tensor, ExternalData& files);

/// `tensor` as a constant of a graph, rounded to `dtype`. Throws Error(unsupported) for integers that an i32 does not
/// hold.
graph::Bytes stored_as(DType dtype, const HostTensor& tensor);

}  // namespace kiln::onnx_frontend
