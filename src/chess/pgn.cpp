#include "chess/pgn.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "chess/fen.h"
#include "chess/movegen.h"
#include "chess/san.h"

namespace tahl {
namespace {

constexpr std::size_t kBufferBytes = 256 << 10;  // about what the second-level cache holds
constexpr std::ptrdiff_t kLookahead = 256;       // of bytes that a token may need to be recognised
constexpr std::size_t kMaxTags = 256;
constexpr std::size_t kMaxProblems = 50;  // of each kind in one game
constexpr std::size_t kMaxDepth = 4096;   // of variations that are replayed

enum class Byte : std::uint8_t {
  Space,
  Digit,
  Move,
  Comment,
  LineComment,
  Open,
  Close,
  Nag,
  Suffix,
  Star,
  Tag,
  Dot,
  Escape,
  Zero,
  Other,
};

constexpr std::array<Byte, 256> kBytes = [] {
  std::array<Byte, 256> table{};
  table.fill(Byte::Other);
  const auto set = [&](std::string_view bytes, Byte kind) {
    for (const char c : bytes) table[static_cast<unsigned char>(c)] = kind;
  };
  set(" \n\r\t\v\f", Byte::Space);
  set("0123456789", Byte::Digit);
  set("abcdefghKQRBNPOoZ-", Byte::Move);
  set("{", Byte::Comment);
  set(";", Byte::LineComment);
  set("(", Byte::Open);
  set(")", Byte::Close);
  set("$", Byte::Nag);
  set("!?", Byte::Suffix);
  set("*", Byte::Star);
  set("[", Byte::Tag);
  set(".", Byte::Dot);
  set("%", Byte::Escape);
  table[0] = Byte::Zero;
  return table;
}();
Byte byte_kind(char c) { return kBytes[static_cast<unsigned char>(c)]; }

// What ends a move or a word.
bool is_delimiter(char c) {
  switch (byte_kind(c)) {
    case Byte::Space:
    case Byte::Comment:
    case Byte::LineComment:
    case Byte::Open:
    case Byte::Close:
    case Byte::Nag:
    case Byte::Suffix:
    case Byte::Star:
    case Byte::Tag:
    case Byte::Zero:
      return true;
    default:
      return c == '}' || c == ']';
  }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return to_upper(c) >= 'A' && to_upper(c) <= 'Z'; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return to_upper(x) == to_upper(y);
         });
}

// "[Name "": how a tag starts. Text in comments that merely has a bracket does not look so.
bool starts_tag(const char* p) {
  if (*p != '[') return false;
  ++p;
  while (is_blank(*p)) ++p;
  if (!is_letter(*p)) return false;
  const char* name = p;
  while ((is_letter(*p) || is_digit(*p) || *p == '_') && p - name < kLookahead / 2) ++p;
  if (!is_blank(*p)) return false;
  while (is_blank(*p)) ++p;
  return *p == '"';
}

// The first line in [p, end) that starts a tag section, or nullptr.
const char* find_tag_line(const char* p, const char* end) {
  while ((p = static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p))))) {
    if (++p == end) return nullptr;
    if (starts_tag(p)) return p;
  }
  return nullptr;
}

// A result that starts at `p` and stops at a delimiter; `p` moves behind it.
std::optional<Result> scan_result(const char*& p) {
  struct Spelling {
    std::string_view text;
    Result result;
  };
  static constexpr Spelling kSpellings[] = {
      {"1-0", Result::WhiteWins}, {"0-1", Result::BlackWins}, {"1/2-1/2", Result::Draw},
      {"1/2", Result::Draw},      {"0.5-0.5", Result::Draw},  {"\xc2\xbd-\xc2\xbd", Result::Draw},
      {"*", Result::Unknown},     {"1:0", Result::WhiteWins}, {"0:1", Result::BlackWins},
  };
  for (const Spelling& s : kSpellings) {
    if (std::strncmp(p, s.text.data(), s.text.size()) != 0) continue;
    if (!is_delimiter(p[s.text.size()]) && *p != '*') continue;
    p += s.text.size();
    return s.result;
  }
  return std::nullopt;
}

std::optional<Result> result_of(std::string_view text) {
  if (text.size() > 12) return std::nullopt;
  const std::string copy(text);
  const char* p = copy.c_str();
  const auto result = scan_result(p);
  return *p == '\0' ? result : std::nullopt;
}

