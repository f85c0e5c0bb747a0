#include <algorithm>
#include <cctype>

#include "chess/fen.h"
#include "chess/notation.h"
#include "chess/pgn.h"
#include "chess/san.h"

namespace tahl {
namespace {

constexpr std::size_t kColumns = 79;  // the standard discourages lines of 80 and more (4.3)
constexpr std::string_view kRoster[] = {"Event", "Site",  "Date",  "Round",
                                        "White", "Black", "Result"};

void append_tag(std::string& out, std::string_view name, std::string_view value) {
  out += '[';
  out += name;
  out += " \"";
  for (const char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    out += std::iscntrl(static_cast<unsigned char>(c)) ? ' ' : c;
  }
  out += "\"]\n";
}

// Words with single spaces between them, broken into lines.
class Lines {
 public:
  explicit Lines(std::string& out) : out_(out), start_(out.size()) {}
  void word(std::string_view text) {
    const std::size_t column = out_.size() - start_;
    if (column > 0 && column + 1 + text.size() > kColumns) {
      out_ += '\n';
      start_ = out_.size();
    } else if (column > 0) {
      out_ += ' ';
    }
    if (out_.size() == start_ && (text.starts_with('%') || text.starts_with('[')))
      out_ += ' ';  // else the line is passed over, or looks like a tag inside a comment
    out_ += text;
  }
  void comment(std::string_view text) {
    std::string word = "{";
    for (const char c : text) {
      if (std::isspace(static_cast<unsigned char>(c))) {
        flush(word);
      } else if (!std::iscntrl(static_cast<unsigned char>(c))) {
        word += c == '}' ? ')' : c;  // nothing can stand for it inside a comment
      }
    }
    word += '}';
    flush(word);
  }

 private:
  void flush(std::string& text) {
    if (!text.empty()) word(text);
    text.clear();
  }
  std::string& out_;
  std::size_t start_;  // of the line
};

// The reader finds names in any case, and the first of two counts.
bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return to_upper(x) == to_upper(y); });
}

std::string_view value_of(const PgnTagList& tags, std::string_view name) {
  for (const auto& [key, value] : tags)
    if (same_name(key, name)) return value;
  return {};
}

Result result_for(const Game& game, const PgnTagList& tags, const PgnWriteOptions& options) {
  if (options.result) return *options.result;
  for (const Result r : {Result::WhiteWins, Result::BlackWins, Result::Draw})
    if (value_of(tags, "Result") == to_string(r)) return r;
  const auto outcome = game.outcome(false);
  return outcome ? outcome->result : Result::Unknown;
}

}  // namespace

std::string to_pgn(const Game& game, const PgnTagList& tags, const PgnWriteOptions& options) {
  const Result result = result_for(game, tags, options);
  std::string out;
  for (const std::string_view name : kRoster) {
    std::string_view value = value_of(tags, name);
    if (name == "Result") value = to_string(result);
    if (value.empty()) value = name == "Date" ? "????.??.??" : "?";
    append_tag(out, name, value);
  }
  const bool other_start =
      game.is_chess960() || to_fen(game.start()) != to_fen(Position::initial());
  for (const auto& [name, value] : tags) {
    const auto is_name = [&name = name](std::string_view other) { return same_name(name, other); };
    const bool ours = std::any_of(std::begin(kRoster), std::end(kRoster), is_name) ||
                      is_name("SetUp") || is_name("FEN") ||
                      (is_name("Variant") && game.is_chess960());
    if (!ours) append_tag(out, name, value);
  }
  if (game.is_chess960()) append_tag(out, "Variant", "Chess960");
  if (other_start) {
    append_tag(out, "SetUp", "1");
    append_tag(out, "FEN", to_fen(game.start()));
  }
  out += '\n';

  Lines lines(out);
  const auto comment = [&](std::size_t ply) {
    if (ply >= options.comments.size() || options.comments[ply].empty()) return false;
    lines.comment(options.comments[ply]);
    return true;
  };
  comment(0);
  bool number_due = true;  // of a black move: the first one, or after a comment
  for (std::size_t ply = 0; ply < game.moves().size(); ++ply) {
    const Position& position = game.positions()[ply];
    const bool white = position.side_to_move() == Color::White;
    std::string move;  // with its number, which stays on the move's line
    if (white || number_due)
      move = fmt::format("{}{} ", position.fullmove_number(), white ? "." : "...");
    lines.word(move + to_san(position, game.moves()[ply]));
    number_due = comment(ply + 1);
  }
  lines.word(to_string(result));
  out += "\n\n";
  return out;
}

}  // namespace tahl
