#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <ostream>
#include <streambuf>
#include <string>
#include <thread>
#include <vector>

#include "app/uci_options.h"
#include "app/uci_session.h"
#include "app/uci_text.h"
#include "chess/fen.h"
#include "chess/movegen.h"
#include "chess/notation.h"

namespace tahl::app {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// Collects lines that a session writes from two threads, and lets a test wait for them.
class Lines : public std::streambuf {
 public:
  // Waits (ten seconds at most) until so many lines start with `prefix`, and returns the last of
  // them.
  std::string wait_for(const std::string& prefix, int count = 1) {
    std::unique_lock lock(mutex_);
    std::string found;
    const bool there = changed_.wait_for(lock, std::chrono::seconds(10), [&] {
      int n = 0;
      for (const std::string& line : lines_)
        if (line.starts_with(prefix) && ++n == count) found = line;
      return n >= count;
    });
    return there ? found : "(nothing)";
  }
  int count(const std::string& prefix) {
    const std::lock_guard lock(mutex_);
    int n = 0;
    for (const std::string& line : lines_) n += line.starts_with(prefix);
    return n;
  }
  std::vector<std::string> all() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 protected:
  int_type overflow(int_type c) override {
    const std::lock_guard lock(mutex_);
    if (c == '\n') {
      lines_.push_back(std::move(open_));
      open_.clear();
      changed_.notify_all();
    } else {
      open_ += static_cast<char>(c);
    }
    return c;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
  std::string open_;
};

// Takes the first move, when its limits say so or it is stopped; tells what it was asked.
struct ScriptedPlayer : search::Player {
  struct Log {
    std::mutex mutex;
    std::vector<search::Limits> limits;
    std::vector<std::string> fens;
    int new_games = 0;
    bool chooses_nonsense = false;
    bool is_silent = false;
  };
  explicit ScriptedPlayer(Log& l) : log(l) {}

  search::Choice choose(const Game& game, const search::Limits& limits, std::stop_token stop,
                        const search::Report& report) override {
    {
      const std::lock_guard lock(log.mutex);
      log.limits.push_back(limits);
      log.fens.push_back(to_fen(game.position()));
    }
    const MoveList legal = legal_moves(game.position());
    search::Choice choice;
    choice.move = log.chooses_nonsense ? Move(make_square(0, 0), make_square(7, 7)) : legal[0];
    choice.info.depth = 1;
    choice.info.nodes = 1;
    for (int i = 0; i < std::min(limits.multi_pv, legal.size()); ++i)
      choice.info.lines.emplace_back().moves = {legal[i]};
    if (log.is_silent) choice.info = {};
    if (!log.is_silent) report(choice.info);
    const bool waits = !limits.depth && !limits.nodes && !limits.movetime;
    while (waits && !stop.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
    return choice;
  }
  void new_game() override { ++log.new_games; }
  std::string name() const override { return "scripted"; }
  Log& log;
};

class Uci : public testing::Test {
 protected:
  void tell(std::string_view line) { session.handle(line); }
  search::Limits last_limits() {
    const std::lock_guard lock(log.mutex);
    return log.limits.at(log.limits.size() - 1);
  }
  std::string last_fen() {
    const std::lock_guard lock(log.mutex);
    return log.fens.at(log.fens.size() - 1);
  }
  // The position a search is asked about now.
  std::string searched_fen() {
    tell("go depth 1");
    lines.wait_for("bestmove", ++searches);
    return last_fen();
  }

