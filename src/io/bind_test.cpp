#include "io/bind.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kiln::io {
namespace {

using ir::Expr;

// scale(global f16 [M, K] x, global f32 [M, 4] y, int n, f32 s): reads x, writes y.
ir::Function kernel() {
  ir::Function f;
  f.name = "scale";
  const Expr m = Expr::var(f.vars.push({"M", ir::VarKind::kDim, 0, {}}));
  const Expr k = Expr::var(f.vars.push({"K", ir::VarKind::kDim, 0, {}}));
  const ir::VarId n = f.vars.push({"n", ir::VarKind::kScalar, 0, {}});
  const auto param = [&](const std::string& name, ir::Type type, ir::VarId var) {
    const ir::ValueId value = f.values.push({name, std::move(type), {}});
    f.params.push_back({.name = name, .span = {}, .value = value, .var = var});
    return value;
  };
  const auto x = param("x", ir::ViewType{DType::kF16, ir::Space::kGlobal, {m, k}}, {});
  const auto y = param("y", ir::ViewType{DType::kF32, ir::Space::kGlobal, {m, 4}}, {});
  param("n", ir::ScalarType{DType::kS32}, n);
  param("s", ir::ScalarType{DType::kF32}, {});
  f.body = f.regions.push({});
  const auto add = [&](ir::OpData data, ir::ValueId result) {
    ir::Op op;
    op.data = std::move(data);
    op.result = result;
    const ir::OpId id = f.ops.push(std::move(op));
    f.regions[f.body].ops.push_back(id);
  };
  const ir::ValueId read = f.values.push({"v", ir::ScalarType{DType::kF32}, {}});
  add(ir::Read{x, {0, 0}}, read);
  add(ir::Write{y, {0, 0}, read}, {});
  return f;
}

const std::vector<Assignment> kShapes = {{"M", "3"}, {"K", "5"}, {"n", "-7"}, {"s", "0.5"}};

struct Bound {
  Diagnostics diags;
  std::optional<ir::Arguments> arguments;
  [[nodiscard]] std::vector<std::string_view> ids() const {
    std::vector<std::string_view> out;
    for (const Diagnostic& d : diags.all()) out.push_back(info(d.id).name);
    return out;
  }
};

Bound bound(BindOptions options, const ir::Function& function = kernel()) {
  Bound out;
  auto arguments = bind(function, std::move(options), out.diags);
  if (arguments) out.arguments = std::move(*arguments);
  EXPECT_EQ(out.arguments.has_value(), !out.diags.has_errors());
  return out;
}

Bound with_shapes(std::vector<Assignment> shapes) {
  return bound({.shapes = std::move(shapes), .inputs = {}});
}

InputFile file(const std::string& param, DType dtype, std::vector<std::int64_t> shape) {
  Tensor tensor = Tensor::zeros(dtype, std::move(shape));
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.elements()); ++i) tensor.set(i, 2);
  return {param, param + ".npy", *parse_npy(npy_bytes(tensor), param)};
}

using Ids = std::vector<std::string_view>;

TEST(Bind, ShapesScalarsAndFills) {
  const Bound b = with_shapes(kShapes);
  ASSERT_TRUE(b.arguments.has_value());
  EXPECT_EQ(b.arguments->vars[0], 3);
  EXPECT_EQ(b.arguments->vars[1], 5);
  EXPECT_EQ(b.arguments->vars[2], -7);
  EXPECT_EQ(b.arguments->params[3].scalar, 0.5);
  EXPECT_EQ(b.arguments->params[0].tensor.shape, (std::vector<std::int64_t>{3, 5}));
  EXPECT_NE(b.arguments->params[0].tensor.get(0), 0);
  // What nobody writes must be seen.
  EXPECT_TRUE(std::isnan(b.arguments->params[1].tensor.get(11)));
}

TEST(Bind, FilesGiveDimensionsAndContents) {
  const Bound b =
      bound({.shapes = {{"n", "1"}, {"s", "1"}}, .inputs = {file("x", DType::kF16, {6, 2})}});
  ASSERT_TRUE(b.arguments.has_value());
  EXPECT_EQ(b.arguments->vars[0], 6);
  EXPECT_EQ(b.arguments->params[0].tensor.get(11), 2);
  EXPECT_EQ(b.arguments->params[1].tensor.shape, (std::vector<std::int64_t>{6, 4}));
}

