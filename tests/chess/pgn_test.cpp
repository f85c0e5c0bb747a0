#include "chess/pgn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <sstream>

#include "chess/fen.h"
#include "chess/notation.h"

namespace tahl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A game as plain values, for it outlives the reader.
struct Read {
  std::size_t number, line;
  std::string white, result, fen, san;
  std::size_t plies;
  int variations;
  bool chess960, has_terminator;
  std::vector<std::string> errors, warnings;  // "3: message"
  std::vector<std::string> notes;             // "2{comment}", "2$1", "2(variation)"
};

std::vector<std::string> lines_of(const std::vector<PgnProblem>& problems) {
  std::vector<std::string> result;
  for (const PgnProblem& p : problems) result.push_back(fmt::format("{}: {}", p.line, p.message));
  return result;
}

std::string san_of(const PgnGame& game) {
  std::string text;
  const Game replay = to_game(game);
  for (std::size_t i = 0; i < game.moves.size(); ++i)
    text += (i ? " " : "") + to_san(replay.positions()[i], game.moves[i]);
  EXPECT_TRUE(replay.position().same_as(game.position)) << "replaying gives the reader's position";
  return text;
}

Read read_game(const PgnGame& game) {
  Read r{game.number,
         game.line,
         std::string(game.tags.find("White").value_or("")),
         std::string(to_string(game.result)),
         to_fen(game.position),
         game.moves.size() < 100 ? san_of(game) : "",
         game.moves.size(),
         game.variations,
         game.chess960,
         game.has_terminator,
         lines_of(game.errors),
         lines_of(game.warnings),
         {}};
  for (const PgnNote& n : game.notes) {
    const char open = n.kind == PgnNote::Kind::Comment ? '{' : '(';
    r.notes.push_back(n.kind == PgnNote::Kind::Nag ? fmt::format("{}${}", n.ply, n.nag)
                                                   : fmt::format("{}{}{}", n.ply, open, n.text));
  }
  return r;
}

std::vector<Read> read_all(PgnReader& reader) {
  std::vector<Read> games;
  while (const PgnGame* game = reader.next()) games.push_back(read_game(*game));
  return games;
}

std::vector<Read> read(std::string_view text, PgnOptions options = {}) {
  PgnReader reader = PgnReader::from_text(text, std::move(options)).value();
  auto games = read_all(reader);
  EXPECT_FALSE(reader.error().has_value());
  return games;
}

PgnOptions with_notes() {
  PgnOptions options;
  options.notes = true;
  return options;
}

// A source that gives one byte at a time, so that every token is cut somewhere.
class Trickle final : public ByteSource {
 public:
  explicit Trickle(std::string_view text) : text_(text) {}
  Expected<std::size_t> read(char* out, std::size_t size) override {
    const std::size_t n = text_.copy(out, std::min<std::size_t>(size, 1));
    text_.remove_prefix(n);
    return n;
  }

 private:
  std::string_view text_;
};

