#include "chess/position.h"

#include <gtest/gtest.h>

#include "chess/attacks.h"
#include "chess/fen.h"
#include "chess/movegen.h"
#include "chess/notation.h"
#include "chess/perft.h"

namespace tahl {
namespace {

// Every node of the tree: keys, membership and the slow definitions of check and capture agree.
void expect_consistent(const Position& p, int depth) {
  const MoveList moves = legal_moves(p);
  for (const Move m : moves) {
    Position next = p;
    next.make(m);
    const auto read = parse_fen(to_fen(next, FenStyle::Shredder), true);
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_EQ(read->key(), next.key()) << to_fen(next);
    ASSERT_EQ(p.gives_check(m), next.is_check());
    ASSERT_EQ(p.is_capture(m), popcount(next.occupied()) < popcount(p.occupied()));
    ASSERT_TRUE(is_legal(p, m));
    ASSERT_EQ(parse_uci(p, to_uci(p, m, true), true), m);
    ASSERT_EQ(parse_san(p, to_san(p, m)), m) << to_fen(p) << ' ' << to_san(p, m);
    if (depth > 1) expect_consistent(next, depth - 1);
  }
  ASSERT_EQ(has_legal_move(p), !moves.empty());
  ASSERT_EQ(perft(p, 1), static_cast<std::uint64_t>(moves.size()));
}

TEST(Position, KeysAndQuestionsAgreeOnEveryNodeOfATree) {
  for (const char* fen : {
           "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
           "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
           "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8",
           "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9",
       })
    expect_consistent(*parse_fen(fen, true), 2);
}

// After f7f5 White's exf6 or gxf6 would leave his king in check, so the key must not know of it.
TEST(Position, KeyHoldsEnPassantOnlyWhenTheCaptureIsLegal) {
  Position after = *parse_fen("rr6/2q2p1k/2P1b1pp/bB2P1n1/R2B2PN/p4P1P/P1Q4K/1R6 b - - 2 38");
  after.make(Move(53, 37));
  EXPECT_EQ(after.en_passant_square(), 45);
  EXPECT_FALSE(after.en_passant_is_legal());
  const Position same = *parse_fen("rr6/2q4k/2P1b1pp/bB2Ppn1/R2B2PN/p4P1P/P1Q4K/1R6 w - - 0 39");
  EXPECT_EQ(after.key(), same.key());
}

TEST(Position, IsOneCacheLine) { EXPECT_EQ(sizeof(Position), 64u); }

}  // namespace
}  // namespace tahl