  ScriptedPlayer::Log log;
  Lines lines;
  std::ostream out{&lines};
  int builds = 0;
  int searches = 0;
  UciSession session{
      out, [this](const UciOptions& options) -> Expected<std::unique_ptr<search::Player>> {
        ++builds;
        if (options.net == "missing") return fail("missing: no such file");
        return std::make_unique<ScriptedPlayer>(log);
      }};
};

TEST_F(Uci, IdentifiesItselfWithoutBuildingAPlayer) {
  tell("uci");
  const std::vector<std::string> all = lines.all();
  EXPECT_THAT(all.front(), StartsWith("id name Tahl"));
  EXPECT_EQ(all.back(), "uciok");
  EXPECT_THAT(all, testing::Contains("option name MultiPV type spin default 1 min 1 max 218"));
  EXPECT_EQ(builds, 0);
}

TEST_F(Uci, AnswersIsreadyWhileSearching) {
  tell("go infinite");
  tell("isready");
  EXPECT_EQ(lines.wait_for("readyok"), "readyok");
  EXPECT_EQ(lines.count("bestmove"), 0);
  tell("stop");
  EXPECT_THAT(lines.wait_for("bestmove"), StartsWith("bestmove a2a3"));
}

TEST_F(Uci, HoldsBestmoveOfAnInfiniteSearchThatIsOver) {
  tell("go infinite depth 1");
  lines.wait_for("info depth 1");
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(lines.count("bestmove"), 0);
  tell("stop");
  EXPECT_NE(lines.wait_for("bestmove"), "(nothing)");
}

TEST_F(Uci, HoldsBestmoveUntilPonderhit) {
  tell("go ponder depth 1");
  lines.wait_for("info depth 1");
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(lines.count("bestmove"), 0);
  EXPECT_FALSE(last_limits().ponder_hit());
  tell("ponderhit");
  EXPECT_NE(lines.wait_for("bestmove"), "(nothing)");
}

TEST_F(Uci, ForgetsASurplusStop) {
  tell("stop");
  tell("go infinite");
  lines.wait_for("info depth 1");
  tell("stop");
  tell("stop");
  lines.wait_for("bestmove");
  tell("go infinite");
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(lines.count("bestmove"), 1);
}

TEST_F(Uci, GivesOneBestmoveAGoWhenANewGoComesTooEarly) {
  tell("go infinite");
  tell("position startpos moves e2e4");
  tell("go depth 1");
  EXPECT_THAT(lines.wait_for("bestmove", 2), StartsWith("bestmove a7a6"));
  EXPECT_EQ(lines.count("bestmove"), 2);
}

TEST_F(Uci, SkipsUnknownWordsBeforeACommand) {
  tell("joho isready");
  EXPECT_EQ(lines.count("readyok"), 1);
  tell(std::string(20000, 'A'));
  tell("");
  tell("   \t isready \r");
  EXPECT_EQ(lines.count("readyok"), 2);
}

TEST_F(Uci, SaysWhatItSkippedOnlyWithDebugOn) {
  tell("xyzzy");
  EXPECT_TRUE(lines.all().empty());
  tell("joho debug on");
  tell("xyzzy");
  EXPECT_THAT(lines.all(), ElementsAre("info string skipped \"xyzzy\""));
}

TEST_F(Uci, KeepsTheLastGoodPositionAfterABadFen) {
  tell("position startpos moves e2e4");
  tell("position fen 8/8/8/3k4/8/8/3Q4/8 w - - 0 1");
  EXPECT_EQ(lines.count("info string error: fen"), 1);
  EXPECT_EQ(searched_fen(), "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1");
}

TEST_F(Uci, KeepsTheMovesBeforeAnIllegalOne) {
  tell("position startpos moves e2e4 e7e5 e1e3 g8f6");
  EXPECT_THAT(lines.wait_for("info string error"), HasSubstr("move 3"));
  EXPECT_EQ(searched_fen(), "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2");
}

TEST_F(Uci, TakesUpperCasePromotionsAndNullMoves) {
  tell("position fen 8/4P2k/8/8/8/8/1p3K2/8 w - - 0 1 moves e7e8Q 0000");
  EXPECT_EQ(searched_fen(), "4Q3/7k/8/8/8/8/1p3K2/8 w - - 1 2");
}

TEST_F(Uci, TellsAKingStepFromCastlingInChess960) {
  tell("setoption name UCI_Chess960 value true");
  tell("position fen 1r3k1r/pppppppp/8/8/8/8/PPPPPPPP/1R3K1R w HBhb - 0 1 moves f1g1");
  EXPECT_THAT(searched_fen(), StartsWith("1r3k1r/pppppppp/8/8/8/8/PPPPPPPP/1R4KR b"));
  tell("position fen 1r3k1r/pppppppp/8/8/8/8/PPPPPPPP/1R3K1R w HBhb - 0 1 moves f1h1");
  EXPECT_THAT(searched_fen(), StartsWith("1r3k1r/pppppppp/8/8/8/8/PPPPPPPP/1R3RK1 b"));
}

TEST_F(Uci, WritesCastlingAsTheGuiAsks) {
  const Expected<Position> position = parse_fen("4k3/8/8/8/8/8/8/4K2R w K - 0 1");
  ASSERT_TRUE(position);
  search::Choice choice;
  choice.move = *parse_uci(*position, "e1g1");
  EXPECT_EQ(bestmove_line(choice, *position, false), "bestmove e1g1");
  EXPECT_EQ(bestmove_line(choice, *position, true), "bestmove e1h1");
}

TEST_F(Uci, HasNoMoveWhenMatedOrStalemated) {
  tell("position startpos moves f2f3 e7e5 g2g4 d8h4");
  tell("go depth 5");
  EXPECT_EQ(lines.wait_for("bestmove"), "bestmove (none)");
  EXPECT_EQ(lines.count("info depth 0 score mate 0"), 1);
  tell("position fen 7k/5Q2/6K1/8/8/8/8/8 b - - 0 1");
  tell("go depth 5");
  EXPECT_EQ(lines.wait_for("bestmove", 2), "bestmove (none)");
  EXPECT_EQ(lines.count("info depth 0 score cp 0"), 1);
}

TEST_F(Uci, SearchesTheStartPositionByDefault) {
  EXPECT_EQ(searched_fen(), to_fen(Position::initial()));
}

TEST_F(Uci, ShowsAVariationEvenIfThePlayerIsSilent) {
  log.is_silent = true;
  tell("go depth 1");
  lines.wait_for("bestmove");
  EXPECT_THAT(lines.wait_for("info"), HasSubstr(" pv a2a3"));
}

TEST_F(Uci, PlaysALegalMoveWhenThePlayerHasNone) {
  log.chooses_nonsense = true;
  tell("go depth 1");
  EXPECT_EQ(lines.wait_for("bestmove"), "bestmove a2a3");
  EXPECT_EQ(lines.count("info string error"), 1);
}

TEST_F(Uci, TakesOptionNamesInAnyCase) {
  tell("setoption   NAME  multipv   VALUE  2 ");
  tell("setoption name clear HASH");
  tell("go depth 3");
  lines.wait_for("bestmove");
  EXPECT_EQ(lines.count("info depth 1 multipv 2"), 1);
  EXPECT_EQ(lines.count("info string"), 0);
  EXPECT_EQ(log.new_games, 1);
}

TEST_F(Uci, ComplainsAboutAnOptionThatIsNotThere) {
  for (const char* line :
       {"setoption name No Such Option value 7", "setoption", "setoption name", "setoption value 3",
        "setoption name value", "setoption name Hash value much"})
    tell(line);
  EXPECT_EQ(lines.count("info string error: setoption"), 6);
}

TEST_F(Uci, KeepsTheOldPlayerWhenANetDoesNotLoad) {
  tell("isready");
  EXPECT_EQ(builds, 1);
  tell("setoption name Net value missing");
  EXPECT_EQ(lines.wait_for("info string error"), "info string error: missing: no such file");
  tell("go depth 1");
  EXPECT_EQ(lines.wait_for("bestmove"), "bestmove a2a3");
  EXPECT_EQ(builds, 2);
}

TEST_F(Uci, FallsBackOnTheDefaultNet) {
  tell("setoption name Net value missing");
  tell("go depth 1");
  EXPECT_EQ(lines.wait_for("bestmove"), "bestmove a2a3");
}

TEST_F(Uci, CapsSearchesByMaxDepthAndMaxNodes) {
  tell("setoption name MaxDepth value 3");
  tell("setoption name MaxNodes value 100");
  tell("go depth 9");
  lines.wait_for("bestmove");
  EXPECT_EQ(last_limits().depth, 3);
  EXPECT_EQ(last_limits().nodes, 100);
}

// https://www.chessprogramming.org/Perft_Results, start position.
TEST_F(Uci, CountsPerft) {
  tell("go perft 3");
  EXPECT_EQ(lines.wait_for("Nodes searched"), "Nodes searched: 8902");
  EXPECT_EQ(lines.count("e2e4: 600"), 1);
  EXPECT_EQ(lines.count("bestmove"), 0);
}

TEST_F(Uci, LeavesAtQuitOnly) {
  EXPECT_TRUE(session.handle("nonsense"));
  EXPECT_TRUE(session.handle("register later"));
  EXPECT_FALSE(session.handle("quit"));
}

Go go(std::string_view line, const Game& game = Game()) {
  return parse_go(split_words(line), game);
}

TEST(UciGo, ReadsEveryLimit) {
  const Go all =
      go("wtime 1000 btime 2000 winc 10 binc 20 movestogo 5 depth 6 nodes 700 mate 3 movetime 80 "
         "infinite ponder searchmoves e2e4 d2d4");
  EXPECT_EQ(all.limits.time[0], milliseconds(1000));
  EXPECT_EQ(all.limits.time[1], milliseconds(2000));
  EXPECT_EQ(all.limits.increment[0], milliseconds(10));
  EXPECT_EQ(all.limits.increment[1], milliseconds(20));
  EXPECT_EQ(all.limits.moves_to_go, 5);
  EXPECT_EQ(all.limits.depth, 6);
  EXPECT_EQ(all.limits.nodes, 700);
  EXPECT_EQ(all.limits.mate, 3);
  EXPECT_EQ(all.limits.movetime, milliseconds(80));
  EXPECT_TRUE(all.limits.infinite);
  EXPECT_TRUE(all.limits.ponder);
  EXPECT_EQ(all.limits.search_moves.size(), 2u);
  EXPECT_TRUE(all.complaints.empty());
}

TEST(UciGo, EndsTheMoveListAtAKeyword) {
  const Go first = go("searchmoves d2d4 g1f3 depth 2");
  EXPECT_EQ(first.limits.search_moves.size(), 2u);
  EXPECT_EQ(first.limits.depth, 2);
}

TEST(UciGo, ClampsNumbersThatAreTooLarge) {
  const Go huge =
      go("depth 99999999999999999999 nodes 99999999999999999999 movetime 99999999999999999999");
  EXPECT_EQ(huge.limits.depth, 2147483647);
  EXPECT_EQ(huge.limits.nodes, INT64_MAX);
  EXPECT_GT(*huge.limits.movetime, std::chrono::hours(24));
}

TEST(UciGo, KeepsNegativeClocksAndDropsUselessMovesToGo) {
  const Go late = go("wtime -50 btime 1000 movestogo -5");
  EXPECT_EQ(late.limits.time[0], milliseconds(-50));
  EXPECT_FALSE(late.limits.moves_to_go);
}

TEST(UciGo, SearchesALittleForNothing) {
  EXPECT_EQ(go("depth 0").limits.depth, 1);
  EXPECT_EQ(go("nodes 0").limits.nodes, 1);
}

TEST(UciGo, NamesTheWordWithoutANumber) {
  EXPECT_THAT(go("depth many").complaints, ElementsAre("go depth: \"many\" is no number"));
  EXPECT_THAT(go("depth infinite").complaints, ElementsAre("go depth: a number is missing"));
  EXPECT_TRUE(go("depth infinite").limits.infinite);
}

TEST(UciNumber, ReadsWholeNumbersOnly) {
  EXPECT_EQ(parse_number("-17"), -17);
  EXPECT_EQ(parse_number("99999999999999999999"), INT64_MAX);
  EXPECT_EQ(parse_number("-99999999999999999999"), -INT64_MAX);
  EXPECT_FALSE(parse_number("12x"));
  EXPECT_FALSE(parse_number("-"));
  EXPECT_FALSE(parse_number(""));
}

TEST(UciSetOption, KeepsBlanksInValues) {
  const auto option = parse_setoption("setoption name Net value /my  nets/a b.safetensors \r");
  ASSERT_TRUE(option);
  EXPECT_EQ(option->name, "Net");
  EXPECT_EQ(option->value, "/my  nets/a b.safetensors");
}

TEST(UciOptionTable, ClampsSpinsAndRefusesOtherTypes) {
  UciOptions options;
  EXPECT_TRUE(set_option(options, "multipv", "100000"));
  EXPECT_EQ(options.multi_pv, 218);
  EXPECT_FALSE(set_option(options, "Ponder", "maybe"));
  EXPECT_FALSE(set_option(options, "Player", "patzer"));
  EXPECT_TRUE(set_option(options, "player", "MINIMAX"));
  EXPECT_EQ(options.player, "minimax");
}

TEST(UciScore, IsMonotoneAndSymmetric) {
  EXPECT_EQ(centipawns(0), 0);
  for (int i = 0; i < 100; ++i) {
    EXPECT_LT(centipawns(i / 100.0), centipawns((i + 1) / 100.0));
    EXPECT_EQ(centipawns(-i / 100.0), -centipawns(i / 100.0));
  }
  EXPECT_EQ(centipawns(1), 12800);  // lc0's bound for a sure win
}

TEST(UciScore, SharesAddUpToAThousandAndKeepTheMean) {
  for (int i = -100; i <= 100; ++i) {
    const Wdl shares = wdl(i / 100.0);
    EXPECT_EQ(shares.win + shares.draw + shares.loss, 1000);
    EXPECT_GE(shares.draw, 0);
    EXPECT_NEAR(shares.win - shares.loss, 10 * i, 1);
  }
}

TEST(UciInfo, WritesMateScoresAndWdl) {
  search::Info info;
  info.depth = 3;
  info.nodes = 42;
  info.time = milliseconds(21);
  search::Line& line = info.lines.emplace_back();
  line.mate_in = -2;
  line.moves = {*parse_uci(Position::initial(), "e2e4")};
  EXPECT_THAT(info_lines(info, Position::initial(), {.chess960 = false, .show_wdl = true}),
              ElementsAre("info depth 3 multipv 1 score mate -2 wdl 0 0 1000 nodes 42 nps 2000 "
                          "time 21 pv e2e4"));
}

}  // namespace
}  // namespace tahl::app
