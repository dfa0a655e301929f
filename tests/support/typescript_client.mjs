// A client of MCP by the TypeScript SDK: starts a server, calls tools, prints one JSON object.
//
//     node typescript_client.mjs SDK-FOLDER CALLS COMMAND [ARGUMENT ...]
//
// CALLS is a JSON list of [tool, arguments].

import { pathToFileURL } from "node:url";

const [sdk, calls, command, ...args] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(`${sdk}/dist/esm/client/${path}`).href);
const { Client } = await load("index.js");
const { StdioClientTransport } = await load("stdio.js");

const client = new Client({ name: "typescript", version: "1" });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
const { tools } = await client.listTools();
const results = [];
for (const [name, given] of JSON.parse(calls)) {
  results.push(await client.callTool({ name, arguments: given }));
}
await client.close();
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), results }));
