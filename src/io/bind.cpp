#include "io/bind.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "io/expect.h"
#include "io/integer_inputs.h"
#include "reference/outputs.h"

namespace kiln::io {

namespace {

constexpr std::int64_t kExtentMax = (std::int64_t{1} << 31) - 1;
constexpr std::int64_t kTensorBytesMax = std::int64_t{1} << 40;

// A value of one variable and the option that gave it.
struct Known {
  bool set = false;
  std::int64_t value = 0;
  std::string by;
};

struct Binder {
  const ir::Function& function;
  BindOptions options;
  Diagnostics& diags;
  std::vector<Known> vars;
  ir::Arguments arguments;
  std::optional<Unexpected<Reported>> failure;

  Binder(const ir::Function& f, BindOptions o, Diagnostics& d)
      : function(f), options(std::move(o)), diags(d), vars(f.vars.size()) {
    arguments.params.resize(f.params.size());
  }

  void take_shapes();
  void take_scalar(const ir::Param& param, std::size_t index, const Assignment& assignment);
  void take_dimension(ir::VarId var, const Assignment& assignment);
  void take_inputs();
  void take_input(const InputFile& input, const ir::Param& param);
  void know(ir::VarId var, std::int64_t value, const std::string& by);
  void require_all();
  void require_inputs();
  [[nodiscard]] bool has_input(const std::string& param) const;
  // Whether there can be a tensor with those extents; reports why not.
  bool can_be(const ir::ViewType& type, std::string_view of, Span span);
  void make_tensors();
  void check_memory();
  bool check_shape(const InputFile& input, std::size_t param);
  void check_shapes();
  void load_input(const InputFile& input, std::size_t param);
  void fill_tensors();

  [[nodiscard]] std::vector<std::int64_t> shape_of(const ir::ViewType& type) const {
    std::vector<std::int64_t> out;
    for (const ir::Expr& extent : type.shape) out.push_back(extent.evaluate(arguments.vars));
    return out;
  }
  [[nodiscard]] const ir::ViewType* view_of(std::size_t param) const {
    return std::get_if<ir::ViewType>(&function.type(function.params[param].value));
  }
  [[nodiscard]] DType scalar_type(const ir::Param& param) const {
    const auto* type = std::get_if<ir::ScalarType>(&function.type(param.value));
    return type != nullptr ? type->dtype : DType::kS32;
  }
  [[nodiscard]] std::vector<std::string> shape_names() const;

  // How messages name what gave a value.
  [[nodiscard]] bool is_call() const { return io::is_call(options.use); }
  [[nodiscard]] std::string shape_option() const { return is_call() ? "scalar" : "--shape"; }
  [[nodiscard]] std::string by_shape() const { return is_call() ? "a scalar" : "`--shape`"; }
  [[nodiscard]] std::string by_input(const std::string& param) const {
    return is_call() ? format("`{}`", param) : format("`--in {}`", param);
  }
  [[nodiscard]] std::string dimension_help(const std::string& name) const;
  [[nodiscard]] std::string scalar_help(const std::string& name) const;
};

// Digits, maybe with a sign: perhaps too many for any type.
bool is_whole_number(const std::string& text) {
  const std::size_t begin = !text.empty() && text[0] == '-' ? 1 : 0;
  return text.size() > begin && text.find_first_not_of("0123456789", begin) == std::string::npos;
}

std::optional<std::int64_t> parse_integer(const std::string& text) {
  const bool digits = !text.empty() && (text[0] == '-' || (text[0] >= '0' && text[0] <= '9'));
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (!digits || *end != '\0' || errno != 0) return std::nullopt;
  return value;
}

std::optional<double> parse_number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0') return std::nullopt;
  return value;
}

// What `--shape` may name: dimensions, then scalar parameters.
std::vector<std::string> Binder::shape_names() const {
  std::vector<std::string> out;
  for (const ir::Var& var : function.vars) {
    if (var.kind == ir::VarKind::kDim) out.push_back(var.name);
  }
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    if (view_of(i) == nullptr) out.push_back(function.params[i].name);
  }
  return out;
}

