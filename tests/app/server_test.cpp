#include "app/server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/page_api.h"

namespace tahl::app {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;
using testing::UnorderedElementsAre;

// A plain TCP client, so that requests can be as wrong as they like.
class Client {
 public:
  explicit Client(int port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    const timeval patience{60, 0};  // so that a broken server fails the test instead of hanging it
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~Client() { close(socket_); }
  Client(const Client&) = delete;

  bool connected() const { return connected_; }
  void send(std::string_view text) {
    (void)!::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
  }
  // Everything until the server closes.
  std::string rest() {
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = recv(socket_, buffer, sizeof buffer, 0)) > 0;)
      text.append(buffer, static_cast<std::size_t>(n));
    return text;
  }
  // Until `mark` has come; for connections that stay open.
  std::string until(std::string_view mark) {
    std::string text;
    char c;
    while (text.find(mark) == std::string::npos && recv(socket_, &c, 1, 0) == 1) text += c;
    return text;
  }

 private:
  int socket_;
  bool connected_ = false;
};

HttpReply echo(const HttpRequest& request, const std::stop_source&) {
  return {.type = "text/plain",
          .body = request.method + " " + request.path + " [" + request.body + "]"};
}

class RunningServer {
 public:
  explicit RunningServer(Server::Handler handler = echo, ServerOptions options = {.port = 0}) {
    auto server = Server::listen(options, std::move(handler));
    if (!server) throw std::runtime_error(server.error().message);
    server_ = std::move(*server);
    thread_ = std::jthread([this] { server_->run(); });
  }
  ~RunningServer() { server_->stop(); }
  int port() const { return server_->port(); }
  void stop() { server_->stop(); }
  void join() { thread_.join(); }

  std::string answer(const std::string& request) const {
    Client client(port());
    client.send(request);
    return client.rest();
  }
  std::string get(const std::string& path, const std::string& headers) const {
    return answer("GET " + path + " HTTP/1.1\r\n" + headers + "Connection: close\r\n\r\n");
  }

 private:
  std::unique_ptr<Server> server_;
  std::jthread thread_;
};

TEST(Server, AnswersUnderTheNamesOfThisMachine) {
  const RunningServer server;
  for (const char* host :
       {"localhost", "localhost:8000", "LOCALHOST", "127.0.0.1:1", "[::1]", "[::1]:8000"}) {
    const std::string reply = server.get("/a?b=c", std::string("Host: ") + host + "\r\n");
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n")) << host;
    EXPECT_THAT(reply, HasSubstr("GET /a []")) << host;
  }
}

