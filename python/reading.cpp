#include "reading.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace kiln::python {

namespace {

constexpr std::int64_t kAbsent = INT64_MIN;
constexpr std::int64_t kWhole = 1;  // before an option's value; no object lies there
constexpr std::int64_t kRealNumber = 2;
constexpr std::int64_t kPair = 3;
constexpr std::int32_t kRankMax = 8;
constexpr std::size_t kTypesMax = 32;

// A reference that is ours.
class Own {
 public:
  explicit Own(PyObject* object) : object_(object) {}
  Own(const Own&) = delete;
  Own& operator=(const Own&) = delete;
  ~Own() { Py_XDECREF(object_); }
  [[nodiscard]] PyObject* get() const { return object_; }

 private:
  PyObject* object_;
};

// What Python has told of, and what was found. Never freed: modules are not unloaded.
struct Known {
  std::array<TensorType, kTypesMax> types;
  std::size_t count = 0;
  PyObject* records_gradients = nullptr;  // functions of PyTorch
  PyObject* current_stream = nullptr;
  PyTypeObject* element_type = nullptr;
};

Known& known() {
  static Known one;
  return one;
}

PyObject* name_of(const char* text) { return PyUnicode_InternFromString(text); }

struct Names {
  PyObject* data_ptr = name_of("data_ptr");
  PyObject* dtype = name_of("dtype");
  PyObject* get_device = name_of("get_device");
  PyObject* is_cuda = name_of("is_cuda");
  PyObject* requires_grad = name_of("requires_grad");
  PyObject* shape = name_of("shape");
  PyObject* stride = name_of("stride");
};

const Names& names_of_torch() {
  static const Names one;
  return one;
}

TensorType* find_type(PyTypeObject* type) {
  Known& all = known();
  for (std::size_t i = 0; i < all.count; ++i) {
    if (all.types[i].type == type) return &all.types[i];
  }
  return nullptr;
}

void add_type(const TensorType& row) {
  Known& all = known();
  if (all.count == all.types.size()) return;
  Py_INCREF(reinterpret_cast<PyObject*>(row.type));
  all.types[all.count++] = row;
}

// The table of a type, or one that it inherits; null: it has none.
const dlpack::Exchange* table_of(PyTypeObject* type) {
  const dlpack::Exchange* found = nullptr;
  const Own capsule(
      PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), dlpack::kExchangeAttribute));
  if (capsule.get() != nullptr && PyCapsule_IsValid(capsule.get(), dlpack::kExchangeCapsule) != 0) {
    auto* header = static_cast<dlpack::ExchangeHeader*>(
        PyCapsule_GetPointer(capsule.get(), dlpack::kExchangeCapsule));
    while (header != nullptr && header->version.major != dlpack::kMajor) header = header->older;
    found = reinterpret_cast<const dlpack::Exchange*>(header);
    if (found != nullptr && found->tensor_from_object == nullptr) found = nullptr;
  }
  PyErr_Clear();
  return found;
}

// How the object is read; a row without a type: not here.
TensorType type_of(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (const TensorType* row = find_type(type)) return *row;
  const TensorType found{.type = type, .exchange = table_of(type)};
  if (found.exchange == nullptr) return {};
  add_type(found);
  return found;
}

struct View {
  void* data = nullptr;
  std::int32_t device = -1;
  std::int64_t type = 0;  // of the elements, a number of its framework
  std::int32_t rank = 0;
  std::array<std::int64_t, kRankMax> shape;
  std::array<std::int64_t, kRankMax> strides;
};

bool view_by_table(PyObject* object, const dlpack::Exchange& exchange, View& view) {
  dlpack::Tensor tensor{};
  if (exchange.tensor_from_object(object, &tensor) != 0) return false;
  if (tensor.device.type != dlpack::kCuda || tensor.rank > kRankMax) return false;
  view.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  view.device = tensor.device.number;
  view.type = tensor.type.code | tensor.type.bits << 8 | tensor.type.lanes << 16;
  view.rank = tensor.rank;
  std::int64_t step = 1;
  for (std::int32_t d = tensor.rank; d-- > 0; step *= tensor.shape[d]) {
    const auto at = static_cast<std::size_t>(d);
    view.shape[at] = tensor.shape[d];
    view.strides[at] = tensor.strides == nullptr ? step : tensor.strides[d];
  }
  return true;
}

