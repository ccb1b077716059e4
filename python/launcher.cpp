// kiln._core.Launcher: what a kernel does when it is called with tensors of a GPU.
//
//   prog.scale(x, y, factor=2.0)
//     x and y by the table of functions that their type has for DLPack: no call of Python
//     framework, types, shapes, device and the numbers that decide are the key of a plan
//     a plan that is known is launched on the framework's current stream
//
// What is not known or not so simple goes to the method `_miss(args, kwargs)`, which kiln._launch
// defines: it launches too, and tells `_keep` of the plan. So a call that was made before costs
// about as much as its launch.
#include <Python.h>
#include <nanobind/stl/string.h>
#include <structmember.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "dlpack_exchange.h"
#include "handles.h"

namespace nb = nanobind;

namespace kiln::python {

namespace {

constexpr std::size_t kNamesMax = 64;     // parameters, dimensions and `stream`
constexpr std::size_t kWordsMax = 320;    // of a key
constexpr std::size_t kEntriesMax = 256;  // plans of a kernel that are found fast
constexpr std::int64_t kAbsent = INT64_MIN;

enum class Kind : char { kTensor = 't', kInteger = 'i', kReal = 'r', kDimension = 'd' };

// A parameter of the kernel, or a dimension that is given by its name.
struct Slot {
  PyObject* name = nullptr;  // interned
  Kind kind = Kind::kTensor;
  bool is_deciding = false;
};

struct Entry {
  std::vector<std::int64_t> key;
  PyObject* plan = nullptr;  // of class Plan
  const kiln_plan* handle = nullptr;
  std::size_t workspace_bytes = 0;
  PyObject* make_result = nullptr;     // or null: what is returned is `constant`
  PyObject* make_workspace = nullptr;  // or null
  PyObject* constant = nullptr;
};

struct Cache {
  std::vector<Slot> slots;
  std::size_t parameters = 0;
  std::vector<Entry> entries;
  std::size_t latest = 0;
  std::size_t oldest = 0;
};

struct Launcher {
  PyObject_HEAD vectorcallfunc vectorcall;
  Cache* cache;
};

// A key on its way, and what is read besides.
struct Reading {
  std::array<std::int64_t, kWordsMax> words;
  std::size_t count = 0;
  std::array<kiln_value, kNamesMax + 1> values;
  const dlpack::Exchange* exchange = nullptr;  // of the first tensor
  std::int32_t device = -1;

  bool add(std::int64_t word) {
    if (count == kWordsMax) return false;
    words[count++] = word;
    return true;
  }
};

// By slot; null where nothing is given.
struct Given {
  std::array<PyObject*, kNamesMax> objects = {};
  PyObject* stream = nullptr;
};

// The table of the object's type; null: it has none. Types that have one stay alive and known.
const dlpack::Exchange* exchange_of(PyObject* object) {
  struct Row {
    PyTypeObject* type;
    const dlpack::Exchange* exchange;
  };
  static std::array<Row, 16> rows;
  static std::size_t known = 0;
  PyTypeObject* type = Py_TYPE(object);
  for (std::size_t i = 0; i < known; ++i) {
    if (rows[i].type == type) return rows[i].exchange;
  }
  const dlpack::Exchange* found = nullptr;
  PyObject* capsule =
      PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), dlpack::kExchangeAttribute);
  if (capsule != nullptr && PyCapsule_IsValid(capsule, dlpack::kExchangeCapsule) != 0) {
    auto* header = static_cast<dlpack::ExchangeHeader*>(
        PyCapsule_GetPointer(capsule, dlpack::kExchangeCapsule));
    while (header != nullptr && header->version.major != dlpack::kMajor) header = header->older;
    found = reinterpret_cast<const dlpack::Exchange*>(header);
    if (found != nullptr && found->tensor_from_object == nullptr) found = nullptr;
  }
  Py_XDECREF(capsule);
  PyErr_Clear();
  if (found != nullptr && known < rows.size()) {
    Py_INCREF(reinterpret_cast<PyObject*>(type));
    rows[known++] = {type, found};
  }
  return found;
}

bool same_name(PyObject* left, PyObject* right) {
  return left == right || PyUnicode_Compare(left, right) == 0;
}