TEST(Server, RefusesOtherNames) {
  const RunningServer server;
  for (const char* host :
       {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "localhost:x",
        "[::2]", "192.168.0.1:8000", "localhost:8000:80", "[::1].evil:1"}) {
    const std::string reply = server.get("/", std::string("Host: ") + host + "\r\n");
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 421 ")) << host;
    EXPECT_THAT(reply, HasSubstr("{\"error\":\"host: ")) << host;
  }
  EXPECT_THAT(server.get("/", ""), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(server.get("/", "Host: localhost\r\nHost: evil.example\r\n"),
              StartsWith("HTTP/1.1 400 "));
}

TEST(Server, RefusesPagesOfOtherOrigins) {
  const RunningServer server;
  const std::string host = "Host: localhost:8000\r\n";
  EXPECT_THAT(server.get("/", host + "Origin: http://localhost:8000\r\n"),
              StartsWith("HTTP/1.1 200 "));
  for (const char* origin :
       {"http://evil.example", "null", "http://localhost:8001", "https://localhost:8000"}) {
    EXPECT_THAT(server.get("/", host + "Origin: " + origin + "\r\n"), StartsWith("HTTP/1.1 403 "))
        << origin;
  }
}

TEST(Server, AllowsNothingFromElsewhereInItsHeaders) {
  const RunningServer server;
  const std::string reply = server.get("/", "Host: localhost\r\n");
  EXPECT_THAT(reply, HasSubstr("Content-Security-Policy: default-src 'none'; script-src 'self';"));
  EXPECT_THAT(reply, HasSubstr("X-Content-Type-Options: nosniff\r\n"));
  EXPECT_THAT(reply, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(reply, testing::Not(HasSubstr("Access-Control-Allow")));
}

TEST(Server, RefusesWhatIsNotHttp) {
  const RunningServer server;
  for (const char* request :
       {"hello\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET\r\n\r\n",
        "GET / HTTP/1.1\r\nno colon\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    const std::string reply = server.answer(request);
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 400 ")) << request;
    EXPECT_THAT(reply, HasSubstr("{\"error\":\"request: ")) << request;
  }
}

TEST(Server, LimitsHeadersAndBodies) {
  const RunningServer server(echo, {.port = 0, .max_body = 1000});
  const std::string post = "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
  const std::string fits =
      server.answer(post + "Content-Length: 1000\r\n\r\n" + std::string(1000, 'x'));
  EXPECT_THAT(fits, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(fits, HasSubstr("[" + std::string(1000, 'x') + "]"));
  const std::string huge =
      server.answer(post + "Content-Length: 3000000\r\n\r\n" + std::string(3000000, 'x'));
  EXPECT_THAT(huge, StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(huge, HasSubstr("{\"error\":\"body: more than 1000 bytes\"}"));
  EXPECT_THAT(server.answer(post + "Content-Length: 99999999999999999\r\n\r\n"),
              StartsWith("HTTP/1.1 413 "));
  std::string chunks = post + "Transfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 100; ++i) chunks += "64\r\n" + std::string(100, 'x') + "\r\n";
  EXPECT_THAT(server.answer(chunks + "0\r\n\r\n"), StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(server.get("/" + std::string(100000, 'x'), "Host: localhost\r\n"),
              StartsWith("HTTP/1.1 431 "));
}

TEST(Server, AnswersHeadWithoutBody) {
  const RunningServer server;
  const std::string reply =
      server.answer("HEAD /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(reply, HasSubstr("Content-Length: 9\r\n"));  // of "GET /x []"
  EXPECT_THAT(reply, testing::EndsWith("\r\n\r\n"));
}

TEST(Server, AnswersSeveralRequestsOfOneConnection) {
  const RunningServer server;
  Client client(server.port());
  const std::string request = "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n";
  client.send(request);
  EXPECT_THAT(client.until("GET /x []"), HasSubstr("200 OK"));
  client.send(request + request);  // at once
  EXPECT_THAT(client.until("GET /x []"), HasSubstr("200 OK"));
  EXPECT_THAT(client.until("GET /x []"), HasSubstr("200 OK"));
}

TEST(Server, DropsAClientThatIsTooSlow) {
  const RunningServer server(echo, {.port = 0, .request_timeout = std::chrono::milliseconds(100)});
  Client client(server.port());
  client.send("GET / HTT");
  EXPECT_EQ(client.rest(), "");
}

TEST(Server, DropsAnIdleConnection) {
  const RunningServer server(echo, {.port = 0, .idle_timeout = std::chrono::milliseconds(100)});
  Client client(server.port());
  EXPECT_EQ(client.rest(), "");
}

TEST(Server, LimitsConnections) {
  const RunningServer server(echo, {.port = 0, .max_connections = 1});
  Client first(server.port());
  first.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n");
  first.until("GET /x []");
  EXPECT_THAT(Client(server.port()).rest(), StartsWith("HTTP/1.1 503 "));
}

TEST(Server, StopsTheWorkOfAClientThatLeaves) {
  std::promise<void> begun, stopped;
  const RunningServer server([&](const HttpRequest&, const std::stop_source& stop) -> HttpReply {
    begun.set_value();
    while (!stop.stop_requested()) std::this_thread::yield();
    stopped.set_value();
    return {};
  });
  {
    Client client(server.port());
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    begun.get_future().wait();
  }
  EXPECT_EQ(stopped.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
}

TEST(Server, EndsThoughARequestIsUnderWay) {
  std::promise<void> begun;
  std::atomic<bool> stopped = false;
  RunningServer server([&](const HttpRequest&, const std::stop_source& stop) -> HttpReply {
    begun.set_value();
    while (!stop.stop_requested()) std::this_thread::yield();
    stopped = true;
    return {};
  });
  Client client(server.port());
  client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  begun.get_future().wait();
  server.stop();
  server.join();
  EXPECT_TRUE(stopped);
  EXPECT_EQ(client.rest(), "");
}

TEST(Server, SurvivesAHandlerThatThrows) {
  const RunningServer server([](const HttpRequest&, const std::stop_source&) -> HttpReply {
    throw std::runtime_error("no");
  });
  EXPECT_THAT(server.get("/", "Host: localhost\r\n"), StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(server.get("/", "Host: localhost\r\n"), HasSubstr("{\"error\":\"no\"}"));
}

TEST(Server, TakesTheNextFreePort) {
  const RunningServer first;
  const auto refused = Server::listen({.port = first.port()}, echo);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, StartsWith("port " + std::to_string(first.port()) + ": "));
  const auto next = Server::listen({.port = first.port(), .more_ports = 50}, echo);
  ASSERT_TRUE(next);
  EXPECT_GT((*next)->port(), first.port());
}

// ---- what the page asks ----

class BoardApiTest : public testing::Test {
 protected:
  BoardApiTest() : api_(BoardApi::create({.net = "uniform", .seed = 7}).value()) {}

  HttpReply call(const std::string& path, const std::string& body,
                 std::string type = "application/json") {
    return api_->handle(
        {.method = "POST", .path = path, .content_type = std::move(type), .body = body},
        std::stop_source());
  }
  json ok(const std::string& path, const json& body) {
    const HttpReply reply = call(path, body.dump());
    EXPECT_EQ(reply.status, 200) << path << " " << body << " " << reply.body;
    return json::parse(reply.body);
  }
  // The message of a request that must fail.
  std::string wrong(const std::string& path, const std::string& body) {
    const HttpReply reply = call(path, body);
    EXPECT_EQ(reply.status, 400) << body << " " << reply.body;
    const std::string message = json::parse(reply.body).value("error", "");
    EXPECT_EQ(message.find('\n'), std::string::npos);
    return message;
  }

  std::unique_ptr<BoardApi> api_;
};

const char* const kCastling = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1";

TEST_F(BoardApiTest, GivesTheTwentyFirstMoves) {
  const json position = ok("/api/position", json::object());
  EXPECT_EQ(position["fen"], "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1");
  EXPECT_EQ(position["turn"], "white");
  EXPECT_EQ(position["outcome"], nullptr);
  int moves = 0;
  for (const auto& [from, to] : position["dests"].items()) moves += static_cast<int>(to.size());
  EXPECT_EQ(moves, 20);
}

TEST_F(BoardApiTest, LetsTheKingCastleOntoHisSquareOrTheRook) {
  const json dests = ok("/api/position", {{"start", kCastling}})["dests"]["e1"];
  EXPECT_THAT(dests, testing::IsSupersetOf({"g1", "h1", "c1", "a1"}));
  for (const char* move : {"e1g1", "e1h1", "O-O", "0-0"}) {
    const json after = ok("/api/position", {{"start", kCastling}, {"moves", {move}}});
    EXPECT_EQ(after["fen"], "r3k2r/8/8/8/8/8/8/R4RK1 b kq - 1 1") << move;
    EXPECT_EQ(after["uci"], json({"e1g1"})) << move;
    EXPECT_EQ(after["san"], json({"O-O"})) << move;
  }
}

TEST_F(BoardApiTest, CastlesOntoTheRookInChess960) {
  const json start = {{"start", "1rk5/8/8/8/8/8/8/1RK3R1 w GB - 0 1"}};
  const json position = ok("/api/position", start);
  EXPECT_EQ(position["chess960"], true);
  EXPECT_THAT(position["dests"]["c1"], testing::IsSupersetOf({"g1", "b1"}));
}

TEST_F(BoardApiTest, NamesPromotionsOnce) {
  const json position = ok("/api/position", {{"start", "3r4/2P1k3/8/8/8/8/8/4K3 w - - 0 1"}});
  EXPECT_THAT(position["promotions"], UnorderedElementsAre("c7c8", "c7d8"));
  EXPECT_THAT(position["dests"]["c7"], UnorderedElementsAre("c8", "d8"));
  EXPECT_EQ(ok("/api/position",
               {{"start", "3r4/2P1k3/8/8/8/8/8/4K3 w - - 0 1"}, {"moves", {"c7d8n"}}})["san"],
            json({"cxd8=N"}));
}

TEST_F(BoardApiTest, SaysHowAGameEnded) {
  const json mate = ok("/api/position", {{"moves", {"f3", "e5", "g4", "Qh4#"}}});
  EXPECT_EQ(mate["outcome"], json({{"result", "0-1"}, {"ending", "checkmate"}}));
  EXPECT_EQ(mate["check"], true);
  EXPECT_EQ(mate["dests"], json::object());
  EXPECT_EQ(mate["uci"], json({"f2f3", "e7e5", "g2g4", "d8h4"}));
  const json repeated =
      ok("/api/position", {{"moves", {"Nf3", "Nf6", "Ng1", "Ng8", "Nf3", "Nf6", "Ng1", "Ng8"}}});
  EXPECT_EQ(repeated["outcome"]["result"], "1/2-1/2");
  EXPECT_EQ(ok("/api/position", {{"start", "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"}})["outcome"]["ending"],
            "stalemate");
}

TEST_F(BoardApiTest, NamesTheFieldThatIsWrong) {
  EXPECT_EQ(wrong("/api/position", ""), "body: is not JSON");
  EXPECT_EQ(wrong("/api/position", "{\"start\": "), "body: is not JSON");
  EXPECT_EQ(wrong("/api/position", "{\"start\":\"\xff\"}"), "body: is not JSON");
  EXPECT_EQ(wrong("/api/position", std::string(100000, '[')), "body: is not JSON");
  EXPECT_EQ(wrong("/api/position", "[]"), "body: must be a JSON object");
  EXPECT_EQ(wrong("/api/position", R"({"start": 5})"), "start: must be text");
  EXPECT_THAT(wrong("/api/position", R"({"start": "8/8/8"})"), StartsWith("fen: "));
  EXPECT_EQ(wrong("/api/position", R"({"moves": "e4"})"), "moves: must be a list");
  EXPECT_EQ(wrong("/api/position", R"({"moves": ["e4", 5]})"), "moves: 2: must be text");
  EXPECT_THAT(wrong("/api/position", R"({"moves": ["e2e4", "e7e5", "e4e5"]})"),
              StartsWith("moves: 3: "));
  EXPECT_THAT(wrong("/api/position", R"({"moves": ["e4", "Ke3"]})"), StartsWith("moves: 2: "));
  EXPECT_THAT(wrong("/api/position", R"({"moves": ["\u0000\n"]})"), StartsWith("moves: 1: "));
  EXPECT_EQ(wrong("/api/move", R"({"player": []})"), "player: must be an object");
  EXPECT_EQ(wrong("/api/move", R"({"player": {"kind": "minimax", "depth": 40}})"),
            "depth: must be a number from 1 to 6");
  EXPECT_EQ(wrong("/api/move", R"({"player": {"kind": "mcts", "nodes": "many"}})"),
            "nodes: must be a number from 1 to 20000");
  EXPECT_THAT(wrong("/api/move", R"({"player": {"kind": "stockfish"}})"), StartsWith("player: "));
  EXPECT_EQ(wrong("/api/move", R"({"moves": ["f3", "e5", "g4", "Qh4"]})"),
            "moves: the game is over");
  EXPECT_EQ(wrong("/api/move", fmt::format(R"({{"game": "{}"}})", std::string(200, 'x'))),
            "game: longer than 100 bytes");
  EXPECT_EQ(wrong("/api/load", R"({"text": "neither"})"), "text: neither a FEN nor a PGN");
}

TEST_F(BoardApiTest, TakesOnlyItsOwnMethodsAndType) {
  EXPECT_EQ(call("/api/position", "{}", "text/plain").status, 415);
  const HttpReply get =
      api_->handle({.method = "GET", .path = "/api/move", .content_type = "", .body = ""}, {});
  EXPECT_EQ(get.status, 405);
  EXPECT_EQ(get.allow, "POST");
  EXPECT_EQ(call("/api/config", "{}").status, 405);
  EXPECT_EQ(call("/", "{}").status, 405);
  EXPECT_EQ(call("/api/nothing", "{}").status, 404);
  EXPECT_EQ(call("/../etc/passwd", "{}").status, 404);
}

TEST_F(BoardApiTest, EveryPlayerMovesLegally) {
  for (const char* kind : {"policy", "mcts", "minimax", "random"}) {
    const json reply = ok("/api/move", {{"moves", {"e4", "e5"}},
                                        {"player", {{"kind", kind}, {"nodes", 20}, {"depth", 2}}}});
    ok("/api/position", {{"moves", {"e4", "e5", reply["uci"]}}});
    EXPECT_EQ(ok("/api/position", {{"moves", {"e4", "e5", reply["uci"]}}})["san"][2], reply["san"])
        << kind;
  }
}

TEST_F(BoardApiTest, TheMinimaxMatesInOne) {
  const json reply = ok("/api/move", {{"start", "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1"},
                                      {"player", {{"kind", "minimax"}, {"depth", 2}}}});
  EXPECT_EQ(reply["san"], "Ra8#");
  EXPECT_EQ(reply["mate_in"], 1);
  EXPECT_GT(reply["value_for_white"], 0.9);
}

TEST_F(BoardApiTest, ListsAtMostFiveThoughts) {
  EXPECT_EQ(ok("/api/evaluate", json::object())["top"].size(), 5u);
  const json two = ok("/api/evaluate", {{"start", "7k/8/8/8/8/8/6q1/7K w - - 0 1"}});
  ASSERT_EQ(two["top"].size(), 1u);
  EXPECT_EQ(two["top"][0]["san"], "Kxg2");
  EXPECT_DOUBLE_EQ(two["top"][0]["p"], 1);
  const json mated = ok("/api/evaluate", {{"moves", {"f3", "e5", "g4", "Qh4"}}});
  EXPECT_EQ(mated["value_for_white"], -1);
  EXPECT_TRUE(mated["top"].empty());
}

TEST_F(BoardApiTest, ANewSearchOfAGameStopsTheOneBefore) {
  std::atomic<bool> done = false;
  HttpReply first;
  std::jthread search([&] {
    first = call("/api/move", R"({"game": "g", "player": {"kind": "mcts", "nodes": 20000}})");
    done = true;
  });
  while (!done) call("/api/move", R"({"game": "g", "player": {"kind": "random"}})");
  search.join();
  EXPECT_EQ(first.status, 409) << first.body;
}

TEST_F(BoardApiTest, WritesAndReadsPgn) {
  const json moves = {"e2e4", "e7e5", "g1f3"};
  const std::string pgn = ok(
      "/api/pgn", {{"moves", moves}, {"white", "A \"quoted\" name\n"}, {"black", "Tahl"}})["pgn"];
  EXPECT_THAT(pgn, HasSubstr("1. e4 e5 2. Nf3 *"));
  EXPECT_THAT(pgn, HasSubstr("[White \"A \\\"quoted\\\" name \"]"));
  EXPECT_EQ(ok("/api/load", {{"text", pgn}}), json({{"start", nullptr}, {"moves", moves}}));

  const std::string fen = "8/8/8/4k3/8/4K3/4P3/8 w - - 5 60";
  const std::string endgame = ok("/api/pgn", {{"start", fen}, {"moves", {"Kd3"}}})["pgn"];
  EXPECT_EQ(ok("/api/load", {{"text", endgame}}), json({{"start", fen}, {"moves", {"e3d3"}}}));
  EXPECT_EQ(ok("/api/load", {{"text", fen}}), json({{"start", fen}, {"moves", json::array()}}));
  EXPECT_THAT(wrong("/api/load", json({{"text", "1. e4 e5 2. Ke3"}}).dump()),
              StartsWith("pgn: line 1: "));
}

TEST(BoardApi, RefusesPlayersThatAreNotTheNet) {
  BoardOptions options;
  options.player = "minimax";
  const auto api = BoardApi::create(options);
  ASSERT_FALSE(api);
  EXPECT_THAT(api.error().message, HasSubstr("minimax"));
  options = {};
  options.net = "/nonexistent/net";
  EXPECT_FALSE(BoardApi::create(options));
}

}  // namespace
}  // namespace tahl::app
