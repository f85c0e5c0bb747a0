#include "app/server.h"

#include <algorithm>
#include <array>
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>
#include <utility>

namespace tahl::app {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::uint32_t kMaxHeader = 16 * 1024;
constexpr std::size_t kMaxDrained = 8 * 1024 * 1024;

// Everything comes from here; chessground's pieces are data URIs in the style sheet.
constexpr std::string_view kContentPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src "
    "'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// The name in a Host header or an origin: "localhost:8000" -> "localhost".
std::string_view without_port(std::string_view host) {
  const std::size_t bracket = host.rfind(']');
  const std::size_t colon = host.rfind(':');
  if (colon == std::string_view::npos || (bracket != std::string_view::npos && colon < bracket)) {
    return host;
  }
  const std::string_view port = host.substr(colon + 1);
  const bool digits =
      std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits ? host.substr(0, colon) : host;
}

bool is_loopback_name(std::string_view host) {
  const std::string_view name = without_port(host);
  return beast::iequals({name.data(), name.size()}, "localhost") || name == "127.0.0.1" ||
         name == "[::1]";
}

// Why a request is refused before anyone looks at it, if it is.
std::optional<HttpReply> refusal(const http::request<http::string_body>& request) {
  const auto text = [&](http::field field) {
    const auto value = request[field];
    return std::string_view(value.data(), value.size());
  };
  if (request.count(http::field::host) != 1)
    return error_reply(400, "host: exactly one Host header is needed");
  const std::string_view host = text(http::field::host);
  if (!is_loopback_name(host)) {
    return error_reply(421,
                       fmt::format("host: this server is localhost, not {}", tahl::quoted(host)));
  }
  const std::string_view origin = text(http::field::origin);
  if (!origin.empty() && origin != fmt::format("http://{}", host)) {
    return error_reply(403,
                       fmt::format("origin: requests from {} are refused", tahl::quoted(origin)));
  }
  return std::nullopt;
}

}  // namespace

HttpReply error_reply(int status, const std::string& message) {
  const nlohmann::json body = {{"error", message}};
  return {.status = status,
          .body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
}

class Session;

struct Server::State {
  State(const ServerOptions& o, Handler h) : options(o), handler(std::move(h)) {}

  void accept();
  void shut_down();

  ServerOptions options;
  Handler handler;
  asio::io_context io{1};
  tcp::acceptor acceptor{io};
  asio::signal_set signals{io};
  asio::steady_timer pause{io};
  std::set<std::shared_ptr<Session>> sessions;
  bool ending = false;
};

// One connection: reads a request, has it answered on a thread of its own, writes the reply, and so
// on. All members but the worker thread's locals belong to the io thread.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, Server::State& server)
      : stream_(std::move(socket)), server_(server) {}

  void start(bool overloaded) {
    if (overloaded) return write(error_reply(503, "server: too many connections"), false, true);
    wait_for_request();
  }

  void shut_down() {
    stop_.request_stop();
    close();
  }

 private:
  void wait_for_request() {
    if (buffer_.size() > 0) return read_request();
    stream_.expires_after(server_.options.idle_timeout);
    stream_.async_read_some(buffer_.prepare(4096),
                            [self = shared_from_this()](error_code error, std::size_t n) {
                              if (error) return self->close();
                              self->buffer_.commit(n);
                              self->read_request();
                            });
  }

  void read_request() {
    parser_.emplace();
    parser_->header_limit(kMaxHeader);
    parser_->body_limit(server_.options.max_body);
    stream_.expires_after(server_.options.request_timeout);
    http::async_read(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](error_code error, std::size_t) { self->on_request(error); });
  }

  void on_request(error_code error) {
    if (error == http::error::end_of_stream) return close();
    if (error == http::error::body_limit) {
      return write(
          error_reply(413, fmt::format("body: more than {} bytes", server_.options.max_body)),
          false, true);
    }
    if (error == http::error::header_limit)
      return write(error_reply(431, "headers: too long"), false, true);
    if (error.category() == make_error_code(http::error::bad_method).category()) {
      return write(error_reply(400, fmt::format("request: {}", error.message())), false, true);
    }
    if (error) return close();  // gone, or too slow

    http::request<http::string_body> request = parser_->release();
    const bool head = request.method() == http::verb::head;
    const bool keep = request.keep_alive();
    if (std::optional<HttpReply> no = refusal(request)) return write(std::move(*no), head, true);

    HttpRequest plain;
    plain.method = head ? "GET" : std::string(request.method_string());
    plain.path = std::string(request.target());
    plain.path.resize(std::min(plain.path.size(), plain.path.find('?')));
    plain.content_type = std::string(request[http::field::content_type]);
    plain.body = std::move(request.body());
    answer(std::move(plain), head, keep);
  }

  void answer(HttpRequest request, bool head, bool keep) {
    stop_ = std::stop_source();
    answering_ = true;
    stream_.expires_never();
    watch_for_leaving();
    // The session must not be destroyed by its own worker, which could not join itself: the last
    // reference always goes back to the io thread.
    worker_ = std::jthread([this, request = std::move(request), head, keep, stop = stop_,
                            self = shared_from_this(),
                            work = asio::make_work_guard(server_.io)]() mutable {
      HttpReply reply;
      try {
        reply = server_.handler(request, stop);
      } catch (const std::exception& exception) {  // out of memory, for one: fail this request only
        reply = error_reply(500, exception.what());
      }
      asio::post(server_.io,
                 [self = std::move(self), reply = std::move(reply), head, keep]() mutable {
                   self->answering_ = false;
                   error_code ignored;
                   self->stream_.socket().cancel(ignored);  // watch_for_leaving
                   self->write(std::move(reply), head, !keep);
                 });
    });
  }

  // A browser that aborts a request closes its connection: nobody waits for that search any more.
  void watch_for_leaving() {
    stream_.socket().async_wait(
        tcp::socket::wait_read, [self = shared_from_this()](error_code error) {
          if (error || !self->answering_) return;
          char byte;
          self->stream_.socket().non_blocking(true, error);
          self->stream_.socket().receive(asio::buffer(&byte, 1), tcp::socket::message_peek, error);
          if (error && error != asio::error::would_block) self->stop_.request_stop();
        });
  }

  void write(HttpReply reply, bool head, bool close_after) {
    if (server_.ending) return close();
    reply_ = {};
    reply_.version(11);
    reply_.result(static_cast<unsigned>(reply.status));
    reply_.set(http::field::server, "tahl");
    const bool text = reply.type.rfind("text/", 0) == 0;
    reply_.set(http::field::content_type, text ? reply.type + "; charset=utf-8" : reply.type);
    reply_.set(http::field::cache_control, "no-store");
    reply_.set("Content-Security-Policy",
               beast::string_view(kContentPolicy.data(), kContentPolicy.size()));
    reply_.set("X-Content-Type-Options", "nosniff");
    reply_.set("X-Frame-Options", "DENY");
    reply_.set("Referrer-Policy", "no-referrer");
    reply_.set("Cross-Origin-Opener-Policy", "same-origin");
    reply_.set("Cross-Origin-Resource-Policy", "same-origin");
    if (!reply.allow.empty()) reply_.set(http::field::allow, reply.allow);
    reply_.keep_alive(!close_after);
    reply_.content_length(reply.body.size());
    if (!head) reply_.body() = std::move(reply.body);
    serializer_.emplace(reply_);
    stream_.expires_after(server_.options.request_timeout);
    http::async_write(stream_, *serializer_,
                      [self = shared_from_this(), close_after](error_code error, std::size_t) {
                        if (error) return self->close();
                        if (close_after) return self->leave();
                        self->wait_for_request();
                      });
  }

  // Ends the connection politely: closing with unread bytes would reset it and could lose the
  // reply.
  void leave() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.expires_after(std::chrono::seconds(2));
    drain(0);
  }
  void drain(std::size_t drained) {
    if (drained > kMaxDrained) return close();
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(16 * 1024),
                            [self = shared_from_this(), drained](error_code error, std::size_t n) {
                              if (error) return self->close();
                              self->drain(drained + n);
                            });
  }

  void close() {
    error_code ignored;
    stream_.socket().close(ignored);
    server_.sessions.erase(shared_from_this());
  }

  beast::tcp_stream stream_;
  Server::State& server_;
  beast::flat_buffer buffer_{64 * 1024};
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> reply_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  std::stop_source stop_;
  bool answering_ = false;
  std::jthread worker_;
};