std::string frame(std::string_view text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

// Eight bytes of magic and size, then what a decoder passes over (zstd format, 3.1.2).
std::string skippable_frame(std::string_view text) {
  std::string out("\x50\x2a\x4d\x18", 4);
  for (int byte = 0; byte < 4; ++byte) out += static_cast<char>(text.size() >> (8 * byte) & 255);
  return out + std::string(text);
}

std::string many_games(int count) {
  std::string text;
  for (int i = 1; i <= count; ++i)
    text += fmt::format(
        "[Event \"E\"]\n[White \"W{}\"]\n[Result \"1-0\"]\n\n1. e4 e5 2. Nf3 1-0\n\n", i);
  return text;
}

constexpr std::string_view kNext = "\n\n[Event \"next\"]\n[White \"Next\"]\n\n1. d4 d5 *\n";

// --- layout ---

TEST(Pgn, ReadsTagsMovesAndResult) {
  const auto games = read(
      "[Event \"Linares\"]\n[White \"A \\\"B\\\" C\\\\D\"]\n[Result \"1-0\"]\n\n"
      "1. e4 c5 2. Nf3 d6 3. Bb5+ Bd7 4. O-O 1-0\n");
  ASSERT_THAT(games, SizeIs(1));
  EXPECT_EQ(games[0].san, "e4 c5 Nf3 d6 Bb5+ Bd7 O-O");
  EXPECT_EQ(games[0].white, "A \"B\" C\\D");
  EXPECT_EQ(games[0].result, "1-0");
  EXPECT_TRUE(games[0].has_terminator);
  EXPECT_EQ(games[0].fen, "rn1qkbnr/pp1bpppp/3p4/1Bp5/4P3/5N2/PPPP1PPP/RNBQ1RK1 b kq - 3 4");
  EXPECT_THAT(games[0].errors, IsEmpty());
  EXPECT_THAT(games[0].warnings, IsEmpty());
}

TEST(Pgn, AnEmptyInputHasNoGame) {
  for (const char* text : {"", "\n\n  \n", "\xef\xbb\xbf", "% escaped\n", "{ only a comment }"})
    EXPECT_THAT(read(text), IsEmpty()) << text;
}

TEST(Pgn, BlankLinesMayStandAnywhereOrNowhere) {
  for (const char* text :
       {"[Event \"a\"]\n[White \"x\"]\n1. e4 e5 *\n[Event \"b\"]\n[White \"y\"]\n1. d4 *\n",
        "\n\n[Event \"a\"]\n\n[White \"x\"]\n\n\n1. e4\n\n\ne5\n\n*\n\n[Event \"b\"]\n\n[White "
        "\"y\"]\n\n1.\nd4\n*",
        "[Event \"a\"] [White \"x\"] 1.e4 e5 * [Event \"b\"][White \"y\"]1.d4 *",
        "[Event \"a\"]\r\n[White \"x\"]\r\n\r\n1. e4 e5 *\r\n\r\n[Event \"b\"]\r\n[White "
        "\"y\"]\r\n\r\n1. d4 *\r\n"}) {
    const auto games = read(text);
    ASSERT_THAT(games, SizeIs(2)) << text;
    EXPECT_EQ(games[0].san, "e4 e5");
    EXPECT_EQ(games[1].san, "d4");
    EXPECT_EQ(games[0].white + games[1].white, "xy");
    for (const Read& game : games) EXPECT_THAT(game.errors, IsEmpty());
  }
}

TEST(Pgn, GamesWithoutMovesAreGames) {
  const auto games =
      read("[Event \"a\"]\n[Result \"*\"]\n\n*\n\n[Event \"b\"]\n\n[Event \"c\"]\n\n1-0\n");
  ASSERT_THAT(games, SizeIs(3));
  EXPECT_EQ(games[2].result, "1-0");
}

TEST(Pgn, GamesWithoutTagsAreGames) {
  const auto games = read("1. e4 e5 1-0\n\n1. d4 *\n\nc4 c5 0-1");
  ASSERT_THAT(games, SizeIs(3));
  EXPECT_EQ(games[0].san, "e4 e5");
  EXPECT_EQ(games[2].san, "c4 c5");
  EXPECT_EQ(games[1].line, 3u);
}

TEST(Pgn, TextBetweenGamesIsSkippedWithAWarning) {
  const auto games =
      read(std::string("1. e4 *\n\nSome report, see \x01 page 7.\n") + std::string(kNext));
  ASSERT_THAT(games, SizeIs(2));
  EXPECT_THAT(games[1].warnings, ElementsAre("3: text between games is skipped"));
  EXPECT_EQ(games[1].white, "Next");
}

TEST(Pgn, EscapedLinesAreNotRead) {
  const auto games = read("% e4 [Event \"no\"]\n[Event \"a\"]\n% {\n\n1. e4\n% 1-0\ne5 *\n");
  ASSERT_THAT(games, SizeIs(1));
  EXPECT_EQ(games[0].san, "e4 e5");
  EXPECT_THAT(games[0].errors, IsEmpty());
}

TEST(Pgn, ReadsTheSameWhereverTheInputIsCut) {
  const std::string text =
      "[Event \"a \\\"b\\\"\"]\n[White \"A\"]\n[Result \"1/2-1/2\"]\n\n{first} 1. e4! $3 {c (} (1. "
      "d4 "
      "d5 (1... Nf6)) 1... e5 ; rest }\n2. Nf3 -- 3. Bc4 O-O-O 1/2-1/2 {after} [Event \"b\"] 1. c4 "
      "*";
  PgnReader whole = PgnReader::from_text(text, with_notes()).value();
  PgnReader cut(std::make_unique<Trickle>(text), with_notes());
  const auto expected = read_all(whole), got = read_all(cut);
  ASSERT_EQ(expected.size(), 2u);
  ASSERT_EQ(got.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(got[i].san, expected[i].san);
    EXPECT_EQ(got[i].errors, expected[i].errors);
    EXPECT_EQ(got[i].notes, expected[i].notes);
    EXPECT_EQ(got[i].result, expected[i].result);
  }
}

TEST(Pgn, ManyGamesPassThroughTheBuffer) {
  const std::string text = many_games(20000);  // some 1.3 MB
  PgnReader reader = PgnReader::from_text(text).value();
  std::size_t n = 0;
  while (const PgnGame* game = reader.next()) {
    ++n;
    ASSERT_EQ(game->tags.find("White"), fmt::format("W{}", n));
    ASSERT_EQ(game->line, (n - 1) * 6 + 1);
    ASSERT_TRUE(game->ok());
  }
  EXPECT_EQ(n, 20000u);
  EXPECT_EQ(reader.bytes_read(), text.size());
}

// --- tags ---

TEST(Pgn, TagNamesAreFoundInAnyCaseAndTheFirstOfTwoCounts) {
  PgnReader reader =
      PgnReader::from_text(
          "[Event \"a\"]\n[WHITE \"first\"]\n[White \"second\"]\n[white \"third\"]\n\n*\n")
          .value();
  const PgnGame* game = reader.next();
  ASSERT_NE(game, nullptr);
  EXPECT_EQ(game->tags.find("White"), "first");
  EXPECT_THAT(lines_of(game->warnings),
              testing::Contains("3: tag \"White\" is given twice: the first counts"));
  EXPECT_TRUE(game->ok());
}

TEST(Pgn, RatingsThatAreNoNumbersAreUnknown) {
  PgnReader reader =
      PgnReader::from_text(
          "[A \"1500?\"]\n[B \"?\"]\n[C \"-\"]\n[D \"\"]\n[E \"0\"]\n[F \"2700\"]\n[G \"27x\"]\n"
          "[H \"99999999999\"]\n[WhiteElo \"0600\"]\n\n*\n")
          .value();
  const PgnGame* game = reader.next();
  EXPECT_EQ(game->tags.number("A"), 1500);
  for (const char* name : {"B", "C", "D", "E", "G", "H", "missing"})
    EXPECT_EQ(game->tags.number(name), std::nullopt) << name;
  EXPECT_EQ(game->tags.number("F"), 2700);
  EXPECT_EQ(game->tags.elo(Color::White), 600);
  EXPECT_EQ(game->tags.elo(Color::Black), std::nullopt);
}

TEST(Pgn, LooseTagsAreReadWithAWarning) {
  const auto games = read(
      "[Event \"a\"]\n[White \"The \"Tank\" Engine\"]\n[Site \"open]\n[Black \"x\" ]\n\n1. e4 *\n");
  ASSERT_THAT(games, SizeIs(1));
  EXPECT_EQ(games[0].white, "The \"Tank\" Engine");
  EXPECT_THAT(games[0].warnings, ElementsAre("2: tag \"White\" has a quote that is not escaped",
                                             "3: tag \"Site\" is not closed"));
  EXPECT_EQ(games[0].san, "e4");
}

TEST(Pgn, AnInputThatEndsInsideATagIsAnErrorOfThatGame) {
  const auto games = read("1. e4 *\n\n[Event \"b\"]\n[White \"Half");
  ASSERT_THAT(games, SizeIs(2));
  EXPECT_EQ(games[0].san, "e4");
  EXPECT_THAT(games[1].errors, ElementsAre("4: the input ends inside a tag"));
}

TEST(Pgn, AFilterSeesTheTagsAndItsRefusalsAreNotDelivered) {
  PgnOptions options;
  options.wanted = [](const PgnTags& tags) { return tags.elo(Color::White).value_or(0) >= 2000; };
  const std::string text =
      "[Event \"a\"]\n[WhiteElo \"1500\"]\n\n1. e4 {[Event \"x\"] 1-0} Ke5 (1... -- 1-0) 1-0\n"
      "[Event \"b\"]\n[White \"B\"]\n[WhiteElo \"2100\"]\n\n1. d4 *\n[Event \"c\"]\n\n1. c4 *\n";
  PgnReader reader = PgnReader::from_text(text, options).value();
  const auto games = read_all(reader);
  ASSERT_THAT(games, SizeIs(1));
  EXPECT_EQ(games[0].white, "B");
  EXPECT_EQ(games[0].number, 2u);
  EXPECT_EQ(games[0].line, 5u);
  EXPECT_EQ(reader.games_seen(), 3u);
}

// --- start positions ---

TEST(Pgn, StartsFromTheFenTagWithOrWithoutSetUp) {
  const auto games = read(
      "[Event \"a\"]\n[Fen \"4k3/P7/8/8/8/8/8/4K3 w - -\"]\n\n1. a8=Q+ Kf7 *\n"
      "[Event \"b\"]\n[SetUp \"1\"]\n\n1. e4 *\n"
      "[Event \"c\"]\n[Setup \"1\"]\n[FEN \"4k3/8/8/8/8/8/8/4K2R b K - 3 40\"]\n\n40... Kd7 41. "
      "0-0 *\n");
  ASSERT_THAT(games, SizeIs(3));
  EXPECT_EQ(games[0].san, "a8=Q+ Kf7");
  EXPECT_EQ(games[1].san, "e4");
  EXPECT_EQ(games[2].fen, "8/3k4/8/8/8/8/8/5RK1 b - - 5 41");
}

TEST(Pgn, ABadFenIsOneBadGame) {
  const auto games =
      read("[Event \"a\"]\n[White \"x\"]\n[FEN \"no fen\"]\n\n1. e4 e5 1-0\n" + std::string(kNext));
  ASSERT_THAT(games, SizeIs(2));
  EXPECT_EQ(games[0].plies, 0u);
  ASSERT_THAT(games[0].errors, SizeIs(1));
  EXPECT_THAT(games[0].errors[0], testing::StartsWith("3: fen: "));
  EXPECT_EQ(games[1].san, "d4 d5");
}

TEST(Pgn, OtherVariantsAreRefusedAndChess960IsPlayed) {
  const auto games = read(
      "[Event \"a\"]\n[Variant \"Atomic\"]\n\n1. e4 *\n"
      "[Event \"b\"]\n[FEN \"k7/8/8/8/8/8/8/1RK1R3 w KQ - 0 1\"]\n[Variant "
      "\"Fischerandom\"]\n\n1. O-O *\n"
      "[Event \"c\"]\n[Variant \"Chess 960\"]\n[FEN \"k7/8/8/8/8/8/8/1RK1R3 w EB - 0 1\"]\n\n1. "
      "0-0-0 *\n"
      "[Event \"d\"]\n[Variant \"From Position\"]\n\n1. e4 *\n");
  ASSERT_THAT(games, SizeIs(4));
  EXPECT_THAT(games[0].errors, ElementsAre("2: variant is not played here: \"Atomic\""));
  EXPECT_EQ(games[0].plies, 0u);
  EXPECT_EQ(games[1].fen, "k7/8/8/8/8/8/8/1R3RK1 b - - 1 1");
  EXPECT_TRUE(games[1].chess960);
  EXPECT_EQ(games[2].fen, "k7/8/8/8/8/8/8/2KRR3 b - - 1 1");
  EXPECT_EQ(games[3].san, "e4");
  EXPECT_FALSE(games[3].chess960);
}

// --- moves ---

TEST(Pgn, ReadsTheWaysPeopleWriteMoves) {
  const auto games = read("1.e4 e5 2.Nf3 Nc6 3 Bc4 Bc5 4 ... 4. 0-0! Nf6? 5.Ng1-f3 *", {});
  ASSERT_THAT(games, SizeIs(1));
  EXPECT_EQ(games[0].san, "e4 e5 Nf3 Nc6 Bc4 Bc5 O-O Nf6");
  const auto suffixes =
      read("1. e4 a6 2. e5 d5 3. exd6 e.p. cxd6+ *\n\n1. e4 a6 2. e5 d5 3. exd6e.p.!? exd6 *");
  ASSERT_THAT(suffixes, SizeIs(2));
  EXPECT_EQ(suffixes[0].san, "e4 a6 e5 d5 exd6 cxd6");
  EXPECT_EQ(suffixes[1].san, "e4 a6 e5 d5 exd6 exd6");
}

TEST(Pgn, KeepsThePliesBeforeAnIllegalMoveAndNothingAfter) {
  const auto games = read(
      "[Event \"a\"]\n[White \"x\"]\n[Result \"0-1\"]\n\n1. e4 e5\n2. Ke3 d6 (2... Nc6 3. Nf3) 3. "
      "Nf3 0-1\n" +
      std::string(kNext));
  ASSERT_THAT(games, SizeIs(2));
  EXPECT_EQ(games[0].san, "e4 e5");
  EXPECT_EQ(games[0].result, "0-1");
  EXPECT_THAT(games[0].errors, ElementsAre("6: illegal move \"Ke3\" at 2."));
  EXPECT_EQ(games[1].san, "d4 d5");
}

TEST(Pgn, SaysWhyAMoveIsNotPlayed) {
  const auto error = [](std::string_view text) {
    const auto games = read(text);
    return games.size() == 1 && games[0].errors.size() == 1 ? games[0].errors[0] : "not one error";
  };
  EXPECT_EQ(error("1. e4 e5 2. Nd5 *"), "1: illegal move \"Nd5\" at 2.");
  EXPECT_EQ(error("1. d4 d5 2. Nf3 e6 3. Nd2 *"), "1: ambiguous move \"Nd2\" at 3.");
  EXPECT_EQ(error("1. e4\nhello *"), "2: not a move \"hello\" at 1...");
  EXPECT_EQ(error("1. e4 <x> *"), "1: not a move \"<x>\" at 1...");
  EXPECT_EQ(error("[FEN \"4k3/8/8/8/8/8/4r3/4K3 w - - 0 1\"]\n\n1. -- *"),
            "3: null move in check \"--\" at 1.");
}

TEST(Pgn, NullMovesPassTheTurn) {
  const auto games = read("1. e4 -- 2. d4 Z0 3. Nf3 *");
  ASSERT_THAT(games, SizeIs(1));
  EXPECT_EQ(games[0].san, "e4 -- d4 -- Nf3");
  EXPECT_THAT(games[0].errors, IsEmpty());
}

TEST(Pgn, LongGamesAreKeptWhole) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "Nf3 Nf6 Ng1 Ng8 ";
  const auto games = read(text + "1/2-1/2\n" + std::string(kNext));
  ASSERT_THAT(games, SizeIs(2));
  EXPECT_EQ(games[0].plies, 12000u);
  EXPECT_EQ(games[0].fen, "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 12000 6001");
}

