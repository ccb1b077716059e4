// The arguments of a call as a key and as values, read without a call of Python where that can be.
//
//   Slot       a parameter: how it is read, and where its value goes
//   Given      the objects of a call, by slot
//   Reading    the key that they make, the values, and whose stream is meant
//
// A tensor is read by the table of functions that its type has for DLPack (PyTorch from 2.10 on), or,
// where Python has told of its type, by the attributes of PyTorch.
#pragma once

#include <Python.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dlpack_exchange.h"
#include "kiln/kiln.h"

namespace kiln::python {

inline constexpr std::size_t kNamesMax = 64;   // parameters, dimensions and `stream`
inline constexpr std::size_t kWordsMax = 320;  // of a key
inline constexpr std::uintptr_t kAlignmentMax = 16;

enum class Kind : char {
  kTensor = 't',   // of a kernel: without gaps
  kOperand = 's',  // of kiln.ops: of any strides, or None
  kTable = 'x',    // the same, whose address need not be aligned as those of the others
  kInteger = 'i',
  kReal = 'r',
  kDimension = 'd',  // by its name
  kFactor = 'f',     // of a key only whether it is the usual one
  kPositive = 'p',   // the same, finite and above 0
  kOption = 'o',     // None, a bool, a text, a type of elements, a number or a pair of numbers
};

struct Slot {
  PyObject* name = nullptr;  // interned
  Kind kind = Kind::kTensor;
  bool is_deciding = false;
  std::size_t place = 0;      // of the value
  PyObject* usual = nullptr;  // what counts where nothing is given; null: nothing
};

// By slot; null where nothing is given.
struct Given {
  std::array<PyObject*, kNamesMax> objects = {};
  PyObject* stream = nullptr;
};

// What is known of a type of tensors. Types that have a row stay alive.
struct TensorType {
  PyTypeObject* type = nullptr;
  const dlpack::Exchange* exchange = nullptr;  // null: read by the attributes of PyTorch
  bool is_told = false;                        // by Python: no class that may behave otherwise
  bool has_gradients = false;
};

struct Reading {
  std::array<std::int64_t, kWordsMax> words;
  std::size_t count = 0;
  std::array<kiln_value, kNamesMax + 1> values = {};
  TensorType first;  // of the first tensor
  std::int32_t device = -1;
  std::uintptr_t together = kAlignmentMax;  // all addresses whose alignment counts
  std::size_t unsaid = kNamesMax;           // the place of a factor that is None

  bool add(std::int64_t word) {
    if (count == kWordsMax) return false;
    words[count++] = word;
    return true;
  }
  [[nodiscard]] std::span<const std::int64_t> key() const { return std::span(words).first(count); }
};

// As a vectorcall has them: `count` without a name, then one for each of `names` (or null).
struct Arguments {
  PyObject* const* values;
  std::size_t count;
  PyObject* names;
};

// Whether every argument has one slot. `positional`: how many slots an argument without a name may have.
bool bind_arguments(std::span<const Slot> slots, std::size_t positional, const Arguments& arguments,
                    Given& given);

// Whether all that is given is of the simple kind; values of what is None are 0.
bool read(std::span<const Slot> slots, const Given& given, Reading& reading);

// One tensor, or None, into the key.
bool read_operand(PyObject* object, Kind kind, Reading& reading, kiln_value& value);

// Whether autograd has to see a call with these; false where the framework has none.
bool needs_gradient(std::span<PyObject* const> objects);

// What stands for an option in a key by its address, a new reference; null: nothing does.
PyObject* option_of(PyObject* object);

// The stream that the call is for. What is no number is found out in Python.
bool stream_of(const Given& given, const Reading& reading, void*& stream);

// Of a tensor that the framework has made now; null: it cannot be said.
void* address_of(PyObject* tensor);

// know_tensors(types, functions): tensors of these types, and of no classes of them, are read by their
// table or by PyTorch's attributes. `functions`, where they are PyTorch's, else (): whether gradients are
// recorded, the current stream of a device as a number, and the class of types of elements.
PyObject* know_tensors(PyObject* module, PyObject* row);

// seen(tensors): type, shape, strides and device of each, of which some may be None, as bytes; None where
// that cannot be read here, or a gradient is needed.
PyObject* seen(PyObject* module, PyObject* tensors);

}  // namespace kiln::python
