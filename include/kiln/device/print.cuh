// What a program prints.
#pragma once

#ifndef __CUDACC_RTC__
#include <cstdio>
#endif

namespace kiln {

// A number as an argument of printf: all that is as wide comes as one type.
__device__ inline const char* printed(bool value) { return value ? "true" : "false"; }
__device__ inline int printed(int value) { return value; }
__device__ inline unsigned printed(unsigned value) { return value; }
__device__ inline long long printed(long value) { return value; }
__device__ inline long long printed(long long value) { return value; }
__device__ inline unsigned long long printed(unsigned long value) { return value; }
__device__ inline unsigned long long printed(unsigned long long value) { return value; }
__device__ inline double printed(float value) { return value; }
__device__ inline double printed(double value) { return value; }

// The text, with the values at its conversions.
template <class... Values>
__device__ void print(const char* text, Values... values) {
  printf(text, printed(values)...);
}

}  // namespace kiln
