#include "driver/statement.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "io/expect.h"
#include "io/npy.h"
#include "io/oracle.h"
#include "reference/number.h"

namespace kiln::driver {

const reference::Output* Statements::expected_of(const std::string& output) const {
  const auto found = std::ranges::find(expected, output, &reference::Output::name);
  return found == expected.end() ? nullptr : &*found;
}

const Reference* Statements::reference_of(const std::string& output) const {
  const auto found =
      std::ranges::find(references, output, [](const Reference& each) { return each.output.name; });
  return found == references.end() ? nullptr : &*found;
}

Checked<void> read_expect(const std::string& text, const ir::Function& function,
                          const ir::Arguments& arguments, io::Program& program, Statements& said) {
  if (text.empty()) return {};
  auto bound = io::read_expect(text, function, arguments, said.returned, program);
  if (!bound) return Unexpected{bound.error()};
  said.formula = std::move(*bound);
  return {};
}

// --- arrays

namespace {

// A number that is finite and not negative, up to the end of the text.
std::optional<double> part_of_tolerance(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const bool whole = !text.empty() && *end == '\0';
  if (!whole || !std::isfinite(value) || value < 0) return std::nullopt;
  return value;
}

// The array's elements as numbers: of the output's type, or of a float of another width.
std::optional<Tensor> as_output(const io::NpyArray& array, DType dtype) {
  if (auto same = io::as_dtype(array, dtype)) return same;
  if (array.opaque || !is_float(dtype) || !is_float(array.tensor.dtype)) return std::nullopt;
  return array.tensor;
}

reference::Output output_of(const Tensor& array, const reference::Output& like,
                            const std::optional<Tolerance>& tolerance) {
  reference::Output out = like;
  out.known.clear();
  out.is_final = tolerance.has_value();
  const auto count = static_cast<std::size_t>(array.elements());
  for (auto* field : {&out.expected, &out.bound, &out.rest}) field->resize(count);
  const bool wide = is_integer(array.dtype) && size_bytes(array.dtype) == 8;
  const double relative = roundoff(out.dtype) + roundoff(array.dtype);
  for (std::size_t i = 0; i < count; ++i) {
    reference::Number number{array.get(i), 0};
    std::uint64_t bits = 0;
    if (wide) {
      std::memcpy(&bits, array.bytes.data() + i * sizeof(bits), sizeof(bits));
      number = reference::from_bits(array.dtype, bits);
    }
    out.expected[i] = number.value;
    out.rest[i] = number.rest;
    const double size = std::isfinite(number.value) ? std::fabs(number.value) : 0;
    out.bound[i] = tolerance ? tolerance->absolute + tolerance->relative * size
                             : relative * size + (is_float(out.dtype) ? smallest(out.dtype) : 0);
  }
  return out;
}

}  // namespace

Checked<std::optional<Tolerance>> parse_tolerance(const RunOptions& options, Diagnostics& diags) {
  const std::string& text = options.tolerance;
  if (text.empty()) return std::optional<Tolerance>{};
  const std::size_t comma = text.find(',');
  const auto absolute = part_of_tolerance(text.substr(0, comma));
  const auto relative =
      part_of_tolerance(comma == text.npos ? std::string() : text.substr(comma + 1));
  if (options.references.empty() || !absolute || !relative) {
    return diags.report<diag::OptionForm>({}, "--tolerance", text, "A,R, beside a --ref NAME=FILE")
        .help("`--tolerance 1e-3,1e-2` allows 0.001 + 0.01 * |ref|")
        .emit();
  }
  return std::optional(Tolerance{*absolute, *relative});
}

io::Stage<void> read_references(const ReferenceRequest& request, const ir::Function& function,
                                io::Program& program, io::Console& console, Statements& said) {
  for (const io::Assignment& file : request.files) {
    const auto like = std::ranges::find(request.outputs, file.name, &reference::Output::name);
    if (like == request.outputs.end()) {
      program.diags.report<diag::OutputUnknown>({}, function.name, file.name)
          .help_if(io::output_help(function, file.name))
          .emit();
      return Unexpected{io::Exit::kUsage};
    }
    const auto array = io::read_npy(file.value);
    if (!array) return io::environment_failed(console, array.error());
    const auto tensor = as_output(*array, like->dtype);
    if (!tensor) {
      program.diags
          .report<diag::RefType>({}, file.value,
                                 format("{} (`{}`)", name(array->tensor.dtype), array->descr),
                                 file.name, name(like->dtype))
          .emit();
      return Unexpected{io::Exit::kUsage};
    }
    if (tensor->shape != like->shape) {
      program.diags
          .report<diag::RefShape>({}, file.value, shape_text(tensor->shape), file.name,
                                  shape_text(like->shape))
          .emit();
      return Unexpected{io::Exit::kUsage};
    }
    said.references.push_back({file.value, output_of(*tensor, *like, request.tolerance)});
  }
  return {};
}

}  // namespace kiln::driver
