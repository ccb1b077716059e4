// The atoms: one struct for each matrix instruction, matrix load or store and asynchronous
// copy that kiln knows. Generated from src/target by `./dev docs`; not edited by hand.
// clang-format off
//
// A map sends (lane, value) to an element of the operand's tile, row + rows * column, where A is
// (M, K), B is (N, K) and C is (M, N). `kiln map m16n8k16.f32.f16` draws it.
#pragma once

#include "kiln/device/memory.cuh"
#include "kiln/device/types.cuh"
#include "kiln/layout/value.h"

namespace kiln::atom {

namespace detail {

struct Fragments16x8x16w2 {
  enum : int { kM = 16, kN = 8, kK = 16, kLanes = 32 };
  // ((4,8),(2,2,2)):((32,1),(16,8,128))
  __host__ __device__ static constexpr Layout map_a() {
    return {{4, 8, 2, 2, 2}, {32, 1, 16, 8, 128}, {2, 0, 1, 0, 0}, {0, 1, 0, 0, 2}, 5};
  }
  // ((4,8),(2,2)):((16,1),(8,64))
  __host__ __device__ static constexpr Layout map_b() {
    return {{4, 8, 2, 2}, {16, 1, 8, 64}, {2, 0, 1, 0}, {0, 1, 0, 2}, 4};
  }
  // ((4,8),(2,2)):((32,1),(16,8))
  __host__ __device__ static constexpr Layout map_c() {
    return {{4, 8, 2, 2}, {32, 1, 16, 8}, {2, 0, 1, 0}, {0, 1, 0, 2}, 4};
  }
};
struct Fragments16x8x8w2 {
  enum : int { kM = 16, kN = 8, kK = 8, kLanes = 32 };
  // ((4,8),(2,2)):((32,1),(16,8))
  __host__ __device__ static constexpr Layout map_a() {
    return {{4, 8, 2, 2}, {32, 1, 16, 8}, {2, 0, 1, 0}, {0, 1, 0, 2}, 4};
  }
  // ((4,8),2):((16,1),8)
  __host__ __device__ static constexpr Layout map_b() {
    return {{4, 8, 2}, {16, 1, 8}, {2, 0, 0}, {0, 1, 1}, 3};
  }
  // ((4,8),(2,2)):((32,1),(16,8))
  __host__ __device__ static constexpr Layout map_c() {
    return {{4, 8, 2, 2}, {32, 1, 16, 8}, {2, 0, 1, 0}, {0, 1, 0, 2}, 4};
  }
};
struct Fragments16x8x8w1 {
  enum : int { kM = 16, kN = 8, kK = 8, kLanes = 32 };
  // ((4,8),(2,2)):((16,1),(8,64))
  __host__ __device__ static constexpr Layout map_a() {
    return {{4, 8, 2, 2}, {16, 1, 8, 64}, {2, 0, 1, 0}, {0, 1, 0, 2}, 4};
  }
  // ((4,8),2):((8,1),32)
  __host__ __device__ static constexpr Layout map_b() {
    return {{4, 8, 2}, {8, 1, 32}, {2, 0, 0}, {0, 1, 1}, 3};
  }
  // ((4,8),(2,2)):((32,1),(16,8))
  __host__ __device__ static constexpr Layout map_c() {
    return {{4, 8, 2, 2}, {32, 1, 16, 8}, {2, 0, 1, 0}, {0, 1, 0, 2}, 4};
  }
};
struct Fragments16x8x4w1 {
  enum : int { kM = 16, kN = 8, kK = 4, kLanes = 32 };
  // ((4,8),2):((16,1),8)
  __host__ __device__ static constexpr Layout map_a() {
    return {{4, 8, 2}, {16, 1, 8}, {2, 0, 0}, {0, 1, 1}, 3};
  }
  // ((4,8),1):((8,1),0)
  __host__ __device__ static constexpr Layout map_b() {
    return {{4, 8, 1}, {8, 1, 0}, {2, 0, 0}, {0, 1, 1}, 3};
  }
  // ((4,8),(2,2)):((32,1),(16,8))
  __host__ __device__ static constexpr Layout map_c() {
    return {{4, 8, 2, 2}, {32, 1, 16, 8}, {2, 0, 1, 0}, {0, 1, 0, 2}, 4};
  }
};
struct Fragments8x8x4w2c16 {
  enum : int { kM = 8, kN = 8, kK = 4, kLanes = 32 };
  // ((4,4,2),4):((1,0,4),8)
  __host__ __device__ static constexpr Layout map_a() {
    return {{4, 4, 2, 4}, {1, 0, 4, 8}, {2, 0, 0, 0}, {0, 0, 1, 1}, 4};
  }
  // ((4,4,2),4):((1,0,4),8)
  __host__ __device__ static constexpr Layout map_b() {
    return {{4, 4, 2, 4}, {1, 0, 4, 8}, {2, 0, 0, 0}, {0, 0, 1, 1}, 4};
  }
  // ((4,4,2),8):((1,0,4),8)
  __host__ __device__ static constexpr Layout map_c() {
    return {{4, 4, 2, 8}, {1, 0, 4, 8}, {2, 0, 0, 0}, {0, 0, 1, 1}, 4};
  }
};
struct Fragments8x8x4w2c32 {
  enum : int { kM = 8, kN = 8, kK = 4, kLanes = 32 };
  // ((4,4,2),4):((1,0,4),8)
  __host__ __device__ static constexpr Layout map_a() {
    return {{4, 4, 2, 4}, {1, 0, 4, 8}, {2, 0, 0, 0}, {0, 0, 1, 1}, 4};
  }
  // ((4,4,2),4):((1,0,4),8)
  __host__ __device__ static constexpr Layout map_b() {
    return {{4, 4, 2, 4}, {1, 0, 4, 8}, {2, 0, 0, 0}, {0, 0, 1, 1}, 4};
  }
  // ((2,2,4,2),(2,2,2)):((1,16,0,4),(8,2,32))
  __host__ __device__ static constexpr Layout map_c() {
    return {{2, 2, 4, 2, 2, 2, 2}, {1, 16, 0, 4, 8, 2, 32}, {2, 0, 0, 0, 1, 0, 0}, {0, 0, 0, 1, 0, 0, 2}, 7};
  }
};
struct Fragments16x8x32w4 {
  enum : int { kM = 16, kN = 8, kK = 32, kLanes = 32 };
  // ((4,8),(4,2,2)):((64,1),(16,8,256))
  __host__ __device__ static constexpr Layout map_a() {
    return {{4, 8, 4, 2, 2}, {64, 1, 16, 8, 256}, {2, 0, 1, 0, 0}, {0, 1, 0, 0, 2}, 5};
  }
  // ((4,8),(4,2)):((32,1),(8,128))
  __host__ __device__ static constexpr Layout map_b() {
    return {{4, 8, 4, 2}, {32, 1, 8, 128}, {2, 0, 1, 0}, {0, 1, 0, 2}, 4};
  }
  // ((4,8),(2,2)):((32,1),(16,8))
  __host__ __device__ static constexpr Layout map_c() {
    return {{4, 8, 2, 2}, {32, 1, 16, 8}, {2, 0, 1, 0}, {0, 1, 0, 2}, 4};
  }
};
struct Fragments16x8x16w4 {
  enum : int { kM = 16, kN = 8, kK = 16, kLanes = 32 };
  // ((4,8),(4,2)):((64,1),(16,8))
  __host__ __device__ static constexpr Layout map_a() {
    return {{4, 8, 4, 2}, {64, 1, 16, 8}, {2, 0, 1, 0}, {0, 1, 0, 2}, 4};
  }
  // ((4,8),4):((32,1),8)
  __host__ __device__ static constexpr Layout map_b() {
    return {{4, 8, 4}, {32, 1, 8}, {2, 0, 0}, {0, 1, 1}, 3};
  }
  // ((4,8),(2,2)):((32,1),(16,8))
  __host__ __device__ static constexpr Layout map_c() {
    return {{4, 8, 2, 2}, {32, 1, 16, 8}, {2, 0, 1, 0}, {0, 1, 0, 2}, 4};
  }
};
struct Fragments8x8x16w4 {
  enum : int { kM = 8, kN = 8, kK = 16, kLanes = 32 };
  // ((4,8),4):((32,1),8)
  __host__ __device__ static constexpr Layout map_a() {
    return {{4, 8, 4}, {32, 1, 8}, {2, 0, 0}, {0, 1, 1}, 3};
  }
  // ((4,8),4):((32,1),8)
  __host__ __device__ static constexpr Layout map_b() {
    return {{4, 8, 4}, {32, 1, 8}, {2, 0, 0}, {0, 1, 1}, 3};
  }
  // ((4,8),2):((16,1),8)
  __host__ __device__ static constexpr Layout map_c() {
    return {{4, 8, 2}, {16, 1, 8}, {2, 0, 0}, {0, 1, 1}, 3};
  }
};
struct Fragments8x8x4w1 {
  enum : int { kM = 8, kN = 8, kK = 4, kLanes = 32 };
  // ((4,8),1):((8,1),0)
  __host__ __device__ static constexpr Layout map_a() {
    return {{4, 8, 1}, {8, 1, 0}, {2, 0, 0}, {0, 1, 1}, 3};
  }
  // ((4,8),1):((8,1),0)
  __host__ __device__ static constexpr Layout map_b() {
    return {{4, 8, 1}, {8, 1, 0}, {2, 0, 0}, {0, 1, 1}, 3};
  }
  // ((4,8),2):((16,1),8)
  __host__ __device__ static constexpr Layout map_c() {
    return {{4, 8, 2}, {16, 1, 8}, {2, 0, 0}, {0, 1, 1}, 3};
  }
};
struct Fragments16x8x16w1 {
  enum : int { kM = 16, kN = 8, kK = 16, kLanes = 32 };
  // ((4,8),(2,4)):((16,1),(8,64))
  __host__ __device__ static constexpr Layout map_a() {
    return {{4, 8, 2, 4}, {16, 1, 8, 64}, {2, 0, 1, 0}, {0, 1, 0, 2}, 4};
  }
  // ((4,8),4):((8,1),32)
  __host__ __device__ static constexpr Layout map_b() {
    return {{4, 8, 4}, {8, 1, 32}, {2, 0, 0}, {0, 1, 1}, 3};
  }
  // ((4,8),(2,2)):((32,1),(16,8))
  __host__ __device__ static constexpr Layout map_c() {
    return {{4, 8, 2, 2}, {32, 1, 16, 8}, {2, 0, 1, 0}, {0, 1, 0, 2}, 4};
  }
};

}  // namespace detail

// m16n8k16.f32.f16: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k16_f32_f16(float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
struct m16n8k16_f32_f16 : detail::Fragments16x8x16w2 {
  using A = f16; using B = f16; using C = f32;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = float;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k16_f32_f16(c, a, b);
  }
};

