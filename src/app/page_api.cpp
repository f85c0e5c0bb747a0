#include "app/page_api.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "app/page.h"
#include "chess/fen.h"
#include "chess/game.h"
#include "chess/movegen.h"
#include "chess/notation.h"
#include "chess/pgn.h"

namespace tahl::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 6, kMaxNodes = 20'000;
constexpr double kMaxTemperature = 2;
constexpr std::size_t kMaxPlies =
    12'000;  // seventy-five moves without capture or pawn move end a game long before
constexpr std::size_t kMaxIdlePlayers = 4, kMaxSearches = 8;

HttpReply ok(const Json& body) {
  return {.body = body.dump(-1, ' ', false, Json::error_handler_t::replace)};
}
HttpReply bad_request(const Error& error) { return error_reply(400, error.message); }

std::string_view color_name(Color c) { return c == Color::White ? "white" : "black"; }

Expected<Json> parse_body(const HttpRequest& request) {
  // A page of another site can send a form unasked, but not this type.
  if (request.content_type.rfind("application/json", 0) != 0)
    return fail("body: must be application/json");
  Json body = Json::parse(request.body, nullptr, false);
  if (body.is_discarded()) return fail("body: is not JSON");
  if (!body.is_object()) return fail("body: must be a JSON object");
  return body;
}

Expected<std::string> text_field(const Json& object, const char* name, std::size_t limit) {
  const auto field = object.find(name);
  if (field == object.end() || field->is_null()) return std::string();
  if (!field->is_string()) return fail("{}: must be text", name);
  std::string text = *field;
  if (text.size() > limit) return fail("{}: longer than {} bytes", name, limit);
  return text;
}

Expected<double> number_field(const Json& object, const char* name, double least, double most,
                              double standard) {
  const auto field = object.find(name);
  if (field == object.end() || field->is_null()) return standard;
  if (!field->is_number() || !(*field >= least && *field <= most)) {
    return fail("{}: must be a number from {} to {}", name, least, most);
  }
  return field->get<double>();
}

Expected<Move> parse_move(const Game& game, const std::string& text) {
  const Expected<Move> uci = parse_uci(game.position(), text, game.is_chess960());
  if (uci) return uci;
  const Expected<Move> san = parse_san(game.position(), text);
  const bool looks_like_uci =
      text.size() >= 4 && text[1] >= '1' && text[1] <= '8' && text[3] >= '1' && text[3] <= '8';
  return san || !looks_like_uci ? san : uci;
}

Expected<Game> parse_game(const Json& body) {
  const Expected<std::string> start = text_field(body, "start", 200);
  if (!start) return tl::unexpected(start.error());
  Game game;
  if (!start->empty()) {
    const Expected<Position> position = parse_fen(*start);
    if (!position) return tl::unexpected(position.error());
    game = Game(*position, needs_chess960(*position));
  }
  const auto moves = body.find("moves");
  if (moves == body.end() || moves->is_null()) return game;
  if (!moves->is_array()) return fail("moves: must be a list");
  if (moves->size() > kMaxPlies) return fail("moves: more than {}", kMaxPlies);
  for (const Json& text : *moves) {
    if (!text.is_string()) return fail("moves: {}: must be text", game.ply() + 1);
    const Expected<Move> move = parse_move(game, text);
    if (!move) return fail("moves: {}: {}", game.ply() + 1, move.error().message);
    game.play(*move);
  }
  return game;
}

// The squares that the king may be put on to castle: his own, and in Chess960 only, the rook.
std::vector<Square> castling_targets(const Game& game, Move m) {
  if (game.is_chess960()) return {m.to()};
  return {make_square(m.to() > m.from() ? 6 : 2, rank_of(m.from())), m.to()};
}

HttpReply position_reply(const Game& game) {
  const Position& position = game.position();
  std::map<std::string, std::vector<std::string>> dests;
  std::vector<std::string> promotions;
  for (const Move m : legal_moves(position)) {
    const std::string from = square_name(m.from());
    if (m.is_promotion() && m.promotion() != PieceType::Queen) continue;
    if (m.is_promotion()) promotions.push_back(from + square_name(m.to()));
    if (m.is_castling()) {
      for (const Square to : castling_targets(game, m)) dests[from].push_back(square_name(to));
    } else {
      dests[from].push_back(square_name(m.to()));
    }
  }
  Json uci = Json::array(), san = Json::array();
  for (std::size_t i = 0; i < game.moves().size(); ++i) {
    uci.push_back(to_uci(game.positions()[i], game.moves()[i], game.is_chess960()));
    san.push_back(to_san(game.positions()[i], game.moves()[i]));
  }
  Json outcome = nullptr;
  if (const std::optional<Outcome> end = game.outcome()) {
    outcome = {{"result", to_string(end->result)}, {"ending", to_string(end->ending)}};
  }
  return ok({{"fen", to_fen(position)},
             {"start_turn", color_name(game.start().side_to_move())},
             {"start_move", game.start().fullmove_number()},
             {"turn", color_name(position.side_to_move())},
             {"check", position.is_check()},
             {"dests", dests},
             {"promotions", promotions},
             {"uci", uci},
             {"san", san},
             {"chess960", game.is_chess960()},
             {"outcome", outcome}});
}

