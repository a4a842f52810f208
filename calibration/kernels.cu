// Rates that a device reaches: each kernel is bound by one thing. Blocks of 256 threads, as many as fit; bytes and
// operations are counted by calibrate.cpp. Loads are inline PTX where the compiler would otherwise drop what nobody
// uses.

// Device memory: out[i] = in[i], 16 bytes an access, four loads in flight in each thread.
extern "C" __global__ void __launch_bounds__(256)
    copy_memory(const float4* __restrict__ in, float4* __restrict__ out, long long count) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + 3 * step < count; i += 4 * step) {
    const float4 a = in[i], b = in[i + step], c = in[i + 2 * step], d = in[i + 3 * step];
    out[i] = a;
    out[i + step] = b;
    out[i + 2 * step] = c;
    out[i + 3 * step] = d;
  }
  for (; i < count; i += step) out[i] = in[i];
}

__device__ float load_past_l1(const float4* address) {
  float4 v;
  asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(address));
  return v.x + v.y + v.z + v.w;
}

// L2, or device memory where `count` is too much for it: each thread makes `rounds` * 4 accesses past L1. All threads
// together go through [0, count) in order, `span` elements at a time, and begin again one block further: so each block
// reads what another brought to L2, and not what its own SM has read. `span` divides `count`, and 256 divides `span`.
extern "C" __global__ void __launch_bounds__(256) read_memory(const float4* __restrict__ in, float* __restrict__ out,
                                                              unsigned count, unsigned span, long long rounds) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  const auto next = [=](unsigned i) {
    if (i + span < count) return i + span;
    const unsigned further = i + span - count + blockDim.x;
    return further < span ? further : further - span;
  };
  unsigned i = thread % span;
  float sum = 0;
  for (long long round = 0; round < rounds; ++round) {
    const unsigned j = next(i), k = next(j), l = next(k);
    const float a = load_past_l1(in + i), b = load_past_l1(in + j);
    const float c = load_past_l1(in + k), d = load_past_l1(in + l);
    sum += (a + b) + (c + d);
    i = next(l);
  }
  out[thread] = sum;
}

// f32 arithmetic: 16 independent chains of `rounds` * 8 fused multiply-adds in each thread.
extern "C" __global__ void __launch_bounds__(256)
    multiply_add(float* __restrict__ out, float a, float b, long long rounds) {
  float chain[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) chain[i] = static_cast<float>(threadIdx.x + i);
  for (long long round = 0; round < rounds; ++round) {
#pragma unroll
    for (int repeat = 0; repeat < 8; ++repeat) {
#pragma unroll
      for (int i = 0; i < 16; ++i) chain[i] = fmaf(chain[i], a, b);
    }
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 16; ++i) sum += chain[i];
  out[static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x] = sum;
}

// Shared memory: `rounds` * 8 loads of 16 bytes in each thread, a warp's 512 bytes in a row, without bank conflicts.
// Volatile: the compiler would load only the words that are used, and these once.
extern "C" __global__ void __launch_bounds__(256) read_shared(float* __restrict__ out, long long rounds) {
  __shared__ float4 tile[1024];
  for (int i = threadIdx.x; i < 1024; i += 256) tile[i] = make_float4(i, i, i, i);
  __syncthreads();
  const unsigned base = static_cast<unsigned>(__cvta_generic_to_shared(tile)) + threadIdx.x * 16;
  float sum = 0;
  for (long long round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      float4 v;
      asm volatile("ld.volatile.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                   : "r"(base + i % 4 * 4096));
      sum += v.x;
    }
  }
  out[static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x] = sum;
}

// Tensor cores: `rounds` * 8 products of matrices in each warp, in 8 chains. A, B and C are the registers that a lane
// has of the factors and of the sums. Signs and two bits of the mantissas are drawn, so that data take power as data
// do, and sums are exact for as many rounds as are tested.
template <int A, int B, int C, class Sum, class Multiply>
__device__ void multiply_matrices(float* out, long long rounds, unsigned drawn, unsigned fixed, Multiply multiply) {
  unsigned a[A], b[B];
  Sum c[8][C] = {};
  const auto draw = [&](unsigned i) { return ((threadIdx.x * 8 + i) * 2654435769u & drawn) | fixed; };
#pragma unroll
  for (int i = 0; i < A; ++i) a[i] = draw(i);
#pragma unroll
  for (int i = 0; i < B; ++i) b[i] = draw(A + i);
  for (long long round = 0; round < rounds; ++round) {
#pragma unroll
    for (int chain = 0; chain < 8; ++chain) multiply(c[chain], a, b);
  }
  Sum sum = 0;
#pragma unroll
  for (int chain = 0; chain < 8; ++chain) {
#pragma unroll
    for (int i = 0; i < C; ++i) sum += c[chain][i];
  }
  out[static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x] = static_cast<float>(sum);
}

extern "C" __global__ void __launch_bounds__(256) multiply_f16(float* __restrict__ out, long long rounds) {
  multiply_matrices<4, 2, 4, float>(out, rounds, 0x83008300, 0x3c003c00, [](float* c, unsigned* a, unsigned* b) {
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      asm volatile(
          "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
          : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
    }
#endif
  });
}

// With sums in f16, two to a register: what is stored are bits.
extern "C" __global__ void __launch_bounds__(256) multiply_f16_in_f16(float* __restrict__ out, long long rounds) {
  multiply_matrices<4, 2, 2, unsigned>(out, rounds, 0x83008300, 0x3c003c00, [](unsigned* c, unsigned* a, unsigned* b) {
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
                 : "+r"(c[0]), "+r"(c[1])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%0, %1};"
                   : "+r"(c[0]), "+r"(c[1])
                   : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
    }
#endif
  });
}

extern "C" __global__ void __launch_bounds__(256) multiply_int8(float* __restrict__ out, long long rounds) {
  multiply_matrices<4, 2, 4, int>(out, rounds, 0xffffffff, 0, [](int* c, unsigned* a, unsigned* b) {
#if __CUDA_ARCH__ >= 800
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
#pragma unroll
    for (int quarter = 0; quarter < 4; ++quarter) {
      asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
                   : "+r"(c[quarter / 2 * 2]), "+r"(c[quarter / 2 * 2 + 1])
                   : "r"(a[quarter]), "r"(b[quarter % 2]));
    }
#endif
  });
}

#if __CUDA_ARCH__ >= 800
extern "C" __global__ void __launch_bounds__(256) multiply_tf32(float* __restrict__ out, long long rounds) {
  multiply_matrices<4, 2, 4, float>(out, rounds, 0x80600000, 0x3f800000, [](float* c, unsigned* a, unsigned* b) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  });
}
#endif

#if __CUDA_ARCH__ >= 890 && (__CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 4))
extern "C" __global__ void __launch_bounds__(256) multiply_fp8(float* __restrict__ out, long long rounds) {
  multiply_matrices<4, 2, 4, float>(out, rounds, 0x86868686, 0x38383838, [](float* c, unsigned* a, unsigned* b) {
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  });
}
#endif

// Nothing: what is left is the launch.
extern "C" __global__ void do_nothing() {}