// m16n8k16.f16.f16: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k16_f16_f16(unsigned* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 "
      "{%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
      : "+r"(c[0]), "+r"(c[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
struct m16n8k16_f16_f16 : detail::Fragments16x8x16w2 {
  using A = f16; using B = f16; using C = f16;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = unsigned;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k16_f16_f16(c, a, b);
  }
};

// m16n8k16.f32.bf16: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k16_f32_bf16(float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
struct m16n8k16_f32_bf16 : detail::Fragments16x8x16w2 {
  using A = bf16; using B = bf16; using C = f32;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = float;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k16_f32_bf16(c, a, b);
  }
};

// m16n8k8.f32.f16: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k8_f32_f16(float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}
struct m16n8k8_f32_f16 : detail::Fragments16x8x8w2 {
  using A = f16; using B = f16; using C = f32;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = float;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k8_f32_f16(c, a, b);
  }
};

// m16n8k8.f16.f16: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k8_f16_f16(unsigned* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 "
      "{%0, %1}, {%2, %3}, {%4}, {%0, %1};"
      : "+r"(c[0]), "+r"(c[1])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}
struct m16n8k8_f16_f16 : detail::Fragments16x8x8w2 {
  using A = f16; using B = f16; using C = f16;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = unsigned;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k8_f16_f16(c, a, b);
  }
};

