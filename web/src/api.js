// The server knows the rules and the players; the page holds the game and asks.

export class ApiError extends Error {}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("Tahl no longer answers. Is it still running?");
  }
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new ApiError(body.error ?? `status ${response.status}`);
  return body;
}

export const getConfig = () => ask("/api/config");

export const post = (name, body, signal) =>
  ask(`/api/${name}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal,
  });
