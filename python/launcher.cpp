// kiln._core.Launcher: what a kernel, or a function of kiln.ops, does when it is called with tensors of a
// GPU.
//
//   prog.scale(x, y, factor=2.0)       kiln.ops.gemm(x, w.T)
//     x and y as addresses, types, shapes and strides, without a call of Python (see reading.h)
//     framework, types, shapes, device, options and the numbers that decide are the key of an entry
//     an entry that is known is launched on the framework's current stream
//
// What is not known or not so simple goes to the method `_miss(args, kwargs)`, which Python defines: it
// launches too, and tells `_keep` of what it has prepared. So a call that was made before costs about as
// much as its launch.
#include <Python.h>
#include <nanobind/stl/string.h>
#include <structmember.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "handles.h"
#include "prepared.h"
#include "reading.h"

namespace nb = nanobind;

namespace kiln::python {

namespace {

constexpr std::size_t kEntriesMax = 1024;  // what a launcher finds fast

// What a launch gives: made by the framework, or given by the caller where there is no `make`.
struct Result {
  std::size_t place = 0;  // of its address
  nb::object make;
};

struct Entry {
  std::vector<std::int64_t> key;
  nb::object owner;                 // of class Plan or Prepared
  const kiln_plan* plan = nullptr;  // one of these two
  const Prepared* prepared = nullptr;
  std::size_t workspace_bytes = 0;
  std::vector<Result> results;
  std::size_t returned = 0;  // of the results; 0: the constant
  nb::object constant;
  nb::object make_workspace;      // or none
  double usual = 0;               // of a factor that is None
  nb::object apart;               // keeps this:
  const Apart* places = nullptr;  // where the operands lie; null: nothing that is given is written
  std::vector<nb::object> options;  // which the key knows by address
};

struct Cache {
  std::vector<Slot> slots;
  std::size_t positional = 0;
  std::unordered_map<std::uint64_t, std::shared_ptr<const Entry>> entries;  // by the key's hash
  std::deque<std::uint64_t> order;                                          // the oldest first
};

struct Launcher {
  PyObject_HEAD vectorcallfunc vectorcall;
  Cache* cache;
};

std::uint64_t hash_of(std::span<const std::int64_t> key) {
  std::uint64_t hash = 0x9E3779B97F4A7C15;
  for (const std::int64_t word : key) {
    hash = (hash ^ static_cast<std::uint64_t>(word)) * 0xD6E8FEB86659FD93;
    hash ^= hash >> 32;
  }
  return hash;
}

// The caller's own reference: other threads may forget the entry.
std::shared_ptr<const Entry> find(const Cache& cache, const Reading& reading) {
  const auto key = reading.key();
  const auto at = cache.entries.find(hash_of(key));
  if (at == cache.entries.end() || !std::ranges::equal(at->second->key, key)) return nullptr;
  return at->second;
}

PyObject* given_at(const Cache& cache, const Given& given, std::size_t place) {
  for (std::size_t i = 0; i < cache.slots.size(); ++i) {
    if (cache.slots[i].place == place) return given.objects[i];
  }
  return nullptr;
}

// A new one of the framework; its address. False with an exception when it failed.
bool make_tensor(const nb::object& make, nb::object& tensor, void*& address) {
  tensor = nb::steal(PyObject_CallNoArgs(make.ptr()));
  if (!tensor.is_valid()) return false;
  address = address_of(tensor.ptr());
  return true;
}

kiln_status start_entry(const Entry& entry, const Reading& reading, void* memory, void* stream,
                        std::string& error) {
  if (entry.prepared != nullptr) {
    Ended ended = start(*entry.prepared, reading.values, memory, stream);
    error = std::move(ended.error);
    return ended.status;
  }
  const kiln_status status =
      kiln_launch(entry.plan, reading.values.data(), memory, entry.workspace_bytes, stream);
  if (status != KILN_OK) error = kiln_last_error();
  return status;
}

PyObject* returned(const Entry& entry, std::vector<nb::object>& results) {
  if (entry.returned == 0) return nb::object(entry.constant).release().ptr();
  if (entry.returned == 1) return results[0].release().ptr();
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(entry.returned));
  if (tuple == nullptr) return nullptr;
  for (std::size_t i = 0; i < entry.returned; ++i) {
    PyTuple_SetItem(tuple, static_cast<Py_ssize_t>(i), results[i].release().ptr());
  }
  return tuple;
}

// Of a call that is given with an entry. Null with an exception when it failed.
PyObject* launch(Launcher* self, const Entry& entry, const Given& given, Reading& reading,
                 void* stream) {
  if (reading.unsaid < kNamesMax) reading.values[reading.unsaid].real = entry.usual;
  std::vector<nb::object> results(entry.results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Result& each = entry.results[i];
    if (!each.make.is_none()) {
      if (!make_tensor(each.make, results[i], reading.values[each.place].data)) return nullptr;
    } else {
      results[i] = nb::borrow(given_at(*self->cache, given, each.place));
    }
  }
  nb::object workspace;
  void* memory = nullptr;
  if (!entry.make_workspace.is_none() && !make_tensor(entry.make_workspace, workspace, memory)) {
    return nullptr;
  }
  kiln_status status = KILN_OK;
  std::string error;
  Py_BEGIN_ALLOW_THREADS status = start_entry(entry, reading, memory, stream, error);
  Py_END_ALLOW_THREADS if (status == KILN_OK) return returned(entry, results);
  return PyObject_CallMethod(reinterpret_cast<PyObject*>(self), "_fail", "is",
                             static_cast<int>(status), error.c_str());
}

PyObject* miss(PyObject* self, const Arguments& arguments) {
  const auto& [args, count, names] = arguments;
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

// What is allocated belongs to the framework's current stream.
bool allocates(const Entry& entry) {
  if (!entry.make_workspace.is_none()) return true;
  return std::ranges::any_of(entry.results,
                             [](const Result& each) { return !each.make.is_none(); });
}

PyObject* call(PyObject* object, PyObject* const* args, std::size_t counts, PyObject* names) {
  auto* self = reinterpret_cast<Launcher*>(object);
  const auto count = static_cast<std::size_t>(PyVectorcall_NARGS(counts));
  const Arguments arguments{args, count, names};
  Given given;
  Reading reading;
  void* stream = nullptr;
  if (self->cache == nullptr ||
      !bind_arguments(self->cache->slots, self->cache->positional, arguments, given) ||
      !read(self->cache->slots, given, reading)) {
    return miss(object, arguments);
  }
  const std::shared_ptr<const Entry> entry = find(*self->cache, reading);
  if (entry == nullptr || (given.stream != nullptr && allocates(*entry)) ||
      !stream_of(given, reading, stream) ||
      (entry->places != nullptr && entry->places->shared(reading.values))) {
    return miss(object, arguments);
  }
  return launch(self, *entry, given, reading, stream);
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
    for (const Slot& slot : self->cache->slots) {
      Py_DECREF(slot.name);
      Py_XDECREF(slot.usual);
    }
    delete self->cache;
  }
  PyTypeObject* type = Py_TYPE(object);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

// A row: name, kind, is_deciding, place, and a tuple of what is usual, or ().
Slot slot_of(const nb::tuple& row) {
  PyObject* name = nb::borrow(row[0]).release().ptr();
  PyUnicode_InternInPlace(&name);
  const auto usual = nb::cast<nb::tuple>(row[4]);
  return {.name = name,
          .kind = Kind{nb::cast<std::string>(row[1])[0]},
          .is_deciding = nb::cast<bool>(row[2]),
          .place = nb::cast<std::size_t>(row[3]),
          .usual = usual.size() == 0 ? nullptr : nb::borrow(usual[0]).release().ptr()};
}

// _setup((rows, positional)): of each parameter in their order, of which `positional` may be given
// without a name. A kernel of too many is called by `_miss` alone.
PyObject* set_up(PyObject* object, PyObject* given) {
  auto* self = reinterpret_cast<Launcher*>(object);
  try {
    const auto fields = nb::borrow<nb::tuple>(given);
    const auto rows = nb::cast<nb::list>(fields[0]);
    if (rows.size() > kNamesMax || self->cache != nullptr) Py_RETURN_NONE;
    auto cache = std::make_unique<Cache>();
    for (const nb::handle row : rows) cache->slots.push_back(slot_of(nb::cast<nb::tuple>(row)));
    cache->positional = nb::cast<std::size_t>(fields[1]);
    self->cache = cache.release();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_TypeError, error.what());
    return nullptr;
  }
  Py_RETURN_NONE;
}

// Of a row of kiln._launch.Known.
std::shared_ptr<Entry> entry_of(const nb::tuple& row) {
  auto entry = std::make_shared<Entry>();
  entry->owner = nb::borrow(row[1]);
  const Plan* plan = nullptr;
  if (nb::try_cast(entry->owner, plan)) {
    entry->plan = plan->handle.get();
    entry->workspace_bytes = kiln_plan_workspace(entry->plan);
  } else {
    entry->prepared = nb::cast<const Prepared*>(entry->owner);
  }
  for (const nb::handle each : nb::cast<nb::list>(row[2])) {
    const auto fields = nb::cast<nb::tuple>(each);
    entry->results.push_back({nb::cast<std::size_t>(fields[0]), nb::borrow(fields[1])});
  }
  entry->returned = nb::cast<std::size_t>(row[3]);
  entry->constant = nb::borrow(row[4]);
  entry->make_workspace = nb::borrow(row[5]);
  entry->usual = nb::cast<double>(row[6]);
  entry->apart = nb::borrow(row[7]);
  if (!entry->apart.is_none()) entry->places = nb::cast<const Apart*>(entry->apart);
  return entry;
}

void add(Cache& cache, std::shared_ptr<const Entry> entry) {
  const std::uint64_t hash = hash_of(entry->key);
  if (!cache.entries.contains(hash)) {
    if (cache.order.size() == kEntriesMax) {
      cache.entries.erase(cache.order.front());
      cache.order.pop_front();
    }
    cache.order.push_back(hash);
  }
  cache.entries[hash] = std::move(entry);
}

// _keep(row): what is prepared for these arguments, by slot with None for what is not given. Whether
// calls with them are found here from now on.
PyObject* keep(PyObject* object, PyObject* given_row) {
  auto* self = reinterpret_cast<Launcher*>(object);
  try {
    const auto row = nb::borrow<nb::tuple>(given_row);
    const auto objects = nb::cast<nb::tuple>(row[0]);
    if (self->cache == nullptr || objects.size() != self->cache->slots.size()) Py_RETURN_FALSE;
    Given given;
    Reading reading;
    for (std::size_t i = 0; i < objects.size(); ++i) {
      const nb::handle each = objects[i];
      const bool is_given = !each.is_none() || self->cache->slots[i].usual != nullptr;
      given.objects[i] = is_given ? each.ptr() : nullptr;
    }
    if (!read(self->cache->slots, given, reading) || find(*self->cache, reading) != nullptr) {
      Py_RETURN_FALSE;
    }
    std::shared_ptr<Entry> entry = entry_of(row);
    entry->key.assign(reading.key().begin(), reading.key().end());
    for (std::size_t i = 0; i < objects.size(); ++i) {
      if (self->cache->slots[i].kind != Kind::kOption) continue;
      if (PyObject* known = option_of(given.objects[i])) entry->options.push_back(nb::steal(known));
    }
    add(*self->cache, std::move(entry));
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

PyMethodDef functions[] = {{"know_tensors", know_tensors, METH_VARARGS, nullptr},
                           {"seen", seen, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_launcher(nb::module_& module) {
  module.attr("Launcher") = nb::steal(PyType_FromSpec(&spec));
  PyModule_AddFunctions(module.ptr(), functions);
}

}  // namespace kiln::python