// m16n8k8.f32.bf16: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k8_f32_bf16(float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}
struct m16n8k8_f32_bf16 : detail::Fragments16x8x8w2 {
  using A = bf16; using B = bf16; using C = f32;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = float;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k8_f32_bf16(c, a, b);
  }
};

// m16n8k8.f32.tf32: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k8_f32_tf32(float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
struct m16n8k8_f32_tf32 : detail::Fragments16x8x8w1 {
  using A = tf32; using B = tf32; using C = f32;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = float;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k8_f32_tf32(c, a, b);
  }
};

// m16n8k4.f32.tf32: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k4_f32_tf32(float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}
struct m16n8k4_f32_tf32 : detail::Fragments16x8x4w1 {
  using A = tf32; using B = tf32; using C = f32;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = float;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k4_f32_tf32(c, a, b);
  }
};

// m8n8k4.f16.f16: c += a * b, by the lanes of one group together.
__device__ inline void mma_m8n8k4_f16_f16(unsigned* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 "
      "{%0, %1, %2, %3}, {%4, %5}, {%6, %7}, {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]));
}
struct m8n8k4_f16_f16 : detail::Fragments8x8x4w2c16 {
  using A = f16; using B = f16; using C = f16;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = unsigned;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m8n8k4_f16_f16(c, a, b);
  }
};