TEST(Pgn, HugeWordsAndControlCharactersAreErrorsOfOneGame) {
  for (const std::string& junk :
       {std::string(300000, 'Q'), std::string(300000, '1'), std::string(1000, '\0'),
        std::string("\x01\x02\x7f\xff"), std::string(300000, '\xff')}) {
    const auto games = read("[Event \"a\"]\n\n1. e4 " + junk + " e5 *\n" + std::string(kNext));
    ASSERT_THAT(games, SizeIs(2));
    EXPECT_EQ(games[1].san, "d4 d5");
    if (junk[0] == '1') continue;  // a very long move number is none the less one
    EXPECT_EQ(games[0].san, "e4");
    EXPECT_THAT(games[0].errors, SizeIs(1));
  }
}

// --- comments, glyphs, variations ---

TEST(Pgn, KeepsCommentsGlyphsAndVariationsInTheirPlaces) {
  const auto games = read(
      "{start} 1. e4! {good} (1. d4 {inner} d5 (1... Nf6 $2)) 1... e5 $14 ; to the end }\n2. Nf3 "
      "?! 1-0 {won}",
      with_notes());
  ASSERT_THAT(games, SizeIs(1));
  EXPECT_THAT(games[0].notes,
              ElementsAre("0{start", "1$1", "1{good", "1(1. d4 {inner} d5 (1... Nf6 $2)", "2$14",
                          "2{ to the end }", "3$6", "3{won"));
  EXPECT_EQ(games[0].variations, 2);
  EXPECT_EQ(games[0].san, "e4 e5 Nf3");
  EXPECT_THAT(games[0].errors, IsEmpty());
}