// Variants by what the Variant tag says, letters only, in lower case.
enum class Variant { Standard, Chess960, Other };
Variant variant_of(std::string_view tag) {
  std::string name;
  for (const char c : tag.substr(0, 40))
    if (is_letter(c) || is_digit(c)) name += static_cast<char>(is_letter(c) ? to_upper(c) + 32 : c);
  for (const std::string_view known : {"chess960", "fischerandom", "fischerrandom", "960", "frc"})
    if (name == known || name == std::string(known) + "chess") return Variant::Chess960;
  for (const std::string_view known :
       {"", "standard", "normal", "chess", "classical", "orthodox", "fromposition", "regular"})
    if (name == known) return Variant::Standard;
  return Variant::Other;
}

int nag_of(std::string_view suffix) {
  constexpr std::string_view kSuffixes[] = {"", "!", "?", "!!", "??", "!?", "?!"};
  for (int nag = 1; nag < 7; ++nag)
    if (suffix == kSuffixes[nag]) return nag;
  return 0;
}

}  // namespace

std::optional<std::string_view> PgnTags::find(std::string_view name) const {
  for (const PgnTag& tag : items)
    if (same_name(tag.name, name)) return tag.value;
  return std::nullopt;
}

std::optional<std::string_view> PgnTags::known(std::string_view name) const {
  const auto value = find(name);
  return value && !value->empty() && *value != "?" && *value != "-" ? value : std::nullopt;
}

std::optional<int> PgnTags::number(std::string_view name) const {
  const auto value = known(name);
  if (!value) return std::nullopt;
  int n = 0;
  const auto [end, status] = std::from_chars(value->data(), value->data() + value->size(), n);
  const std::string_view rest(end, static_cast<std::size_t>(value->data() + value->size() - end));
  if (status != std::errc() || n <= 0 || (!rest.empty() && rest != "?")) return std::nullopt;
  return n;
}