double value_for_white(const Position& position, double value) {
  return position.side_to_move() == Color::White ? value : -value;
}

// The five largest shares, as the page lists them.
Json top_five(const Game& game, std::vector<std::pair<Move, double>> policy) {
  const std::size_t n = std::min<std::size_t>(5, policy.size());
  std::partial_sort(policy.begin(), policy.begin() + static_cast<std::ptrdiff_t>(n), policy.end(),
                    [](const auto& a, const auto& b) { return a.second > b.second; });
  Json top = Json::array();
  for (std::size_t i = 0; i < n; ++i) {
    top.push_back({{"uci", to_uci(game.position(), policy[i].first, game.is_chess960())},
                   {"san", to_san(game.position(), policy[i].first)},
                   {"p", policy[i].second}});
  }
  return top;
}

HttpReply pgn_reply(const Game& game, const Json& body) {
  PgnTagList tags = {{"Event", "A game against Tahl"}, {"Site", "?"}};
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  tags.emplace_back("Date", fmt::format("{:04}.{:02}.{:02}", local.tm_year + 1900, local.tm_mon + 1,
                                        local.tm_mday));
  tags.emplace_back("Round", "-");
  for (const auto& [tag, field] : {std::pair("White", "white"), std::pair("Black", "black")}) {
    Expected<std::string> name = text_field(body, field, 200);
    if (!name) return bad_request(name.error());
    std::replace_if(
        name->begin(), name->end(), [](unsigned char c) { return c < ' '; }, ' ');
    tags.emplace_back(tag, name->empty() ? "?" : *name);
  }
  return ok({{"pgn", to_pgn(game, tags)}});
}

// FEN if it can be read as such, else the first game of a PGN.
HttpReply load_reply(const Json& body) {
  const Expected<std::string> text = text_field(body, "text", std::size_t{1} << 20);
  if (!text) return bad_request(text.error());
  const Expected<Position> position = parse_fen(*text);
  if (position) return ok({{"start", to_fen(*position)}, {"moves", Json::array()}});
  if (text->find('[') == std::string::npos && text->find('/') != std::string::npos) {
    return bad_request(position.error());
  }
  Expected<PgnReader> reader = PgnReader::from_text(*text);
  if (!reader) return bad_request(reader.error());
  const PgnGame* game = reader->next();
  if (!game || (game->moves.empty() && game->tags.items.empty())) {
    return error_reply(400, "text: neither a FEN nor a PGN");
  }
  if (!game->ok()) {
    return error_reply(
        400, fmt::format("pgn: line {}: {}", game->errors[0].line, game->errors[0].message));
  }
  Json moves = Json::array();
  Position at = game->start;
  const bool chess960 = needs_chess960(at);
  for (const Move m : game->moves) {
    if (!m) return error_reply(400, "pgn: has a null move, which cannot be played on");
    moves.push_back(to_uci(at, m, chess960));
    at.make(m);
  }
  const bool usual = to_fen(game->start) == to_fen(Position::initial());
  return ok({{"start", usual ? Json(nullptr) : Json(to_fen(game->start))}, {"moves", moves}});
}

HttpReply page_reply(const HttpRequest& request) {
  const std::string_view path =
      request.path == "/" ? "/index.html" : std::string_view(request.path);
  for (const PageFile& file : page_files()) {
    if (file.path != path) continue;
    if (request.method != "GET") {
      HttpReply reply = error_reply(405, fmt::format("{}: only GET", request.path));
      reply.allow = "GET, HEAD";
      return reply;
    }
    return {.type = std::string(file.type),
            .body = std::string(file.bytes.begin(), file.bytes.end())};
  }
  return error_reply(404, fmt::format("{}: not found", tahl::quoted(request.path)));
}

}  // namespace

