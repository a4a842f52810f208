// Reference of attention_backward: line by line of the queries for dq and dbias, of the keys for dk and dv.
#include "operations/attention_lines.h"

namespace kiln::reference {
namespace {

struct BackwardLine {
  std::vector<Bounded> first, second;  // dq and dbias of a query, dk and dv of a key
};

class AttentionBackwardEvaluator final : public Oracle::Evaluator {
 public:
  AttentionBackwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        view_(AttentionBackward::of(request())),
        scores_(view_, scalar("scale"), {static_cast<float>(scalar("dropout")), integer("seed"), integer("offset")},
                [this](const std::string& operand) { return optional_tensor(operand); }),
        dy_(tensor("dy")),
        q_(tensor("q")),
        k_(tensor("k")),
        v_(tensor("v")),
        y_(tensor("y")),
        lse_(tensor("lse")),
        of_keys_(output_name() == "dk" || output_name() == "dv"),
        lines_(of_keys_ ? view_.images() * view_.key_heads() * view_.keys()
                        : view_.images() * view_.heads() * view_.queries()) {}

 protected:
  Expected operation_at(std::span<const int64_t> at) const override {
    const int64_t number = (at[0] * this->output().extents[1] + at[1]) * this->output().extents[2] + at[2];
    const BackwardLine& line = lines_.of(number, [&] {
      return of_keys_ ? of_key(at[0], at[1], at[2]) : of_query({at[0], at[1], at[2]});
    });
    const bool is_second = output_name() == "dbias" || output_name() == "dv";
    return (is_second ? line.second : line.first)[static_cast<size_t>(at[3])].expected();
  }

 private:
  struct Pair {
    Bounded p, ds;
  };

  // The weight of a key that the query sees, and the gradient of its score.
  Pair pair(const AttentionQuery& query, int64_t key) const {
    const auto [image, head, number] = query;
    const double lse = lse_({image, head, number});
    if (lse == -std::numeric_limits<double>::infinity()) return {};
    const Bounded score = scores_.score(query, key);
    const double power = std::exp(score.value - lse), value = std::min(power, 1.0);
    const double distance = value == 0 ? 0 : std::fabs(score.value - lse);
    const double steps = exp_error + exp_argument_error * distance + 3 * (std::fabs(score.value) + std::fabs(lse));
    Bounded p{value, 0};
    const bool is_large = std::isfinite(lse) && std::fabs(lse) > largest_score;
    if (std::isinf(score.error) || power > float_max || is_large) {
      p.error = Bounded::unknown;
    } else if (std::isfinite(value)) {
      p.error = value * std::expm1(score.error + (std::isfinite(steps) ? unit * steps : 0)) + 0x1p-125;
    }
    BoundedProductSum dp(view_.dy.dtype, view_.v.dtype);
    BoundedSum row;
    for (int64_t i = 0; i < view_.width(); ++i) {
      const double dy = dy_({image, head, number, i});
      dp.add(dy, {v_({image, scores_.key_head(head), key, i}), 0});
      row.add({dy * y_({image, head, number, i}), 0});
    }
    if (!view_.drops) return {p, product(p, sum_of({dp.result(), negative(row.result())}))};
    const Bounded counts = scores_.counts(query, key);
    return {product(p, counts), product(p, sum_of({product(dp.result(), counts), negative(row.result())}))};
  }

  BackwardLine of_query(const AttentionQuery& query) const {
    const auto [image, head, number] = query;
    const int64_t key_head = scores_.key_head(head), count = scores_.keys_of(image);
    std::vector<BoundedProductSum> dq(static_cast<size_t>(view_.depth()),
                                      BoundedProductSum(view_.k.dtype, view_.k.dtype));
    BackwardLine line;
    line.second.resize(static_cast<size_t>(view_.keys()));
    for (int64_t key = 0; key < count; ++key) {
      const bool sees = scores_.sees(query, key);
      const Bounded ds = sees ? pair(query, key).ds : Bounded{};
      line.second[static_cast<size_t>(key)] = ds;
      for (int64_t i = 0; i < view_.depth(); ++i) {
        dq[static_cast<size_t>(i)].add(k_({image, key_head, key, i}), as_factor(ds, view_.k.dtype));
      }
    }
    for (const BoundedProductSum& sum : dq) line.first.push_back(scaled(sum.result()));
    return line;
  }

  BackwardLine of_key(int64_t image, int64_t key_head, int64_t key) const {
    std::vector<BoundedProductSum> dk(static_cast<size_t>(view_.depth()),
                                      BoundedProductSum(view_.q.dtype, view_.q.dtype));
    std::vector<BoundedProductSum> dv(static_cast<size_t>(view_.width()),
                                      BoundedProductSum(view_.dy.dtype, view_.dy.dtype));
    for (int64_t shared = 0; shared < scores_.shared_by() && key < scores_.keys_of(image); ++shared) {
      const int64_t head = scores_.first_head(key_head) + shared;
      for (int64_t number = 0; number < view_.queries(); ++number) {
        const AttentionQuery query{image, head, number};
        const auto [p, ds] = scores_.sees(query, key) ? pair(query, key) : Pair{};
        for (int64_t i = 0; i < view_.depth(); ++i) {
          dk[static_cast<size_t>(i)].add(q_({image, head, number, i}), as_factor(ds, view_.q.dtype));
        }
        for (int64_t i = 0; i < view_.width(); ++i) {
          dv[static_cast<size_t>(i)].add(dy_({image, head, number, i}), as_factor(p, view_.dy.dtype));
        }
      }
    }
    BackwardLine line;
    for (const BoundedProductSum& sum : dk) line.first.push_back(scaled(sum.result()));
    for (const BoundedProductSum& sum : dv) line.second.push_back(sum.result());
    return line;
  }

  Bounded scaled(Bounded sum) const { return product({scores_.scale(), 3 * unit * std::fabs(scores_.scale())}, sum); }

  AttentionBackward view_;
  AttentionScores scores_;
  Tensor dy_, q_, k_, v_, y_, lse_;
  bool of_keys_;
  Once<BackwardLine> lines_;
};

}  // namespace

Reference attention_backward_reference() {
  return {.evaluator = make_evaluator<AttentionBackwardEvaluator>, .filling = filling_of_attention};
}

}  // namespace kiln::reference
