#include "api/arguments.h"

#include <algorithm>
#include <set>

#include "coverage/coverage.h"

namespace kiln::api {

namespace {

// Of an array that is one, as far as that can be said without the kernel; else the reason in words.
Result<io::InputFile, std::string> input_of(const kiln_array& array, io::Use use) {
  using Failed = Unexpected<std::string>;
  if (array.name == nullptr || array.dtype == nullptr) {
    return Failed{"an array has no name or no type"};
  }
  const std::optional<DType> dtype = dtype_from_name(array.dtype);
  if (!dtype) return Failed{format("array `{}`: unknown type `{}`", array.name, array.dtype)};
  if (array.rank != 0 && array.shape == nullptr) {
    return Failed{format("array `{}` has no shape", array.name)};
  }
  const std::vector<std::int64_t> shape(array.shape, array.shape + array.rank);
  if (std::ranges::any_of(shape, [](std::int64_t extent) { return extent < 0; }) ||
      !elements_fit(*dtype, shape)) {
    return Failed{format("array `{}` cannot have shape {}", array.name, shape_text(shape))};
  }
  Tensor tensor{*dtype, shape, {}};
  const bool opaque = *dtype == DType::kU16 || *dtype == DType::kU8;
  if (use != io::Use::kLaunch) {
    const std::size_t bytes =
        static_cast<std::size_t>(tensor.elements()) * static_cast<std::size_t>(size_bytes(*dtype));
    if (bytes != 0 && array.data == nullptr)
      return Failed{format("array `{}` is null", array.name)};
    const auto* data = static_cast<const std::byte*>(array.data);
    tensor.bytes.assign(data, data + bytes);
  }
  return io::InputFile{array.name, array.name, {std::move(tensor), array.dtype, opaque, false}};
}

io::Assignment assignment_of(const kiln_scalar& scalar) {
  return {scalar.name,
          scalar.is_real != 0 ? format("{}", scalar.real) : format("{}", scalar.integer)};
}

// Whether every name is there once; what a name is for is found out later.
Checked<void> names_once(const io::BindOptions& bind, Diagnostics& diags) {
  std::set<std::string> seen;
  for (const io::InputFile& input : bind.inputs) {
    if (seen.insert(input.param).second) continue;
    return diags.report<diag::OptionTwice>({}, "the call", input.param).emit();
  }
  for (const io::Assignment& shape : bind.shapes) {
    if (seen.insert(shape.name).second) continue;
    return diags.report<diag::OptionTwice>({}, "the call", shape.name).emit();
  }
  return {};
}

Result<io::BindOptions, Refusal> options_of(const kiln_call& call, io::Use use) {
  using Failed = Unexpected<Refusal>;
  if (call.array_count != 0 && call.arrays == nullptr) return Failed{{"the arrays are null"}};
  io::BindOptions bind;
  bind.use = use;
  for (std::size_t i = 0; i < call.array_count; ++i) {
    auto input = input_of(call.arrays[i], use);
    if (!input) return Failed{{input.error()}};
    bind.inputs.push_back(std::move(*input));
  }
  auto numbers = numbers_of(call);
  if (!numbers) return Unexpected{numbers.error()};
  bind.shapes = std::move(*numbers);
  return bind;
}

}  // namespace

Result<std::vector<io::Assignment>, Refusal> numbers_of(const kiln_call& call) {
  if (call.scalar_count != 0 && call.scalars == nullptr) {
    return Unexpected{Refusal{"the scalars are null"}};
  }
  std::vector<io::Assignment> out;
  for (std::size_t i = 0; i < call.scalar_count; ++i) {
    if (call.scalars[i].name == nullptr) return Unexpected{Refusal{"a scalar has no name"}};
    out.push_back(assignment_of(call.scalars[i]));
  }
  return out;
}

Result<Bound, Refusal> bind_call(const kiln_program& program, const kiln_call& call, io::Use use,
                                 std::uint64_t memory_max, Diagnostics& diags) {
  const Unexpected<Refusal> told{{""}};
  auto options = options_of(call, use);
  if (!options) return Unexpected{options.error()};
  options->memory_bytes_max = memory_max;
  const std::string name = call.kernel != nullptr ? call.kernel : "";
  const auto kernel = io::choose_kernel(program.program, program.file, name, diags, use);
  if (!kernel) return told;
  if (!names_once(*options, diags)) return told;
  const ir::Function& function = program.program.decided.functions[*kernel];
  auto arguments = io::bind(function, std::move(*options), diags);
  if (!arguments) return told;
  if (!io::check_entry(function, *arguments, diags)) return told;
  coverage::check_coverage(program.program.tile.functions[*kernel], arguments->vars, diags);
  return Bound{*kernel, std::move(*arguments)};
}

}  // namespace kiln::api
