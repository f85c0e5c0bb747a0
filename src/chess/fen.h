#pragma once

#include <string>
#include <string_view>

#include "chess/error.h"
#include "chess/position.h"

namespace tahl {

// FEN, X-FEN and Shredder-FEN. Missing trailing fields default to "- - 0 1". K Q k q mean the
// king's and rooks' usual squares or, in Chess960, the outermost rook on that side of the king
// (X-FEN); a file letter means that rook in either. A castling right without its king and rook is
// dropped; anything else that is wrong is refused, and the error names the field.
Expected<Position> parse_fen(std::string_view text, bool chess960 = false);

enum class FenStyle {
  XFen,
  Shredder
};  // castling as KQkq where that is unambiguous, or always by file
// The en passant square is given only when a capture is legal.
std::string to_fen(const Position& position, FenStyle style = FenStyle::XFen);

// True if some castling right belongs to a king or rook that does not stand where the usual game
// puts it.
bool needs_chess960(const Position& position);

}  // namespace tahl