void Server::State::accept() {
  acceptor.async_accept([this](error_code error, tcp::socket socket) {
    if (ending) return;
    if (error) {  // out of descriptors, most likely: try again when some are free
      pause.expires_after(std::chrono::milliseconds(100));
      pause.async_wait([this](error_code cancelled) {
        if (!cancelled) accept();
      });
      return;
    }
    const bool overloaded = sessions.size() >= options.max_connections;
    auto session = std::make_shared<Session>(std::move(socket), *this);
    sessions.insert(session);
    session->start(overloaded);
    accept();
  });
}

void Server::State::shut_down() {
  ending = true;
  error_code ignored;
  acceptor.close(ignored);
  signals.cancel(ignored);
  signals.clear(ignored);  // a second Ctrl-C kills
  pause.cancel();
  const auto all = sessions;
  for (const std::shared_ptr<Session>& session : all) session->shut_down();
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}
Server::~Server() = default;

Expected<std::unique_ptr<Server>> Server::listen(const ServerOptions& options, Handler handler) {
  auto state = std::make_unique<State>(options, std::move(handler));
  tcp::acceptor& acceptor = state->acceptor;
  error_code error;
  for (int i = 0; i <= options.more_ports && options.port + i <= 65535; ++i) {
    const tcp::endpoint endpoint(asio::ip::address_v4::loopback(),
                                 static_cast<unsigned short>(options.port + i));
    acceptor.close(error);
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error != asio::error::address_in_use) break;
  }
  if (error) return fail("port {}: {}", options.port, error.message());
  if (options.on_signals) {
    state->signals.add(SIGINT, error);
    state->signals.add(SIGTERM, error);
    state->signals.async_wait([s = state.get()](error_code cancelled, int) {
      if (!cancelled) s->shut_down();
    });
  }
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

int Server::port() const { return state_->acceptor.local_endpoint().port(); }

void Server::run() {
  state_->accept();
  state_->io.run();
}

void Server::stop() {
  asio::post(state_->io, [s = state_.get()] {
    if (!s->ending) s->shut_down();
  });
}

}  // namespace tahl::app