// m8n8k4.f32.f16: c += a * b, by the lanes of one group together.
__device__ inline void mma_m8n8k4_f32_f16(float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9}, {%10, %11}, {%0, %1, %2, %3, %4, %5, %6, %7};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]));
}
struct m8n8k4_f32_f16 : detail::Fragments8x8x4w2c32 {
  using A = f16; using B = f16; using C = f32;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = float;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m8n8k4_f32_f16(c, a, b);
  }
};

// m16n8k32.s32.s8: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k32_s32_s8(int* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
struct m16n8k32_s32_s8 : detail::Fragments16x8x32w4 {
  using A = s8; using B = s8; using C = s32;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = int;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k32_s32_s8(c, a, b);
  }
};

// m16n8k32.s32.s8.u8: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k32_s32_s8_u8(int* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
struct m16n8k32_s32_s8_u8 : detail::Fragments16x8x32w4 {
  using A = s8; using B = u8; using C = s32;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = int;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k32_s32_s8_u8(c, a, b);
  }
};

// m16n8k32.s32.u8.s8: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k32_s32_u8_s8(int* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
struct m16n8k32_s32_u8_s8 : detail::Fragments16x8x32w4 {
  using A = u8; using B = s8; using C = s32;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = int;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k32_s32_u8_s8(c, a, b);
  }
};

// m16n8k32.s32.u8: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k32_s32_u8(int* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
struct m16n8k32_s32_u8 : detail::Fragments16x8x32w4 {
  using A = u8; using B = u8; using C = s32;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = int;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k32_s32_u8(c, a, b);
  }
};

// m16n8k16.s32.s8: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k16_s32_s8(int* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}
struct m16n8k16_s32_s8 : detail::Fragments16x8x16w4 {
  using A = s8; using B = s8; using C = s32;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = int;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k16_s32_s8(c, a, b);
  }
};

// m16n8k16.s32.s8.u8: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k16_s32_s8_u8(int* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.u8.s32 "
      "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}
struct m16n8k16_s32_s8_u8 : detail::Fragments16x8x16w4 {
  using A = s8; using B = u8; using C = s32;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = int;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k16_s32_s8_u8(c, a, b);
  }
};

// m16n8k16.s32.u8.s8: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k16_s32_u8_s8(int* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}
struct m16n8k16_s32_u8_s8 : detail::Fragments16x8x16w4 {
  using A = u8; using B = s8; using C = s32;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = int;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k16_s32_u8_s8(c, a, b);
  }
};

// m16n8k16.s32.u8: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k16_s32_u8(int* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32 "
      "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}
struct m16n8k16_s32_u8 : detail::Fragments16x8x16w4 {
  using A = u8; using B = u8; using C = s32;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = int;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k16_s32_u8(c, a, b);
  }
};

// m8n8k16.s32.s8: c += a * b, by the lanes of one group together.
__device__ inline void mma_m8n8k16_s32_s8(int* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 "
      "{%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+r"(c[0]), "+r"(c[1])
      : "r"(a[0]), "r"(b[0]));
}
struct m8n8k16_s32_s8 : detail::Fragments8x8x16w4 {
  using A = s8; using B = s8; using C = s32;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = int;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m8n8k16_s32_s8(c, a, b);
  }
};

