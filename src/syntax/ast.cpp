#include "syntax/ast.h"

#include "support/one_of_members.h"

namespace kiln {

// ExprNode's types and StmtNode's.
template class OneOf<ast::ErrorExpr, ast::IntExpr, ast::FloatExpr, ast::BoolExpr, ast::NullptrExpr,
                     ast::StringExpr, ast::WildcardExpr, ast::NameExpr, ast::TypeExpr,
                     ast::UnaryExpr, ast::BinaryExpr, ast::ConditionalExpr, ast::MemberExpr,
                     ast::AtExpr, ast::ElementExpr, ast::SubscriptExpr, ast::DerivedIndexExpr,
                     ast::ViewExpr, ast::ShapeExpr, ast::TupleExpr, ast::MeasureExpr, ast::CastExpr,
                     ast::CallExpr, ast::DeviceCallExpr, ast::FunctionCallExpr, ast::SelectExpr,
                     ast::FragFillExpr, ast::FragLoadExpr>;
// clang-format off
template class OneOf<ast::ErrorStmt
#define KILN_STATEMENT(Node) , ast::Node
#include "syntax/statement.def"
    >;
// clang-format on

}  // namespace kiln

namespace kiln::ast {

std::string_view spelling(Attribute::Kind kind) {
  switch (kind) {
    case Attribute::Kind::kLaunchBounds: return "launch_bounds";
    case Attribute::Kind::kMaxnreg: return "maxnreg";
    case Attribute::Kind::kOrder: return "order";
    case Attribute::Kind::kPersistent: return "persistent";
    case Attribute::Kind::kPipeline: return "pipeline";
    case Attribute::Kind::kSchedule: return "schedule";
    case Attribute::Kind::kThreads: return "threads";
  }
  return "";
}

}  // namespace kiln::ast