PyObject* call(PyObject* object, PyObject* method) {
  return PyObject_VectorcallMethod(method, &object, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
}

bool numbers_of(PyObject* tuple, std::int32_t rank, std::array<std::int64_t, kRankMax>& out) {
  if (tuple == nullptr || PyTuple_Check(tuple) == 0 || PyTuple_Size(tuple) != rank) return false;
  for (std::int32_t d = 0; d < rank; ++d) {
    out[static_cast<std::size_t>(d)] = PyLong_AsLongLong(PyTuple_GetItem(tuple, d));
  }
  return PyErr_Occurred() == nullptr;
}

bool view_by_attributes(PyObject* object, View& view) {
  const Names& names = names_of_torch();
  const Own is_cuda(PyObject_GetAttr(object, names.is_cuda));
  if (is_cuda.get() != Py_True) return false;
  const Own device(call(object, names.get_device)), place(call(object, names.data_ptr));
  const Own type(PyObject_GetAttr(object, names.dtype));
  const Own shape(PyObject_GetAttr(object, names.shape)), strides(call(object, names.stride));
  if (device.get() == nullptr || place.get() == nullptr || type.get() == nullptr) return false;
  if (shape.get() == nullptr || PyTuple_Check(shape.get()) == 0) return false;
  const auto rank = PyTuple_Size(shape.get());
  if (rank > kRankMax) return false;
  view.device = static_cast<std::int32_t>(PyLong_AsLong(device.get()));
  view.data = PyLong_AsVoidPtr(place.get());
  // Types of elements are objects of which there is one each.
  view.type = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(type.get()));
  view.rank = static_cast<std::int32_t>(rank);
  return numbers_of(shape.get(), view.rank, view.shape) &&
         numbers_of(strides.get(), view.rank, view.strides);
}

bool view_of(PyObject* object, const TensorType& type, View& view) {
  if (type.type == nullptr) return false;
  const bool fine = type.exchange != nullptr ? view_by_table(object, *type.exchange, view)
                                             : view_by_attributes(object, view);
  if (!fine) PyErr_Clear();
  return fine;
}

bool has_gaps(const View& view) {
  std::int64_t step = 1;
  for (auto d = static_cast<std::size_t>(view.rank); d-- > 0; step *= view.shape[d]) {
    if (view.shape[d] != 1 && view.strides[d] != step) return true;
  }
  return false;
}

// Tensors of several frameworks have several streams, and not all may be written.
bool same_framework(Reading& reading, const TensorType& type, std::int32_t device) {
  if (reading.first.type != nullptr) return reading.first.exchange == type.exchange;
  reading.first = type;
  reading.device = device;
  return reading.add(static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(type.exchange)));
}

bool add_view(Reading& reading, const View& view, bool with_strides) {
  const std::int64_t place = view.rank | static_cast<std::int64_t>(view.device) << 16;
  bool fits = reading.add(view.type) && reading.add(place);
  for (std::size_t d = 0; d < static_cast<std::size_t>(view.rank); ++d) {
    fits = fits && reading.add(view.shape[d]);
    if (with_strides) fits = fits && reading.add(view.strides[d]);
  }
  return fits;
}

bool read_tensor(PyObject* object, Reading& reading, kiln_value& value) {
  if (object == nullptr) return false;
  const TensorType type = type_of(object);
  View view;
  if (!view_of(object, type, view) || has_gaps(view)) return false;
  value.data = view.data;
  return same_framework(reading, type, view.device) && add_view(reading, view, false);
}

// None, or what is no number, is not for here.
bool real_of(PyObject* object, double& real) {
  if (PyFloat_Check(object) != 0) {
    real = PyFloat_AsDouble(object);
  } else if (PyLong_Check(object) != 0) {
    real = static_cast<double>(PyLong_AsLongLong(object));
  } else {
    return false;
  }
  if (PyErr_Occurred() == nullptr) return true;
  PyErr_Clear();
  return false;
}

bool read_number(PyObject* object, const Slot& slot, Reading& reading, kiln_value& value) {
  if (object == nullptr) return slot.kind == Kind::kDimension && reading.add(kAbsent);
  value.integer = 0;
  if (slot.kind == Kind::kReal) {
    if (!real_of(object, value.real)) return false;
  } else {
    if (PyLong_Check(object) == 0) return false;
    value.integer = PyLong_AsLongLong(object);
    if (PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      return false;
    }
  }
  if (slot.kind != Kind::kDimension && !slot.is_deciding) return true;
  std::int64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return reading.add(bits);
}