void Binder::know(ir::VarId var, std::int64_t value, const std::string& by) {
  Known& known = vars[var.index];
  const ir::Var& row = function.vars[var];
  if (known.set && known.value != value) {
    failure =
        diags.report<diag::ShapeConflict>({}, row.name, known.value, known.by, value, by).emit();
    return;
  }
  if (row.kind == ir::VarKind::kDim && (value < 1 || value > kExtentMax)) {
    failure = diags.report<diag::ShapeRange>({}, row.name, value, 1, kExtentMax).emit();
  }
  known = {true, value, by};
}

void Binder::take_scalar(const ir::Param& param, std::size_t index, const Assignment& assignment) {
  const DType dtype = scalar_type(param);
  const auto number = parse_number(assignment.value);
  const std::string text = assignment.name + "=" + assignment.value;
  if (!number) {
    failure = diags.report<diag::OptionForm>({}, shape_option(), text, "NAME=NUMBER").emit();
    return;
  }
  if (!param.var.valid()) {
    arguments.params[index].scalar = round_to(dtype, *number);
    return;
  }
  if (!is_whole_number(assignment.value)) {
    failure = diags.report<diag::OptionForm>({}, shape_option(), text, "NAME=WHOLE_NUMBER").emit();
    return;
  }
  const auto integer = parse_integer(assignment.value);
  if (!integer || round_to(dtype, *number) != *number) {
    // What is bound is an index, which is signed.
    const DTypeInfo& type = info(dtype);
    const int bits =
        type.bits == 64 || type.kind == NumberKind::kSigned ? type.bits - 1 : type.bits;
    const std::uint64_t high = ~std::uint64_t{0} >> (64 - bits);
    const std::string low =
        type.kind == NumberKind::kSigned ? format("-{}", high + 1) : std::string("0");
    failure =
        diags.report<diag::ShapeRange>({}, assignment.name, assignment.value, low, high).emit();
    return;
  }
  know(param.var, *integer, by_shape());
}

void Binder::take_dimension(ir::VarId var, const Assignment& assignment) {
  const std::string& text = assignment.value;
  if (const auto value = parse_integer(text)) {
    know(var, *value, by_shape());
  } else if (is_whole_number(text)) {
    failure = diags.report<diag::ShapeRange>({}, assignment.name, text, 1, kExtentMax).emit();
  } else {
    failure = diags
                  .report<diag::OptionForm>({}, shape_option(), assignment.name + "=" + text,
                                            "NAME=WHOLE_NUMBER")
                  .emit();
  }
}

void Binder::take_shapes() {
  for (const Assignment& assignment : options.shapes) {
    bool found = false;
    for (std::size_t i = 0; i < function.params.size(); ++i) {
      const ir::Param& param = function.params[i];
      if (param.name != assignment.name || view_of(i) != nullptr) continue;
      take_scalar(param, i, assignment);
      found = true;
    }
    for (std::uint32_t v = 0; v < function.vars.size() && !found; ++v) {
      const ir::Var& var = function.vars[ir::VarId{v}];
      if (var.name != assignment.name || var.kind != ir::VarKind::kDim) continue;
      found = true;
      take_dimension(ir::VarId{v}, assignment);
    }
    if (found) continue;
    failure = diags.report<diag::ShapeUnknown>({}, function.name, assignment.name)
                  .help_if(name_help(assignment.name, shape_names(), "it has"))
                  .emit();
  }
}

