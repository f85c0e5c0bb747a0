// Arbitrary bytes as PGN, plain or compressed: reading ends, what is delivered could be played, it
// doesn't depend on how the bytes came, and writing the games and reading them again gives the
// same.

#include "chess/pgn.h"

#include <zstd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/properties.h"

namespace {

using namespace tahl;
using namespace tahl::fuzz;

constexpr std::size_t kMostText = 1 << 20;  // a few bytes may be compressed zeros for hours

// Ends after kMostText bytes.
class Limited final : public ByteSource {
 public:
  explicit Limited(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}
  Expected<std::size_t> read(char* out, std::size_t size) override {
    auto n = source_->read(out, std::min(size, left_));
    if (n) left_ -= *n;
    return n;
  }

 private:
  std::unique_ptr<ByteSource> source_;
  std::size_t left_ = kMostText;
};

// A game that outlives its reader.
struct ReadGame {
  Position start, end;
  bool chess960, ok;
  std::vector<Move> moves;
  Result result;
  PgnTagList tags;
  std::vector<std::string> comments;  // [n]: after n moves, as one
};

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }
bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

// Text as it is after writing: see to_pgn.
std::string written_tag(std::string_view value) {
  std::string text(value);
  for (char& c : text)
    if (std::iscntrl(static_cast<unsigned char>(c))) c = ' ';
  return text;
}
std::string written_comment(std::string_view comment) {
  std::string text;
  for (const char c : comment) {
    if (std::isspace(static_cast<unsigned char>(c))) {
      if (!text.empty() && text.back() != ' ') text += ' ';
    } else if (!std::iscntrl(static_cast<unsigned char>(c))) {
      text += c == '}' ? ')' : c;
    }
  }
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

void check_game(const PgnGame& game) {
  Position p = game.start;
  for (const Move m : game.moves) {
    if (m) {
      check(is_legal(p, m), "moves of a game are legal", p, std::to_string(m.bits()));
      p.make(m);
    } else {
      check(!p.is_check(), "nobody passes in check", p);
      p.make_null();
    }
  }
  check(p.same_as(game.position), "the moves lead to the position", p);
  for (const auto& problems : {game.errors, game.warnings})
    for (const PgnProblem& problem : problems) {
      check(problem.line >= 1, "lines count from 1", problem.message);
      check_message(problem.message);
    }
  for (int ply = 0; ply < static_cast<int>(game.moves.size()); ++ply) {
    const auto clock = game.clock(ply);
    check(!clock || (std::isfinite(*clock) && *clock >= 0), "a clock shows a time");
    const auto eval = game.eval(ply);
    check(!eval || !eval->pawns || std::isfinite(*eval->pawns), "an evaluation is a number");
  }
}

std::vector<ReadGame> read_all(std::unique_ptr<ByteSource> source, PgnOptions options = {}) {
  options.max_game_bytes = kMostText / 2;
  PgnReader reader(std::make_unique<Limited>(std::move(source)), options);
  std::vector<ReadGame> games;
  while (const PgnGame* game = reader.next()) {
    check_game(*game);
    ReadGame copy{game->start,
                  game->position,
                  game->chess960,
                  game->ok(),
                  game->moves,
                  game->result,
                  {},
                  std::vector<std::string>(game->moves.size() + 1)};
    for (const PgnTag& tag : game->tags.items) copy.tags.emplace_back(tag.name, tag.value);
    for (const PgnNote& note : game->notes)
      if (note.kind == PgnNote::Kind::Comment)
        copy.comments[static_cast<std::size_t>(note.ply)] += std::string(note.text) + ' ';
    games.push_back(std::move(copy));
    check(games.size() <= kMostText, "reading ends");
  }
  if (reader.error()) check_message(reader.error()->message);
  check(reader.next() == nullptr, "after the end there is nothing");
  check(options.wanted || reader.games_seen() == games.size(), "games are counted");
  return games;
}

std::vector<ReadGame> read_text(std::string_view text, PgnOptions options = {}) {
  auto source = bytes_of(text);
  if (!source) return {};
  return read_all(std::move(*source), std::move(options));
}

// Not compressed, by any program. (zstd's frames, and those that it skips.)
bool is_plain(std::string_view text) {
  const std::string_view magic = text.substr(std::min<std::size_t>(1, text.size()), 3);
  return magic != "\xb5\x2f\xfd" && magic != "\x2a\x4d\x18" && bytes_of(text).has_value();
}

// The games are the same; `all` of what was read, or only what is played.
void check_same(const std::vector<ReadGame>& a, const std::vector<ReadGame>& b, bool all,
                const char* property) {
  check(a.size() == b.size(), property,
        std::to_string(a.size()) + " games, " + std::to_string(b.size()) + " the other way");
  for (std::size_t i = 0; i < a.size(); ++i) {
    check(a[i].start.same_as(b[i].start) && a[i].chess960 == b[i].chess960, property, a[i].start);
    check(a[i].moves == b[i].moves && a[i].end.same_as(b[i].end), property, a[i].end);
    check(a[i].result == b[i].result, property, a[i].end, "result");
    if (all)
      check(a[i].ok == b[i].ok && a[i].tags == b[i].tags && a[i].comments == b[i].comments,
            property, a[i].end, "tags, comments or errors");
  }
}

void check_writing(const std::vector<ReadGame>& games, const PgnOptions& options) {
  std::string text;
  for (const ReadGame& game : games) {
    Game played(game.start, game.chess960);
    for (const Move m : game.moves) m ? played.play(m) : played.play_null();
    text += to_pgn(played, game.tags, {game.result, game.comments});
  }
  if (text.size() > kMostText / 2) return;
  const std::vector<ReadGame> again = read_text(text, options);
  check_same(games, again, false, "reading PGN undoes writing it");
  for (std::size_t i = 0; i < games.size(); ++i) {
    const ReadGame &before = games[i], &after = again[i];
    if (before.tags.size() > 200) continue;  // the seven that are always written may be too many
    check(!before.ok || after.ok, "a good game is a good game when it is written", before.end);
    for (std::size_t ply = 0; ply < before.comments.size(); ++ply)
      check(written_comment(before.comments[ply]) == written_comment(after.comments[ply]),
            "comments are kept", before.comments[ply]);
    for (const auto& [name, value] : before.tags) {
      const auto is_name = [&name = name](std::string_view other) {
        return same_name(name, other);
      };
      if (is_name("Result") || is_name("SetUp") || is_name("FEN") || is_name("Variant")) continue;
      const auto tag = std::find_if(after.tags.begin(), after.tags.end(),
                                    [&](const auto& other) { return is_name(other.first); });
      check(tag != after.tags.end(), "tags are kept", name);
      const bool blank = value.empty() && (tag->second == "?" || tag->second == "????.??.??");
      check(blank || tag->second == written_tag(value), "tags keep their value", value);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  PgnOptions options;
  options.notes = true;
  const std::vector<ReadGame> games = read_text(text, options);
  check_writing(games, options);

  // One of the other ways to read the same, by the input itself.
  std::size_t hash = 14695981039346656037ull;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  switch (hash >> 32 & 3) {
    case 0: {
      std::string packed(ZSTD_compressBound(size), '\0');
      packed.resize(ZSTD_compress(packed.data(), packed.size(), data, size, 1));
      if (!is_plain(text)) break;
      check_same(games, read_text(packed, options), true, "compressed text reads as plain");
      read_text(std::string_view(packed).substr(0, packed.size() / 2), options);
      break;
    }
    case 1: {
      PgnOptions quick;
      quick.check_variations = false;
      check_same(games, read_text(text, quick), false, "variations and comments change no moves");
      break;
    }
    case 2: {
      PgnOptions none;
      none.wanted = [](const PgnTags&) { return false; };
      check(read_text(text, none).empty(), "unwanted games are not delivered");
      break;
    }
    default: {
      // With the end of the reader's buffer, of 256 KiB, somewhere in the text.
      if (!is_plain(text) || text.starts_with("\xef\xbb\xbf")) break;
      const std::size_t before =
          (256 << 10) - (hash >> 34) % std::min<std::size_t>(size + 1, 128 << 10);
      const std::string padded = ';' + std::string(before - 2, ' ') + '\n' + std::string(text);
      check_same(games, read_text(padded, options), true, "where a buffer ends changes nothing");
    }
  }
  return 0;
}
