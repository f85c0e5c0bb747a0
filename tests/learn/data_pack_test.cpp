#include "learn/data_pack.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <random>
#include <set>
#include <stop_token>
#include <thread>

#include "chess/pgn.h"
#include "tests/learn/learn_files.h"

namespace tahl::learn {
namespace {

using test::Folder;
using test::read_file;
namespace fs = std::filesystem;

PackOptions options_for(const Folder& folder, const std::string& out = "out") {
  PackOptions o;
  o.inputs = {folder.path / "games.pgn"};
  o.out = folder.path / out;
  o.val = o.test = 0.1;
  return o;
}

TEST(DataPack, KeepsEveryGameOnceInOneSplit) {
  const Folder folder;
  test::write_games(folder.path / "games.pgn", 300, 1);
  const auto report = pack(options_for(folder));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->counts.seen, 300u);
  EXPECT_EQ(report->counts.kept(), 300u);
  std::uint64_t games = 0, plies = 0;
  std::set<std::uint64_t> hashes;
  for (const auto& file : report->files) {
    const auto shard = nn::Shard::open(file);
    ASSERT_TRUE(shard) << shard.error().message;
    games += shard->size();
    plies += shard->plies();
    for (std::size_t i = 0; i < shard->size(); ++i) {
      hashes.insert(nn::hash_game(shard->game(i).start_fen, shard->game(i).moves));
      EXPECT_TRUE(nn::unpack_game(shard->game(i)));
    }
  }
  EXPECT_EQ(games, 300u);
  EXPECT_EQ(hashes.size(), 300u);
  EXPECT_EQ(plies, report->counts.plies[0] + report->counts.plies[1] + report->counts.plies[2]);
  // A tenth each, give or take four standard deviations.
  for (const std::size_t held : {1u, 2u}) {
    EXPECT_GT(report->counts.games[held], 9u);
    EXPECT_LT(report->counts.games[held], 51u);
  }
}

TEST(DataPack, FiltersByTheWeakerPlayer) {
  const Folder folder;
  const std::string moves = "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 ";
  std::ofstream(folder.path / "games.pgn") << "[WhiteElo \"2000\"]\n[BlackElo \"1800\"]\n\n"
                                           << moves << "Nf6 1-0\n\n"
                                           << "[WhiteElo \"2000\"]\n[BlackElo \"1799\"]\n\n"
                                           << moves << "b5 1-0\n\n"
                                           << "[WhiteElo \"2000\"]\n\n"
                                           << moves << "d6 0-1\n\n"
                                           << "[WhiteElo \"1800\"]\n[BlackElo \"2200\"]\n\n"
                                           << moves << "Be7 1/2-1/2\n\n";
  PackOptions options = options_for(folder);
  options.min_elo = 1800;
  const auto report = pack(options);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->counts.kept(), 2u);
  EXPECT_EQ(report->counts.below_elo, 2u);
  EXPECT_EQ(report->counts.seen, 4u);
}

TEST(DataPack, LeavesOutWhatTeachesNothing) {
  const Folder folder;
  const std::string moves = "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 ";
  std::ofstream(folder.path / "games.pgn") << "[White \"a\"]\n\n"
                                           << moves << "1-0\n\n"
                                           << "[White \"b\"]\n\n"
                                           << moves << "1-0\n\n"  // a copy with other tags
                                           << "[White \"c\"]\n\n"
                                           << moves << "5. O-O *\n\n"              // unfinished
                                           << "[White \"d\"]\n\n1. e4 e5 1-0\n\n"  // short
                                           << "[White \"e\"]\n\n"
                                           << moves << "5. Qxe5 1-0\n\n";  // illegal
  const auto report = pack(options_for(folder));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->counts.kept(), 1u);
  EXPECT_EQ(report->counts.duplicate, 1u);
  EXPECT_EQ(report->counts.unfinished, 1u);
  EXPECT_EQ(report->counts.too_short, 1u);
  EXPECT_EQ(report->counts.bad, 1u);
}

TEST(DataPack, AStoppedRunContinuesToTheSameBytes) {
  const Folder folder;
  test::write_games(folder.path / "games.pgn", 4000, 2);
  const auto whole = pack(options_for(folder, "whole"));
  ASSERT_TRUE(whole);

  const PackOptions options = options_for(folder, "broken");
  int stops = 0;
  Expected<PackReport> report = pack(options, [] {
    std::stop_source s;
    s.request_stop();
    return s.get_token();
  }());
  while (report && report->stopped && stops < 1000) {
    ++stops;
    std::stop_source source;
    std::jthread timer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      source.request_stop();
    });
    report = pack(options, source.get_token());
  }
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_FALSE(report->stopped);
  EXPECT_GT(stops, 0);
  EXPECT_EQ(report->counts, whole->counts);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(read_file(report->files[i]), read_file(whole->files[i])) << report->files[i];
    EXPECT_FALSE(fs::exists(report->files[i].string() + ".part"));
  }
}

TEST(DataPack, WhatAKilledRunWroteAfterItsStateIsWrittenAgain) {
  const Folder folder;
  test::write_games(folder.path / "games.pgn", 200, 3);
  const auto whole = pack(options_for(folder, "whole"));
  ASSERT_TRUE(whole);
  const PackOptions options = options_for(folder, "broken");
  std::stop_source stopped;
  stopped.request_stop();
  ASSERT_TRUE(pack(options, stopped.get_token()));
  std::ofstream(options.out / "train-00000-of-00001.tshard.part", std::ios::app) << "half a block";
  const auto report = pack(options);
  ASSERT_TRUE(report) << report.error().message;
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(read_file(report->files[i]), read_file(whole->files[i]));
}

TEST(DataPack, ASecondRunHasNothingToDo) {
  const Folder folder;
  test::write_games(folder.path / "games.pgn", 20, 4);
  const auto first = pack(options_for(folder));
  const auto second = pack(options_for(folder));
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(second->already_done);
  EXPECT_EQ(first->counts, second->counts);
}

TEST(DataPack, RefusesToContinueWithOtherOptions) {
  const Folder folder;
  test::write_games(folder.path / "games.pgn", 20, 5);
  PackOptions options = options_for(folder);
  ASSERT_TRUE(pack(options));
  options.min_elo = 2000;
  EXPECT_FALSE(pack(options));
}

TEST(DataPack, SharesAddUpToTheWhole) {
  const Folder folder;
  test::write_games(folder.path / "games.pgn", 90, 6);
  std::array<std::uint64_t, 3> games{};
  for (int i = 0; i < 3; ++i) {
    PackOptions options = options_for(folder);
    options.shard = i;
    options.shards = 3;
    const auto report = pack(options);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->counts.seen, 30u);
    for (std::size_t s = 0; s < 3; ++s) games[s] += report->counts.games[s];
  }
  const auto whole = pack(options_for(folder, "whole"));
  ASSERT_TRUE(whole);
  EXPECT_EQ(games, whole->counts.games);
  EXPECT_EQ(find_shards(folder.path / "out", Split::Train)->size(), 3u);
}

TEST(DataPack, SaysWhichInputIsMissing) {
  const Folder folder;
  const auto report = pack(options_for(folder));
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("games.pgn"), std::string::npos);
}

}  // namespace
}  // namespace tahl::learn