void Binder::take_input(const InputFile& input, const ir::Param& param) {
  const ir::ViewType& type = function.view_type(param.value);
  const std::vector<std::int64_t>& shape = input.array.tensor.shape;
  if (!as_dtype({Tensor{input.array.tensor.dtype, {}, {}}, input.array.descr, input.array.opaque,
                 input.array.is_void},
                type.dtype)) {
    failure = diags
                  .report<diag::InputType>(
                      {}, input.path,
                      format("{} (`{}`)", name(input.array.tensor.dtype), input.array.descr),
                      param.name, name(type.dtype))
                  .emit();
    return;
  }
  const std::string expected =
      "[" + join(type.shape, ", ", [&](const ir::Expr& e) { return function.text(e); }) + "]";
  bool fits = shape.size() == type.shape.size();
  for (std::size_t d = 0; d < shape.size() && fits; ++d) {
    const auto constant = type.shape[d].constant();
    fits = !constant || *constant == shape[d];
  }
  if (!fits) {
    failure =
        diags.report<diag::InputShape>({}, input.path, shape_text(shape), param.name, expected)
            .emit();
    return;
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (const auto var = type.shape[d].as_var()) {
      know(*var, shape[d], by_input(param.name));
    }
  }
}

void Binder::take_inputs() {
  for (const InputFile& input : options.inputs) {
    const auto reported = check_input_name(function, input.param, diags);
    if (!reported) {
      failure = Unexpected{reported.error()};
      continue;
    }
    for (std::size_t i = 0; i < function.params.size(); ++i) {
      if (function.params[i].name != input.param || view_of(i) == nullptr) continue;
      take_input(input, function.params[i]);
    }
  }
}

std::string Binder::dimension_help(const std::string& name) const {
  if (is_call()) return format("give it as a scalar, `{}`", name);
  const std::string_view file =
      options.use == Use::kRun ? " or with an `--in` file that has it" : "";
  return format("give it with `--shape {}=...`{}", name, file);
}

std::string Binder::scalar_help(const std::string& name) const {
  return is_call() ? std::string("give a number for it")
                   : format("give it with `--shape {}=...`", name);
}

bool Binder::has_input(const std::string& param) const {
  return std::ranges::find(options.inputs, param, &InputFile::param) != options.inputs.end();
}

void Binder::require_all() {
  for (std::uint32_t v = 0; v < function.vars.size(); ++v) {
    const ir::Var& var = function.vars[ir::VarId{v}];
    if (vars[v].set || var.kind != ir::VarKind::kDim) continue;
    failure = diags.report<diag::ShapeMissing>(var.span, var.name, function.name)
                  .help("{}", dimension_help(var.name))
                  .emit();
  }
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const ir::Param& param = function.params[i];
    if (view_of(i) != nullptr || !param.value.valid()) continue;
    const bool set = param.var.valid()
                         ? vars[param.var.index].set
                         : std::any_of(options.shapes.begin(), options.shapes.end(),
                                       [&](const Assignment& a) { return a.name == param.name; });
    if (set) continue;
    failure = diags.report<diag::ScalarMissing>(param.span, param.name, function.name)
                  .help("{}", scalar_help(param.name))
                  .emit();
  }
}

// A call gives every tensor.
void Binder::require_inputs() {
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const ir::Param& param = function.params[i];
    if (view_of(i) == nullptr || has_input(param.name)) continue;
    failure = diags.report<diag::ScalarMissing>(param.span, param.name, function.name)
                  .help("give an array for it")
                  .emit();
  }
}

bool Binder::can_be(const ir::ViewType& type, std::string_view of, Span span) {
  const std::vector<std::int64_t> shape = shape_of(type);
  if (std::ranges::any_of(shape, [](std::int64_t extent) { return extent < 0; })) {
    failure = diags.report<diag::ShapeNegative>(span, of, name(type.dtype), shape_text(shape))
                  .help("choose the numbers that it is computed of so that it is 0 or more")
                  .emit();
    return false;
  }
  if (elements_fit(type.dtype, shape)) return true;
  failure = diags
                .report<diag::ShapeOverflow>(span, of, name(type.dtype), shape_text(shape),
                                             kTensorBytesMax)
                .help("choose smaller extents")
                .emit();
  return false;
}