bool is_stream(PyObject* name) { return PyUnicode_CompareWithASCIIString(name, "stream") == 0; }

// Whether every argument has one slot.
bool bind(const Cache& cache, PyObject* const* args, std::size_t count, PyObject* names,
          Given& given) {
  if (count > cache.parameters) return false;
  for (std::size_t i = 0; i < count; ++i) given.objects[i] = args[i];
  const auto named = names == nullptr ? 0 : PyTuple_Size(names);
  for (Py_ssize_t n = 0; n < named; ++n) {
    PyObject* name = PyTuple_GetItem(names, n);
    PyObject* value = args[count + static_cast<std::size_t>(n)];
    std::size_t slot = 0;
    while (slot < cache.slots.size() && !same_name(cache.slots[slot].name, name)) ++slot;
    if (slot == cache.slots.size()) {
      if (!is_stream(name)) return false;
      if (value != Py_None) given.stream = value;
      continue;
    }
    if (given.objects[slot] != nullptr) return false;
    given.objects[slot] = value;
  }
  return true;
}

bool read_tensor(PyObject* object, Reading& reading, kiln_value& value) {
  if (object == nullptr) return false;
  const dlpack::Exchange* exchange = exchange_of(object);
  if (exchange == nullptr) return false;
  dlpack::Tensor tensor{};
  if (exchange->tensor_from_object(object, &tensor) != 0) {
    PyErr_Clear();
    return false;
  }
  if (tensor.device.type != dlpack::kCuda || !dlpack::without_gaps(tensor)) return false;
  if (reading.exchange == nullptr) {
    reading.exchange = exchange;
    reading.device = tensor.device.number;
    if (!reading.add(static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(exchange)))) {
      return false;
    }
  }
  // Tensors of several frameworks have several streams, and not all may be written.
  if (reading.exchange != exchange) return false;
  value.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  const std::int64_t type = tensor.type.code | tensor.type.bits << 8 | tensor.type.lanes << 16;
  const std::int64_t place = tensor.rank | static_cast<std::int64_t>(tensor.device.number) << 16;
  if (!reading.add(type) || !reading.add(place)) return false;
  for (std::int32_t d = 0; d < tensor.rank; ++d) {
    if (!reading.add(tensor.shape[d])) return false;
  }
  return true;
}

bool read_number(PyObject* object, const Slot& slot, Reading& reading, kiln_value& value) {
  if (object == nullptr) return slot.kind == Kind::kDimension && reading.add(kAbsent);
  const bool whole = PyLong_Check(object) != 0;
  value.integer = 0;
  if (slot.kind == Kind::kReal) {
    if (!whole && PyFloat_Check(object) == 0) return false;
    value.real = PyFloat_AsDouble(object);
  } else {
    if (!whole) return false;
    value.integer = PyLong_AsLongLong(object);
  }
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return false;
  }
  if (slot.kind != Kind::kDimension && !slot.is_deciding) return true;
  std::int64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return reading.add(bits);
}

bool read(const Cache& cache, const Given& given, Reading& reading) {
  for (std::size_t i = 0; i < cache.slots.size(); ++i) {
    const Slot& slot = cache.slots[i];
    const bool done = slot.kind == Kind::kTensor
                          ? read_tensor(given.objects[i], reading, reading.values[i])
                          : read_number(given.objects[i], slot, reading, reading.values[i]);
    if (!done) return false;
  }
  return reading.exchange != nullptr;
}

const Entry* find(Cache& cache, const Reading& reading) {
  const auto is_it = [&](const Entry& entry) {
    return entry.key.size() == reading.count &&
           std::memcmp(entry.key.data(), reading.words.data(),
                       reading.count * sizeof(std::int64_t)) == 0;
  };
  if (cache.latest < cache.entries.size() && is_it(cache.entries[cache.latest])) {
    return &cache.entries[cache.latest];
  }
  for (std::size_t i = 0; i < cache.entries.size(); ++i) {
    if (!is_it(cache.entries[i])) continue;
    cache.latest = i;
    return &cache.entries[i];
  }
  return nullptr;
}

