// What host code of a `.co` program may use; `kiln build` puts it in front of every program.
//
//   auto a = choreo::make_spandata<choreo::f16>(64, 32);   an array in host memory
//   a.fill_random(-1.0f, 1.0f);
//   auto c = scale(a.view(), 2.0f);                        a tile function of the program
//   choreo::choreo_assert(c[3][4] == a[3][4] * 2, "scale");
//
// C++17; the policies of sparse matrices need C++20. Everything is in namespace `choreo`, which is
// also called `croq`. The standard headers below are included because programs rely on them.
// docs/programs.md is the user's page.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iomanip>
#include <iostream>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kiln/host/check.h"
#include "kiln/host/number.h"
#include "kiln/host/spanned.h"
#include "kiln/host/verify.h"
// Below: what the programs call of CUDA.
#include "kiln/host/runtime.h"
// and what the functions do that stand for tile functions.
#include "kiln/host/call.h"
#include "kiln/host/timing.h"
#if __cplusplus >= 202002L
#include "kiln/host/sparse.h"
#endif

namespace croq = choreo;

// Functions of the program that kernels call as well: `__host__ __device__ float scaled(float x)`.
#if !defined(__CUDACC__) && !defined(__host__)
#define __host__
#define __device__
#define __forceinline__
#endif
