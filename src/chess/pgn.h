#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chess/byte_source.h"
#include "chess/error.h"
#include "chess/game.h"
#include "chess/position.h"

namespace tahl {

struct PgnTag {
  std::string_view name, value;  // the value without its escapes
};

// The tags of a game in file order, duplicates left out (the first wins). Names are looked up in
// any case.
struct PgnTags {
  std::vector<PgnTag> items;

  std::optional<std::string_view> find(std::string_view name) const;
  // The value, unless it is missing or says "unknown": "", "?" or "-".
  std::optional<std::string_view> known(std::string_view name) const;
  // A positive whole number: "1539", also "1500?" (a provisional rating); none for "?", "-", "",
  // "0", text.
  std::optional<int> number(std::string_view name) const;
  std::optional<int> elo(Color c) const {
    return number(c == Color::White ? "WhiteElo" : "BlackElo");
  }
};

// Something wrong, with its line (from 1, as written in the whole input) in the file.
struct PgnProblem {
  std::size_t line = 0;
  std::string message;
};

// What stands between the moves.
struct PgnNote {
  enum class Kind : std::uint8_t { Comment, Nag, Variation };
  Kind kind;
  int ply;                // how many moves of the mainline come before it
  int nag = 0;            // 0-255
  std::string_view text;  // of a comment or a variation, without the outermost brackets
};

// "[%clk 0:05:00.1]" and the like inside a comment.
struct PgnEval {
  std::optional<double> pawns;  // from White's side
  std::optional<int> mate;      // in so many moves, negative if Black mates; set instead of `pawns`
};
std::optional<double> clock_in(std::string_view comment);  // [%clk], seconds
std::optional<PgnEval> eval_in(std::string_view comment);  // [%eval]

// One game as read. Views point into the reader and die with its next call of next().
struct PgnGame {
  std::size_t number = 0;  // from 1, skipped games counted
  std::size_t line = 0;    // of the first tag or move
  PgnTags tags;
  Position start = Position::initial();
  bool chess960 = false;
  std::vector<Move> moves;    // the mainline; a null move ("--", "Z0") is Move{}
  Position position = start;  // after the moves
  Result result = Result::Unknown;
  bool has_terminator = false;  // `result` was written after the moves; else it is the Result tag's
  int variations = 0;           // how many, nested ones counted
  std::vector<PgnNote> notes;   // in file order, if PgnOptions::notes
  // A game with errors keeps the moves before the first one of the mainline and none after it. An
  // error inside a variation costs the mainline nothing.
  std::vector<PgnProblem> errors;
  std::vector<PgnProblem> warnings;

  bool ok() const { return errors.empty(); }
  // After the move with this index (from 0); need PgnOptions::notes.
  std::optional<double> clock(int move) const;
  std::optional<PgnEval> eval(int move) const;

 private:
  template <class F>
  auto first_in_comments(int move, F find) const -> decltype(find(std::string_view{}));
};

// The game with its history. Needs ok() or not: these are the moves that could be played.
Game to_game(const PgnGame& game);

struct PgnOptions {
  // Decides by the tags alone, before the moves are looked at; games it refuses are not delivered.
  std::function<bool(const PgnTags&)> wanted;
  bool notes = false;            // keep comments, NAGs and variations as text
  bool check_variations = true;  // replay variations too, so as to report what is wrong in them
  std::size_t max_game_bytes = 16 << 20;  // a longer game is an error and is cut there
};

// Reads games one by one from text of any length, in memory bounded by PgnOptions::max_game_bytes.
//
//   auto reader = PgnReader::open("games.pgn.zst");
//   if (!reader) return tl::unexpected(reader.error());
//   while (const PgnGame* game = reader->next()) ...
//   if (reader->error()) ...  // the input broke off: not a clean end
class PgnReader {
 public:
  static Expected<PgnReader> open(const std::filesystem::path& path, PgnOptions options = {});
  explicit PgnReader(std::unique_ptr<ByteSource> source, PgnOptions options = {});
  static Expected<PgnReader> from_text(std::string_view text,
                                       PgnOptions options = {});  // must outlive the reader
  PgnReader(PgnReader&&) noexcept;
  PgnReader& operator=(PgnReader&&) noexcept;
  ~PgnReader();

  // The next wanted game, good or bad, or nullptr at the end. It is overwritten by the next call.
  const PgnGame* next();
  // Why the input ended early (a damaged or cut file), once next() has returned nullptr.
  const std::optional<Error>& error() const;

  std::size_t games_seen() const;    // delivered and refused
  std::uint64_t bytes_read() const;  // of text, decompressed

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

struct PgnWriteOptions {
  std::optional<Result> result;  // else by the Result tag, else by the board, else "*"
  std::vector<std::string>
      comments;  // comments[0] before the first move, comments[n] after move n; may be shorter
};
using PgnTagList = std::vector<std::pair<std::string, std::string>>;

// PGN export format: the seven tag roster first (missing ones as "?"), then the other tags in their
// order, with SetUp, FEN and Variant added where the start needs them; lines of fewer than 80
// columns; a blank line at the end.
std::string to_pgn(const Game& game, const PgnTagList& tags, const PgnWriteOptions& options = {});

}  // namespace tahl
