#include "chess/fen.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace tahl {
namespace {

constexpr std::string_view kPieceLetters = "PNBRQKpnbrqk";
constexpr int kMostMoves = 1'000'000;  // of either counter

std::vector<std::string_view> split_fields(std::string_view text) {
  std::vector<std::string_view> fields;
  std::size_t i = 0;
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (i < text.size()) {
    while (i < text.size() && is_space(text[i])) ++i;
    const std::size_t start = i;
    while (i < text.size() && !is_space(text[i])) ++i;
    if (i > start) fields.push_back(text.substr(start, i - start));
  }
  return fields;
}

std::optional<int> parse_count(std::string_view text, int limit) {
  int n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc{} || end != text.data() + text.size() || n < 0 || n > limit)
    return std::nullopt;
  return n;
}

// An error, or nothing.
std::optional<Error> parse_board(std::string_view field, std::string_view fen,
                                 PositionBuilder& builder) {
  const auto error = [](auto unexpected) { return std::optional<Error>(unexpected.value()); };
  int rank = 7, file = 0;
  for (const char c : field) {
    if (c == '/') {
      if (file != 8)
        return error(fail("fen: rank {} has {} files: {}", rank + 1, file, quoted(fen)));
      if (--rank < 0) return error(fail("fen: more than 8 ranks: {}", quoted(fen)));
      file = 0;
    } else if (c >= '1' && c <= '8') {
      file += c - '0';
    } else if (const std::size_t i = kPieceLetters.find(c); i != std::string_view::npos) {
      if (file < 8)
        builder.put(make_square(file, rank),
                    {static_cast<PieceType>(i % 6), i < 6 ? Color::White : Color::Black});
      ++file;
    } else {
      return error(fail("fen: rank {} holds {}, which is no piece and no 1-8: {}", rank + 1,
                        quoted(std::string_view(&c, 1)), quoted(fen)));
    }
    if (file > 8)
      return error(fail("fen: rank {} has more than 8 files: {}", rank + 1, quoted(fen)));
  }
  if (file != 8) return error(fail("fen: rank {} has {} files: {}", rank + 1, file, quoted(fen)));
  if (rank != 0) return error(fail("fen: {} ranks instead of 8: {}", 8 - rank, quoted(fen)));
  return std::nullopt;
}

std::optional<Error> parse_castling(std::string_view field, std::string_view fen, bool chess960,
                                    PositionBuilder& builder) {
  if (field == "-") return std::nullopt;
  const Position& p = builder.view();
  for (const char c : field) {
    const bool white = c >= 'A' && c <= 'Z';
    const Color color = white ? Color::White : Color::Black;
    const char letter = white ? c : static_cast<char>(c - 'a' + 'A');
    const int rank = white ? 0 : 7;
    const Square king = p.king(color);
    const Bitboard rooks = p.pieces(color, PieceType::Rook) & rank_mask(rank);
    const auto has_rook = [&](int file) { return (rooks & bit(make_square(file, rank))) != 0; };
    const bool at_home = rank_of(king) == rank;
    if (letter == 'K' || letter == 'Q') {
      const CastlingSide side = letter == 'K' ? CastlingSide::King : CastlingSide::Queen;
      if (!at_home) continue;
      if (!chess960) {
        const int file = letter == 'K' ? 7 : 0;
        if (file_of(king) == 4 && has_rook(file))
          builder.set_castling_rook(color, side, make_square(file, rank));
      } else if (letter == 'K') {
        for (int file = 7; file > file_of(king); --file)
          if (has_rook(file)) {
            builder.set_castling_rook(color, side, make_square(file, rank));
            break;
          }
      } else {
        for (int file = 0; file < file_of(king); ++file)
          if (has_rook(file)) {
            builder.set_castling_rook(color, side, make_square(file, rank));
            break;
          }
      }
    } else if (letter >= 'A' && letter <= 'H') {
      const int file = letter - 'A';
      if (!at_home || !has_rook(file)) continue;
      const CastlingSide side = file > file_of(king) ? CastlingSide::King : CastlingSide::Queen;
      builder.set_castling_rook(color, side, make_square(file, rank));
    } else {
      return fail("fen: castling rights {} hold a letter that is none of KQkq, A-H, a-h: {}",
                  quoted(field), quoted(fen))
          .value();
    }
  }
  return std::nullopt;
}

}  // namespace