Expected<std::unique_ptr<BoardApi>> BoardApi::create(const BoardOptions& options) {
  std::unique_ptr<BoardApi> api(new BoardApi(options));
  const Expected<search::PlayerSpec> spec = search::parse_player_spec(options.player);
  if (!spec) return tl::unexpected(spec.error());
  if (spec->kind != "policy" && spec->kind != "mcts") {
    return fail("--player: the net plays as policy or mcts, not {}", tahl::quoted(spec->kind));
  }
  api->options_.player = spec->kind;
  nn::NetworkOptions network;
  for (const auto& [name, value] : spec->options) {
    if (name == "net" && options.net.empty()) {
      api->options_.net = value;
    } else if (name == "nodes" || name == "temperature") {
      const double number = std::strtod(value.c_str(), nullptr);
      (name == "nodes" ? api->options_.nodes = static_cast<int>(number),
       0.0             : api->options_.temperature = number);
    } else {
      if (name == "precision") {
        const auto precision = nn::parse_precision(value);
        if (!precision) return fail("--player: {}", precision.error().message);
        network.precision = *precision;
      }
      api->extra_.emplace_back(name, value);
    }
  }
  std::random_device random;
  api->launch_ = fmt::format("{:08x}{:08x}", random(), random());
  Expected<std::unique_ptr<nn::Evaluator>> net = api->pool_.take(api->options_.net, network);
  if (net) {
    api->net_ = std::move(*net);
    api->net_name_ = api->net_->name();
  } else if (!api->options_.net.empty()) {
    return tl::unexpected(net.error());
  } else {
    api->no_net_ = net.error().message;
  }
  return api;
}

HttpReply BoardApi::config() const {
  return ok({{"version", TAHL_VERSION},
             {"launch", launch_},
             {"net", net_ ? Json(net_name_) : Json(nullptr)},
             {"no_net", no_net_},
             {"color", options_.human_is_black ? "black" : "white"},
             {"player", options_.player},
             {"depth", options_.depth},
             {"nodes", options_.nodes},
             {"temperature", options_.temperature},
             {"max_depth", kMaxDepth},
             {"max_nodes", kMaxNodes},
             {"max_temperature", kMaxTemperature}});
}

HttpReply BoardApi::evaluate(const Game& game) {
  if (!net_) return error_reply(404, no_net_);
  const Position& position = game.position();
  const MoveList legal = legal_moves(position);
  if (legal.empty()) {
    return ok({{"value_for_white", value_for_white(position, position.is_check() ? -1 : 0)},
               {"top", Json::array()}});
  }
  nn::Evaluation evaluation;
  {
    const std::lock_guard lock(net_mutex_);
    evaluation = net_->evaluate(game, legal);
  }
  const std::vector<float> p = nn::softmax(evaluation.logits);
  std::vector<std::pair<Move, double>> policy;
  for (int i = 0; i < legal.size(); ++i)
    policy.emplace_back(legal[i], p[static_cast<std::size_t>(i)]);
  return ok({{"value_for_white", value_for_white(position, evaluation.value)},
             {"top", top_five(game, policy)}});
}

Expected<std::unique_ptr<search::Player>> BoardApi::take_player(const search::PlayerSpec& spec,
                                                                const std::string& game) {
  {
    const std::lock_guard lock(players_mutex_);
    const auto fits = [&](const IdlePlayer& idle) { return idle.spec == spec.text; };
    auto found = std::find_if(idle_.begin(), idle_.end(), [&](const IdlePlayer& idle) {
      return fits(idle) && idle.game == game;
    });
    const bool same_game = found != idle_.end();
    if (!same_game) found = std::find_if(idle_.begin(), idle_.end(), fits);
    if (found != idle_.end()) {
      std::unique_ptr<search::Player> player = std::move(found->player);
      idle_.erase(found);
      if (!same_game) player->new_game();
      return player;
    }
  }
  const std::uint64_t seed = options_.seed ? options_.seed : std::random_device{}();
  return search::make_player(spec, seed, &pool_);
}

HttpReply BoardApi::move(const Game& game, const search::PlayerSpec& spec,
                         const search::Limits& limits, const std::string& game_name,
                         const std::stop_source& stop) {
  const Position& position = game.position();
  if (!has_legal_move(position)) return error_reply(400, "moves: the game is over");
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(players_mutex_);
    const auto earlier = searches_.find(game_name);
    if (earlier != searches_.end()) {
      earlier->second.stop.request_stop();
      searches_.erase(earlier);
    }
    if (searches_.size() >= kMaxSearches)
      return error_reply(503, "server: too many searches at once");
    id = next_id_++;
    searches_.emplace(game_name, Search{id, stop});
  }
  Expected<std::unique_ptr<search::Player>> player = take_player(spec, game_name);
  const auto begin = std::chrono::steady_clock::now();
  search::Choice choice;
  if (player) choice = (*player)->choose(game, limits, stop.get_token());
  const auto time = std::chrono::steady_clock::now() - begin;
  {
    const std::lock_guard lock(players_mutex_);
    const auto mine = searches_.find(game_name);
    if (mine != searches_.end() && mine->second.id == id) searches_.erase(mine);
    if (player) {
      idle_.push_back({spec.text, game_name, std::move(*player)});
      if (idle_.size() > kMaxIdlePlayers) idle_.erase(idle_.begin());
    }
  }
  if (!player) return bad_request(player.error());
  if (stop.stop_requested()) return error_reply(409, "move: stopped");

  Json reply = {{"uci", to_uci(position, choice.move, game.is_chess960())},
                {"san", to_san(position, choice.move)},
                {"value_for_white", nullptr},
                {"mate_in", nullptr},
                {"top", top_five(game, choice.policy)},
                {"nodes", choice.info.nodes},
                {"depth", choice.info.depth},
                {"ms", std::chrono::duration_cast<std::chrono::milliseconds>(time).count()}};
  if (!choice.info.lines.empty()) {
    const search::Line& line = choice.info.lines[0];
    reply["value_for_white"] = value_for_white(position, line.value);
    if (line.mate_in) reply["mate_in"] = *line.mate_in;
  }
  return ok(reply);
}