bool read_factor(PyObject* object, const Slot& slot, Reading& reading, kiln_value& value) {
  if (object == Py_None && slot.usual == Py_None) {
    reading.unsaid = slot.place;
    return reading.add(1);
  }
  double usual = 0;
  if (!real_of(object, value.real)) return false;
  if (slot.kind == Kind::kPositive && !(std::isfinite(value.real) && value.real > 0)) return false;
  const bool is_usual = slot.usual != Py_None && real_of(slot.usual, usual) && usual == value.real;
  return reading.add(is_usual ? 1 : 0);
}

// A number, and of no class that may behave otherwise: as bools.
bool read_exact(PyObject* object, Reading& reading) {
  if (PyFloat_CheckExact(object) != 0) {
    const double real = PyFloat_AsDouble(object);
    return reading.add(kRealNumber) && reading.add(std::bit_cast<std::int64_t>(real));
  }
  if (PyLong_CheckExact(object) == 0) return false;
  const std::int64_t whole = PyLong_AsLongLong(object);
  if (PyErr_Occurred() == nullptr) return reading.add(kWhole) && reading.add(whole);
  PyErr_Clear();
  return false;
}

bool read_option(PyObject* object, Reading& reading) {
  if (object == nullptr) return false;
  const bool is_tuple = PyTuple_CheckExact(object) != 0;
  if (is_tuple || PyList_CheckExact(object) != 0) {
    const auto at = is_tuple ? PyTuple_GetItem : PyList_GetItem;
    if ((is_tuple ? PyTuple_Size(object) : PyList_Size(object)) != 2) return false;
    return reading.add(kPair) && read_exact(at(object, 0), reading) &&
           read_exact(at(object, 1), reading);
  }
  if (read_exact(object, reading)) return true;
  const Own stands(option_of(object));
  if (stands.get() == nullptr) return false;
  return reading.add(static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(stands.get())));
}

bool read_slot(PyObject* object, const Slot& slot, Reading& reading) {
  kiln_value& value = reading.values[slot.place];
  switch (slot.kind) {
    case Kind::kTensor: return read_tensor(object, reading, value);
    case Kind::kOperand:
    case Kind::kTable: return read_operand(object, slot.kind, reading, value);
    case Kind::kFactor:
    case Kind::kPositive: return read_factor(object, slot, reading, value);
    case Kind::kOption: return read_option(object, reading);
    case Kind::kInteger:
    case Kind::kReal:
    case Kind::kDimension: break;
  }
  return read_number(object, slot, reading, value);
}

bool same_name(PyObject* left, PyObject* right) {
  return left == right || PyUnicode_Compare(left, right) == 0;
}

bool is_stream(PyObject* name) { return PyUnicode_CompareWithASCIIString(name, "stream") == 0; }

}  // namespace

bool bind_arguments(std::span<const Slot> slots, std::size_t positional, const Arguments& arguments,
                    Given& given) {
  const auto& [values, count, names] = arguments;
  if (count > positional) return false;
  for (std::size_t i = 0; i < count; ++i) given.objects[i] = values[i];
  const auto named = names == nullptr ? 0 : PyTuple_Size(names);
  for (Py_ssize_t n = 0; n < named; ++n) {
    PyObject* name = PyTuple_GetItem(names, n);
    PyObject* value = values[count + static_cast<std::size_t>(n)];
    std::size_t slot = 0;
    while (slot < slots.size() && !same_name(slots[slot].name, name)) ++slot;
    if (slot == slots.size()) {
      if (!is_stream(name)) return false;
      if (value != Py_None) given.stream = value;
      continue;
    }
    if (given.objects[slot] != nullptr) return false;
    given.objects[slot] = value;
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (given.objects[i] == nullptr) given.objects[i] = slots[i].usual;
  }
  return true;
}

bool read_operand(PyObject* object, Kind kind, Reading& reading, kiln_value& value) {
  value.data = nullptr;
  if (object == Py_None) return reading.add(kAbsent);
  const TensorType* type = object == nullptr ? nullptr : find_type(Py_TYPE(object));
  if (type == nullptr || !type->is_told) return false;
  View view;
  if (!view_of(object, *type, view)) return false;
  value.data = view.data;
  if (kind == Kind::kOperand) reading.together |= reinterpret_cast<std::uintptr_t>(view.data);
  return same_framework(reading, *type, view.device) && add_view(reading, view, true);
}

