#include "app/uci_text.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "chess/fen.h"
#include "chess/movegen.h"
#include "chess/notation.h"

namespace tahl::app {
namespace {

using std::chrono::milliseconds;

bool is_blank(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte <= ' ' || byte == 127;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Longest time taken from a GUI: 115 days, so that no sum or product of times can overflow.
constexpr std::int64_t kMostMilliseconds = 10'000'000'000;

constexpr std::string_view kGoWords[] = {"searchmoves", "ponder",   "wtime",    "btime", "winc",
                                         "binc",        "depth",    "nodes",    "mate",  "perft",
                                         "infinite",    "movetime", "movestogo"};

bool is_go_word(std::string_view word) {
  return std::find(std::begin(kGoWords), std::end(kGoWords), word) != std::end(kGoWords);
}

// Reads `go`'s words from left to right.
class GoParser {
 public:
  GoParser(const std::vector<std::string_view>& words, const Game& game)
      : words_(words), game_(game) {}

  Go parse() {
    while (next_ < words_.size()) take(words_[next_++]);
    return std::move(go_);
  }

 private:
  void take(std::string_view word) {
    search::Limits& limits = go_.limits;
    if (word == "infinite") limits.infinite = true;
    if (word == "ponder") limits.ponder = true;
    if (word == "searchmoves") take_search_moves();
    if (word == "wtime") take_time(word, limits.time[0]);
    if (word == "btime") take_time(word, limits.time[1]);
    if (word == "winc") take_increment(word, limits.increment[0]);
    if (word == "binc") take_increment(word, limits.increment[1]);
    if (word == "movetime") take_time(word, limits.movetime);
    // Less than one is no search at all: the smallest one, at once.
    if (word == "depth") limits.depth = take_int(word, 1, limits.depth);
    if (word == "mate") limits.mate = take_int(word, 1, limits.mate);
    if (word == "perft") go_.perft = std::min(100, take_int(word, 0, std::nullopt).value_or(1));
    if (word == "nodes") {
      if (const auto n = take_number(word)) limits.nodes = std::max<std::int64_t>(1, *n);
    }
    if (word == "movestogo") {
      const std::optional<int> n = take_int(word, 0, std::nullopt);
      if (n && *n > 0) limits.moves_to_go = n;
    }
  }

  std::optional<std::int64_t> take_number(std::string_view word) {
    if (next_ < words_.size() && !is_go_word(words_[next_])) {
      const std::string_view text = words_[next_++];
      if (const auto number = parse_number(text)) return number;
      complain(fmt::format("go {}: {} is no number", word, quoted(text)));
    } else {
      complain(fmt::format("go {}: a number is missing", word));
    }
    return std::nullopt;
  }

  std::optional<int> take_int(std::string_view word, int least, std::optional<int> otherwise) {
    const auto number = take_number(word);
    if (!number) return otherwise;
    return static_cast<int>(
        std::clamp<std::int64_t>(*number, least, std::numeric_limits<int>::max()));
  }

  // Negative clocks stay negative: they mean "move at once".
  void take_time(std::string_view word, std::optional<milliseconds>& time) {
    if (const auto number = take_number(word))
      time = milliseconds(std::clamp<std::int64_t>(*number, -kMostMilliseconds, kMostMilliseconds));
  }

  void take_increment(std::string_view word, milliseconds& time) {
    if (const auto number = take_number(word))
      time = milliseconds(std::clamp<std::int64_t>(*number, 0, kMostMilliseconds));
  }

  void take_search_moves() {
    const Position& position = game_.position();
    for (; next_ < words_.size() && !is_go_word(words_[next_]); ++next_) {
      const Expected<Move> move = parse_uci(position, words_[next_], game_.is_chess960());
      if (!move) {
        complain(fmt::format("go searchmoves: {}", move.error().message));
      } else if (std::find(go_.limits.search_moves.begin(), go_.limits.search_moves.end(), *move) ==
                 go_.limits.search_moves.end()) {
        go_.limits.search_moves.push_back(*move);
      }
    }
  }

  void complain(std::string text) { go_.complaints.push_back(std::move(text)); }

  const std::vector<std::string_view>& words_;
  const Game& game_;
  std::size_t next_ = 0;
  Go go_;
};

}  // namespace

std::vector<std::string_view> split_words(std::string_view line) {
  std::vector<std::string_view> words;
  std::size_t i = 0;
  while (i < line.size()) {
    if (is_blank(line[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < line.size() && !is_blank(line[end])) ++end;
    words.push_back(line.substr(i, end - i));
    i = end;
  }
  return words;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::optional<std::int64_t> parse_number(std::string_view word) {
  const bool negative = word.starts_with('-');
  if (negative || word.starts_with('+')) word.remove_prefix(1);
  if (word.empty()) return std::nullopt;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::int64_t number = 0;
  for (const char c : word) {
    if (c < '0' || c > '9') return std::nullopt;
    const int digit = c - '0';
    number = number > (kMost - digit) / 10 ? kMost : number * 10 + digit;
  }
  return negative ? -number : number;
}

std::optional<SetOption> parse_setoption(std::string_view line) {
  const std::vector<std::string_view> words = split_words(line);
  std::size_t i = 0;
  while (i < words.size() && words[i] != "setoption") ++i;
  if (i + 2 >= words.size() || !equal_ignoring_case(words[i + 1], "name")) return std::nullopt;
  SetOption option;
  for (i += 2; i < words.size() && !equal_ignoring_case(words[i], "value"); ++i) {
    if (!option.name.empty()) option.name += ' ';
    option.name += words[i];
  }
  if (option.name.empty()) return std::nullopt;
  if (i + 1 < words.size()) {  // the value as it stands, blanks within it kept: it may be a path
    const char* begin = words[i + 1].data();
    const char* end = words.back().data() + words.back().size();
    option.value.assign(begin, end);
  }
  return option;
}

Go parse_go(const std::vector<std::string_view>& words, const Game& game) {
  return GoParser(words, game).parse();
}

int centipawns(double value) {
  value = std::clamp(value, -1.0, 1.0);
  return static_cast<int>(std::lround(111.714640912 * std::tan(1.5620688421 * value)));
}

Wdl wdl(double value) {
  const double p = (1 + std::clamp(value, -1.0, 1.0)) / 2;
  const int win = static_cast<int>(std::lround(1000 * p * p));
  const int loss = static_cast<int>(std::lround(1000 * (1 - p) * (1 - p)));
  return {win, 1000 - win - loss, loss};
}

std::vector<std::string> info_lines(const search::Info& info, const Position& root,
                                    const InfoStyle& style) {
  std::vector<std::string> lines;
  for (const search::Line& line : info.lines) {
    std::string text = fmt::format("info depth {}", std::max(1, info.depth));
    if (info.seldepth > 0) text += fmt::format(" seldepth {}", info.seldepth);
    text += fmt::format(" multipv {}", lines.size() + 1);
    Wdl shares = wdl(line.value);
    if (line.mate_in) {
      text += fmt::format(" score mate {}", *line.mate_in);
      shares = *line.mate_in > 0 ? Wdl{1000, 0, 0} : Wdl{0, 0, 1000};
    } else {
      text += fmt::format(" score cp {}", line.centipawns.value_or(centipawns(line.value)));
    }
    if (style.show_wdl) text += fmt::format(" wdl {} {} {}", shares.win, shares.draw, shares.loss);
    const auto ms = info.time.count();
    text += fmt::format(" nodes {}", info.nodes);
    if (ms > 0) text += fmt::format(" nps {}", info.nodes * 1000 / ms);
    text += fmt::format(" time {}", ms);
    Position position = root;
    bool first = true;
    for (const Move move : line.moves) {
      if (!is_legal(position, move)) break;
      if (first) text += " pv";
      first = false;
      text += ' ';
      text += to_uci(position, move, style.chess960);
      position.make(move);
    }
    lines.push_back(std::move(text));
  }
  return lines;
}

std::string bestmove_line(const search::Choice& choice, const Position& root, bool chess960) {
  if (!choice.move) return "bestmove (none)";
  std::string line = "bestmove " + to_uci(root, choice.move, chess960);
  if (choice.ponder) {
    Position after = root;
    after.make(choice.move);
    if (is_legal(after, *choice.ponder))
      line += " ponder " + to_uci(after, *choice.ponder, chess960);
  }
  return line;
}

std::string board_text(const Position& position) {
  std::string text;
  for (int rank = 7; rank >= 0; --rank) {
    text += fmt::format("{} ", rank + 1);
    for (int file = 0; file < 8; ++file) {
      const Piece piece = position.piece_on(make_square(file, rank));
      const char letter = piece.type == PieceType::None ? '.' : "pnbrqk"[index(piece.type)];
      text += ' ';
      text += piece.type != PieceType::None && piece.color == Color::White
                  ? static_cast<char>(letter - 'a' + 'A')
                  : letter;
    }
    text += '\n';
  }
  text += "   a b c d e f g h\n\n";
  text += fmt::format("Fen: {}\nKey: {:016x}\nCheckers:", to_fen(position), position.key());
  for (Bitboard checkers = position.checkers(); checkers;)
    text += ' ' + square_name(pop_square(checkers));
  return text;
}

}  // namespace tahl::app
