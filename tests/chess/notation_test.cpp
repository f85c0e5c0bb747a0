#include "chess/notation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "chess/fen.h"
#include "chess/game.h"
#include "chess/movegen.h"
#include "chess/san.h"

namespace tahl {
namespace {

Position at(std::string_view fen, bool chess960 = false) {
  return parse_fen(fen, chess960).value();
}

Move uci(const Position& position, std::string_view text) {
  return parse_uci(position, text).value();
}

struct Start {
  const char* fen;
  bool chess960;
};
// Positions of the Chess Programming Wiki's perft page, and Chess960 ones with castling at hand.
constexpr Start kStarts[] = {
    {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", false},
    {"r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1", false},
    {"8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", false},
    {"r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1", false},
    {"n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1", false},
    {"3Q4/1Q4Q1/4Q3/2Q4R/Q4Q2/3Q4/1Q4Rp/1K1BBNNk w - - 0 1", false},
    {"1rk1r3/pppp1ppp/8/8/8/8/PPPP1PPP/1RK1R3 w KQkq - 0 1", true},
    {"r1k4r/8/8/8/8/8/8/1RK3R1 w KQkq - 0 1", true},
    {"bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9", true},
};

template <class Visit>
void walk(const Position& position, int depth, const Visit& visit) {
  visit(position);
  if (depth == 0) return;
  for (const Move m : legal_moves(position)) {
    Position next = position;
    next.make(m);
    walk(next, depth - 1, visit);
  }
}

TEST(San, EveryLegalMoveReadsBackAndNoTwoReadAlike) {
  for (const Start& start : kStarts)
    walk(at(start.fen, start.chess960), 2, [](const Position& position) {
      std::set<std::string> seen;
      for (const Move m : legal_moves(position)) {
        const std::string san = to_san(position, m);
        ASSERT_TRUE(seen.insert(san).second) << to_fen(position) << " " << san;
        const auto read = parse_san(position, san);
        ASSERT_TRUE(read.has_value()) << to_fen(position) << " " << read.error().message;
        ASSERT_EQ(*read, m) << to_fen(position) << " " << san;
      }
    });
}

TEST(Uci, EveryLegalMoveReadsBackAndNoTwoReadAlike) {
  for (const Start& start : kStarts)
    walk(at(start.fen, start.chess960), 2, [&](const Position& position) {
      std::set<std::string> seen;
      for (const Move m : legal_moves(position)) {
        const std::string text = to_uci(position, m, start.chess960);
        ASSERT_TRUE(seen.insert(text).second) << to_fen(position) << " " << text;
        const auto read = parse_uci(position, text, start.chess960);
        ASSERT_TRUE(read.has_value()) << to_fen(position) << " " << read.error().message;
        ASSERT_EQ(*read, m) << to_fen(position) << " " << text;
      }
    });
}

// Whatever can be written as a piece, a target and part of an origin means a move if exactly one
// legal move fits it.
TEST(San, MeansTheOneLegalMoveThatFits) {
  std::mt19937 random(1);
  for (const Start& start : kStarts) {
    Position position = at(start.fen, start.chess960);
    for (int ply = 0; ply < 12; ++ply) {
      const MoveList moves = legal_moves(position);
      if (moves.empty()) break;
      for (const PieceType piece : kPieceTypes)
        for (int to = 0; to < 64; ++to)
          for (int file = -1; file < 8; ++file)
            for (int rank = -1; rank < 8; ++rank) {
              if (piece == PieceType::King && file >= 0 && rank >= 0)
                continue;  // may castle: "Ke1g1"
              SanShape shape;
              shape.piece = piece;
              shape.has_letter = true;
              shape.to = static_cast<Square>(to);
              shape.from_file = file;
              shape.from_rank = rank;
              int fitting = 0;
              Move only;
              for (const Move m : moves) {
                const bool pawn_capture = piece == PieceType::Pawn && file_of(m.from()) != to % 8;
                if (m.is_castling() || m.is_promotion() || m.to() != to ||
                    position.type_on(m.from()) != piece || (pawn_capture && file < 0) ||
                    (file >= 0 && file_of(m.from()) != file) ||
                    (rank >= 0 && rank_of(m.from()) != rank))
                  continue;
                ++fitting;
                only = m;
              }
              Move found;
              const SanFault fault = find_san_move(position, shape, found);
              const SanFault expected = fitting == 1   ? SanFault::None
                                        : fitting == 0 ? SanFault::Illegal
                                                       : SanFault::Ambiguous;
              ASSERT_EQ(fault, expected) << to_fen(position) << " " << index(piece) << " "
                                         << square_name(shape.to) << " " << file << " " << rank;
              if (fitting == 1) {
                ASSERT_EQ(found, only);
              }
            }
      position.make(moves[static_cast<int>(random() % static_cast<unsigned>(moves.size()))]);
    }
  }
}

TEST(San, CastlingIsLegalWhereTheGeneratorSaysSo) {
  for (const Start& start : kStarts)
    walk(at(start.fen, start.chess960), 3, [](const Position& position) {
      int written = 0, generated = 0;
      for (const char* text : {"O-O", "O-O-O"}) written += parse_san(position, text).has_value();
      for (const Move m : legal_moves(position)) generated += m.is_castling();
      ASSERT_EQ(written, generated) << to_fen(position);
    });
}

// The disambiguation rules of the PGN standard, 8.2.3.4: file first, then rank, then both.
TEST(San, WritesTheShortestOrigin) {
  const Position knights = at("7k/8/8/8/8/2N3N1/8/6NK w - - 0 1");
  EXPECT_EQ(to_san(knights, uci(knights, "c3e2")), "Nce2");
  EXPECT_EQ(to_san(knights, uci(knights, "g3e2")), "Ng3e2");
  EXPECT_EQ(to_san(knights, uci(knights, "g1e2")), "N1e2");
  const Position queens = at("1k6/8/8/8/4Q2Q/8/8/K6Q w - - 0 1");
  EXPECT_EQ(to_san(queens, uci(queens, "h4e1")), "Qh4e1");
  const Position pinned = at("4k3/8/8/8/1b6/2N5/8/4K1N1 w - - 0 1");
  EXPECT_EQ(to_san(pinned, uci(pinned, "g1e2")), "Ne2") << "the other knight is pinned";
}

TEST(San, WritesChecksMatesPromotionsAndCastling) {
  const Position scholar =
      at("r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4");
  EXPECT_EQ(to_san(scholar, uci(scholar, "h5f7")), "Qxf7#");
  const Position promotion = at("1n5k/P7/8/8/8/8/8/K7 w - - 0 1");
  EXPECT_EQ(to_san(promotion, uci(promotion, "a7b8n")), "axb8=N");
  EXPECT_EQ(to_san(promotion, uci(promotion, "a7a8r")), "a8=R");
  const Position castling = at("3k4/8/8/8/8/8/8/R3K3 w Q - 0 1");
  EXPECT_EQ(to_san(castling, uci(castling, "e1c1")), "O-O-O+");
  const Position en_passant = at("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 2");
  EXPECT_EQ(to_san(en_passant, uci(en_passant, "e5d6")), "exd6");
}

TEST(San, TakesOverAndUnderDecoratedMoves) {
  const Position start = Position::initial();
  for (const char* text :
       {"Nf3", "Nf3!?", "Nf3+", "Ng1f3", "Ng1-f3", "g1f3", "Nxf3", "N1f3", "Nf3#"})
    EXPECT_EQ(parse_san(start, text).value(), uci(start, "g1f3")) << text;
  for (const char* text : {"e4", "e2e4", "e2-e4", "Pe4", "ee4", "e4!!"})
    EXPECT_EQ(parse_san(start, text).value(), uci(start, "e2e4")) << text;
  const Position en_passant = at("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 2");
  for (const char* text :
       {"exd6", "ed6", "exd6e.p.", "exd6 e.p.", "exd6ep", "e5d6", "e5xd6", "e:d6"})
    EXPECT_EQ(parse_san(en_passant, text).value(), uci(en_passant, "e5d6")) << text;
  const Position promotion = at("1n5k/P7/8/8/8/8/8/K7 w - - 0 1");
  for (const char* text :
       {"axb8=B", "axb8B", "axb8=b", "axb8b", "a7b8b", "axb8(B)", "axb8/B", "ab8=B+"})
    EXPECT_EQ(parse_san(promotion, text).value(), uci(promotion, "a7b8b")) << text;
  const Position castling = at("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1");
  for (const char* text : {"O-O", "0-0", "o-o", "O-O+", "0-0!?", "e1g1", "e1h1", "Ke1g1"})
    EXPECT_EQ(parse_san(castling, text).value(), Move(4, 7, MoveKind::Castling)) << text;
  for (const char* text : {"O-O-O", "0-0-0", "o-o-o#"})
    EXPECT_EQ(parse_san(castling, text).value(), Move(4, 0, MoveKind::Castling)) << text;
}

TEST(San, SaysWhetherAmbiguousIllegalOrNoMove) {
  const Position knights = at("7k/8/8/8/8/2N3N1/8/6NK w - - 0 1");
  EXPECT_EQ(parse_san(knights, "Ne2").error().message, "san: \"Ne2\" is ambiguous here");
  EXPECT_EQ(parse_san(knights, "Nf6").error().message, "san: \"Nf6\" is illegal here");
  const std::string with_zero("e4\0", 3);
  for (const std::string& text :
       {std::string(""), std::string("e9"), std::string("Nf"), std::string("hello"),
        std::string("--"), std::string("O"), std::string("O-"), std::string("O-O-O-O"),
        std::string("Nf3Nf3"), std::string("Nabf3"), std::string("e4 e5"), with_zero,
        std::string(70000, 'Q'), std::string("\xff\xfe")})
    EXPECT_THAT(parse_san(Position::initial(), text).error().message,
                testing::EndsWith("is no move"));
}

TEST(San, RefusesMovesThatLeaveTheKingInCheck) {
  const Position pinned = at("4k3/8/8/8/1b6/2N5/8/4K3 w - - 0 1");
  EXPECT_FALSE(parse_san(pinned, "Nd5").has_value());
  const Position discovered = at("8/8/8/8/k2Pp2Q/8/8/3K4 b - d3 0 1");
  EXPECT_FALSE(parse_san(discovered, "exd3").has_value()) << "both pawns leave the rank at once";
  const Position through_check = at("4k3/8/8/8/8/8/5r2/4K2R w K - 0 1");
  EXPECT_FALSE(parse_san(through_check, "O-O").has_value());
}

TEST(San, RefusesPromotionsWithoutAPieceAndPiecesWithoutAPromotion) {
  const Position promotion = at("7k/P7/8/8/8/8/7P/K7 w - - 0 1");
  EXPECT_FALSE(parse_san(promotion, "a8").has_value());
  EXPECT_FALSE(parse_san(promotion, "a8=K").has_value());
  EXPECT_FALSE(parse_san(promotion, "a8=P").has_value());
  EXPECT_FALSE(parse_san(promotion, "h3=Q").has_value());
  EXPECT_FALSE(parse_uci(promotion, "a7a8").has_value());
  EXPECT_FALSE(parse_uci(promotion, "h2h3q").has_value());
}

TEST(Uci, WritesCastlingAsTheKingsMoveOrOntoTheRook) {
  const Position position = at("4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1");
  const Move short_castling(4, 7, MoveKind::Castling), long_castling(4, 0, MoveKind::Castling);
  EXPECT_EQ(to_uci(position, short_castling), "e1g1");
  EXPECT_EQ(to_uci(position, long_castling), "e1c1");
  EXPECT_EQ(to_uci(position, short_castling, true), "e1h1");
  EXPECT_EQ(to_uci(position, long_castling, true), "e1a1");
  for (const bool chess960 : {false, true}) {
    EXPECT_EQ(parse_uci(position, "e1g1", chess960).value(), short_castling);
    EXPECT_EQ(parse_uci(position, "e1h1", chess960).value(), short_castling);
    EXPECT_EQ(parse_uci(position, "e1a1", chess960).value(), long_castling);
  }
}

TEST(Uci, TakesAStepBesideTheKingAsAStep) {
  const Position position = at("4k3/8/8/8/8/8/8/5K1R w H - 0 1", true);
  EXPECT_EQ(parse_uci(position, "f1g1", true).value(), Move(5, 6));
  EXPECT_EQ(parse_uci(position, "f1h1", true).value(), Move(5, 7, MoveKind::Castling));
}

TEST(Uci, TakesPromotionLettersInEitherCase) {
  const Position position = at("7k/P7/8/8/8/8/8/K7 w - - 0 1");
  const Move queen(48, 56, MoveKind::Promotion, PieceType::Queen);
  EXPECT_EQ(parse_uci(position, "a7a8q").value(), queen);
  EXPECT_EQ(parse_uci(position, "a7a8Q").value(), queen);
  EXPECT_EQ(to_uci(position, queen), "a7a8q");
}

TEST(Uci, SaysWhetherIllegalOrNoMove) {
  const Position start = Position::initial();
  EXPECT_EQ(parse_uci(start, "e2e5").error().message, "uci: \"e2e5\" is illegal here");
  EXPECT_EQ(parse_uci(start, "e4e5").error().message, "uci: \"e4e5\" is illegal here");
  for (const char* text : {"", "e2", "e2e9", "i2i4", "0000", "e2e4qq", "e7e8x", "(none)"})
    EXPECT_THAT(parse_uci(start, text).error().message, testing::EndsWith("is no move")) << text;
}

}  // namespace
}  // namespace tahl
