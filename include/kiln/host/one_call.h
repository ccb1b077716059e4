// One call of a tile function, from its arguments to its result: what call_gpu.h and call_sim.h
// share. call.h shows how it is used.
#pragma once

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kiln/host/runtime.h"
#include "kiln/host/spanned.h"
#include "kiln/kiln.h"

namespace kiln::host {

// A program's text, as it was when the program was built.
struct Source {
  const char* file;
  const char* text;
  const char* arch;
  const char* const* defines;
  std::size_t define_count;
};

// Bytes of the text that another tile function has.
struct Stretch {
  std::size_t begin;
  std::size_t end;
};

// An extent that the function must know when it is compiled: it is, once for each value.
struct Constant {
  const char* name;
  std::size_t tensor;  // among the parameters that are tensors
  std::size_t dim;
};

struct Function {
  const Source* source;
  const char* name;
  const Stretch* others;
  std::size_t other_count;
  const Constant* constants;
  std::size_t constant_count;
};

// The functions that were compiled so far.
class Compiled {
 public:
  // Never null: a function that cannot be compiled ends the program.
  const kiln_program* find(const Function& function, const std::vector<std::string>& constants,
                           Site site) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const kiln_program*& program = programs_[{&function, constants}];
    if (program == nullptr) program = compile(function, constants, site);
    return program;
  }

 private:
  static const kiln_program* compile(const Function& function,
                                     const std::vector<std::string>& constants, Site site) {
    const Source& source = *function.source;
    std::string text = source.text;
    for (std::size_t i = 0; i < function.other_count; ++i) {
      for (std::size_t at = function.others[i].begin; at < function.others[i].end; ++at) {
        if (text[at] != '\n') text[at] = ' ';
      }
    }
    std::vector<const char*> defines(source.defines, source.defines + source.define_count);
    for (const std::string& constant : constants) defines.push_back(constant.c_str());
    kiln_compile_options options = {};
    options.file = source.file;
    options.source = text.c_str();
    options.arch = source.arch;
    options.defines = defines.data();
    options.define_count = defines.size();
    kiln_program* program = nullptr;
    if (kiln_compile(&options, &program) == KILN_OK) return program;
    std::string with;
    for (const std::string& constant : constants)
      with += (with.empty() ? " for " : ", ") + constant;
    stop(site,
         std::string("`") + function.name + "` cannot be compiled" + with + "\n" +
             (program != nullptr ? kiln_program_text(program) : kiln_last_error()),
         1);
  }

  using Key = std::pair<const Function*, std::vector<std::string>>;
  std::mutex mutex_;
  std::map<Key, const kiln_program*> programs_;
};

inline Compiled& compiled() {
  static Compiled all;
  return all;
}

class GpuRun;

// One call, from its arguments to its result.
class Call {
 public:
  Call(const Function& function, Site site) : function_(function), site_(site) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call();

  template <class T, std::size_t Rank>
  void tensor(const char* name, const choreo::spanned_view<T, Rank>& view, bool is_global) {
    std::vector<std::int64_t>& shape = shapes_.emplace_back();
    for (const std::size_t extent : view.shape())
      shape.push_back(static_cast<std::int64_t>(extent));
    arrays_.push_back({name, view.data(), choreo::detail::Name<T>::text(), nullptr, Rank});
    bytes_.push_back(view.bytes());
    is_global_.push_back(is_global);
    is_tensor_.push_back(true);
  }

  template <class T>
  void number(const char* name, T value) {
    kiln_scalar scalar = {};
    scalar.name = name;
    if constexpr (choreo::detail::kIsFloat<T>) {
      scalar.is_real = 1;
      scalar.real = static_cast<double>(value);
    } else {
      scalar.integer = static_cast<std::int64_t>(value);
    }
    scalars_.push_back(scalar);
    is_tensor_.push_back(false);
  }

  // What it is launched on; the default stream otherwise.
  void stream(Stream* stream) { stream_ = stream; }
  // Nobody waits for its launches: all of them are `parallel.async`.
  void asynchronous() { is_asynchronous_ = true; }

  void run();

  template <class T, std::size_t Rank>
  choreo::spanned_data<T, Rank> result() {
    const kiln_array& array = result_array();
    std::array<std::size_t, Rank> extents = {};
    for (std::size_t i = 0; i < Rank; ++i) extents[i] = static_cast<std::size_t>(array.shape[i]);
    choreo::spanned_data<T, Rank> out{choreo::mdspan<Rank>(extents)};
    fetch(array, out.data(), out.bytes());
    return out;
  }

  // Of a function that returns one of its parameters.
  template <class T, std::size_t Rank>
  choreo::spanned_data<T, Rank> copy_of(const choreo::spanned_view<T, Rank>& view, bool is_global) {
    choreo::spanned_data<T, Rank> out{view.shape()};
    copy({out.data(), false}, {view.data(), is_global}, out.bytes(), stream_, site_);
    static_cast<void>(device().synchronise(stream_));
    return out;
  }

  template <class T>
  T scalar() {
    T out;
    fetch(result_array(), &out, sizeof out);
    return out;
  }

 private:
  friend class GpuRun;

  kiln_call call_of();
  std::vector<std::string> constants() const;
  void check_places(bool can_go_on);
  void simulate();
  const kiln_array& result_array();
  void fetch(const kiln_array& array, void* to, std::size_t bytes);
  [[noreturn]] void refuse(const std::string& text, int status);

  const Function& function_;
  Site site_;
  std::vector<std::vector<std::int64_t>> shapes_;
  std::vector<kiln_array> arrays_;
  std::vector<std::size_t> bytes_;
  std::vector<bool> is_global_;
  std::vector<kiln_scalar> scalars_;
  std::vector<bool> is_tensor_;  // by parameter
  Stream* stream_ = nullptr;
  bool is_asynchronous_ = false;
  kiln_report* report_ = nullptr;
  std::shared_ptr<GpuRun> on_gpu_;  // which this file does not know
};

// Valid as long as this object is not changed.
inline kiln_call Call::call_of() {
  for (std::size_t i = 0; i < arrays_.size(); ++i) arrays_[i].shape = shapes_[i].data();
  kiln_call call = {};
  call.kernel = function_.name;
  call.arrays = arrays_.data();
  call.array_count = arrays_.size();
  call.scalars = scalars_.data();
  call.scalar_count = scalars_.size();
  return call;
}

// What the function must know of this call when it is compiled.
inline std::vector<std::string> Call::constants() const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < function_.constant_count; ++i) {
    const Constant& constant = function_.constants[i];
    out.push_back(std::string(constant.name) + "=" +
                  std::to_string(shapes_[constant.tensor][constant.dim]));
  }
  return out;
}

// Ends the program where a call with such memory cannot be made.
inline void Call::check_places(bool can_go_on) {
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    const std::string wrong = device().misplaced({arrays_[i].data, is_global_[i]}, bytes_[i]);
    if (wrong.empty()) continue;
    const std::string text =
        std::string("error: in this call of `") + function_.name + "` the memory of `" +
        arrays_[i].name + "`, " +
        (is_global_[i] ? "a `global` parameter, " : "a parameter in host memory, ") + wrong;
    if (!can_go_on) stop(site_, text, 1);
    report(site_, text);
  }
}

inline void Call::refuse(const std::string& text, int status) {
  stop(site_, std::string("in this call of `") + function_.name + "`\n" + text, status);
}

}  // namespace kiln::host
