// A call of a tile function on a GPU. The function is prepared once for each set of shapes, and of
// numbers that decide what is launched, and kept. Included by call.h.
//
//   f32 [N] x          memory of the host: copied to the device for the call, and with `&` back
//   global f32 [N] y   memory of the device, as it is
//   return z;          device memory of the call, copied to a spanned_data of the host
//
// The call waits for the GPU, unless all launches of the function are `parallel.async` and nothing is
// to be copied back.
#pragma once

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

#include "kiln/host/one_call.h"

namespace kiln::host {

// A function that is prepared for a device and for shapes.
struct Prepared {
  const kiln_plan* plan = nullptr;
  const kiln_parameter* parameters = nullptr;  // of the program, which is kept
};

class Plans {
 public:
  // The function, the device, shapes and deciding numbers.
  using Key = std::tuple<const Function*, int, std::vector<std::int64_t>>;

  const Prepared* find(const Key& key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = plans_.find(key);
    return found == plans_.end() ? nullptr : &found->second;
  }
  // What is there already stays.
  const Prepared& add(const Key& key, const Prepared& prepared) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return plans_.emplace(key, prepared).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<Key, Prepared> plans_;
};

inline Plans& plans() {
  static auto* const all = new Plans;
  return *all;
}

// Device memory of one call.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    for (void* data : blocks_) device().release(data);
  }
  // Null: there is no more.
  void* take(std::size_t bytes) {
    void* data = device().allocate(bytes);
    if (data != nullptr) blocks_.push_back(data);
    return data;
  }
  bool empty() const { return blocks_.empty(); }

 private:
  std::vector<void*> blocks_;
};

// "bf16" has 2 bytes; what has less than 8 bits has one.
inline std::size_t element_bytes(const char* dtype) {
  const char* digits = std::strpbrk(dtype, "0123456789");
  const int bits = digits != nullptr ? std::atoi(digits) : 8;
  return bits < 8 ? 1 : static_cast<std::size_t>(bits) / 8;
}

inline std::size_t bytes_of(const kiln_array& array) {
  std::size_t bytes = element_bytes(array.dtype);
  for (std::size_t i = 0; i < array.rank; ++i) bytes *= static_cast<std::size_t>(array.shape[i]);
  return bytes;
}

class GpuRun {
 public:
  explicit GpuRun(Call& call) : call_(call) {}

  void run() {
    const Prepared& prepared = this->prepared();
    plan_ = prepared.plan;
    std::vector<kiln_value> values = this->values(prepared);
    const std::size_t workspace_bytes = kiln_plan_workspace(plan_);
    void* workspace = workspace_bytes != 0 ? take(workspace_bytes) : nullptr;
    std::cout.flush();
    const kiln_status status =
        kiln_launch(plan_, values.data(), workspace, workspace_bytes, call_.stream_);
    if (status != KILN_OK) call_.refuse(kiln_last_error(), status_of(status));
    give_back(prepared, values);
    if (!call_.is_asynchronous_ || !scratch_.empty()) wait();
  }

  const kiln_array& result() const { return *kiln_plan_result(plan_); }

  void fetch(const kiln_array& array, void* to, std::size_t bytes) {
    if (array.data != nullptr) {
      std::memcpy(to, array.data, bytes);
      return;
    }
    must(device().copy({to, false}, {result_, true}, bytes, call_.stream_), "copying back");
    wait();
  }

 private:
  // 1 for what is wrong in the program, 3 for the machine.
  static int status_of(kiln_status status) { return status == KILN_INVALID ? 1 : 3; }

  void must(int error, const char* what) {
    if (error == kFine) return;
    call_.refuse(std::string("error: ") + what + " fails: " + device().error_text(error), 1);
  }
  // A launch that fails on the way is told here.
  void wait() { must(device().synchronise(call_.stream_), "the run on the GPU"); }

  void* take(std::size_t bytes) {
    void* data = scratch_.take(bytes);
    if (data != nullptr) return data;
    call_.refuse("error: the GPU has no " + std::to_string(bytes) + " bytes left", 3);
  }

