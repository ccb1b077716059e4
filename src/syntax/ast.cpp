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