void Binder::make_tensors() {
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    const ir::ViewType* type = view_of(i);
    const ir::Param& param = function.params[i];
    if (type == nullptr || !can_be(*type, param.name, param.span)) continue;
    arguments.params[i].tensor = Tensor{type->dtype, shape_of(*type), {}};
  }
  for (const reference::OutputSlot& slot : reference::output_slots(function)) {
    const auto* type = std::get_if<ir::ViewType>(&function.type(slot.value));
    const ir::OpId def = function.values[slot.value].def;
    if (type == nullptr || !def.valid()) continue;  // a number, or a parameter
    (void)can_be(*type, slot.name, function.ops[def].span);
  }
}

void Binder::check_memory() {
  if (failure || options.memory_bytes_max == 0) return;
  const double needed = tensor_bytes(function, arguments, options.use);
  if (needed <= static_cast<double>(options.memory_bytes_max)) return;
  failure = diags
                .report<diag::TensorsTooLarge>({}, static_cast<std::uint64_t>(needed),
                                               options.memory_bytes_max)
                .help("choose smaller extents{}",
                      options.use == Use::kRun ? ", or allow more with `--max-memory`" : "")
                .emit();
}

void Binder::fill_tensors() {
  const std::vector<std::size_t> read = ir::read_params(function);
  const auto is_read = [&](std::size_t i) {
    return std::find(read.begin(), read.end(), i) != read.end();
  };
  FillOptions fill{.fill = options.fill, .seed = options.seed, .ordinal = 0, .longest = 1};
  fill.products = products_of(function);
  for (const ir::Arguments::Value& value : arguments.params) {
    for (const std::int64_t extent : value.tensor.shape) {
      fill.longest = std::max(fill.longest, extent);
    }
  }
  const std::vector<IntegerInput> integers = integer_inputs(function, fill.longest);
  for (std::size_t i = 0; i < function.params.size(); ++i) {
    if (view_of(i) == nullptr) continue;
    Tensor& tensor = arguments.params[i].tensor;
    const auto input =
        std::find_if(options.inputs.begin(), options.inputs.end(),
                     [&](const auto& f) { return f.param == function.params[i].name; });
    if (input != options.inputs.end()) {
      load_input(*input, i);
      continue;
    }
    tensor = Tensor::zeros(tensor.dtype, tensor.shape);
    fill.ordinal = i;
    fill.largest_integer = integers[i].largest;
    if (is_read(i)) {
      fill_tensor(tensor, fill);
    } else {
      std::fill(tensor.bytes.begin(), tensor.bytes.end(), std::byte{0xff});
    }
  }
}

// Whether the input has the shape that the dimensions make.
bool Binder::check_shape(const InputFile& input, std::size_t param) {
  const Tensor& tensor = arguments.params[param].tensor;
  if (input.array.tensor.shape == tensor.shape) return true;
  failure = diags
                .report<diag::InputShape>({}, input.path, shape_text(input.array.tensor.shape),
                                          function.params[param].name, shape_text(tensor.shape))
                .emit();
  return false;
}

// Of all inputs, where nothing is read from them.
void Binder::check_shapes() {
  for (const InputFile& input : options.inputs) {
    const auto param = std::ranges::find(function.params, input.param, &ir::Param::name);
    check_shape(input, static_cast<std::size_t>(param - function.params.begin()));
  }
}

void Binder::load_input(const InputFile& input, std::size_t param) {
  Tensor& tensor = arguments.params[param].tensor;
  if (!check_shape(input, param)) return;
  auto converted = as_dtype(input.array, tensor.dtype);
  KILN_CHECK(converted.has_value(), "`{}` was checked before", input.path);
  tensor = std::move(*converted);
}

