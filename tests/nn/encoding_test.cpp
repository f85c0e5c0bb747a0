#include "nn/encoding.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "chess/fen.h"
#include "chess/notation.h"
#include "nn/policy_map.h"
#include "tests/test_paths.h"

namespace tahl::nn {
namespace {

Game replay(const nlohmann::json& row) {
  Game game(*parse_fen(row["start"].get<std::string>()));
  for (const auto& text : row["moves"])
    game.play(*parse_uci(game.position(), text.get<std::string>()));
  return game;
}

// Rows made by RDTChess's own encoding.py: planes 0-16 as 64-bit hex, the two constants, and the
// index of every legal move but under-promotions.
void expect_golden(const std::filesystem::path& path, int at_least) {
  std::ifstream file(path);
  int rows = 0;
  for (std::string text; std::getline(file, text); ++rows) {
    const auto row = nlohmann::json::parse(text);
    const Game game = replay(row);
    const auto planes = rdt19_planes(game);
    ASSERT_EQ(planes.size(), 19u);
    for (std::size_t i = 0; i < 17; ++i)
      EXPECT_EQ(fmt::format("{:016x}", planes[i].squares), row["planes"][i]) << row["fen"] << i;
    EXPECT_FLOAT_EQ(planes[17].constant, row["fifty"].get<float>()) << row["fen"];
    EXPECT_FLOAT_EQ(planes[18].constant, row["repetition"].get<float>()) << row["fen"];

    std::map<std::string, int> indices;
    for (const Move m : legal_moves(game.position()))
      if (const auto i = fromto_index(game.position(), m)) indices[to_uci(game.position(), m)] = *i;
    EXPECT_EQ(nlohmann::json(indices), row["legal"]) << row["fen"];
  }
  EXPECT_GE(rows, at_least);
}

TEST(Rdt19, PlanesAndIndicesEqualRdtChess) {
  expect_golden(test::data_path("golden/rdt19_planes.jsonl"), 15);
}

TEST(Rdt19, PlanesAndIndicesEqualRdtChessOnTheWholeSet) {
  if (const auto path = test::shared_path("golden/rdt19_planes.jsonl")) expect_golden(*path, 239);
}

TEST(Rdt19, FloatsHoldThePlanesRankOneFirst) {
  std::vector<float> out(kRdt19Planes * 64);
  encode_rdt19(Game(), out);
  for (int s = 0; s < 64; ++s)
    EXPECT_EQ(out[static_cast<std::size_t>(s)], rank_of(static_cast<Square>(s)) == 1);
  EXPECT_EQ(out[5 * 64 + 4], 1);    // our king on e1
  EXPECT_EQ(out[11 * 64 + 60], 1);  // theirs on e8
  EXPECT_EQ(out[18 * 64], 0);
}

TEST(Rdt19, APositionAndItsColourReversedTwinLookTheSame) {
  const auto white =
      parse_fen("r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1");
  const auto black =
      parse_fen("r3k2r/pppbbppp/2n2q1P/1P2p3/3pn3/BN2PNP1/P1PPQPB1/R3K2R b KQkq - 0 1");
  ASSERT_TRUE(white && black);
  std::vector<float> a(kRdt19Planes * 64), b(kRdt19Planes * 64);
  encode_rdt19(Game(*white), a);
  encode_rdt19(Game(*black), b);
  EXPECT_EQ(a, b);
}

// What a move's terms say, done to the piece planes before it, must give the piece planes after it.
TEST(Planes12, TermsTurnThePlanesBeforeIntoThePlanesAfter) {
  for (const char* fen : {
           "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
           "r2q1rk1/pP1p2pp/Q4n2/bbp1p3/Np6/1B3NBn/pPPP1PPP/R3K2R b KQ - 0 1",
           "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8",
           "8/8/8/2k5/3Pp3/8/8/4K3 b - d3 0 1",
           "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9",
           "3k4/8/8/8/8/8/8/RK2R3 w KQ - 0 1",
       }) {
    const Position before = *parse_fen(fen, true);
    for (const Move m : legal_moves(before)) {
      std::vector<int> planes(12 * 64);
      const auto fill = [mover = before.side_to_move()](const Position& p, std::vector<int>& out) {
        for (Square s = 0; s < 64; ++s) {
          const Piece piece = p.piece_on(s);
          if (piece.type == PieceType::None) continue;
          const Square framed = mover == Color::White ? s : mirror_rank(s);
          out[static_cast<std::size_t>((index(piece.type) + (piece.color == mover ? 0 : 6)) * 64 +
                                       framed)] = 1;
        }
      };
      fill(before, planes);
      const PolicyTerms terms = policy_terms(PolicyHead::Planes12, before, m);
      for (std::size_t i = 0; i < static_cast<std::size_t>(terms.count); ++i)
        planes[terms.output[i]] += terms.sign[i];
      Position next = before;
      next.make(m);
      std::vector<int> after(12 * 64);
      fill(next, after);
      EXPECT_EQ(planes, after) << fen << " " << to_uci(before, m, true);
    }
  }
}

TEST(FromTo4096, HasNoOutputForUnderPromotions) {
  const Position p = *parse_fen("8/P7/8/8/8/8/8/K6k w - - 0 1");
  std::vector<float> outputs(4096);
  outputs[48 * 64 + 56] = 2.5f;
  EXPECT_EQ(policy_logit(PolicyHead::FromTo4096, p,
                         Move(48, 56, MoveKind::Promotion, PieceType::Queen), outputs),
            2.5f);
  EXPECT_EQ(policy_logit(PolicyHead::FromTo4096, p,
                         Move(48, 56, MoveKind::Promotion, PieceType::Rook), outputs),
            std::nullopt);
}

}  // namespace
}  // namespace tahl::nn
