#include "nn/lc0_encoding.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "chess/fen.h"
#include "chess/notation.h"
#include "nn/policy_map.h"

namespace tahl::nn {
namespace {

Game game_of(const std::string& fen, const std::vector<std::string>& moves = {}) {
  Game game(parse_fen(fen, true).value());
  for (const std::string& move : moves) game.play(*parse_uci(game.position(), move));
  return game;
}
const std::string kStart = to_fen(Position::initial());

class Planes {
 public:
  Planes(Lc0Format format, const Game& game) : floats_(kLc0Planes * 64) {
    encode_lc0(format, game, floats_);
  }
  // The squares of a plane that are not 0.
  Bitboard squares(int plane) const {
    Bitboard result = 0;
    for (Square s = 0; s < 64; ++s)
      if (at(plane, s) != 0) result |= bit(s);
    return result;
  }
  float at(int plane, Square s) const { return floats_[static_cast<std::size_t>(plane * 64 + s)]; }
  bool operator==(const Planes&) const = default;

 private:
  std::vector<float> floats_;
};

constexpr Bitboard kAll = ~Bitboard{0};
constexpr int kAux = 104;

TEST(Lc0Encoding, TheStartPositionHasNoPast) {
  const Planes planes(Lc0Format::Classical, Game());
  EXPECT_EQ(planes.squares(0), Bitboard{0xff00});
  EXPECT_EQ(planes.squares(5), bit(4));
  EXPECT_EQ(planes.squares(6), Bitboard{0xff} << 48);
  EXPECT_EQ(planes.squares(11), bit(60));
  for (int plane = 12; plane < kAux; ++plane) EXPECT_EQ(planes.squares(plane), 0u) << plane;
  for (const int plane : {0, 1, 2, 3, 7}) EXPECT_EQ(planes.squares(kAux + plane), kAll) << plane;
  for (const int plane : {4, 5, 6}) EXPECT_EQ(planes.squares(kAux + plane), 0u) << plane;
}

// Everything as the side to move sees it, the past too.
TEST(Lc0Encoding, HistoryIsSeenByTheOneToMove) {
  const Planes planes(Lc0Format::Classical, game_of(kStart, {"e2e4", "c7c5", "g1f3"}));
  EXPECT_EQ(planes.squares(1), bit(1) | bit(6));         // our knights, at home
  EXPECT_EQ(planes.squares(7), bit(57) | bit(45));       // theirs: b8 and f6 from our side
  EXPECT_EQ(planes.squares(13 + 7), bit(57) | bit(62));  // a move earlier
  EXPECT_EQ(planes.squares(13 + 6) & bit(36), bit(36));  // their pawn on our e5
  EXPECT_EQ(planes.squares(3 * 13), Bitboard{0xff00});   // the start
  EXPECT_EQ(planes.squares(4 * 13), 0u);                 // nothing before
  EXPECT_EQ(planes.squares(kAux + 4), kAll);             // Black moves
  EXPECT_EQ(planes.at(kAux + 5, 0), 1);                  // one ply without capture or pawn
}

TEST(Lc0Encoding, OnlyRepeatedPositionsAreMarked) {
  const Planes planes(Lc0Format::Classical,
                      game_of(kStart, {"g1f3", "g8f6", "f3g1", "f6g8", "g1f3"}));
  for (const int i : {0, 1}) EXPECT_EQ(planes.squares(i * 13 + 12), kAll) << i;
  for (int i = 2; i < 8; ++i) EXPECT_EQ(planes.squares(i * 13 + 12), 0u) << i;
}

TEST(Lc0Encoding, AFenHasItselfAsItsPastWithoutTheDoubleStep) {
  const Planes planes(Lc0Format::Classical, game_of("4k3/8/8/8/3pP3/8/8/4K3 b - e3 0 1", {"e8e7"}));
  // White to move: the present, the FEN, and six times the FEN with the pawn on e2.
  EXPECT_EQ(planes.squares(13), bit(28));
  for (int i = 2; i < 8; ++i) {
    EXPECT_EQ(planes.squares(i * 13), bit(12)) << i;
    EXPECT_EQ(planes.squares(i * 13 + 11), bit(60)) << i;
  }
}

TEST(Lc0Encoding, CastlingIsFourPlanesOrTheRooks) {
  const Game game = game_of("rk2r3/8/8/8/8/8/8/R2K3R b Qe - 0 1");  // Black: the rook on e8
  const Planes classical(Lc0Format::Classical, game);
  EXPECT_EQ(classical.squares(kAux + 0), 0u);
  EXPECT_EQ(classical.squares(kAux + 1), kAll);  // we, king's side
  EXPECT_EQ(classical.squares(kAux + 2), kAll);  // they, queen's side
  EXPECT_EQ(classical.squares(kAux + 3), 0u);
  const Planes rooks(Lc0Format::CastlingRooks, game);
  EXPECT_EQ(rooks.squares(kAux + 0), bit(56));
  EXPECT_EQ(rooks.squares(kAux + 1), bit(4));
  EXPECT_EQ(rooks.squares(kAux + 2) | rooks.squares(kAux + 3), 0u);
}

TEST(Lc0Encoding, CanonicalShowsEnPassantBehindTheEdge) {
  const Game game = game_of(kStart, {"e2e4", "a7a6", "e4e5", "d7d5"});
  EXPECT_EQ(Planes(Lc0Format::Canonical, game).squares(kAux + 4), bit(59));
  EXPECT_EQ(Planes(Lc0Format::Canonical, game_of(kStart, {"e2e4"})).squares(kAux + 4), 0u);
}

TEST(Lc0Encoding, TheClockIsInPliesOrHundreds) {
  const Game game = game_of("4k3/8/8/8/8/8/4P3/4K3 w - - 30 40");
  EXPECT_EQ(Planes(Lc0Format::Canonical, game).at(kAux + 5, 9), 30);
  EXPECT_FLOAT_EQ(Planes(Lc0Format::Hectoplies, game).at(kAux + 5, 9), 0.3f);
}

// What cannot be repeated is no history: after a capture, a pawn move, or lost castling rights.
TEST(Lc0Encoding, CanonicalHistoryEndsWithWhatCannotComeAgain) {
  const auto boards = [](Lc0Format format, const Game& game) {
    const Planes planes(format, game);
    int n = 0;
    while (n < 8 && planes.squares(n * 13 + 5) != 0) ++n;
    return n;
  };
  const Game game = game_of(kStart, {"e2e4", "e7e5", "g1f3", "b8c6"});
  EXPECT_EQ(boards(Lc0Format::Classical, game), 5);
  EXPECT_EQ(boards(Lc0Format::Canonical, game), 3);
  EXPECT_EQ(boards(Lc0Format::CanonicalV2, game), 1);
  EXPECT_EQ(boards(Lc0Format::Canonical,
                   game_of(kStart, {"e2e4", "e7e5", "g1f3", "b8c6", "e1e2", "g8f6"})),
            2);
  EXPECT_EQ(boards(Lc0Format::CanonicalV2,
                   game_of(kStart, {"g1f3", "g8f6", "f3g1", "f6g8", "g1f3", "g8f6", "f3g1"})),
            4);
}

std::string turned(const std::string& fen, Frame frame) {
  const Position p = *parse_fen(fen);
  PositionBuilder builder;
  for (Square s = 0; s < 64; ++s)
    if (p.piece_on(s).type != PieceType::None) builder.put(frame(s), p.piece_on(s));
  builder.set_side_to_move(p.side_to_move());
  return to_fen(builder.build());
}

// Without pawns and castling the eight ways to lay the board look the same, and so do the moves.
TEST(Lc0Encoding, CanonicalBoardsLookTheSameHoweverTheyLie) {
  for (const std::string fen :
       {"8/8/3k4/8/8/2R5/1K6/8 w - - 0 1", "8/8/3k1q2/8/4K3/8/1N6/8 w - - 0 1",
        "8/2k5/8/8/3K4/8/8/R6R b - - 0 1", "7k/8/8/3K4/8/5b2/8/1B6 w - - 0 1"}) {
    const Game game = game_of(fen);
    const Planes want(Lc0Format::Canonical, game);
    const auto outputs = [](const Position& p) {
      std::multiset<int> result;
      for (const Move m : legal_moves(p))
        result.insert(policy_terms(PolicyHead::Moves1858, p, m, lc0_frame(Lc0Format::Canonical, p))
                          .output[0]);
      return result;
    };
    for (const Square flip : {Square{0}, Square{7}, Square{56}, Square{63}}) {
      for (const bool transposed : {false, true}) {
        const Game other = game_of(turned(fen, {flip, transposed}));
        EXPECT_EQ(Planes(Lc0Format::Canonical, other), want) << to_fen(other.position());
        EXPECT_EQ(outputs(other.position()), outputs(game.position()));
      }
    }
    const Planes classical(Lc0Format::Classical, game);
    EXPECT_FALSE(classical == Planes(Lc0Format::Classical, game_of(turned(fen, {7, false}))));
  }
}

TEST(Lc0Encoding, CanonicalWithPawnsOnlySwapsFiles) {
  const Position p = *parse_fen("8/2k5/8/8/8/1P6/1K6/8 w - - 0 1");
  EXPECT_EQ(lc0_frame(Lc0Format::Canonical, p).flip, 7);
  EXPECT_EQ(lc0_frame(Lc0Format::Classical, p).flip, 0);
  EXPECT_EQ(lc0_frame(Lc0Format::Canonical, Position::initial()).flip, 0);
  const Position castling = *parse_fen("8/8/3k4/8/8/8/8/RK6 w A - 0 1", true);
  EXPECT_EQ(lc0_frame(Lc0Format::Canonical, castling).flip, 0);
}

// The places of some moves in lc0's own list.
TEST(Lc0Policy, Moves1858IsLc0sList) {
  const auto index = [](const char* move, PieceType promotion = PieceType::None) {
    return moves1858_index(make_square(move[0] - 'a', move[1] - '1'),
                           make_square(move[2] - 'a', move[3] - '1'), promotion);
  };
  EXPECT_EQ(index("a1b1"), 0);
  EXPECT_EQ(index("e1g1"), 102);
  EXPECT_EQ(index("e1h1"), 103);
  EXPECT_EQ(index("g1f3"), 159);
  EXPECT_EQ(index("e2e4"), 322);
  EXPECT_EQ(index("d4e6"), 767);
  EXPECT_EQ(index("a7a8"), 1401);
  EXPECT_EQ(index("a7a8", PieceType::Knight), 1401);
  EXPECT_EQ(index("h8g8"), 1791);
  EXPECT_EQ(index("a7a8", PieceType::Queen), 1792);
  EXPECT_EQ(index("b7a8", PieceType::Rook), 1799);
  EXPECT_EQ(index("h7h8", PieceType::Bishop), 1857);
}

// And of some planes: lc0 counts directions clockwise from north, then jumps, then promotions.
TEST(Lc0Policy, Planes73AreLc0sDirections) {
  const auto plane = [](const char* move, PieceType promotion = PieceType::None) {
    const Square from = make_square(move[0] - 'a', move[1] - '1');
    const int output = planes73_index(from, make_square(move[2] - 'a', move[3] - '1'), promotion);
    EXPECT_EQ(output % 64, from);
    return output / 64;
  };
  EXPECT_EQ(plane("e2e3"), 0);
  EXPECT_EQ(plane("a1h8"), 13);
  EXPECT_EQ(plane("e1h1"), 16);
  EXPECT_EQ(plane("d4e3"), 21);
  EXPECT_EQ(plane("h8h1"), 34);
  EXPECT_EQ(plane("d4c3"), 35);
  EXPECT_EQ(plane("d4a4"), 44);
  EXPECT_EQ(plane("h1a8"), 55);
  EXPECT_EQ(plane("g1h3"), 56);
  EXPECT_EQ(plane("d4f3"), 58);
  EXPECT_EQ(plane("g1f3"), 63);
  EXPECT_EQ(plane("b7a8", PieceType::Rook), 64);
  EXPECT_EQ(plane("b7b8", PieceType::Bishop), 68);
  EXPECT_EQ(plane("b7c8", PieceType::Queen), 72);
  EXPECT_EQ(plane("b7c8", PieceType::Knight), 7);
}

TEST(Lc0Policy, EveryMoveHasAnOutputOfItsOwn) {
  std::set<int> moves, planes, attention;
  std::size_t count = 0;
  const auto add = [&](Square from, Square to, PieceType promotion) {
    ++count;
    moves.insert(moves1858_index(from, to, promotion));
    planes.insert(planes73_index(from, to, promotion));
    attention.insert(attention4288_index(from, to, promotion));
  };
  for (Square from = 0; from < 64; ++from) {
    for (Square to = 0; to < 64; ++to) {
      const int east = std::abs(file_of(to) - file_of(from));
      const int north = std::abs(rank_of(to) - rank_of(from));
      if (from == to || (east != 0 && north != 0 && east != north && east * north != 2)) continue;
      add(from, to, PieceType::None);
      if (rank_of(from) != 6 || rank_of(to) != 7 || east > 1) continue;
      for (const PieceType t : {PieceType::Queen, PieceType::Rook, PieceType::Bishop})
        add(from, to, t);
    }
  }
  EXPECT_EQ(count, 1858u);
  EXPECT_EQ(moves.size(), count);
  EXPECT_EQ(*moves.rbegin(), 1857);
  EXPECT_EQ(planes.size(), count);
  EXPECT_LT(*planes.rbegin(), policy_outputs(PolicyHead::Planes73));
  EXPECT_EQ(attention.size(), count);
  EXPECT_EQ(*attention.rbegin(), policy_outputs(PolicyHead::Attention4288) - 1);
}

TEST(Encodings, AreFoundByName) {
  for (const Encoding& encoding : encodings()) EXPECT_EQ(find_encoding(encoding.name), &encoding);
  EXPECT_EQ(find_encoding("lc0-112")->planes, 112);
  EXPECT_EQ(find_encoding("lc0"), nullptr);
}

}  // namespace
}  // namespace tahl::nn