namespace {

struct PlayerWish {
  search::PlayerSpec spec;
  search::Limits limits;
};

// The page names a kind and how strong; it cannot name files.
Expected<PlayerWish> parse_player(const Json& body, const BoardOptions& options,
                                  const std::vector<std::pair<std::string, std::string>>& extra) {
  const auto field = body.find("player");
  const Json wish = field == body.end() || field->is_null() ? Json::object() : *field;
  if (!wish.is_object()) return fail("player: must be an object");
  Expected<std::string> kind = text_field(wish, "kind", 20);
  if (!kind) return tl::unexpected(kind.error());
  if (kind->empty()) *kind = options.player;
  const Expected<double> depth = number_field(wish, "depth", 1, kMaxDepth, options.depth);
  const Expected<double> nodes = number_field(wish, "nodes", 1, kMaxNodes, options.nodes);
  const Expected<double> temperature =
      number_field(wish, "temperature", 0, kMaxTemperature, options.temperature);
  for (const Expected<double>* number : {&depth, &nodes, &temperature}) {
    if (!*number) return tl::unexpected(number->error());
  }
  PlayerWish result;
  result.spec.kind = *kind;
  auto& list = result.spec.options;
  if (*kind == "policy" || *kind == "mcts") {
    if (!options.net.empty()) list.emplace_back("net", options.net);
    list.emplace_back("temperature", fmt::format("{}", *temperature));
    if (*kind == "mcts") list.emplace_back("nodes", fmt::format("{}", static_cast<int>(*nodes)));
    if (*kind == options.player) list.insert(list.end(), extra.begin(), extra.end());
  } else if (*kind == "minimax") {
    list.emplace_back("depth", fmt::format("{}", static_cast<int>(*depth)));
  } else if (*kind != "random") {
    return fail("player: {} is none of policy, mcts, minimax, random", tahl::quoted(*kind));
  }
  result.spec.text = *kind;
  for (std::size_t i = 0; i < list.size(); ++i) {
    result.spec.text += fmt::format("{}{}={}", i == 0 ? ':' : ',', list[i].first, list[i].second);
  }
  return result;
}

}  // namespace

HttpReply BoardApi::handle(const HttpRequest& request, const std::stop_source& stop) {
  const std::string_view path = request.path;
  const bool known_get = path == "/api/config";
  const bool known_post = path == "/api/position" || path == "/api/evaluate" ||
                          path == "/api/move" || path == "/api/pgn" || path == "/api/load";
  if (!known_get && !known_post) return page_reply(request);
  if (request.method != (known_get ? "GET" : "POST")) {
    HttpReply reply =
        error_reply(405, fmt::format("{}: only {}", path, known_get ? "GET" : "POST"));
    reply.allow = known_get ? "GET, HEAD" : "POST";
    return reply;
  }
  if (known_get) return config();

  const Expected<Json> body = parse_body(request);
  if (!body)
    return error_reply(body.error().message.rfind("body: must be application", 0) == 0 ? 415 : 400,
                       body.error().message);
  if (path == "/api/load") return load_reply(*body);
  const Expected<Game> game = parse_game(*body);
  if (!game) return bad_request(game.error());
  if (path == "/api/position") return position_reply(*game);
  if (path == "/api/evaluate") return evaluate(*game);
  if (path == "/api/pgn") return pgn_reply(*game, *body);

  const Expected<PlayerWish> wish = parse_player(*body, options_, extra_);
  if (!wish) return bad_request(wish.error());
  const Expected<std::string> name = text_field(*body, "game", 100);
  if (!name) return bad_request(name.error());
  return move(*game, wish->spec, wish->limits, *name, stop);
}

}  // namespace tahl::app