// A tensor that the framework has made now, of which only the address is wanted; null: it failed.
void* address_of(PyObject* tensor) {
  const dlpack::Exchange* exchange = exchange_of(tensor);
  dlpack::Tensor seen{};
  if (exchange == nullptr || exchange->tensor_from_object(tensor, &seen) != 0) return nullptr;
  return static_cast<std::byte*>(seen.data) + seen.byte_offset;
}

// The stream that the call is for. What is no number is found out by `_miss`.
bool stream_of(const Given& given, const Reading& reading, void*& stream) {
  if (given.stream == nullptr) {
    if (reading.exchange->current_stream(dlpack::kCuda, reading.device, &stream) == 0) return true;
    PyErr_Clear();
    return false;
  }
  if (PyLong_Check(given.stream) == 0) return false;
  stream = PyLong_AsVoidPtr(given.stream);
  if (PyErr_Occurred() == nullptr) return true;
  PyErr_Clear();
  return false;
}

// Of a call that is given with an entry. Null with an exception when it failed.
PyObject* launch(Launcher* self, const Entry& known, Reading& reading, void* stream) {
  const nb::object plan = nb::borrow(known.plan);  // stays, whatever other threads forget
  const Entry entry = {.key = {},
                       .plan = known.plan,
                       .handle = known.handle,
                       .workspace_bytes = known.workspace_bytes};
  nb::object result = nb::borrow(known.constant);
  nb::object workspace;
  const nb::object make_workspace = nb::borrow(known.make_workspace);
  void* memory = nullptr;
  if (known.make_result != nullptr) {
    const nb::object make_result = nb::borrow(known.make_result);
    result = nb::steal(PyObject_CallObject(make_result.ptr(), nullptr));
    if (!result.is_valid()) return nullptr;
    reading.values[self->cache->parameters].data = address_of(result.ptr());
  }
  if (make_workspace.is_valid()) {
    workspace = nb::steal(PyObject_CallObject(make_workspace.ptr(), nullptr));
    if (!workspace.is_valid()) return nullptr;
    memory = address_of(workspace.ptr());
  }
  kiln_status status = KILN_OK;
  std::string error;
  Py_BEGIN_ALLOW_THREADS status =
      kiln_launch(entry.handle, reading.values.data(), memory, entry.workspace_bytes, stream);
  if (status != KILN_OK) error = kiln_last_error();
  Py_END_ALLOW_THREADS if (status == KILN_OK) return result.release().ptr();
  return PyObject_CallMethod(reinterpret_cast<PyObject*>(self), "_fail", "is",
                             static_cast<int>(status), error.c_str());
}

PyObject* miss(PyObject* self, PyObject* const* args, std::size_t count, PyObject* names) {
  const nb::object given = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(count)));
  const nb::object named = nb::steal(PyDict_New());
  if (!given.is_valid() || !named.is_valid()) return nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    Py_INCREF(args[i]);
    PyTuple_SetItem(given.ptr(), static_cast<Py_ssize_t>(i), args[i]);
  }
  const auto others = names == nullptr ? 0 : PyTuple_Size(names);
  for (Py_ssize_t n = 0; n < others; ++n) {
    PyObject* value = args[count + static_cast<std::size_t>(n)];
    if (PyDict_SetItem(named.ptr(), PyTuple_GetItem(names, n), value) != 0) return nullptr;
  }
  return PyObject_CallMethod(self, "_miss", "OO", given.ptr(), named.ptr());
}

PyObject* call(PyObject* object, PyObject* const* args, std::size_t counts, PyObject* names) {
  auto* self = reinterpret_cast<Launcher*>(object);
  const auto count = static_cast<std::size_t>(PyVectorcall_NARGS(counts));
  Given given;
  Reading reading;
  void* stream = nullptr;
  if (self->cache == nullptr || !bind(*self->cache, args, count, names, given) ||
      !read(*self->cache, given, reading)) {
    return miss(object, args, count, names);
  }
  const Entry* entry = find(*self->cache, reading);
  // What is allocated belongs to the framework's current stream.
  const bool allocates =
      entry != nullptr && (entry->make_result != nullptr || entry->make_workspace != nullptr);
  if (entry == nullptr || (allocates && given.stream != nullptr) ||
      !stream_of(given, reading, stream)) {
    return miss(object, args, count, names);
  }
  return launch(self, *entry, reading, stream);
}

