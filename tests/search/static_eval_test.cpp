#include "search/static_eval.h"

#include "search/see.h"
#include "tests/search/search_testing.h"

namespace tahl::search {
namespace {

// The position with colours and ranks swapped; sides keep their roles.
Position mirrored(const Position& p) {
  PositionBuilder builder;
  for (Bitboard b = p.occupied(); b;) {
    const Square s = pop_square(b);
    const Piece piece = p.piece_on(s);
    builder.put(mirror_rank(s), {piece.type, ~piece.color});
  }
  builder.set_side_to_move(~p.side_to_move());
  return builder.build();
}

const char* const kPositions[] = {
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w - - 0 1",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
    "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1",
    "8/8/4k3/8/8/3K4/8/3R4 b - - 0 1",
};

TEST(StaticEval, DoesNotKnowColours) {
  for (const char* fen : kPositions)
    EXPECT_EQ(static_eval(position_of(fen)), static_eval(mirrored(position_of(fen)))) << fen;
}

TEST(StaticEval, SeesASymmetricPositionAsTheTempo) {
  EXPECT_EQ(static_eval(Position::initial()), 10);
}

TEST(StaticEval, CountsPieces) {
  EXPECT_GT(static_eval(position_of("rnb1kbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1")),
            700);
  EXPECT_LT(static_eval(position_of("rnb1kbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR b KQkq - 0 1")),
            -700);
}

TEST(StaticEval, CallsALoneMinorPieceNearlyADraw) {
  EXPECT_LT(std::abs(static_eval(position_of("4k3/8/8/8/8/8/3K4/7B w - - 0 1"))), 120);
}

TEST(StaticEval, DrivesALoneKingToTheCorner) {
  const int middle = static_eval(position_of("8/8/8/3k4/8/3K4/8/3R4 w - - 0 1"));
  const int corner = static_eval(position_of("k7/8/1K6/8/8/8/8/3R4 w - - 0 1"));
  EXPECT_GT(corner, middle);
}

TEST(StaticEval, TurnsPointsIntoExpectedResults) {
  EXPECT_DOUBLE_EQ(expected_result(0), 0);
  EXPECT_NEAR(expected_result(400), 2 * 10. / 11 - 1, 1e-12);  // ten to one
  EXPECT_DOUBLE_EQ(expected_result(-250), -expected_result(250));
}

int exchange(const char* fen, const char* move) {
  const Position p = position_of(fen);
  const auto m = parse_uci(p, move);
  EXPECT_TRUE(m) << fen << " " << move;
  return m ? static_exchange(p, *m) : 0;
}

// The first two are worked through on the Chess Programming Wiki's page on static exchange
// evaluation.
TEST(StaticExchange, FollowsTheWholeExchange) {
  EXPECT_EQ(exchange("1k1r4/1pp4p/p7/4p3/8/P5P1/1PP4P/2K1R3 w - - 0 1", "e1e5"), 100);
  EXPECT_EQ(exchange("1k1r3q/1ppn3p/p4b2/4p3/8/P2N2P1/1PP1R1BP/2K1Q3 w - - 0 1", "d3e5"),
            100 - 320);
}

TEST(StaticExchange, SeesQuietMovesIntoCaptures) {
  EXPECT_EQ(exchange("4k3/8/3p4/8/8/8/8/2R1K3 w - - 0 1", "c1c5"), -500);
  EXPECT_EQ(exchange("4k3/8/8/8/8/8/8/2R1K3 w - - 0 1", "c1c5"), 0);
}

TEST(StaticExchange, KnowsEnPassantAndPromotion) {
  EXPECT_EQ(exchange("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "e5d6"), 100);
  EXPECT_EQ(exchange("8/P6k/8/8/8/8/8/4K3 w - - 0 1", "a7a8q"), 850);
  EXPECT_EQ(exchange("1r6/P6k/8/8/8/8/8/4K3 w - - 0 1", "a7a8q"), -100);
  EXPECT_EQ(exchange("1r6/P6k/8/8/8/8/8/4K3 w - - 0 1", "a7b8q"), 1350);
}

TEST(StaticExchange, DoesNotLetAKingCaptureIntoCheck) {
  EXPECT_EQ(exchange("8/8/3kp3/8/8/8/4R3/4R1K1 w - - 0 1", "e2e6"), 100);
}

}  // namespace
}  // namespace tahl::search
