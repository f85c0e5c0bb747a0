#include "nn/sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "chess/fen.h"
#include "chess/notation.h"

namespace tahl::nn {
namespace {

Game play(std::initializer_list<const char*> moves, Game game = {}) {
  for (const char* text : moves) game.play(*parse_san(game.position(), text));
  return game;
}

// Anderssen - Kieseritzky, London 1851: the Immortal Game.
Game immortal() {
  return play({"e4",  "e5",    "f4",  "exf4", "Bc4",   "Qh4+", "Kf1",  "b5",   "Bxb5",
               "Nf6", "Nf3",   "Qh6", "d3",   "Nh5",   "Nh4",  "Qg5",  "Nf5",  "c6",
               "g4",  "Nf6",   "Rg1", "cxb5", "h4",    "Qg6",  "h5",   "Qg5",  "Qf3",
               "Ng8", "Bxf4",  "Qf6", "Nc3",  "Bc5",   "Nd5",  "Qxb2", "Bd6",  "Bxg1",
               "e5",  "Qxa1+", "Ke2", "Na6",  "Nxg7+", "Kd8",  "Qf6+", "Nxf6", "Be7#"});
}

std::vector<std::uint8_t> shard_of(const std::vector<GameRecord>& games) {
  std::vector<std::uint8_t> payload;
  std::uint32_t plies = 0;
  for (const GameRecord& g : games)
    append_game(g, payload), plies += static_cast<std::uint32_t>(g.moves.size());
  const auto header = shard_header();
  std::vector<std::uint8_t> file(header.begin(), header.end());
  const auto block = make_block(payload, static_cast<std::uint32_t>(games.size()), plies);
  file.insert(file.end(), block.begin(), block.end());
  return file;
}

GameRecord packed(const Game& game, Result result) {
  GameRecord record = *pack_game(game);
  record.result = result;
  return record;
}

TEST(Sample, BringsAGameBackMoveForMove) {
  GameRecord record = packed(immortal(), Result::WhiteWins);
  record.white_elo = 2600;
  record.black_elo = 2480;
  record.year = 1851;
  record.month = 6;
  record.day = 21;
  record.time_class = TimeClass::Classical;
  const auto shard = Shard::parse(shard_of({record}), "test");
  ASSERT_TRUE(shard) << shard.error().message;
  ASSERT_EQ(shard->size(), 1u);
  EXPECT_EQ(shard->plies(), 45u);
  const GameView view = shard->game(0);
  EXPECT_EQ(view.result, Result::WhiteWins);
  EXPECT_EQ(view.white_elo, 2600);
  EXPECT_EQ(view.black_elo, 2480);
  EXPECT_EQ(view.year, 1851);
  EXPECT_EQ(view.month, 6);
  EXPECT_EQ(view.day, 21);
  EXPECT_EQ(view.time_class, TimeClass::Classical);
  const auto game = unpack_game(view);
  ASSERT_TRUE(game);
  EXPECT_EQ(game->moves(), immortal().moves());
  EXPECT_EQ(to_fen(game->position()), to_fen(immortal().position()));
}

TEST(Sample, TakesOneByteAPlyAndElevenAGame) {
  std::vector<std::uint8_t> payload;
  append_game(packed(immortal(), Result::WhiteWins), payload);
  EXPECT_EQ(payload.size(), 11u + 45u);
}

TEST(Sample, KeepsAnotherStartAndChess960) {
  const auto start =
      parse_fen("bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9", true);
  ASSERT_TRUE(start);
  Game game(*start, true);
  game.play(legal_moves(game.position())[3]);
  const auto shard = Shard::parse(
      shard_of({packed(game, Result::Draw), packed(immortal(), Result::WhiteWins)}), "test");
  ASSERT_TRUE(shard) << shard.error().message;
  const auto back = unpack_game(shard->game(0));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_TRUE(back->is_chess960());
  EXPECT_EQ(to_fen(back->position(), FenStyle::Shredder),
            to_fen(game.position(), FenStyle::Shredder));
  EXPECT_EQ(shard->game(1).moves.size(), 45u);
}

TEST(Sample, NumbersMovesInOneOrderWhateverTheGenerators) {
  const Game game = immortal();
  for (const Position& position : game.positions()) {
    const MoveList legal = legal_moves(position);
    MoveList reversed = legal;
    std::reverse(reversed.begin(), reversed.end());
    for (const Move m : legal) {
      EXPECT_EQ(move_index(legal, m), move_index(reversed, m));
      MoveList any = reversed;
      EXPECT_EQ(move_at(any, move_index(legal, m)), m);
    }
  }
}

TEST(Sample, RefusesAMoveNumberThatNoLegalMoveHas) {
  GameRecord record = packed(immortal(), Result::WhiteWins);
  record.moves[0] = 20;  // the start has moves 0 to 19
  const auto shard = Shard::parse(shard_of({record}), "test");
  ASSERT_TRUE(shard);
  const auto game = unpack_game(shard->game(0));
  ASSERT_FALSE(game);
  EXPECT_EQ(game.error().message, "game: ply 1 is move 20 of 20 legal ones");
}

TEST(Sample, RefusesNullMoves) {
  Game game = immortal();
  game = play({"e4"});
  game.play_null();
  EXPECT_FALSE(pack_game(game));
}

TEST(Sample, NoticesEveryFlippedBit) {
  const auto good = shard_of({packed(immortal(), Result::WhiteWins)});
  ASSERT_TRUE(Shard::parse(good, "test"));
  for (std::size_t byte = 0; byte < good.size(); ++byte) {
    if (byte >= 12 && byte < 16) continue;  // the header's spare word
    for (int b = 0; b < 8; ++b) {
      auto bad = good;
      bad[byte] = static_cast<std::uint8_t>(bad[byte] ^ 1 << b);
      const auto shard = Shard::parse(bad, "test");
      EXPECT_FALSE(shard) << "byte " << byte << " bit " << b;
      if (!shard) {
        EXPECT_EQ(shard.error().message.find('\n'), std::string::npos);
      }
    }
  }
}

TEST(Sample, NoticesEveryCut) {
  const auto good = shard_of({packed(immortal(), Result::WhiteWins)});
  for (std::size_t size = 0; size < good.size(); ++size) {
    if (size == 16) continue;  // a file with no games yet
    EXPECT_FALSE(
        Shard::parse({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}, "test"))
        << size;
  }
}

TEST(Sample, SurvivesNonsenseWithARightHash) {
  std::mt19937 random(1);
  const auto header = shard_header();
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::uint8_t> payload(random() % 64);
    for (auto& b : payload) b = static_cast<std::uint8_t>(random());
    std::vector<std::uint8_t> file(header.begin(), header.end());
    const auto block =
        make_block(payload, 1, payload.size() >= 11 ? payload[9] + 256u * payload[10] : 0);
    file.insert(file.end(), block.begin(), block.end());
    const auto shard = Shard::parse(std::move(file), "test");
    if (!shard) continue;
    for (std::size_t g = 0; g < shard->size(); ++g) (void)unpack_game(shard->game(g));
  }
}

TEST(Sample, CopiesOfAGameHashAlikeAndOtherGamesDoNot) {
  const GameRecord a = packed(immortal(), Result::WhiteWins);
  GameRecord b = a;
  b.white_elo = 1;
  b.result = Result::Draw;
  EXPECT_EQ(hash_game(a.start_fen, a.moves), hash_game(b.start_fen, b.moves));
  b.moves.pop_back();
  EXPECT_NE(hash_game(a.start_fen, a.moves), hash_game(b.start_fen, b.moves));
  EXPECT_NE(hash_game("x", a.moves), hash_game("", a.moves));
}

}  // namespace
}  // namespace tahl::nn