bool read(std::span<const Slot> slots, const Given& given, Reading& reading) {
  bool has_operands = false;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!read_slot(given.objects[i], slots[i], reading)) return false;
    has_operands = has_operands || slots[i].kind == Kind::kOperand;
  }
  if (reading.first.type == nullptr) return false;
  if (!has_operands) return true;
  const auto alignment = reading.together & (~reading.together + 1);
  return reading.add(static_cast<std::int64_t>(alignment)) &&
         !needs_gradient(std::span(given.objects).first(slots.size()));
}

bool needs_gradient(std::span<PyObject* const> objects) {
  const Known& all = known();
  if (all.records_gradients == nullptr) return false;
  const Own records(PyObject_CallNoArgs(all.records_gradients));
  if (records.get() == Py_False) return false;
  for (PyObject* object : objects) {
    const TensorType* type = object == nullptr ? nullptr : find_type(Py_TYPE(object));
    if (type == nullptr || !type->has_gradients) continue;
    const Own wanted(PyObject_GetAttr(object, names_of_torch().requires_grad));
    if (wanted.get() == Py_True) return true;
  }
  PyErr_Clear();
  return false;
}

PyObject* option_of(PyObject* object) {
  if (object == nullptr) return nullptr;
  const bool is_text = PyUnicode_CheckExact(object) != 0;
  const bool is_type = Py_TYPE(object) == known().element_type;
  if (object != Py_None && object != Py_True && object != Py_False && !is_text && !is_type) {
    return nullptr;
  }
  Py_INCREF(object);
  if (is_text) PyUnicode_InternInPlace(&object);
  return object;
}

bool stream_of(const Given& given, const Reading& reading, void*& stream) {
  if (given.stream != nullptr) {
    if (PyLong_Check(given.stream) == 0) return false;
    stream = PyLong_AsVoidPtr(given.stream);
  } else if (reading.first.exchange != nullptr) {
    const auto* exchange = reading.first.exchange;
    if (exchange->current_stream(dlpack::kCuda, reading.device, &stream) != 0) {
      PyErr_Clear();
      return false;
    }
  } else if (known().current_stream != nullptr) {
    const Own number(PyObject_CallFunction(known().current_stream, "i", reading.device));
    stream = number.get() == nullptr ? nullptr : PyLong_AsVoidPtr(number.get());
  } else {
    return false;
  }
  if (PyErr_Occurred() == nullptr) return true;
  PyErr_Clear();
  return false;
}

void* address_of(PyObject* tensor) {
  View view;
  return view_of(tensor, type_of(tensor), view) ? view.data : nullptr;
}

PyObject* know_tensors(PyObject*, PyObject* row) {
  PyObject* types = nullptr;
  PyObject* functions = nullptr;
  if (PyArg_ParseTuple(row, "O!O!", &PyTuple_Type, &types, &PyTuple_Type, &functions) == 0) {
    return nullptr;
  }
  Known& all = known();
  const bool is_torch = PyTuple_Size(functions) == 3;
  if (is_torch && all.records_gradients == nullptr) {
    all.records_gradients = Py_NewRef(PyTuple_GetItem(functions, 0));
    all.current_stream = Py_NewRef(PyTuple_GetItem(functions, 1));
    all.element_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(PyTuple_GetItem(functions, 2)));
  }
  for (Py_ssize_t i = 0; i < PyTuple_Size(types); ++i) {
    auto* type = reinterpret_cast<PyTypeObject*>(PyTuple_GetItem(types, i));
    if (find_type(type) == nullptr) add_type({.type = type, .exchange = table_of(type)});
    TensorType* row_of_it = find_type(type);
    if (row_of_it == nullptr) continue;
    row_of_it->is_told = true;
    row_of_it->has_gradients = is_torch;
  }
  Py_RETURN_NONE;
}

PyObject* seen(PyObject*, PyObject* tensors) {
  if (PyTuple_Check(tensors) == 0) Py_RETURN_NONE;
  std::array<PyObject*, kNamesMax> objects = {};
  const auto count = static_cast<std::size_t>(PyTuple_Size(tensors));
  Reading reading;
  bool fine = count <= objects.size();
  for (std::size_t i = 0; fine && i < count; ++i) {
    objects[i] = PyTuple_GetItem(tensors, static_cast<Py_ssize_t>(i));
    fine = read_operand(objects[i], Kind::kOperand, reading, reading.values[i]);
  }
  if (!fine || needs_gradient(std::span(objects).first(count))) Py_RETURN_NONE;
  return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(reading.words.data()),
                                   static_cast<Py_ssize_t>(reading.count * sizeof(std::int64_t)));
}

}  // namespace kiln::python