// How the two sides break the relation.
std::string broken_text(const std::string& left, ir::Relation relation, const std::string& right) {
  switch (relation) {
    case ir::Relation::kEqual: return format("{} and {} differ", left, right);
    case ir::Relation::kLessEqual: return format("{} is larger than {}", left, right);
    case ir::Relation::kDivides: return format("{} is not a multiple of {}", right, left);
  }
  return "";
}

// What the relation asks for.
std::string demand_text(const std::string& left, ir::Relation relation, const std::string& right) {
  switch (relation) {
    case ir::Relation::kEqual: return format("`{}` must be equal to `{}`", left, right);
    case ir::Relation::kLessEqual: return format("`{}` must be at most `{}`", left, right);
    case ir::Relation::kDivides: return format("`{}` must be a multiple of `{}`", right, left);
  }
  return "";
}

}  // namespace

double tensor_bytes(const ir::Function& function, const ir::Arguments& arguments, Use use) {
  const bool compared = use == Use::kRun;
  constexpr double kReferenceBytes = 8;
  constexpr double kOutputBytes = 32;
  double needed = 0;
  for (const ir::Arguments::Value& value : arguments.params) {
    const auto elements =
        static_cast<double>(value.tensor.shape.empty() ? 0 : value.tensor.elements());
    const double size = size_bytes(value.tensor.dtype);
    needed += elements * (compared ? 2 * size + kReferenceBytes : size);
  }
  for (const std::size_t param : ir::written_params(function)) {
    if (!compared) break;
    needed += static_cast<double>(arguments.params[param].tensor.elements()) * kOutputBytes;
  }
  return needed;
}

Checked<ir::Arguments> bind(const ir::Function& function, BindOptions options, Diagnostics& diags) {
  Binder binder(function, std::move(options), diags);
  binder.take_shapes();
  binder.take_inputs();
  const Use use = binder.options.use;
  const bool is_given = use == Use::kCall || use == Use::kLaunch;
  if (!binder.failure && is_given) binder.require_inputs();
  if (!binder.failure) binder.require_all();
  binder.arguments.vars.resize(function.vars.size());
  for (std::size_t v = 0; v < function.vars.size(); ++v) {
    binder.arguments.vars[v] = binder.vars[v].value;
  }
  if (!binder.failure) binder.make_tensors();
  if (!binder.failure) binder.check_memory();
  if (!binder.failure && binder.options.use == Use::kLaunch) {
    binder.check_shapes();
  } else if (!binder.failure && binder.options.use != Use::kBench) {
    binder.fill_tensors();
  }
  if (binder.failure) return *binder.failure;
  return std::move(binder.arguments);
}

Checked<void> check_input_name(const ir::Function& function, const std::string& name,
                               Diagnostics& diags) {
  std::vector<std::string> tensors;
  for (const ir::Param& param : function.params) {
    if (!std::holds_alternative<ir::ViewType>(function.type(param.value))) continue;
    if (param.name == name) return {};
    tensors.push_back(param.name);
  }
  return diags.report<diag::ParameterUnknown>({}, function.name, name)
      .help_if(name_help(name, tensors, "it has"))
      .emit();
}

Checked<void> check_entry(const ir::Function& function, const ir::Arguments& arguments,
                          Diagnostics& diags) {
  std::optional<Unexpected<Reported>> failure;
  for (const ir::EntryCheck& check : function.checks) {
    if (ir::holds(check, arguments.vars)) continue;
    const std::int64_t left = check.left.evaluate(arguments.vars);
    const std::int64_t right = check.right.evaluate(arguments.vars);
    failure = diags
                  .report<diag::EntryCheckFailed>(
                      check.span, check.message,
                      broken_text(std::to_string(left), check.relation, std::to_string(right)))
                  .note("this is checked when the kernel is called: {}",
                        demand_text(function.text(check.left), check.relation,
                                    function.text(check.right)))
                  .emit();
  }
  if (failure) return *failure;
  return {};
}

}  // namespace kiln::io