// m8n8k16.s32.s8.u8: c += a * b, by the lanes of one group together.
__device__ inline void mma_m8n8k16_s32_s8_u8(int* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32 "
      "{%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+r"(c[0]), "+r"(c[1])
      : "r"(a[0]), "r"(b[0]));
}
struct m8n8k16_s32_s8_u8 : detail::Fragments8x8x16w4 {
  using A = s8; using B = u8; using C = s32;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = int;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m8n8k16_s32_s8_u8(c, a, b);
  }
};

// m8n8k16.s32.u8.s8: c += a * b, by the lanes of one group together.
__device__ inline void mma_m8n8k16_s32_u8_s8(int* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32 "
      "{%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+r"(c[0]), "+r"(c[1])
      : "r"(a[0]), "r"(b[0]));
}
struct m8n8k16_s32_u8_s8 : detail::Fragments8x8x16w4 {
  using A = u8; using B = s8; using C = s32;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = int;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m8n8k16_s32_u8_s8(c, a, b);
  }
};

// m8n8k16.s32.u8: c += a * b, by the lanes of one group together.
__device__ inline void mma_m8n8k16_s32_u8(int* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32 "
      "{%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+r"(c[0]), "+r"(c[1])
      : "r"(a[0]), "r"(b[0]));
}
struct m8n8k16_s32_u8 : detail::Fragments8x8x16w4 {
  using A = u8; using B = u8; using C = s32;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = int;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m8n8k16_s32_u8(c, a, b);
  }
};

// m16n8k32.f32.e4m3: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k32_f32_e4m3(float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
struct m16n8k32_f32_e4m3 : detail::Fragments16x8x32w4 {
  using A = f8_e4m3; using B = f8_e4m3; using C = f32;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = float;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k32_f32_e4m3(c, a, b);
  }
};

// m16n8k32.f16.e4m3: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k32_f16_e4m3(unsigned* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16 "
      "{%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
      : "+r"(c[0]), "+r"(c[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
struct m16n8k32_f16_e4m3 : detail::Fragments16x8x32w4 {
  using A = f8_e4m3; using B = f8_e4m3; using C = f16;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = unsigned;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k32_f16_e4m3(c, a, b);
  }
};

// m16n8k32.f32.e4m3.e5m2: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k32_f32_e4m3_e5m2(float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
struct m16n8k32_f32_e4m3_e5m2 : detail::Fragments16x8x32w4 {
  using A = f8_e4m3; using B = f8_e5m2; using C = f32;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = float;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k32_f32_e4m3_e5m2(c, a, b);
  }
};

// m16n8k32.f16.e4m3.e5m2: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k32_f16_e4m3_e5m2(unsigned* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16 "
      "{%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
      : "+r"(c[0]), "+r"(c[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
struct m16n8k32_f16_e4m3_e5m2 : detail::Fragments16x8x32w4 {
  using A = f8_e4m3; using B = f8_e5m2; using C = f16;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = unsigned;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k32_f16_e4m3_e5m2(c, a, b);
  }
};

// m16n8k32.f32.e5m2.e4m3: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k32_f32_e5m2_e4m3(float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
struct m16n8k32_f32_e5m2_e4m3 : detail::Fragments16x8x32w4 {
  using A = f8_e5m2; using B = f8_e4m3; using C = f32;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = float;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k32_f32_e5m2_e4m3(c, a, b);
  }
};

// m16n8k32.f16.e5m2.e4m3: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k32_f16_e5m2_e4m3(unsigned* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k32.row.col.f16.e5m2.e4m3.f16 "
      "{%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
      : "+r"(c[0]), "+r"(c[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
struct m16n8k32_f16_e5m2_e4m3 : detail::Fragments16x8x32w4 {
  using A = f8_e5m2; using B = f8_e4m3; using C = f16;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = unsigned;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k32_f16_e5m2_e4m3(c, a, b);
  }
};

// m16n8k32.f32.e5m2: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k32_f32_e5m2(float* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
struct m16n8k32_f32_e5m2 : detail::Fragments16x8x32w4 {
  using A = f8_e5m2; using B = f8_e5m2; using C = f32;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = float;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k32_f32_e5m2(c, a, b);
  }
};

