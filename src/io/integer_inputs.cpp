#include "io/integer_inputs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "ir/functions.h"
#include "support/dtype.h"

namespace kiln::io {

namespace {

using Values = std::vector<ir::ValueId>;

// The type of a scalar's value, or of a view's or a fragment's elements.
std::optional<DType> element_type(const ir::Function& function, ir::ValueId value) {
  const ir::Type& type = function.type(value);
  if (const auto* scalar = std::get_if<ir::ScalarType>(&type)) return scalar->dtype;
  if (const auto* view = std::get_if<ir::ViewType>(&type)) return view->dtype;
  if (const auto* frag = std::get_if<ir::FragType>(&type)) return frag->dtype;
  return std::nullopt;
}

bool is_integer_value(const ir::Function& function, ir::ValueId value) {
  const auto dtype = element_type(function, value);
  return dtype && is_integer(*dtype);
}

bool is_float_value(const ir::Function& function, ir::ValueId value) {
  const auto dtype = element_type(function, value);
  return dtype && is_float(*dtype);
}

// What the kernel does with its values, as far as the size of integers matters.
struct Uses {
  Values steering;        // indices, distances of shifts, ends of loops, metadata
  Values converted;       // integers that become floats
  bool sums = false;      // floats are added or multiplied,
  bool products = false;  // by matrix instructions, or functions are taken of them
  double exact = std::numeric_limits<double>::infinity();  // integers that these floats hold
};

class Finder {
 public:
  explicit Finder(const ir::Function& function) : function_(function) {}

  Uses uses() {
    ir::walk(function_, function_.body, [&](ir::OpId id) { look(function_.ops[id]); });
    return std::move(uses_);
  }

 private:
  void look(const ir::Op& op) {
    if (const auto* bind = std::get_if<ir::Bind>(&op.data)) steer(bind->value);
    if (const auto* claim = std::get_if<ir::Assert>(&op.data)) steer(claim->condition);
    if (const auto* loop = std::get_if<ir::Loop>(&op.data)) look(*loop);
    if (const auto* mma = std::get_if<ir::Mma>(&op.data)) look(*mma);
    if (const auto* unary = std::get_if<ir::Unary>(&op.data)) {
      uses_.products =
          uses_.products || (ir::is_function(unary->kind) && !ir::is_exact(unary->kind));
    }
    if (const auto* binary = std::get_if<ir::Binary>(&op.data)) look(*binary);
    if (const auto* fma = std::get_if<ir::Fma>(&op.data)) {
      uses_.sums = true;
      limit(fma->a);
    }
    if (const auto* atomic = std::get_if<ir::Atomic>(&op.data)) look(*atomic);
    if (const auto* cast = std::get_if<ir::Cast>(&op.data)) convert(cast->operand, op.result);
    if (const auto* load = std::get_if<ir::Load>(&op.data)) convert(load->view, load->frag);
    if (const auto* store = std::get_if<ir::Store>(&op.data)) convert(store->frag, store->view);
    uses_.products = uses_.products || op.kind() == ir::OpKind::kScale;
  }

  // How often it goes round, its conditions decide.
  void look(const ir::Loop& loop) {
    ir::walk(function_, loop.body, [&](ir::OpId id) {
      const auto* condition = std::get_if<ir::If>(&function_.ops[id].data);
      if (condition != nullptr) steer(condition->condition);
    });
  }

  void look(const ir::Mma& mma) {
    if (mma.metadata.valid()) steer(mma.metadata);
    uses_.products = uses_.products || is_float_value(function_, mma.c);
  }

  void look(const ir::Binary& binary) {
    const bool shifts = binary.kind == ir::BinaryKind::kShl || binary.kind == ir::BinaryKind::kShr;
    if (shifts) steer(binary.right);
    const bool adds = ir::class_of(binary.kind) == ir::BinaryClass::kArithmetic;
    if (!adds || !is_float_value(function_, binary.left)) return;
    uses_.sums = true;
    limit(binary.left);
  }

  void look(const ir::Atomic& atomic) {
    if (atomic.kind != target::Atomic::kAdd || !is_float_value(function_, atomic.view)) return;
    uses_.sums = true;
    limit(atomic.view);
  }

  void convert(ir::ValueId from, ir::ValueId to) {
    if (!is_integer_value(function_, from) || !is_float_value(function_, to)) return;
    uses_.converted.push_back(from);
    limit(to);
  }

  void limit(ir::ValueId value) {
    uses_.exact = std::min(uses_.exact, integers_exact_up_to(*element_type(function_, value)));
  }

  void steer(ir::ValueId value) { uses_.steering.push_back(value); }

  const ir::Function& function_;
  Uses uses_;
};

// How many bits of a type like the tensor's its values need.
int bits_used(const Tensor& tensor) {
  const int spare = 64 - info(tensor.dtype).bits;
  const bool has_sign = info(tensor.dtype).kind == NumberKind::kSigned;
  const auto size = static_cast<std::size_t>(size_bytes(tensor.dtype));
  int used = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.elements()); ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, tensor.bytes.data() + i * size, size);
    const auto value = static_cast<std::int64_t>(bits << spare) >> (has_sign ? spare : 0);
    const auto magnitude = static_cast<std::uint64_t>(value) >> (has_sign ? 0 : spare);
    const std::uint64_t positive = has_sign && value < 0 ? ~magnitude : magnitude;
    used = std::max(used, static_cast<int>(std::bit_width(positive)) + (has_sign ? 1 : 0));
  }
  return used;
}

}  // namespace

std::vector<IntegerInput> integer_inputs(const ir::Function& function, std::int64_t longest) {
  const Uses uses = Finder(function).uses();
  const double any = std::numeric_limits<double>::infinity();
  // Of sums of products of two.
  const double summed =
      std::floor(std::sqrt(uses.exact / static_cast<double>(std::max<std::int64_t>(longest, 1))));
  std::vector<IntegerInput> out(function.params.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto* view = std::get_if<ir::ViewType>(&function.type(function.params[i].value));
    if (view != nullptr && is_integer(view->dtype)) out[i].largest = any;
  }
  for (const std::size_t i : ir::params_behind(function, uses.converted)) {
    if (uses.products) out[i].largest = 0;
    if (uses.sums) out[i].largest = std::min(out[i].largest, summed);
  }
  for (const std::size_t i : ir::params_behind(function, uses.steering)) {
    out[i] = {.steers = true, .largest = 0};
  }
  return out;
}

std::vector<NarrowInput> narrow_inputs(const ir::Function& function,
                                       const ir::Arguments& arguments) {
  constexpr int kBitsMin = 16;  // of 8 bits every fill uses most
  const std::vector<IntegerInput> inputs = integer_inputs(function, 1);
  std::vector<NarrowInput> out;
  for (const std::size_t i : ir::read_params(function)) {
    const ir::Value& value = function.values[function.params[i].value];
    const auto* view = std::get_if<ir::ViewType>(&value.type);
    if (view == nullptr || !is_integer(view->dtype) || inputs[i].steers) continue;
    const int bits = info(view->dtype).bits;
    if (bits < kBitsMin) continue;
    const int used = bits_used(arguments.params[i].tensor);
    if (2 * used > bits) continue;
    out.push_back({.name = function.params[i].name,
                   .used = used,
                   .bits = bits,
                   .could_be_wide = std::isinf(inputs[i].largest)});
  }
  return out;
}

}  // namespace kiln::io
