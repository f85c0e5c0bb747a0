#pragma once

#include <string>
#include <string_view>

#include "chess/error.h"
#include "chess/position.h"

namespace tahl {

// FEN, X-FEN and Shredder-FEN. Missing trailing fields default to "- - 0 1" (so EPD lines work). A castling
// right without its rook or king is dropped; anything else that is wrong is refused by field.
Expected<Position> parse_fen(std::string_view text);

enum class FenStyle { XFen, Shredder };  // castling as KQkq where that is unambiguous, or always by file
// The en passant square is given only when a capture is legal.
std::string to_fen(const Position& position, FenStyle style = FenStyle::XFen);

}  // namespace tahl