// m16n8k32.f16.e5m2: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k32_f16_e5m2(unsigned* c, const unsigned* a, const unsigned* b) {
  asm("mma.sync.aligned.m16n8k32.row.col.f16.e5m2.e5m2.f16 "
      "{%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
      : "+r"(c[0]), "+r"(c[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
struct m16n8k32_f16_e5m2 : detail::Fragments16x8x32w4 {
  using A = f8_e5m2; using B = f8_e5m2; using C = f16;
  using RegisterA = unsigned; using RegisterB = unsigned; using RegisterC = unsigned;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k32_f16_e5m2(c, a, b);
  }
};

// m8n8k4.f64.f64: c += a * b, by the lanes of one group together.
__device__ inline void mma_m8n8k4_f64_f64(double* c, const double* a, const double* b) {
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 "
      "{%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+d"(c[0]), "+d"(c[1])
      : "d"(a[0]), "d"(b[0]));
}
struct m8n8k4_f64_f64 : detail::Fragments8x8x4w1 {
  using A = f64; using B = f64; using C = f64;
  using RegisterA = double; using RegisterB = double; using RegisterC = double;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m8n8k4_f64_f64(c, a, b);
  }
};

// m16n8k4.f64.f64: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k4_f64_f64(double* c, const double* a, const double* b) {
  asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 "
      "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a[0]), "d"(a[1]), "d"(b[0]));
}
struct m16n8k4_f64_f64 : detail::Fragments16x8x4w1 {
  using A = f64; using B = f64; using C = f64;
  using RegisterA = double; using RegisterB = double; using RegisterC = double;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k4_f64_f64(c, a, b);
  }
};

// m16n8k8.f64.f64: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k8_f64_f64(double* c, const double* a, const double* b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}
struct m16n8k8_f64_f64 : detail::Fragments16x8x8w1 {
  using A = f64; using B = f64; using C = f64;
  using RegisterA = double; using RegisterB = double; using RegisterC = double;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k8_f64_f64(c, a, b);
  }
};

// m16n8k16.f64.f64: c += a * b, by the lanes of one group together.
__device__ inline void mma_m16n8k16_f64_f64(double* c, const double* a, const double* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
}
struct m16n8k16_f64_f64 : detail::Fragments16x8x16w1 {
  using A = f64; using B = f64; using C = f64;
  using RegisterA = double; using RegisterB = double; using RegisterC = double;
  __device__ static void mma(RegisterC* c, const RegisterA* a, const RegisterB* b) {
    mma_m16n8k16_f64_f64(c, a, b);
  }
};

namespace detail {
// ldmatrix.x1: 1 8x8 matrix of 16-bit elements; each lane gives the address of one row.
__device__ inline void ldmatrix_x1(unsigned* to, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
               : "=r"(to[0])
               : "r"(kiln::shared_address(row))
               : "memory");
}
}  // namespace detail
struct ldmatrix_x1 {
  enum : int { kBytes = 4, kMatrices = 1 };
  // ((4,8),2):((16,1),8)
  __host__ __device__ static constexpr Layout result_map() {
    return {{4, 8, 2}, {16, 1, 8}, {2, 0, 0}, {0, 1, 1}, 3};
  }
  __device__ static void load(unsigned* to, const void* row) { detail::ldmatrix_x1(to, row); }
};

namespace detail {
// ldmatrix.x2: 2 8x8 matrices of 16-bit elements; each lane gives the address of one row.
__device__ inline void ldmatrix_x2(unsigned* to, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(to[0]), "=r"(to[1])
               : "r"(kiln::shared_address(row))
               : "memory");
}
}  // namespace detail
struct ldmatrix_x2 {
  enum : int { kBytes = 8, kMatrices = 2 };
  // ((4,8),(2,2)):((16,1),(8,64))
  __host__ __device__ static constexpr Layout result_map() {
    return {{4, 8, 2, 2}, {16, 1, 8, 64}, {2, 0, 1, 0}, {0, 1, 0, 2}, 4};
  }
  __device__ static void load(unsigned* to, const void* row) { detail::ldmatrix_x2(to, row); }
};