void forget(Entry& entry) {
  for (PyObject* each : {entry.plan, entry.make_result, entry.make_workspace, entry.constant}) {
    Py_XDECREF(each);
  }
}

PyObject* make(PyTypeObject* type, PyObject*, PyObject*) {
  auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  PyObject* object = allocate(type, 0);
  if (object == nullptr) return nullptr;
  auto* self = reinterpret_cast<Launcher*>(object);
  self->vectorcall = call;
  self->cache = nullptr;
  return object;
}

void destroy(PyObject* object) {
  auto* self = reinterpret_cast<Launcher*>(object);
  if (self->cache != nullptr) {
    for (Entry& entry : self->cache->entries) forget(entry);
    for (const Slot& slot : self->cache->slots) Py_DECREF(slot.name);
    delete self->cache;
  }
  PyTypeObject* type = Py_TYPE(object);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

// _setup(rows): (name, kind, is_deciding) of each parameter, then of each dimension. A kernel of too
// many is called by `_miss` alone.
PyObject* set_up(PyObject* object, PyObject* rows) {
  auto* self = reinterpret_cast<Launcher*>(object);
  try {
    auto cache = std::make_unique<Cache>();
    for (const nb::handle row : nb::borrow<nb::list>(rows)) {
      const auto fields = nb::cast<nb::tuple>(row);
      PyObject* name = nb::borrow(fields[0]).release().ptr();
      PyUnicode_InternInPlace(&name);
      const Kind kind{nb::cast<std::string>(fields[1])[0]};
      cache->slots.push_back({name, kind, nb::cast<bool>(fields[2])});
      if (kind != Kind::kDimension) ++cache->parameters;
    }
    if (cache->slots.size() <= kNamesMax && self->cache == nullptr) self->cache = cache.release();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_TypeError, error.what());
    return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject* or_null(const nb::object& object) {
  return object.is_none() ? nullptr : nb::object(object).release().ptr();
}

// _keep(objects, plan, make_result, make_workspace, constant): the plan of these arguments, by slot
// with None for what is not given. Whether calls with them are found here from now on.
PyObject* keep(PyObject* object, PyObject* row) {
  auto* self = reinterpret_cast<Launcher*>(object);
  try {
    const auto fields = nb::borrow<nb::tuple>(row);
    const auto objects = nb::cast<nb::tuple>(fields[0]);
    Given given;
    Reading reading;
    if (self->cache == nullptr || objects.size() != self->cache->slots.size()) Py_RETURN_FALSE;
    for (std::size_t i = 0; i < objects.size(); ++i) {
      const nb::handle each = objects[i];
      given.objects[i] = each.is_none() ? nullptr : each.ptr();
    }
    if (!read(*self->cache, given, reading) || find(*self->cache, reading) != nullptr) {
      Py_RETURN_FALSE;
    }
    const auto* plan = nb::cast<const Plan*>(fields[1]);
    Entry entry{.key = {reading.words.begin(), reading.words.begin() + reading.count},
                .plan = nb::borrow(fields[1]).release().ptr(),
                .handle = plan->handle.get(),
                .workspace_bytes = kiln_plan_workspace(plan->handle.get()),
                .make_result = or_null(nb::borrow(fields[2])),
                .make_workspace = or_null(nb::borrow(fields[3])),
                .constant = nb::borrow(fields[4]).release().ptr()};
    Cache& cache = *self->cache;
    if (cache.entries.size() < kEntriesMax) {
      cache.entries.push_back(std::move(entry));
    } else {
      std::swap(cache.entries[cache.oldest], entry);
      cache.oldest = (cache.oldest + 1) % kEntriesMax;
      forget(entry);
    }
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_TypeError, error.what());
    return nullptr;
  }
  Py_RETURN_TRUE;
}

PyMethodDef methods[] = {{"_setup", set_up, METH_O, nullptr},
                         {"_keep", keep, METH_O, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Launcher, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                       {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {0, nullptr}};

PyType_Spec spec = {
    .name = "kiln._core.Launcher",
    .basicsize = sizeof(Launcher),
    .itemsize = 0,
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = slots,
};

}  // namespace

void add_launcher(nb::module_& module) {
  module.attr("Launcher") = nb::steal(PyType_FromSpec(&spec));
}

}  // namespace kiln::python
