// An editor without a screen: the protocol's library for TypeScript, which does what the lines on its
// standard input say, and says as lines what came.
//
//     node acp_client.mjs LIBRARY COMMAND...
//
// In:  {id, method, params} is a request, {method, params} a notification, {answer, result} the answer to
//      what the agent asked. Out: {id, result} or {id, error}, {update}, {ask, method, params}.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [library, command, ...rest] = process.argv.slice(2);
const acp = await import(pathToFileURL(library).href);
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const agent = spawn(command, rest, { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const ended = new Promise((resolve) => agent.on("exit", resolve));
const waiting = new Map();
let asked = 0;
let isLeft = false;

function isKnown(update) {
  const guards = Object.entries(acp.SessionUpdate ?? {});
  const known = guards.filter(([name]) => name.startsWith("is") && name !== "isUnknown");
  return known.length === 0 || known.some(([, guard]) => guard(update));
}

async function ask({ method, params }) {
  const number = ++asked;
  const answer = new Promise((resolve) => waiting.set(number, resolve));
  say({ ask: number, method, params });
  return await answer;
}

const editor = acp
  .client({ name: "an editor" })
  .onRequest("session/request_permission", ask)
  .onRequest("elicitation/create", ask)
  .onNotification("session/update", ({ params }) => {
    say({ update: params, known: isKnown(params.update) });
  });

const connected = editor.connectWith(stream, async (context) => {
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, method, params, answer, result } = JSON.parse(line);
    if (answer !== undefined) {
      waiting.get(answer)(result);
    } else if (id === undefined) {
      await context.notify(method, params);
    } else {
      context.request(method, params).then(
        (value) => say({ id, result: value }),
        (error) => say({ id, error: { code: error.code, message: error.message, data: error.data } }),
      );
    }
  }
  isLeft = true;
  agent.stdin.end();
  await ended; // after this function the library closes the agent's output, which may have more to say
});
await connected.catch((error) => {
  if (!isLeft) throw error; // else the agent's end has closed the connection
});
say({ exit: await ended });
process.exit(0);