namespace detail {
// ldmatrix.x4: 4 8x8 matrices of 16-bit elements; each lane gives the address of one row.
__device__ inline void ldmatrix_x4(unsigned* to, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(kiln::shared_address(row))
               : "memory");
}
}  // namespace detail
struct ldmatrix_x4 {
  enum : int { kBytes = 16, kMatrices = 4 };
  // ((4,8),(2,4)):((16,1),(8,64))
  __host__ __device__ static constexpr Layout result_map() {
    return {{4, 8, 2, 4}, {16, 1, 8, 64}, {2, 0, 1, 0}, {0, 1, 0, 2}, 4};
  }
  __device__ static void load(unsigned* to, const void* row) { detail::ldmatrix_x4(to, row); }
};

namespace detail {
// ldmatrix.x1.trans: 1 8x8 matrix of 16-bit elements, each transposed; each lane gives the address of one row.
__device__ inline void ldmatrix_x1_trans(unsigned* to, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
               : "=r"(to[0])
               : "r"(kiln::shared_address(row))
               : "memory");
}
}  // namespace detail
struct ldmatrix_x1_trans {
  enum : int { kBytes = 4, kMatrices = 1 };
  // ((4,8),2):((2,8),1)
  __host__ __device__ static constexpr Layout result_map() {
    return {{4, 8, 2}, {2, 8, 1}, {2, 0, 0}, {0, 1, 1}, 3};
  }
  __device__ static void load(unsigned* to, const void* row) { detail::ldmatrix_x1_trans(to, row); }
};

namespace detail {
// ldmatrix.x2.trans: 2 8x8 matrices of 16-bit elements, each transposed; each lane gives the address of one row.
__device__ inline void ldmatrix_x2_trans(unsigned* to, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(to[0]), "=r"(to[1])
               : "r"(kiln::shared_address(row))
               : "memory");
}
}  // namespace detail
struct ldmatrix_x2_trans {
  enum : int { kBytes = 8, kMatrices = 2 };
  // ((4,8),(2,2)):((2,8),(1,64))
  __host__ __device__ static constexpr Layout result_map() {
    return {{4, 8, 2, 2}, {2, 8, 1, 64}, {2, 0, 1, 0}, {0, 1, 0, 2}, 4};
  }
  __device__ static void load(unsigned* to, const void* row) { detail::ldmatrix_x2_trans(to, row); }
};

namespace detail {
// ldmatrix.x4.trans: 4 8x8 matrices of 16-bit elements, each transposed; each lane gives the address of one row.
__device__ inline void ldmatrix_x4_trans(unsigned* to, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(kiln::shared_address(row))
               : "memory");
}
}  // namespace detail
struct ldmatrix_x4_trans {
  enum : int { kBytes = 16, kMatrices = 4 };
  // ((4,8),(2,4)):((2,8),(1,64))
  __host__ __device__ static constexpr Layout result_map() {
    return {{4, 8, 2, 4}, {2, 8, 1, 64}, {2, 0, 1, 0}, {0, 1, 0, 2}, 4};
  }
  __device__ static void load(unsigned* to, const void* row) { detail::ldmatrix_x4_trans(to, row); }
};

// cp.async.cg.shared.global, 16 bytes a lane
struct cp_async_16 {
  enum : int { kBytes = 16 };
  __device__ static void start(void* shared, const void* global, int valid) {
    cp_async<16>(shared, global, valid);
  }
};

// cp.async.ca.shared.global, 8 bytes a lane
struct cp_async_8 {
  enum : int { kBytes = 8 };
  __device__ static void start(void* shared, const void* global, int valid) {
    cp_async<8>(shared, global, valid);
  }
};

// cp.async.ca.shared.global, 4 bytes a lane
struct cp_async_4 {
  enum : int { kBytes = 4 };
  __device__ static void start(void* shared, const void* global, int valid) {
    cp_async<4>(shared, global, valid);
  }
};

namespace detail {
// stmatrix.x1: 1 8x8 matrix of 16-bit elements; each lane gives the address of one row.
__device__ inline void stmatrix_x1(void* row, const unsigned* from) {
  asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};"
               :
               : "r"(kiln::shared_address(row)), "r"(from[0])
               : "memory");
}
}  // namespace detail
struct stmatrix_x1 {
  enum : int { kBytes = 4, kMatrices = 1 };
  // ((4,8),2):((16,1),8)
  __host__ __device__ static constexpr Layout result_map() {
    return {{4, 8, 2}, {16, 1, 8}, {2, 0, 0}, {0, 1, 1}, 3};
  }
  __device__ static void store(void* row, const unsigned* from) { detail::stmatrix_x1(row, from); }
};

