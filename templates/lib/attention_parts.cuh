// Keys of a query in PARTS, each of which a block of its own goes through: where there are few queries and many keys.
// Another kernel joins what the blocks leave in the workspace: sums that are not divided, and the maximum and total of
// each row.
#include "lib/attention_rows.cuh"
#include "lib/store.cuh"

// The keys of a part of those that rows of a block see, whole tiles of COLUMNS: from `first` on, before `end`.
struct KeyPart {
  int first, end;

  template <int COLUMNS>
  __device__ __forceinline__ static KeyPart of(const BlockSight& sight) {
    if constexpr (PARTS == 1) return {sight.some_first, sight.some_end};
    const int tiles = max(0, (sight.some_end - sight.some_first + COLUMNS - 1) / COLUMNS);
    const int each = (tiles + PARTS - 1) / PARTS, number = static_cast<int>(blockIdx.y);
    const int first = sight.some_first + min(number * each, tiles) * COLUMNS;
    return {first, min(sight.some_first + min((number + 1) * each, tiles) * COLUMNS, sight.some_end)};
  }
};

// The workspace: sums and ends of each part of each query.
struct PartialRows {
  float* sums;
  float2* ends;  // maximum and total

  __device__ __forceinline__ static long long place(const AttentionLine& query, int part) {
    return number_of(query) * PARTS + part;
  }
  __device__ __forceinline__ float* sums_of(const AttentionLine& query) const {
    return sums + place(query, static_cast<int>(blockIdx.y)) * WIDTH;
  }
  __device__ __forceinline__ void leave(const AttentionLine& query, float maximum, float total) const {
    ends[place(query, static_cast<int>(blockIdx.y))] = make_float2(maximum, total);
  }
};

// Joins the parts of this thread's element of all results. `n`: images, where that is open.
__device__ __forceinline__ void join_parts(const PartialRows& parts, TY* y, float* lse, const OutputArguments& output,
                                           long long n) {
  const long long element = global_thread<JOIN_THREADS, long long>();
  const long long images = DYNAMIC_N ? n : N;
  if (element >= images * HEADS * static_cast<int>(QUERIES) * WIDTH) return;
  const int column = static_cast<int>(element % WIDTH);
  const AttentionLine query = line_of(static_cast<Index>(element / WIDTH), HEADS, QUERIES);
  const long long place = PartialRows::place(query, 0);
  float maximum = -infinity(), total = 0.0f, sum = 0.0f;
#pragma unroll 8
  for (int part = 0; part < PARTS; ++part) maximum = fmaxf(maximum, parts.ends[place + part].x);
#pragma unroll 8
  for (int part = 0; part < PARTS; ++part) {
    const float2 end = parts.ends[place + part];
    const float share = power_of_2(end.x - finite_maximum(maximum));
    total += share * end.y;
    sum += share * parts.sums[(place + part) * WIDTH + column];
  }
  const QueryEnd end(maximum, total);
  store_result(y, offset_in_y(query) + column * Index(Y_STRIDE_E), end.result_of(sum), 0, output);
  if (WITH_LSE && column == 0) lse[offset_in_lse(query)] = end.lse;
}