TEST(Pgn, ACommentHidesWhateverIsInIt) {
  const auto games = read(
      "1. e4 {compare\n\n[Event \"inner\"]\n[White \"x\"]\n\n1. d4 d5 0-1\n\n( ; end} 1... c6 "
      "1-0\n" +
      std::string(kNext));
  ASSERT_THAT(games, SizeIs(2));
  EXPECT_EQ(games[0].san, "e4 c6");
  EXPECT_EQ(games[0].result, "1-0");
}

TEST(Pgn, AnUnclosedCommentCostsOneGame) {
  const auto games =
      read("[Event \"a\"]\n[Result \"1-0\"]\n\n1. e4 e5\n{never closed 2. Nf3 1-0\n" +
           std::string(kNext));
  ASSERT_THAT(games, SizeIs(2));
  EXPECT_THAT(games[0].errors, ElementsAre("5: comment is never closed"));
  EXPECT_EQ(games[0].san, "e4 e5");
  EXPECT_EQ(games[1].san, "d4 d5");
}

TEST(Pgn, EachOfManyUnclosedCommentsCostsOneGame) {
  std::string text;
  for (int i = 0; i < 40'000; ++i) text += "[Event \"x\"]\n\n1. e4 {\n\n";  // over a megabyte
  PgnOptions options;
  options.max_game_bytes = 600'000;  // some see the end of the input and some do not
  PgnReader reader = PgnReader::from_text(text, options).value();
  int games = 0;
  while (const PgnGame* game = reader.next()) {
    ++games;
    ASSERT_THAT(game->moves, SizeIs(1));
    ASSERT_THAT(game->errors, SizeIs(1));
    ASSERT_EQ(game->errors[0].message, "comment is never closed");
  }
  EXPECT_EQ(games, 40'000);
}

TEST(Pgn, ACommentThatSwallowsATagSectionAndAnotherBracketWasNeverClosed) {
  const auto games =
      read("[Event \"a\"]\n\n1. e4 {open 1-0\n\n[Event \"b\"]\n\n1. d4 {closed} d5 *\n" +
           std::string(kNext));
  ASSERT_THAT(games, SizeIs(3));
  EXPECT_THAT(games[0].errors, ElementsAre("3: comment runs over a tag section"));
  EXPECT_EQ(games[1].san, "d4 d5");
}

TEST(Pgn, VariationsAreReplayedToo) {
  const auto games =
      read("1. e4 e5\n(1... Ke6 2. d4)\n2. Nf3 (2. Nc3 (2. Qh5 Ke7) 2... Nf6) Nc6 *");
  ASSERT_THAT(games, SizeIs(1));
  EXPECT_EQ(games[0].san, "e4 e5 Nf3 Nc6");
  EXPECT_THAT(games[0].errors, ElementsAre("2: illegal move in a variation \"Ke6\" at 1..."));
  PgnOptions unchecked;
  unchecked.check_variations = false;
  EXPECT_THAT(read("1. e4 e5 (1... Ke6 2. d4) 2. Nf3 *", unchecked)[0].errors, IsEmpty());
}

TEST(Pgn, BracketsThatDoNotMatchKeepTheMainline) {
  const auto games =
      read("[Event \"a\"]\n\n1. e4 ) e5 ) 2. Nf3 *\n[Event \"b\"]\n\n1. e4 (1. d4 d5 *\n" +
           std::string(kNext));
  ASSERT_THAT(games, SizeIs(3));
  EXPECT_EQ(games[0].san, "e4 e5 Nf3");
  EXPECT_THAT(games[0].warnings, SizeIs(2));
  EXPECT_EQ(games[1].san, "e4");
  EXPECT_THAT(games[1].errors, ElementsAre("6: variation is never closed"));
  EXPECT_EQ(games[2].san, "d4 d5");
}

TEST(Pgn, AResultInsideAVariationDoesNotEndTheGame) {
  const auto games = read("1. e4 (1. d4 d5 1-0) 1... e5 0-1\n" + std::string(kNext));
  ASSERT_THAT(games, SizeIs(2));
  EXPECT_EQ(games[0].san, "e4 e5");
  EXPECT_EQ(games[0].result, "0-1");
}

TEST(Pgn, DeepVariationsAreReadAndVeryDeepOnesPassedOver) {
  for (const int depth : {3000, 200000}) {
    std::string text = "1. e4 ";
    for (int i = 0; i < depth; ++i) text += i % 2 ? "(1. e4 " : "(1. d4 ";
    text += std::string(static_cast<std::size_t>(depth), ')') + " 1... e5 *\n" + std::string(kNext);
    const auto games = read(text);
    ASSERT_THAT(games, SizeIs(2));
    EXPECT_EQ(games[0].san, "e4 e5");
    EXPECT_EQ(games[0].variations, depth);
    EXPECT_THAT(games[0].errors, IsEmpty());
    EXPECT_EQ(games[0].warnings.size(), depth > 4096 ? 1u : 0u);
  }
}

TEST(Pgn, FindsClocksAndEvaluations) {
  PgnReader reader = PgnReader::from_text(
                         "1. e4 { [%eval -0.4] [%clk 0:05:00] } 1... e5 {x} { [%eval #-3,20] [%clk "
                         "1:00:00.5] } 2. Nf3 {[%clk ?]} *",
                         with_notes())
                         .value();
  const PgnGame* game = reader.next();
  EXPECT_EQ(game->clock(0), 300.0);
  EXPECT_EQ(game->clock(1), 3600.5);
  EXPECT_EQ(game->clock(2), std::nullopt);
  EXPECT_EQ(game->clock(99), std::nullopt);
  EXPECT_EQ(game->eval(0)->pawns, -0.4);
  EXPECT_EQ(game->eval(1)->mate, -3);
  EXPECT_EQ(game->eval(2), std::nullopt);
}

// --- results ---

TEST(Pgn, AClockOrEvaluationThatIsNoNumberIsNone) {
  for (const char* text : {"nan", "inf", "1:infinity", "1e308:1e308:1", "-1"})
    EXPECT_EQ(clock_in(std::string("[%clk ") + text + "]"), std::nullopt) << text;
  for (const char* text : {"nan", "-inf", "1e999"})
    EXPECT_FALSE(eval_in(std::string("[%eval ") + text + "]")) << text;
}

TEST(Pgn, TheTerminatorBeatsTheResultTag) {
  const auto games = read(
      "[Event \"a\"]\n[Result \"1-0\"]\n\n1. e4 {agreed}\n1/2-1/2\n[Event \"b\"]\n[Result "
      "\"0-1\"]\n\n1. e4 {0-1}\n\n"
      "[Event \"c\"]\n[Result \"0.5-0.5\"]\n\n1. e4 \xc2\xbd-\xc2\xbd\n");
  ASSERT_THAT(games, SizeIs(3));
  EXPECT_EQ(games[0].result, "1/2-1/2");
  EXPECT_THAT(games[0].warnings,
              ElementsAre("5: the Result tag says 1-0, the moves end with 1/2-1/2"));
  EXPECT_EQ(games[1].result, "0-1");
  EXPECT_FALSE(games[1].has_terminator);
  EXPECT_EQ(games[2].result, "1/2-1/2");
  for (const Read& game : games) EXPECT_THAT(game.errors, IsEmpty());
}

TEST(Pgn, AResultAgainstTheBoardIsKeptWithAWarning) {
  const auto games = read("1. f3 e5 2. g4 Qh4# 1-0");
  EXPECT_EQ(games[0].result, "1-0");
  EXPECT_THAT(games[0].warnings, ElementsAre("1: the board is 0-1, the result says 1-0"));
}

// --- limits and damage ---

TEST(Pgn, AGameOverTheLimitIsCutAndTheNextOneRead) {
  PgnOptions options;
  options.max_game_bytes = 600000;
  std::string moves;
  for (int i = 0; i < 200000; ++i) moves += "Nf3 Nf6 Ng1 Ng8 ";
  for (const std::string& text :
       {moves, "{" + std::string(2000000, 'x') + "}", std::string(2000000, ' '),
        std::string(2000000, '('), std::string(2000000, 'Q')}) {
    const auto games =
        read("[Event \"a\"]\n[White \"Big\"]\n\n1. e4 e5 " + text + " *\n" + std::string(kNext),
             options);
    ASSERT_THAT(games, SizeIs(2)) << text[0];
    EXPECT_EQ(games[0].white, "Big");
    ASSERT_FALSE(games[0].errors.empty()) << text[0];
    EXPECT_EQ(games[1].san, "d4 d5");
    EXPECT_EQ(games[1].white, "Next");
  }
}

TEST(Pgn, AMegabyteCommentIsAComment) {
  const auto games = read(
      "1. e4 {" + std::string(3 << 20, 'x') + "} 1... e5 *\n" + std::string(kNext), with_notes());
  ASSERT_THAT(games, SizeIs(2));
  EXPECT_EQ(games[0].san, "e4 e5");
  ASSERT_THAT(games[0].notes, SizeIs(1));
  EXPECT_EQ(games[0].notes[0].size(), (3u << 20) + 2);
}

TEST(Pgn, ReadsSeveralZstdFramesAndSkippableOnes) {
  const std::string text = many_games(50);
  const std::string packed = skippable_frame("dictionary") + frame(text.substr(0, 777)) +
                             frame("") + frame(text.substr(777)) + skippable_frame("");
  PgnReader reader = PgnReader::from_text(packed).value();
  EXPECT_THAT(read_all(reader), SizeIs(50));
  EXPECT_FALSE(reader.error().has_value());
}

TEST(Pgn, CompressedDataThatEndsEarlyIsNoCleanEnd) {
  const std::string text = many_games(50);
  const std::string second = frame(many_games(5000));
  const std::string packed = frame(text) + second.substr(0, second.size() / 2);
  PgnReader reader = PgnReader::from_text(packed).value();
  EXPECT_GE(read_all(reader).size(), 50u);
  ASSERT_TRUE(reader.error().has_value());
  EXPECT_EQ(reader.error()->message, "input: compressed data ends early");
}

TEST(Pgn, DamagedCompressedDataIsNoCleanEnd) {
  std::string packed = frame(many_games(50)) + frame(many_games(50));
  packed.resize(packed.size() + 9, 'x');
  PgnReader reader = PgnReader::from_text(packed).value();
  EXPECT_THAT(read_all(reader), SizeIs(100));
  ASSERT_TRUE(reader.error().has_value());
  EXPECT_THAT(reader.error()->message, HasSubstr("compressed data is damaged"));
}

TEST(Pgn, FilesThatCannotBeReadAreNamed) {
  const auto missing = PgnReader::open("/nowhere/games.pgn");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().message, "/nowhere/games.pgn: No such file or directory");
  EXPECT_THAT(PgnReader::from_text("\x1f\x8b\x08").error().message, HasSubstr("gzip"));
}

// --- writing ---

Game game_of(std::initializer_list<const char*> moves, const Position& start = Position::initial(),
             bool chess960 = false) {
  Game game(start, chess960);
  for (const char* san : moves) game.play(parse_san(game.position(), san).value());
  return game;
}

TEST(PgnWriter, WritesTheRosterTheMovesAndTheResult) {
  const Game game = game_of({"f3", "e5", "g4", "Qh4#"});
  EXPECT_EQ(to_pgn(game, {{"Opening", "Barnes"}, {"White", "A \"B\"\\"}, {"Event", "x"}}),
            "[Event \"x\"]\n[Site \"?\"]\n[Date \"????.??.??\"]\n[Round \"?\"]\n[White \"A "
            "\\\"B\\\"\\\\\"]\n"
            "[Black \"?\"]\n[Result \"0-1\"]\n[Opening \"Barnes\"]\n\n1. f3 e5 2. g4 Qh4# 0-1\n\n");
}

TEST(PgnWriter, NumbersBlackMovesAtTheStartAndAfterComments) {
  const Game game =
      game_of({"Kd7", "Kd2", "Kd6"}, parse_fen("4k3/8/8/8/8/8/P7/4K3 b - - 0 40").value());
  PgnWriteOptions options;
  options.comments = {"first", "", "then } a\nbrace"};
  const std::string text = to_pgn(game, {}, options);
  EXPECT_THAT(text, HasSubstr("[SetUp \"1\"]\n[FEN \"4k3/8/8/8/8/8/P7/4K3 b - - 0 40\"]\n\n"
                              "{first} 40... Kd7 41. Kd2 {then ) a brace} 41... Kd6 *\n"));
}

TEST(PgnWriter, KeepsLinesUnder80Columns) {
  Game game;
  for (int i = 0; i < 200; ++i)
    game.play(parse_san(game.position(), std::array{"Nf3", "Nf6", "Ng1", "Ng8"}[i % 4]).value());
  PgnWriteOptions options;
  options.comments.assign(201, "some words about it, 100% sure");
  std::istringstream text(to_pgn(game, {}, options));
  for (std::string line; std::getline(text, line);) {
    EXPECT_LT(line.size(), 80u);
    EXPECT_FALSE(line.starts_with('%'));
  }
}

// Else the one that it writes itself, with what the game is, would come second and not count.
TEST(PgnWriter, WritesATagOnceWhateverItsCase) {
  const Position start = parse_fen("4k3/8/8/8/8/8/8/4K1R1 w G - 0 1").value();
  const PgnTagList tags = {
      {"white", "x"}, {"fen", "?"}, {"variant", "standard"}, {"RESULT", "1-0"}};
  EXPECT_EQ(to_pgn(Game(start, true), tags),
            "[Event \"?\"]\n[Site \"?\"]\n[Date \"????.??.??\"]\n[Round \"?\"]\n[White \"x\"]\n"
            "[Black \"?\"]\n[Result \"1-0\"]\n[Variant \"Chess960\"]\n[SetUp \"1\"]\n"
            "[FEN \"4k3/8/8/8/8/8/8/4K1R1 w K - 0 1\"]\n\n1-0\n\n");
}

TEST(PgnWriter, NoLineOfACommentLooksLikeATag) {
  PgnWriteOptions options;
  options.comments = {std::string(70, 'a') + " [A \"b\"] {"};
  const auto read_back = read(to_pgn(Game(), {}, options), with_notes());
  ASSERT_THAT(read_back, SizeIs(1));
  EXPECT_THAT(read_back[0].errors, IsEmpty());
  EXPECT_THAT(read_back[0].notes, SizeIs(1));
}

TEST(PgnWriter, WhatItWritesReadsBack) {
  Game passed = game_of({"e4"});
  passed.play_null();
  passed.play(parse_san(passed.position(), "d4").value());
  const Game games[] = {
      game_of({"e4", "e5", "Nf3", "Nc6", "Bc4", "Bc5", "O-O", "Nf6"}),
      game_of({"O-O", "Ka7"}, parse_fen("k7/8/8/8/8/8/8/1RK1R3 w KQ - 0 1", true).value(), true),
      game_of({"a8=N", "Kd8"}, parse_fen("4k3/P7/8/8/8/8/8/4K3 w - - 0 1").value()),
      passed,
  };
  for (const Game& game : games) {
    PgnWriteOptions options;
    options.comments = {"c0", "%c1 (", "c2"};
    options.result = Result::Draw;
    const std::string text = to_pgn(game, {{"White", "x\\y \"z\""}}, options) + to_pgn(Game(), {});
    const auto read_back = read(text, with_notes());
    ASSERT_THAT(read_back, SizeIs(2)) << text;
    EXPECT_EQ(read_back[0].fen, to_fen(game.position())) << text;
    EXPECT_EQ(read_back[0].plies, game.moves().size());
    EXPECT_EQ(read_back[0].chess960, game.is_chess960());
    EXPECT_EQ(read_back[0].white, "x\\y \"z\"");
    EXPECT_EQ(read_back[0].result, "1/2-1/2");
    EXPECT_THAT(read_back[0].notes, ElementsAre("0{c0", "1{%c1 (", "2{c2"));
    EXPECT_THAT(read_back[0].errors, IsEmpty());
    EXPECT_THAT(read_back[0].warnings, IsEmpty());
  }
}

}  // namespace
}  // namespace tahl
