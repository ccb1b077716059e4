// Layouts as values: a tree of (extent, stride) leaves that sends a coordinate to an index.
//
//   constexpr Layout c = "((4,8),(2,2)):((32,1),(16,8))"_layout;   // lane x register -> element
//   c(5, 1)  ==  32 + 1 + 16  ==  49                               // lane 5 = (1,1), register 1
//   size(c) == 128,  cosize(c) == 128,  is_bijective(c)
//
// The words and the meaning of every operation are those of CuTe's documents: the *shape* is the
// tree of extents, a *mode* is a child of the root, coordinates count colexicographically (the
// first mode runs fastest), `size` is the number of coordinates and `cosize` one past the largest
// index. Unlike CuTe's, a layout here is one small value of one type: the compiler computes with it
// at run time, tables prove themselves with it in static_assert, and device code takes it as a
// template argument. An operation with no answer (strides that do not divide, more than kLeavesMax
// leaves) gives a layout with `valid() == false`, which every further operation passes on.
//
// This is the header to include. Its parts: value.h (the type, coordinates), text.h, algebra.h
// (coalesce, composition, complement, inverses), swizzle.h (swizzled layouts, index_at), divide.h
// (tilers, divisions, products), slice.h (parts of a layout), recast.h (elements of another width).
// docs/layout.md is the user's page; src/layout/print.h writes text.
//
// Usable by the host compiler, nvcc and NVRTC: no headers but <cstdint>, no allocation.
#pragma once

#include "kiln/layout/algebra.h"
#include "kiln/layout/divide.h"
#include "kiln/layout/recast.h"
#include "kiln/layout/slice.h"
#include "kiln/layout/swizzle.h"
#include "kiln/layout/text.h"
#include "kiln/layout/value.h"
