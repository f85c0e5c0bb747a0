#pragma once

#include <string>
#include <string_view>

#include "chess/error.h"
#include "chess/position.h"

namespace tahl {

// UCI: "e2e4", "a7a8q"; castling as e1g1, or as king takes rook (e1h1) where `chess960`.
std::string to_uci(const Position& position, Move m, bool chess960 = false);
// Takes either castling form, and the promotion letter in either case. In Chess960 a king's move
// onto a square beside him is that step, not castling. An error names the text and says whether it
// is illegal or no move.
Expected<Move> parse_uci(const Position& position, std::string_view text, bool chess960 = false);

// SAN with the shortest disambiguation, + and #. Precondition: legal.
std::string to_san(const Position& position, Move m);
// Takes over- and under-decorated SAN: zeros for castling, missing or false x + #, !?, "e.p.", long
// forms (e2e4, Ng1-f3), and lower-case promotion letters. An error says whether it is ambiguous,
// illegal, or no move.
Expected<Move> parse_san(const Position& position, std::string_view text);

}  // namespace tahl