namespace {

// The text behind "[%name " up to the bracket.
std::optional<std::string_view> command_in(std::string_view comment, std::string_view name) {
  for (std::size_t at = 0; (at = comment.find("[%", at)) != std::string_view::npos;) {
    std::string_view rest = comment.substr(at += 2);
    if (!rest.starts_with(name) || rest.size() <= name.size() || !is_blank(rest[name.size()]))
      continue;
    rest.remove_prefix(name.size());
    while (!rest.empty() && is_blank(rest.front())) rest.remove_prefix(1);
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    rest = rest.substr(0, end);
    while (!rest.empty() && is_blank(rest.back())) rest.remove_suffix(1);
    return rest;
  }
  return std::nullopt;
}

// from_chars reads "inf" and "nan" too, which no clock and no evaluation says.
template <class T>
std::optional<T> whole_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  T value{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>)
    if (!std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace

std::optional<double> clock_in(std::string_view comment) {
  const auto text = command_in(comment, "clk");
  if (!text) return std::nullopt;
  double seconds = 0;
  std::string_view rest = *text;
  for (;;) {  // hours:minutes:seconds, or fewer of them
    const std::size_t colon = rest.find(':');
    const auto part = whole_number<double>(rest.substr(0, colon));
    if (!part || *part < 0) return std::nullopt;
    seconds = seconds * 60 + *part;
    if (!std::isfinite(seconds)) return std::nullopt;
    if (colon == std::string_view::npos) return seconds;
    rest.remove_prefix(colon + 1);
  }
}

std::optional<PgnEval> eval_in(std::string_view comment) {
  auto text = command_in(comment, "eval");
  if (!text) return std::nullopt;
  text = text->substr(0, text->find(','));  // "0.17,20": with its depth
  PgnEval eval;
  if (text->starts_with('#')) {
    eval.mate = whole_number<int>(text->substr(1));
  } else {
    eval.pawns = whole_number<double>(*text);
  }
  return eval.mate || eval.pawns ? std::optional(eval) : std::nullopt;
}

template <class F>
auto PgnGame::first_in_comments(int move, F find) const -> decltype(find(std::string_view{})) {
  const auto before = [](const PgnNote& note, int ply) { return note.ply < ply; };
  for (auto note = std::lower_bound(notes.begin(), notes.end(), move + 1, before);
       note != notes.end() && note->ply == move + 1; ++note)
    if (note->kind == PgnNote::Kind::Comment)
      if (auto found = find(note->text)) return found;
  return std::nullopt;
}

std::optional<double> PgnGame::clock(int move) const { return first_in_comments(move, clock_in); }
std::optional<PgnEval> PgnGame::eval(int move) const { return first_in_comments(move, eval_in); }

Game to_game(const PgnGame& game) {
  Game result(game.start, game.chess960);
  for (const Move m : game.moves) m ? result.play(m) : result.play_null();
  return result;
}

// The text is read into one buffer that always holds the present game from its start (`begin_`) to
// some way past the cursor, with a zero byte behind what has been read. Where a token might be cut
// by that end, more is read first; so scanning needs no bounds. Places in the game are kept as
// offsets from begin_, because reading moves the text.
class PgnReader::Impl {
 public:
  Impl(std::unique_ptr<ByteSource> source, PgnOptions options)
      : source_(std::move(source)), options_(std::move(options)), buffer_(kBufferBytes + 1) {
    end_ = p_ = begin_ = counted_ = buffer_.data();
  }

  const PgnGame* next() {
    for (;;) {
      reset();
      if (!start_game()) return nullptr;
      ++games_seen_;
      game_.number = games_seen_;
      game_.line = line_of(p_);
      read_tags();
      set_views();
      refused_ = !overlong_ && options_.wanted && !options_.wanted(game_.tags);
      if (refused_) {
        dead_ = true;
      } else {
        set_start();
      }
      if (!ended_) read_moves();
      if (overlong_) {
        error(p_, "game is longer than {} bytes", options_.max_game_bytes);
        dead_ = skip_to_tags_ = true;
      }
      if (refused_) continue;
      finish();
      return &game_;
    }
  }

  std::optional<Error> error_;
  std::size_t games_seen_ = 0;
  std::uint64_t bytes_read_ = 0;

 private:
  struct Span {
    std::size_t offset, size;
  };
  struct NoteSpan {
    PgnNote::Kind kind;
    int ply, nag;
    Span text;
  };
  struct Variation {
    Position before, now;  // of the last move in it
    std::size_t offset;    // of its bracket
    bool dead;             // has an error: the rest is passed over
  };

  // --- text ---

  std::size_t offset_of(const char* p) const { return static_cast<std::size_t>(p - begin_); }
  std::string_view view(Span s) const { return {begin_ + s.offset, s.size}; }
  std::ptrdiff_t left() const { return end_ - p_; }
  bool is_end(const char* p) const { return p == end_; }

  std::size_t line_of(const char* p) {
    if (p >= counted_) {
      line_ += static_cast<std::size_t>(std::count(counted_, p, '\n'));
    } else {
      line_ -= static_cast<std::size_t>(std::count(p, counted_, '\n'));
    }
    counted_ = p;
    return line_;
  }

  // Reads more behind the text; false at the end of the input or if the game is too long.
  bool read_more() {
    if (at_end_ || overlong_) return false;
    if (offset_of(end_) > options_.max_game_bytes) {
      overlong_ = true;
      return false;
    }
    line_of(begin_);
    const std::size_t kept = offset_of(end_), cursor = offset_of(p_);
    if (kept > buffer_.size() / 2) {
      std::vector<char> larger(buffer_.size() * 2);
      std::memcpy(larger.data(), begin_, kept);
      buffer_.swap(larger);
    } else {
      std::memmove(buffer_.data(), begin_, kept);
    }
    begin_ = counted_ = buffer_.data();
    p_ = begin_ + cursor;
    end_ = begin_ + kept;
    const std::size_t room = buffer_.size() - 1 - kept;
    std::size_t got = 0;
    while (got < room) {  // the whole buffer, so that it is moved seldom
      const auto n = source_->read(buffer_.data() + kept + got, room - got);
      if (!n) error_ = n.error();
      if (!n || *n == 0) {
        at_end_ = true;
        break;
      }
      got += *n;
    }
    end_ += got;
    bytes_read_ += got;
    buffer_[kept + got] = '\0';
    return got > 0;
  }

  void look_ahead() {
    if (left() < kLookahead) read_more();
  }

  // Moves to the first `c` at or behind the cursor; false, and the cursor at the end, if there is
  // none.
  bool find(char c) {
    for (;;) {
      if (const void* at = std::memchr(p_, c, static_cast<std::size_t>(left()))) {
        p_ = static_cast<const char*>(at);
        return true;
      }
      p_ = end_;
      if (!read_more()) return false;
    }
  }

  // --- problems ---

  template <class... Args>
  void report(std::vector<PgnProblem>& list, const char* where, fmt::format_string<Args...> format,
              Args&&... args) {
    if (refused_ || list.size() >= kMaxProblems) return;
    list.push_back({line_of(where), fmt::format(format, std::forward<Args>(args)...)});
  }
  template <class... Args>
  void error(const char* where, fmt::format_string<Args...> format, Args&&... args) {
    report(game_.errors, where, format, std::forward<Args>(args)...);
  }
  template <class... Args>
  void warn(const char* where, fmt::format_string<Args...> format, Args&&... args) {
    report(game_.warnings, where, format, std::forward<Args>(args)...);
  }

  // --- a game ---

  void reset() {
    tag_spans_.clear();
    note_spans_.clear();
    variations_.clear();
    too_deep_ = 0;
    game_.tags.items.clear();
    game_.moves.clear();
    game_.notes.clear();
    game_.errors.clear();
    game_.warnings.clear();
    game_.start = game_.position = Position::initial();
    game_.chess960 = false;
    game_.result = Result::Unknown;
    game_.has_terminator = false;
    game_.variations = 0;
    dead_ = refused_ = ended_ = lost_end_ = overlong_ = false;
    before_ply_ = 0;
    inside_variation_.reset();
  }

  bool at_line_start() const { return p_ == buffer_.data() || p_[-1] == '\n'; }

  // Goes to the first tag or move of the next game, past comments and whatever else lies there;
  // false at the end.
  bool start_game() {
    if (bytes_read_ == 0) {
      read_more();
      if (std::strncmp(p_, "\xef\xbb\xbf", 3) == 0) p_ += 3;  // the UTF-8 mark
    }
    if (skip_to_tags_) skip_to_tags();
    bool comment = false;  // one that belongs to the game
    for (;;) {
      if (!comment) begin_ = p_;
      look_ahead();
      if (byte_kind(*p_) == Byte::Space) {
        ++p_;
      } else if (is_end(p_)) {
        ended_ = overlong_;
        return overlong_;
      } else if (*p_ == '{') {
        comment = true;
        read_comment();
        if (ended_) return true;  // not closed: a game of its own carries the error
      } else if (*p_ == ';' || (*p_ == '%' && at_line_start())) {
        find('\n');
      } else if (*p_ == '[' || starts_moves()) {
        return true;
      } else {
        if (game_.warnings.empty()) warn(p_, "text between games is skipped");
        skip_junk_line();
      }
    }
  }

  // Behind a game that was too long.
  void skip_to_tags() {
    skip_to_tags_ = false;
    for (;;) {
      begin_ = p_;
      if (const char* tags = find_tag_line(p_, end_ - std::min(left(), at_end_ ? 0 : kLookahead))) {
        p_ = tags;
        return;
      }
      if (left() > kLookahead) p_ = end_ - kLookahead;  // a tag may be cut here
      begin_ = p_;
      if (!read_more()) {
        if (at_end_ && find_tag_line(p_, end_) == nullptr) p_ = end_;
        if (at_end_) return;
      }
    }
  }

  void skip_junk_line() {
    while (*p_ != '\n') {
      if (is_end(p_)) {
        if (!read_more()) return;
        continue;
      }
      ++p_;
      if (*p_ == '[') {
        look_ahead();
        if (starts_tag(p_)) return;
      }
    }
  }

  // Whether a game without tags starts here: a move number, or a legal first move.
  bool starts_moves() const {
    const char* p = p_;
    if (is_digit(*p)) {
      while (is_digit(*p)) ++p;
      return *p == '.' && !is_digit(p[1]);
    }
    if (byte_kind(*p) != Byte::Move) return false;
    SanShape shape;
    const char* end = scan_san(p, shape);
    Move move;
    return end && is_delimiter(*end) && shape.kind == SanShape::Kind::Piece &&
           find_san_move(Position::initial(), shape, move) == SanFault::None;
  }

  void read_tags() {
    bool blank_line = false;
    while (!ended_) {
      look_ahead();
      if (byte_kind(*p_) == Byte::Space) {
        if (*p_ == '\n' && p_[1] == '\n') blank_line = true;
        if (*p_ == '\n' && p_[1] == '\r' && p_[2] == '\n') blank_line = true;
        ++p_;
      } else if (*p_ == '[') {
        // A second Event after a blank line is the next game; this one has no moves.
        if (blank_line && !tag_spans_.empty() && is_event(p_)) {
          ended_ = true;
          return;
        }
        blank_line = false;
        read_tag();
      } else if (*p_ == '%' && at_line_start()) {
        if (!find('\n')) return;
      } else {
        return;
      }
    }
  }

  static bool is_event(const char* p) {
    return starts_tag(p) && same_name(std::string_view(p + 1, 5), "Event") && is_blank(p[6]);
  }

  void read_tag() {
    if (!starts_tag(p_)) {
      error(p_, "not a tag: {}", quoted(std::string_view(p_, word_length(p_))));
      if (!find('\n')) ended_ = true;
      return;
    }
    const std::size_t start = offset_of(p_);
    std::size_t at = start + 1;
    const auto byte = [&](std::size_t offset) { return begin_[offset]; };
    while (is_blank(byte(at))) ++at;
    Span name{at, 0};
    while (!is_blank(byte(at))) ++at;
    name.size = at - name.offset;
    while (byte(at) != '"') ++at;
    Span value{++at, 0};
    bool escaped = false, loose = false, closed = false;
    for (;; ++at) {
      const char c = byte(at);
      if (c == '"') {
        std::size_t after = at + 1;
        while (is_blank(byte(after))) ++after;
        if (byte(after) == '\0' && begin_ + after == end_ && read_more()) {
          --at;  // the bracket may come with what was read: look again
          continue;
        }
        if (byte(after) != ']') {
          loose = true;
          continue;
        }
        value.size = at - value.offset;
        at = after + 1;
        closed = true;
        break;
      }
      if (c == '\\') {
        if (begin_ + at + 1 == end_) read_more();
        if (byte(at + 1) == '"' || byte(at + 1) == '\\') {
          escaped = true;
          ++at;
        }
      } else if (c == '\n') {
        break;
      } else if (c == '\0' && begin_ + at == end_) {
        if (!read_more()) break;
        --at;
      }
    }
    const char* where = begin_ + start;
    if (!closed) {
      std::string_view text = view({value.offset, at - value.offset});
      while (!text.empty() && (byte_kind(text.back()) == Byte::Space || text.back() == ']'))
        text.remove_suffix(1);
      if (text.ends_with('"')) text.remove_suffix(1);
      value.size = text.size();
      if (begin_ + at == end_) {
        error(where, "the input ends inside a tag");
        ended_ = dead_ = true;
      } else {
        warn(where, "tag {} is not closed", quoted(view(name)));
      }
    } else if (loose) {
      warn(where, "tag {} has a quote that is not escaped", quoted(view(name)));
    }
    if (escaped)
      value.size = unescape(buffer_.data() + (begin_ - buffer_.data()) + value.offset, value.size);
    p_ = begin_ + at;
    for (const auto& [other, ignored] : tag_spans_) {
      if (!same_name(view(other), view(name))) continue;
      warn(where, "tag {} is given twice: the first counts", quoted(view(name)));
      return;
    }
    if (tag_spans_.size() < kMaxTags) {
      tag_spans_.emplace_back(name, value);
    } else if (tag_spans_.size() == kMaxTags) {
      error(where, "more than {} tags", kMaxTags);
    }
  }

  static std::size_t unescape(char* text, std::size_t size) {
    std::size_t out = 0;
    for (std::size_t in = 0; in < size; ++in) {
      if (text[in] == '\\' && in + 1 < size && (text[in + 1] == '"' || text[in + 1] == '\\')) ++in;
      text[out++] = text[in];
    }
    return out;
  }

  void set_views() {
    game_.tags.items.clear();
    for (const auto& [name, value] : tag_spans_)
      game_.tags.items.push_back({view(name), view(value)});
  }

  // The start position that the tags ask for; without one the game has no moves.
  void set_start() {
    const auto fen = game_.tags.known("FEN");
    const auto variant = game_.tags.find("Variant");
    if (!fen && !variant) return;
    if (variant) {
      const Variant kind = variant_of(*variant);
      if (kind == Variant::Other) {
        error(variant->data(), "variant is not played here: {}", quoted(*variant));
        dead_ = true;
        return;
      }
      game_.chess960 = kind == Variant::Chess960;
    }
    if (!fen) return;
    const auto position = parse_fen(*fen, game_.chess960);
    if (!position) {
      error(fen->data(), "{}", position.error().message);
      dead_ = true;
      return;
    }
    game_.start = game_.position = *position;
    game_.chess960 = game_.chess960 || needs_chess960(*position);
  }

  // --- moves ---

  std::size_t word_length(const char* p) const {
    std::size_t n = 0;
    while (n < 100 && !is_delimiter(p[n])) ++n;
    return std::max<std::size_t>(n, is_end(p) ? 0 : 1);
  }

  void read_moves() {
    for (;;) {
      if (left() < kLookahead) read_more();
      const char c = *p_;
      switch (byte_kind(c)) {
        case Byte::Space:
        case Byte::Dot:
          ++p_;
          continue;
        case Byte::Digit:
          if (skip_number()) continue;
          if (c == '0' && p_[1] == '-' && p_[2] == '0') {
            read_san();
            continue;
          }
          [[fallthrough]];
        case Byte::Star:
        case Byte::Other:
          if (const auto result = scan_result(p_)) {
            if (variations_.empty() && !too_deep_) return end_game(*result);
            inside_variation_ = result;
          } else if (is_digit(c)) {
            while (is_digit(*p_)) ++p_;
          } else {
            read_sign();
          }
          continue;
        case Byte::Move:
          read_san();
          continue;
        case Byte::Comment:
          read_comment();
          if (ended_) return;
          continue;
        case Byte::LineComment: {
          const std::size_t start = offset_of(p_) + 1;
          find('\n');
          add_note(PgnNote::Kind::Comment, {start, offset_of(p_) - start});
          continue;
        }
        case Byte::Open:
          open_variation();
          continue;
        case Byte::Close:
          close_variation();
          inside_variation_.reset();
          continue;
        case Byte::Nag: {
          int nag = 0;
          for (++p_; is_digit(*p_); ++p_) nag = std::min(nag * 10 + (*p_ - '0'), 1000);
          add_nag(nag);
          continue;
        }
        case Byte::Suffix:
          read_suffix();
          continue;
        case Byte::Tag:
          if (starts_tag(p_)) {
            if (inside_variation_) end_result(*inside_variation_);
            return;
          }
          bad_word();
          continue;
        case Byte::Escape:
          if (at_line_start()) {
            find('\n');
          } else {
            bad_word();
          }
          continue;
        case Byte::Zero:
          if (is_end(p_)) {
            if (inside_variation_) end_result(*inside_variation_);
            return;
          }
          bad_word();
          continue;
      }
    }
  }

  void end_result(Result result) {
    game_.result = result;
    game_.has_terminator = true;
  }

  void end_game(Result result) {
    end_result(result);
    for (;;) {  // a comment on the same line still belongs here
      look_ahead();
      while (is_blank(*p_)) ++p_;
      if (*p_ != '{') return;
      read_comment();
      if (ended_) return;
    }
  }

  // "12." and "12..."; false for anything else.
  bool skip_number() {
    const char* p = p_ + 1;
    while (is_digit(*p)) ++p;
    if (*p != '.' || (p == p_ + 1 && std::strncmp(p_, "0.5-", 4) == 0)) return false;
    while (*p == '.') ++p;
    p_ = p;
    return true;
  }

  // Whether moves at the cursor are to be played, and where.
  bool is_dead() const {
    return dead_ || too_deep_ || (!variations_.empty() && variations_.back().dead);
  }

  void skip_word() {
    do ++p_;
    while (!is_delimiter(*p_));
  }

  void read_san() {
    if (is_dead()) return skip_word();
    SanShape shape;
    const char* end = scan_san(p_, shape);
    if (!end) return read_odd_word();
    while (*end == '+' || *end == '#') ++end;
    if (!is_delimiter(*end)) {
      if (std::strncmp(end, "e.p.", 4) == 0) {
        end += 4;
      } else if (std::strncmp(end, "ep", 2) == 0) {
        end += 2;
      }
      while (*end == '+' || *end == '#') ++end;
      if (!is_delimiter(*end)) return read_odd_word();
    }
    Variation* variation = variations_.empty() ? nullptr : &variations_.back();
    Position& position = variation ? variation->now : game_.position;
    Move move;
    if (shape.kind == SanShape::Kind::Null) {
      if (position.is_check()) return bad_move("null move in check");
      if (variation) variation->before = position;
      position.make_null();
    } else {
      const SanFault fault = find_san_move(position, shape, move);
      if (fault != SanFault::None) {
        return bad_move(fault == SanFault::Illegal     ? "illegal move"
                        : fault == SanFault::Ambiguous ? "ambiguous move"
                                                       : "not a move");
      }
      if (variation) variation->before = position;
      position.make(move);
    }
    if (!variation) game_.moves.push_back(move);
    p_ = end;
  }

  // Words that start like a move and are none: "ep", "e.p.", "N" (novelty), "-+" and the like.
  void read_odd_word() {
    const std::string_view word(p_, word_length(p_));
    const bool evaluation = word.find_first_not_of("-+=/~") == std::string_view::npos;
    if (word == "e.p." || word == "ep" || word == "ep." || word == "N" || evaluation) {
      p_ += word.size();
      return;
    }
    bad_move("not a move");
  }

  // Signs that PGN files have between the moves, or nothing that is known.
  void read_sign() {
    const std::string_view word(p_, word_length(p_));
    constexpr std::string_view kSigns[] = {"D", "\xc2\xb1", "\xe2\x88\x93", "\xe2\x88\x9e"};
    const bool sign = word.find_first_not_of("+-=/~#") == std::string_view::npos ||
                      std::find(std::begin(kSigns), std::end(kSigns), word) != std::end(kSigns);
    if (sign) {
      p_ += word.size();
      return;
    }
    bad_word();
  }

  void bad_word() { is_dead() ? skip_word() : bad_move("not a move"); }

  // An error at the cursor: the mainline or the variation ends here.
  void bad_move(std::string_view what) {
    const Position& position = variations_.empty() ? game_.position : variations_.back().now;
    error(p_, "{}{} {} at {}{}", what, variations_.empty() ? "" : " in a variation",
          quoted(std::string_view(p_, word_length(p_)), 20), position.fullmove_number(),
          position.side_to_move() == Color::White ? "." : "...");
    (variations_.empty() ? dead_ : variations_.back().dead) = true;
    skip_word();
  }

  void open_variation() {
    ++game_.variations;
    if (variations_.size() >= kMaxDepth) {
      if (too_deep_++ == 0) warn(p_, "variations deeper than {} are not looked at", kMaxDepth);
    } else if (!variations_.empty()) {
      const Variation& outer = variations_.back();
      variations_.push_back({outer.before, outer.before, offset_of(p_), outer.dead});
    } else {
      const bool dead = dead_ || !options_.check_variations;
      if (!dead) {
        if (before_ply_ == 0) before_ = game_.start;
        for (; before_ply_ + 1 < game_.moves.size(); ++before_ply_) {
          const Move m = game_.moves[before_ply_];
          m ? before_.make(m) : before_.make_null();
        }
      }
      variations_.push_back({before_, before_, offset_of(p_), dead});
    }
    ++p_;
  }

  void close_variation() {
    if (too_deep_) {
      --too_deep_;
    } else if (variations_.empty()) {
      if (!dead_) warn(p_, "a bracket closes no variation");
    } else {
      if (variations_.size() == 1) {
        const std::size_t start = variations_.back().offset + 1;
        variations_.pop_back();
        add_note(PgnNote::Kind::Variation, {start, offset_of(p_) - start});
      } else {
        variations_.pop_back();
      }
    }
    ++p_;
  }

  void add_note(PgnNote::Kind kind, Span text, int nag = 0) {
    if (!options_.notes || refused_ || !variations_.empty()) return;
    note_spans_.push_back({kind, static_cast<int>(game_.moves.size()), nag, text});
  }

  void add_nag(int nag) {
    if (nag > 255) {
      warn(p_, "annotation glyph above 255");
    } else {
      add_note(PgnNote::Kind::Nag, {0, 0}, nag);
    }
  }

  void read_suffix() {
    const char* start = p_;
    while (byte_kind(*p_) == Byte::Suffix) ++p_;
    if (const int nag = nag_of({start, static_cast<std::size_t>(p_ - start)}))
      add_note(PgnNote::Kind::Nag, {0, 0}, nag);
  }

  // A comment that is never closed, or that swallows a tag section and then opens another one, ends
  // the game: reading goes on at that tag section.
  void read_comment() {
    const std::size_t start = offset_of(p_);
    ++p_;
    // Not again where an earlier comment found none: a file of nothing else would take a time that
    // grows with the square of its length.
    const auto searched = left() - static_cast<std::ptrdiff_t>(bytes_read_ - no_brace_before_);
    if (searched > 0) p_ += searched;
    const bool closed = find('}');
    if (!closed) no_brace_before_ = bytes_read_;
    const char* open = begin_ + start;
    const char* tags = nullptr;
    if (!closed) {
      tags = find_tag_line(open, end_);
      if (!dead_) error(open, "comment is never closed");
    } else if (const void* another =
                   std::memchr(open + 1, '{', static_cast<std::size_t>(p_ - open - 1))) {
      tags = find_tag_line(open, static_cast<const char*>(another));
      if (tags && !dead_) error(open, "comment runs over a tag section");
    }
    if (closed && !tags) {
      add_note(PgnNote::Kind::Comment, {start + 1, offset_of(p_) - start - 1});
      ++p_;
      return;
    }
    if (tags) {
      p_ = tags;
      overlong_ = false;
    }
    dead_ = ended_ = lost_end_ = true;
  }

  void finish() {
    if (!variations_.empty() && !dead_) {
      bool reported = false;
      for (const Variation& v : variations_) reported |= v.dead;
      if (!reported || !options_.check_variations)
        error(begin_ + variations_.front().offset, "variation is never closed");
    }
    set_views();
    set_result();
    game_.notes.clear();
    for (const NoteSpan& n : note_spans_)
      game_.notes.push_back({n.kind, n.ply, n.nag, view(n.text)});
  }

  void set_result() {
    const auto tag = game_.tags.find("Result");
    const auto tagged = tag ? result_of(*tag) : std::nullopt;
    if (!game_.has_terminator) {
      game_.result = lost_end_ ? Result::Unknown : tagged.value_or(Result::Unknown);
      if (!dead_) warn(p_, "no result after the moves");
    } else if (tagged && *tagged != game_.result) {
      warn(p_, "the Result tag says {}, the moves end with {}", to_string(*tagged),
           to_string(game_.result));
    }
    if (dead_ || !game_.position.is_check() || has_legal_move(game_.position)) return;
    const Result on_board =
        game_.position.side_to_move() == Color::White ? Result::BlackWins : Result::WhiteWins;
    if (game_.result != on_board && game_.result != Result::Unknown)
      warn(p_, "the board is {}, the result says {}", to_string(on_board), to_string(game_.result));
  }

  std::unique_ptr<ByteSource> source_;
  PgnOptions options_;
  std::vector<char> buffer_;
  const char *begin_, *p_, *end_;  // of the game, the cursor, what has been read
  const char* counted_;            // line_ is the line here
  std::size_t line_ = 1;
  bool at_end_ = false;
  bool skip_to_tags_ = false;
  std::uint64_t no_brace_before_ = 0;  // in the input: where an unclosed comment found no '}'

  PgnGame game_;
  std::vector<std::pair<Span, Span>> tag_spans_;
  std::vector<NoteSpan> note_spans_;
  std::vector<Variation> variations_;
  std::size_t too_deep_ = 0;  // brackets open beyond kMaxDepth
  Position before_;           // after before_ply_ moves of the mainline
  std::size_t before_ply_ = 0;
  std::optional<Result> inside_variation_;  // a result in one that is still open
  bool dead_ = false;                       // the mainline has ended by an error
  bool refused_ = false;                    // by options_.wanted
  bool ended_ = false;                      // no moves follow
  bool lost_end_ = false;                   // in a comment that was never closed
  bool overlong_ = false;                   // more than max_game_bytes
};

PgnReader::PgnReader(std::unique_ptr<ByteSource> source, PgnOptions options)
    : impl_(std::make_unique<Impl>(std::move(source), std::move(options))) {}
PgnReader::PgnReader(PgnReader&&) noexcept = default;
PgnReader& PgnReader::operator=(PgnReader&&) noexcept = default;
PgnReader::~PgnReader() = default;

Expected<PgnReader> PgnReader::open(const std::filesystem::path& path, PgnOptions options) {
  auto source = open_bytes(path);
  if (!source) return tl::unexpected(source.error());
  return PgnReader(std::move(*source), std::move(options));
}

Expected<PgnReader> PgnReader::from_text(std::string_view text, PgnOptions options) {
  auto source = bytes_of(text);
  if (!source) return tl::unexpected(source.error());
  return PgnReader(std::move(*source), std::move(options));
}

const PgnGame* PgnReader::next() { return impl_->next(); }
const std::optional<Error>& PgnReader::error() const { return impl_->error_; }
std::size_t PgnReader::games_seen() const { return impl_->games_seen_; }
std::uint64_t PgnReader::bytes_read() const { return impl_->bytes_read_; }

}  // namespace tahl