Expected<Position> parse_fen(std::string_view text, bool chess960) {
  const std::vector<std::string_view> fields = split_fields(text);
  if (fields.empty()) return fail("fen: empty");
  if (fields.size() > 6)
    return fail("fen: {} fields instead of 6: {}", fields.size(), quoted(text));

  PositionBuilder builder;
  if (auto error = parse_board(fields[0], text, builder)) return tl::unexpected(*error);
  if (fields.size() < 2) return fail("fen: side to move is missing: {}", quoted(text));
  if (fields[1] != "w" && fields[1] != "b")
    return fail("fen: side to move is {}, not w or b: {}", quoted(fields[1]), quoted(text));
  builder.set_side_to_move(fields[1] == "w" ? Color::White : Color::Black);
  for (const Color c : {Color::White, Color::Black})  // parse_castling looks for them
    if (builder.view().pieces(c, PieceType::King) == 0)
      return fail("fen: {} has no king: {}", c == Color::White ? "white" : "black", quoted(text));

  if (fields.size() > 2)
    if (auto error = parse_castling(fields[2], text, chess960, builder))
      return tl::unexpected(*error);
  if (fields.size() > 3 && fields[3] != "-") {
    const std::string_view s = fields[3];
    if (s.size() != 2 || s[0] < 'a' || s[0] > 'h' || s[1] < '1' || s[1] > '8')
      return fail("fen: en passant square {} is no square: {}", quoted(s), quoted(text));
    const int file = s[0] - 'a', rank = s[1] - '1';
    if (rank != 2 && rank != 5)
      return fail("fen: en passant square {} is not on rank 3 or 6: {}", quoted(s), quoted(text));
    builder.set_en_passant(make_square(file, rank));
  }
  if (fields.size() > 4) {
    const auto n = parse_count(fields[4], kMostMoves);
    if (!n)
      return fail("fen: halfmove clock {} is no number from 0 to {}: {}", quoted(fields[4]),
                  kMostMoves, quoted(text));
    builder.set_halfmove_clock(*n);
  }
  if (fields.size() > 5) {
    const auto n = parse_count(fields[5], kMostMoves);
    if (!n)
      return fail("fen: move number {} is no number from 1 to {}: {}", quoted(fields[5]),
                  kMostMoves, quoted(text));
    builder.set_fullmove_number(*n == 0 ? 1 : *n);  // some programs count from 0
  }
  if (const std::string problem = builder.problem(); !problem.empty())
    return fail("fen: {}: {}", problem, quoted(text));
  return builder.build();
}

std::string to_fen(const Position& p, FenStyle style) {
  std::string out;
  for (int rank = 7; rank >= 0; --rank) {
    int empty = 0;
    for (int file = 0; file < 8; ++file) {
      const Piece piece = p.piece_on(make_square(file, rank));
      if (piece.type == PieceType::None) {
        ++empty;
        continue;
      }
      if (empty) out += static_cast<char>('0' + empty);
      empty = 0;
      out += kPieceLetters[static_cast<std::size_t>(index(piece.type) +
                                                    (piece.color == Color::White ? 0 : 6))];
    }
    if (empty) out += static_cast<char>('0' + empty);
    if (rank) out += '/';
  }
  out += p.side_to_move() == Color::White ? " w " : " b ";
  const std::size_t before = out.size();
  for (const Color c : {Color::White, Color::Black}) {
    for (const CastlingSide side : {CastlingSide::King, CastlingSide::Queen}) {
      const Square rook = p.castling_rook(c, side);
      if (rook == kNoSquare) continue;
      // X-FEN writes the file when another rook stands further out, so that K or Q would mean that
      // one.
      const Bitboard rooks = p.pieces(c, PieceType::Rook) & rank_mask(rank_of(rook));
      const Bitboard further =
          side == CastlingSide::King ? rooks & ~((bit(rook) << 1) - 1) : rooks & (bit(rook) - 1);
      char letter = side == CastlingSide::King ? 'K' : 'Q';
      if (style == FenStyle::Shredder || further) letter = static_cast<char>('A' + file_of(rook));
      out += c == Color::White ? letter : static_cast<char>(letter - 'A' + 'a');
    }
  }
  if (out.size() == before) out += '-';
  out += ' ';
  out += p.en_passant_is_legal() ? square_name(p.en_passant_square()) : "-";
  // A counter may have gone on from the highest that is read.
  out += fmt::format(" {} {}", std::min(p.halfmove_clock(), kMostMoves),
                     std::min(p.fullmove_number(), kMostMoves));
  return out;
}

bool needs_chess960(const Position& p) {
  for (const Color c : {Color::White, Color::Black})
    for (const CastlingSide side : {CastlingSide::King, CastlingSide::Queen})
      if (const Square rook = p.castling_rook(c, side);
          rook != kNoSquare &&
          (file_of(p.king(c)) != 4 || file_of(rook) != (side == CastlingSide::King ? 7 : 0)))
        return true;
  return false;
}

}  // namespace tahl