TEST(Bind, EveryMissingValueIsNamed) {
  const Bound b = with_shapes({{"K", "5"}});
  EXPECT_EQ(b.ids(), (Ids{"shape-missing", "scalar-missing", "scalar-missing"}));
  EXPECT_NE(b.diags.all()[0].message.find("`M`"), std::string::npos);
  EXPECT_NE(b.diags.all()[0].help.find("--shape M="), std::string::npos);
}

TEST(Bind, ConflictShowsBothNumbers) {
  const Bound b = bound({.shapes = kShapes, .inputs = {file("x", DType::kF16, {4, 5})}});
  EXPECT_EQ(b.ids(), (Ids{"shape-conflict"}));
  EXPECT_EQ(b.diags.all()[0].message, "`M` is 3 by `--shape` and 4 by `--in x`");
}

TEST(Bind, ValuesOutOfRange) {
  EXPECT_EQ(with_shapes({{"M", "0"}}).ids(), (Ids{"shape-range"}));
  EXPECT_EQ(with_shapes({{"M", "2147483648"}}).ids(), (Ids{"shape-range"}));
  EXPECT_EQ(with_shapes({{"M", "99999999999999999999"}}).ids(), (Ids{"shape-range"}));
  EXPECT_EQ(with_shapes({{"M", "ten"}}).ids(), (Ids{"option-form"}));
  EXPECT_EQ(with_shapes({{"M", "1.5"}}).ids(), (Ids{"option-form"}));
  EXPECT_EQ(with_shapes({{"n", "1.5"}}).ids(), (Ids{"option-form"}));
  EXPECT_EQ(with_shapes({{"n", "2147483648"}}).ids(), (Ids{"shape-range"}));
  EXPECT_EQ(with_shapes({{"s", "x"}}).ids(), (Ids{"option-form"}));
}

TEST(Bind, TensorsThatCannotFit) {
  const Bound huge =
      with_shapes({{"M", "2147483647"}, {"K", "2147483647"}, {"n", "1"}, {"s", "1"}});
  EXPECT_EQ(huge.ids(), (Ids{"shape-overflow"}));
  EXPECT_NE(huge.diags.all()[0].message.find("[2147483647, 2147483647]"), std::string::npos);
  BindOptions small{.shapes = kShapes, .inputs = {}};
  small.memory_bytes_max = 100;
  EXPECT_EQ(bound(small).ids(), (Ids{"tensors-too-large"}));
}

TEST(Bind, UnknownNamesAreGuessed) {
  const Bound b = with_shapes({{"m", "3"}});
  EXPECT_EQ(b.ids(), (Ids{"shape-unknown"}));
  EXPECT_EQ(bound({.shapes = kShapes, .inputs = {file("z", DType::kF16, {3, 5})}}).ids(),
            (Ids{"parameter-unknown"}));
}

TEST(Bind, FilesOfTheWrongTypeOrShape) {
  const auto with = [](InputFile input) {
    std::vector<InputFile> inputs;
    inputs.push_back(std::move(input));
    return bound({.shapes = kShapes, .inputs = std::move(inputs)});
  };
  const Bound type = with(file("x", DType::kF32, {3, 5}));
  EXPECT_EQ(type.ids(), (Ids{"input-type"}));
  EXPECT_EQ(type.diags.all()[0].message, "`x.npy` holds f32 (`<f4`), parameter `x` is f16");
  const Bound rank = with(file("x", DType::kF16, {3, 5, 1}));
  EXPECT_EQ(rank.ids(), (Ids{"input-shape"}));
  EXPECT_EQ(rank.diags.all()[0].message, "`x.npy` has shape [3, 5, 1], parameter `x` is [M, K]");
  EXPECT_EQ(with(file("y", DType::kF32, {3, 5})).ids(), (Ids{"input-shape"}));
}