  Plans::Key key(const kiln_parameter* parameters) const {
    std::vector<std::int64_t> numbers;
    for (const std::vector<std::int64_t>& shape : call_.shapes_)
      numbers.insert(numbers.end(), shape.begin(), shape.end());
    std::size_t scalar = 0;
    for (std::size_t i = 0; i < call_.is_tensor_.size(); ++i) {
      if (call_.is_tensor_[i]) continue;
      const kiln_scalar& number = call_.scalars_[scalar++];
      if (parameters[i].is_deciding == 0) continue;
      std::int64_t bits = number.integer;
      if (number.is_real != 0) std::memcpy(&bits, &number.real, sizeof bits);
      numbers.push_back(bits);
    }
    return {&call_.function_, device().current(), std::move(numbers)};
  }

  const Prepared& prepared() {
    const kiln_program* program = compiled().find(call_.function_, call_.constants(), call_.site_);
    const kiln_parameter* parameters = parameters_of(program);
    const Plans::Key key = this->key(parameters);
    if (const Prepared* found = plans().find(key)) return *found;
    const kiln_call call = call_.call_of();
    kiln_plan* plan = nullptr;
    const kiln_status status = kiln_prepare(program, &call, device().current(), &plan);
    if (status != KILN_OK) call_.refuse(kiln_last_error(), status_of(status));
    return plans().add(key, {plan, parameters});
  }

  const kiln_parameter* parameters_of(const kiln_program* program) const {
    std::size_t count = 0;
    const kiln_kernel* kernels = kiln_program_kernels(program, &count);
    for (std::size_t i = 0; i < count; ++i) {
      if (std::strcmp(kernels[i].name, call_.function_.name) == 0) return kernels[i].parameters;
    }
    return nullptr;
  }

  // One for each parameter, then one for what is returned.
  std::vector<kiln_value> values(const Prepared& prepared) {
    std::vector<kiln_value> out;
    std::size_t tensor = 0;
    std::size_t scalar = 0;
    for (std::size_t i = 0; i < call_.is_tensor_.size(); ++i) {
      kiln_value value = {};
      if (call_.is_tensor_[i]) {
        value.data = place(tensor++, prepared.parameters[i]);
      } else {
        const kiln_scalar& number = call_.scalars_[scalar++];
        if (number.is_real != 0) {
          value.real = number.real;
        } else {
          value.integer = number.integer;
        }
      }
      out.push_back(value);
    }
    kiln_value returned = {};
    if (const kiln_array* array = kiln_plan_result(plan_); array != nullptr && !array->data) {
      result_ = take(bytes_of(*array));
      returned.data = result_;
    }
    out.push_back(returned);
    return out;
  }

  // Where the device finds the tensor.
  void* place(std::size_t tensor, const kiln_parameter& parameter) {
    void* data = call_.arrays_[tensor].data;
    if (call_.is_global_[tensor]) return data;
    const std::size_t bytes = call_.bytes_[tensor];
    void* copied = take(bytes);
    if (parameter.is_read != 0 || parameter.is_written != 0)
      must(device().copy({copied, true}, {data, false}, bytes, call_.stream_), "copying");
    return copied;
  }

  // To the caller's memory what the function writes there.
  void give_back(const Prepared& prepared, const std::vector<kiln_value>& values) {
    std::size_t tensor = 0;
    for (std::size_t i = 0; i < call_.is_tensor_.size(); ++i) {
      if (!call_.is_tensor_[i]) continue;
      const std::size_t at = tensor++;
      if (call_.is_global_[at] || prepared.parameters[i].is_written == 0) continue;
      must(device().copy({call_.arrays_[at].data, false}, {values[i].data, true}, call_.bytes_[at],
                         call_.stream_),
           "copying back");
    }
  }

  Call& call_;
  Scratch scratch_;
  const kiln_plan* plan_ = nullptr;
  void* result_ = nullptr;
};

}  // namespace kiln::host
