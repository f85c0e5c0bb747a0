#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "chess/error.h"

namespace tahl::app {

struct HttpRequest {
  std::string
      method;  // "GET", "POST", "HEAD" (which the server answers as GET without the body), ...
  std::string path;  // without the query
  std::string content_type;
  std::string body;
};

struct HttpReply {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::string allow = {};  // the methods that a 405 names
};
// {"error": message}
HttpReply error_reply(int status, const std::string& message);

struct ServerOptions {
  int port = 8000;          // 0: any free one
  int more_ports = 0;       // how many after `port` to try when it is busy
  bool on_signals = false;  // SIGINT and SIGTERM end run()
  std::size_t max_body = 256 * 1024;
  std::size_t max_connections = 64;
  std::chrono::milliseconds request_timeout{
      15'000};  // for a request to arrive once it has begun, and for a reply to leave
  std::chrono::milliseconds idle_timeout{300'000};
};

// An HTTP/1.1 server for this machine only: it listens on 127.0.0.1, and answers requests only
// under the names localhost, 127.0.0.1 and [::1] and from pages of the same origin, so that no web
// site can reach it through the browser (DNS rebinding, cross-site requests). Whatever is wrong
// with a request gets a 4xx with a line of JSON.
class Server {
 public:
  struct State;
  // Called on a thread of its own for each request. `stop` is requested when the client goes away
  // or the server ends.
  using Handler = std::function<HttpReply(const HttpRequest&, std::stop_source stop)>;

  static Expected<std::unique_ptr<Server>> listen(const ServerOptions& options, Handler handler);
  ~Server();

  int port() const;
  void run();   // serves until stop() or a signal; requests under way are stopped
  void stop();  // from any thread

 private:
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tahl::app