TEST(CheckEntry, FailureHasBothNumbers) {
  ir::Function f = kernel();
  f.checks.push_back({.left = 16,
                      .relation = ir::Relation::kDivides,
                      .right = Expr::var(ir::VarId{0}),
                      .message = "rows of `x`",
                      .span = {}});
  Bound b = bound({.shapes = kShapes, .inputs = {}}, f);
  ASSERT_TRUE(b.arguments.has_value());
  EXPECT_FALSE(check_entry(f, *b.arguments, b.diags).has_value());
  EXPECT_EQ(b.ids(), (Ids{"entry-check-failed"}));
  EXPECT_EQ(b.diags.all()[0].message, "rows of `x`: 3 is not a multiple of 16");
  b.arguments->vars[0] = 32;
  b.diags = {};
  EXPECT_TRUE(check_entry(f, *b.arguments, b.diags).has_value());
}

TEST(Bind, EntryChecksSayWhatIsWrongWithTheNumbers) {
  ir::Function f = kernel();
  const Bound b = bound({.shapes = kShapes, .inputs = {}}, f);
  ASSERT_TRUE(b.arguments.has_value());
  const Expr m = Expr::var(ir::VarId{0});
  const std::vector<std::pair<ir::Relation, std::string>> cases = {
      {ir::Relation::kEqual, "f: 3 and 2 differ"},
      {ir::Relation::kLessEqual, "f: 3 is larger than 2"},
      {ir::Relation::kDivides, "f: 2 is not a multiple of 3"},
  };
  for (const auto& [relation, text] : cases) {
    f.checks = {{.left = m, .relation = relation, .right = 2, .message = "f", .span = {}}};
    Diagnostics diags;
    EXPECT_FALSE(check_entry(f, *b.arguments, diags).has_value());
    ASSERT_EQ(diags.all().size(), 1U);
    EXPECT_EQ(diags.all()[0].message, text);
  }
}

TEST(Bind, InputNamesAreThoseOfTensors) {
  const ir::Function f = kernel();
  Diagnostics diags;
  EXPECT_TRUE(check_input_name(f, "y", diags).has_value());
  EXPECT_FALSE(check_input_name(f, "n", diags).has_value());  // a scalar
  EXPECT_FALSE(check_input_name(f, "weights", diags).has_value());
  ASSERT_EQ(diags.all().size(), 2U);
  EXPECT_EQ(diags.all()[1].help, "it has `x`, `y`");
}

TEST(Assignments, NameHelpGuessesOrLists) {
  EXPECT_EQ(name_help("lsh", {"lhs", "rhs"}, "it has"), "did you mean `lhs`?");
  EXPECT_EQ(name_help("weights", {"M", "N"}, "it has"), "it has `M`, `N`");
  EXPECT_EQ(name_help("weights", {}, "it has"), "");
}

TEST(Assignments, FormsAndMistakes) {
  Diagnostics diags;
  const auto shapes =
      parse_assignments("--shape", {"M=1,N=2", "K=3"}, ListForm::kCommaSeparated, diags);
  ASSERT_TRUE(shapes.has_value());
  EXPECT_EQ(shapes->size(), 3U);
  const auto inputs = parse_assignments("--in", {"x=a,b=c.npy"}, ListForm::kSingle, diags);
  ASSERT_TRUE(inputs.has_value());
  EXPECT_EQ((*inputs)[0].value, "a,b=c.npy");
  const auto defines = parse_definitions({"A", "B=", "C=x+1"}, diags);
  ASSERT_TRUE(defines.has_value());
  EXPECT_EQ((*defines)[0].text, "1");
  EXPECT_EQ((*defines)[1].text, "");
  EXPECT_FALSE(diags.has_errors());
  for (const char* text : {"", "M", "M=", "=3", "M=1,,N=2", "M=1,", "1M=3"}) {
    Diagnostics own;
    EXPECT_FALSE(parse_assignments("--shape", {text}, ListForm::kCommaSeparated, own).has_value())
        << text;
    EXPECT_EQ(info(own.all().at(0).id).name, "option-form");
  }
  EXPECT_FALSE(
      parse_assignments("--shape", {"M=1,M=2"}, ListForm::kCommaSeparated, diags).has_value());
  EXPECT_FALSE(parse_definitions({"9=1"}, diags).has_value());
}

}  // namespace
}  // namespace kiln::io