namespace detail {
// stmatrix.x2: 2 8x8 matrices of 16-bit elements; each lane gives the address of one row.
__device__ inline void stmatrix_x2(void* row, const unsigned* from) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};"
               :
               : "r"(kiln::shared_address(row)), "r"(from[0]), "r"(from[1])
               : "memory");
}
}  // namespace detail
struct stmatrix_x2 {
  enum : int { kBytes = 8, kMatrices = 2 };
  // ((4,8),(2,2)):((16,1),(8,64))
  __host__ __device__ static constexpr Layout result_map() {
    return {{4, 8, 2, 2}, {16, 1, 8, 64}, {2, 0, 1, 0}, {0, 1, 0, 2}, 4};
  }
  __device__ static void store(void* row, const unsigned* from) { detail::stmatrix_x2(row, from); }
};

namespace detail {
// stmatrix.x4: 4 8x8 matrices of 16-bit elements; each lane gives the address of one row.
__device__ inline void stmatrix_x4(void* row, const unsigned* from) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
               :
               : "r"(kiln::shared_address(row)), "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3])
               : "memory");
}
}  // namespace detail
struct stmatrix_x4 {
  enum : int { kBytes = 16, kMatrices = 4 };
  // ((4,8),(2,4)):((16,1),(8,64))
  __host__ __device__ static constexpr Layout result_map() {
    return {{4, 8, 2, 4}, {16, 1, 8, 64}, {2, 0, 1, 0}, {0, 1, 0, 2}, 4};
  }
  __device__ static void store(void* row, const unsigned* from) { detail::stmatrix_x4(row, from); }
};

namespace detail {
// stmatrix.x1.trans: 1 8x8 matrix of 16-bit elements, each transposed; each lane gives the address of one row.
__device__ inline void stmatrix_x1_trans(void* row, const unsigned* from) {
  asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};"
               :
               : "r"(kiln::shared_address(row)), "r"(from[0])
               : "memory");
}
}  // namespace detail
struct stmatrix_x1_trans {
  enum : int { kBytes = 4, kMatrices = 1 };
  // ((4,8),2):((2,8),1)
  __host__ __device__ static constexpr Layout result_map() {
    return {{4, 8, 2}, {2, 8, 1}, {2, 0, 0}, {0, 1, 1}, 3};
  }
  __device__ static void store(void* row, const unsigned* from) { detail::stmatrix_x1_trans(row, from); }
};

namespace detail {
// stmatrix.x2.trans: 2 8x8 matrices of 16-bit elements, each transposed; each lane gives the address of one row.
__device__ inline void stmatrix_x2_trans(void* row, const unsigned* from) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};"
               :
               : "r"(kiln::shared_address(row)), "r"(from[0]), "r"(from[1])
               : "memory");
}
}  // namespace detail
struct stmatrix_x2_trans {
  enum : int { kBytes = 8, kMatrices = 2 };
  // ((4,8),(2,2)):((2,8),(1,64))
  __host__ __device__ static constexpr Layout result_map() {
    return {{4, 8, 2, 2}, {2, 8, 1, 64}, {2, 0, 1, 0}, {0, 1, 0, 2}, 4};
  }
  __device__ static void store(void* row, const unsigned* from) { detail::stmatrix_x2_trans(row, from); }
};

namespace detail {
// stmatrix.x4.trans: 4 8x8 matrices of 16-bit elements, each transposed; each lane gives the address of one row.
__device__ inline void stmatrix_x4_trans(void* row, const unsigned* from) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
               :
               : "r"(kiln::shared_address(row)), "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3])
               : "memory");
}
}  // namespace detail
struct stmatrix_x4_trans {
  enum : int { kBytes = 16, kMatrices = 4 };
  // ((4,8),(2,4)):((2,8),(1,64))
  __host__ __device__ static constexpr Layout result_map() {
    return {{4, 8, 2, 4}, {2, 8, 1, 64}, {2, 0, 1, 0}, {0, 1, 0, 2}, 4};
  }
  __device__ static void store(void* row, const unsigned* from) { detail::stmatrix_x4_trans(row, from); }
};

}  // namespace kiln::atom
