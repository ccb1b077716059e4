// Misuse of the device library stops the compilation with one line that says what is wrong and
// names both sides of the mismatch.
//
//   static_assert(require<kExtent % kTile == 0,
//                         misuse::extent_is_not_a_multiple_of_the_tile<kExtent, kTile>>);
//   static_assert(require_same<misuse::element_type_is_not_the_one_the_atom_takes, Given, f16>);
//
//   error: incomplete type "kiln::misuse::extent_is_not_a_multiple_of_the_tile<100, 32>" is not allowed
//
// A static_assert can only print a string literal, so the sentence is the name of a class template
// that nobody defines, and the numbers are its arguments, in the order in which the sentence
// mentions them. Asking for the size of that type is the error: nvcc and NVRTC print the name
// with its arguments, then where the user's code led to it. The static_assert around it makes
// `require` a declaration, so it stands where a static_assert may: in a class or in a function.
//
// A requirement that holds costs about 40 microseconds of compile time for each new set of
// arguments, and nothing at run time. Numbers are `int` because a wider type would be printed with
// its suffix ("100LL"). Code that makes no sense once a requirement failed goes behind an
// `if constexpr` on the same condition, so that nothing is said twice.
#pragma once

namespace kiln {

// True. With kHolds == false an error instead, whose text contains the name of `Misuse`, an
// incomplete type.
template <bool kHolds, class Misuse>
inline constexpr bool require = kHolds;
template <class Misuse>
inline constexpr bool require<false, Misuse> = sizeof(Misuse) != 0;

namespace detail {

// nvcc prints a type by the names it was reached through ("X<...>::Atom"), which for tensors are
// lines long. What these functions return was never reached through anything: a class comes from
// the type of its own assignment, the arithmetic types are written out.
template <class T>
struct Spelled {};
template <class T>
__device__ T assigned(T& (T::*)(const T&));
template <class T>
__device__ auto spell(Spelled<T>, int) -> decltype(assigned(&T::operator=));
template <class T>
__device__ T spell(Spelled<T>, long);
__device__ void spell(Spelled<void>, int);
__device__ float spell(Spelled<float>, int);
__device__ double spell(Spelled<double>, int);
__device__ signed char spell(Spelled<signed char>, int);
__device__ unsigned char spell(Spelled<unsigned char>, int);
__device__ short spell(Spelled<short>, int);
__device__ unsigned short spell(Spelled<unsigned short>, int);
__device__ int spell(Spelled<int>, int);
__device__ unsigned spell(Spelled<unsigned>, int);

}  // namespace detail

// True. An error that contains the name of Sentence<Given, Wanted> where the types differ.
template <template <class, class> class Sentence, class Given, class Wanted>
inline constexpr bool require_same =
    require<false, Sentence<decltype(detail::spell(detail::Spelled<Given>{}, 0)),
                            decltype(detail::spell(detail::Spelled<Wanted>{}, 0))>>;
template <template <class, class> class Sentence, class T>
inline constexpr bool require_same<Sentence, T, T> = true;

// The sentences. Declared and never defined; tests/must_not_compile has a case for each of them.
namespace misuse {

// Extents, ranks, sizes.
template <int kExtent, int kTile>
struct extent_is_not_a_multiple_of_the_tile;
template <int kRank, int kWanted>
struct rank_of_the_tensor_is_not_the_rank_wanted;
template <int kSource, int kDestination>
struct source_and_destination_differ_in_size;
template <int kM, int kMOfC>
struct a_and_c_differ_in_m;
template <int kN, int kNOfC>
struct b_and_c_differ_in_n;
template <int kK, int kKOfB>
struct a_and_b_differ_in_k;

// What an atom takes.
template <class Given, class Taken>
struct element_type_is_not_the_one_the_atom_takes;
template <int kBytes, int kTaken>
struct bytes_of_an_element_are_not_those_the_atom_takes;
template <auto kGiven, auto kTaken>
struct memory_is_not_the_one_the_atom_takes;
template <class Given, class Taken>
struct fragment_belongs_to_another_atom_than_the_one_that_runs;
template <auto kGiven, auto kTaken>
struct fragment_is_of_another_operand_than_the_one_it_stands_for;
template <int kStride, int kTaken>
struct stride_of_the_k_mode_is_not_the_one_the_atom_takes;
template <int kElements, int kContiguous>
struct copy_moves_more_elements_at_once_than_are_contiguous;
template <int kBytes, int kElementBytes>
struct bytes_of_the_copy_are_not_a_multiple_of_the_element;

}  // namespace misuse

}  // namespace kiln
