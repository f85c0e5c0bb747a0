#include "chess/fen.h"

#include <gtest/gtest.h>

#include <fstream>

#include "chess/movegen.h"
#include "tests/test_paths.h"

namespace tahl {
namespace {

constexpr const char* kStart = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

std::string error_of(std::string_view fen) {
  const auto position = parse_fen(fen);
  return position ? "accepted" : position.error().message;
}

TEST(Fen, StartPositionIsTheInitialOne) {
  const auto position = parse_fen(kStart);
  ASSERT_TRUE(position);
  EXPECT_TRUE(position->same_as(Position::initial()));
  EXPECT_EQ(to_fen(Position::initial()), kStart);
}

TEST(Fen, ErrorsNameTheField) {
  EXPECT_EQ(error_of(""), "fen: empty");
  EXPECT_EQ(error_of("9/8/8/8/8/8/8/8 w - - 0 1"),
            "fen: rank 8 holds \"9\", which is no piece and no 1-8: \"9/8/8/8/8/8/8/8 w - - 0 1\"");
  EXPECT_EQ(error_of("4k3/8/8/8/8/8/8/4K4 w - - 0 1"),
            "fen: rank 1 has more than 8 files: \"4k3/8/8/8/8/8/8/4K4 w - - 0 1\"");
  EXPECT_EQ(error_of("4k3/8/8/8/8/8/8/4K3 x - - 0 1"),
            "fen: side to move is \"x\", not w or b: \"4k3/8/8/8/8/8/8/4K3 x - - 0 1\"");
  EXPECT_EQ(error_of("4k3/8/8/8/8/8/8/8 w - - 0 1"),
            "fen: white has no king: \"4k3/8/8/8/8/8/8/8 w - - 0 1\"");
}

TEST(Fen, NoCounterIsWrittenThatIsNotRead) {
  Position p = parse_fen("4k3/8/8/8/8/8/8/4K2R b K - 1000000 1000000").value();
  p.make(legal_moves(p)[0]);
  EXPECT_EQ(p.halfmove_clock(), 1'000'001);
  const auto again = parse_fen(to_fen(p));
  ASSERT_TRUE(again) << to_fen(p);
  EXPECT_TRUE(again->same_as(p));
}

TEST(Fen, MissingFieldsHaveDefaults) {
  const auto position = parse_fen("4k3/8/8/8/8/8/8/4K3 w");
  ASSERT_TRUE(position);
  EXPECT_EQ(to_fen(*position), "4k3/8/8/8/8/8/8/4K3 w - - 0 1");
}

TEST(Fen, WritesEnPassantOnlyWhenACaptureIsLegal) {
  EXPECT_EQ(to_fen(*parse_fen("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1")),
            "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1");
  // The pawn on d4 is pinned on its file, so dxe3 is illegal.
  EXPECT_EQ(to_fen(*parse_fen("3k4/8/8/8/3pP3/8/8/3R2K1 b - e3 0 1")),
            "3k4/8/8/8/3pP3/8/8/3R2K1 b - - 0 1");
  const char* legal = "8/8/8/2k5/3Pp3/8/8/4K3 b - d3 0 1";
  EXPECT_EQ(to_fen(*parse_fen(legal)), legal);
}

TEST(Fen, XFenNamesTheInnerRookByItsFile) {
  const char* fen = "4k1rr/8/8/8/8/8/8/4K3 b g - 0 1";
  const auto position = parse_fen(fen, /*chess960=*/true);
  ASSERT_TRUE(position);
  EXPECT_EQ(position->castling_rook(Color::Black, CastlingSide::King), 62);
  EXPECT_EQ(to_fen(*position), fen);
  EXPECT_TRUE(needs_chess960(*position));
}

TEST(Fen, ShredderNamesEveryRookByItsFile) {
  const auto position = parse_fen("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1");
  ASSERT_TRUE(position);
  EXPECT_EQ(to_fen(*position, FenStyle::Shredder), "r3k2r/8/8/8/8/8/8/R3K2R w HAha - 0 1");
  EXPECT_FALSE(needs_chess960(*position));
}

TEST(Fen, KeepsOnlyRightsThatTheRooksAndKingsBearOut) {
  const auto position = parse_fen("4k3/8/8/8/8/8/8/R2K3R w KQ - 0 1");
  ASSERT_TRUE(position);
  EXPECT_EQ(to_fen(*position), "4k3/8/8/8/8/8/8/R2K3R w - - 0 1");
}

TEST(Fen, RefusesWhatIsNoChessPosition) {
  for (const char* fen : {
           "4k3/8/8/8/8/8/8/K3K3 w - - 0 1",
           "8/8/8/8/8/8/kK6/8 w - - 0 1",
           "P3k3/8/8/8/8/8/8/4K3 w - - 0 1",
           "4k3/8/8/8/8/P7/PPPPPPPP/4K3 w - - 0 1",
           "4k3/8/8/8/8/QQ6/QQQQQQQQ/4K3 w - - 0 1",
           "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR w KQkq e3 0 1",
           "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR b KQkq e3 0 1",
           "4k3/8/8/8/8/8/8/4K3 w - e9 0 1",
           "4k3/8/8/8/8/8/8/4K3 w - - -5 1",
           "4k3/8/8/8/8/8/8/4K3 w - - 0 99999999999",
           "4k3/8/8/8/8/8/8/4K3 w - - 0 1 extra",
           "4k3/8/8/8/8/8/8/8/4K3 w - - 0 1",
           "4k3/8/8/8/8/8/8/4K3 w Kx - 0 1",
       })
    EXPECT_FALSE(parse_fen(fen)) << fen;
}

// Inputs that broke other programs: "defect TAB FEN TAB reject-or-number-of-legal-moves".
TEST(Fen, CollectedDefectsComeOutAsStated) {
  const auto path = test::shared_path("cases/fens.tsv");
  if (!path) return;
  std::ifstream file(*path);
  int checked = 0;
  for (std::string text; std::getline(file, text);) {
    if (text.empty() || text[0] == '#') continue;
    const std::size_t a = text.find('\t'), b = text.find('\t', a + 1);
    const std::string fen = text.substr(a + 1, b - a - 1), expected = text.substr(b + 1);
    const auto position = parse_fen(fen);
    const std::string actual = position ? std::to_string(legal_moves(*position).size()) : "reject";
    EXPECT_EQ(actual, expected) << text;
    ++checked;
  }
  EXPECT_GT(checked, 20);
}

TEST(Fen, EveryPositionOfAWalkReadsBackTheSame) {
  Position position = Position::initial();
  for (std::uint32_t i = 0, lots = 12345; i < 300; ++i) {
    const MoveList moves = legal_moves(position);
    if (moves.empty()) break;
    lots = lots * 1664525u + 1013904223u;
    position.make(moves[static_cast<int>((lots >> 8) % static_cast<std::uint32_t>(moves.size()))]);
    const auto read = parse_fen(to_fen(position));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_TRUE(read->same_as(position)) << to_fen(position);  // the key included
    EXPECT_EQ(to_fen(*read), to_fen(position));
  }
}

}  // namespace
}  // namespace tahl
