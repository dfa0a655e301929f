// A client whose types are generated: it says a message, follows the session, and prints the answer.
//
//     node client.js HOST:PORT TOKEN FOLDER

import createClient from "openapi-fetch";
import type { paths } from "./api";
import type { Event } from "./events";

const [address, token, folder] = process.argv.slice(2) as [string, string, string];
const client = createClient<paths>({
  baseUrl: `http://${address}`,
  headers: { Authorization: `Bearer ${token}` },
});

const begun = await client.POST("/api/v1/sessions", { body: { folder } });
if (begun.error) throw new Error(begun.error.detail);
const path = { session: begun.data.id };
const said = await client.POST("/api/v1/sessions/{session}/messages", {
  params: { path },
  body: { text: "hello", as: "queue" },
});
if (said.error) throw new Error(said.error.detail);
if (said.data.type !== "accepted") throw new Error("it is no message");
// @ts-expect-error: a misspelt path is refused by the types
void (() => client.GET("/api/v1/session/{session}", { params: { path } }));

async function* events(): AsyncGenerator<Event> {
  const { response } = await client.GET("/api/v1/sessions/{session}/events", {
    params: { path },
    parseAs: "stream",
  });
  const decoder = new TextDecoder();
  let text = "";
  for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) {
    const lines = (text + decoder.decode(piece, { stream: true })).split(/\r?\n/);
    text = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("data: ")) yield JSON.parse(line.slice(6)) as Event;
    }
  }
}

let answer = "";
for await (const event of events()) {
  if (event.type === "answer") answer = event.text;
  // @ts-expect-error: an answer has no such field
  if (event.type === "answer") void event.nothing;
  if (event.type === "turn_ended") {
    console.log(JSON.stringify({ id: said.data.id, status: event.status, answer }));
    process.exit(0);
  }
}
