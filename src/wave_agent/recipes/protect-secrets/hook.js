#!/usr/bin/env node
// Keeps the agent away from files that contain secrets, whichever tool opens them.
// A guard: it blocks what it cannot parse (exit 2). Exit 1, the status of an exception, would let the call through.
const { readFileSync } = require("node:fs");

const END = "(?![A-Za-z0-9_.-])";
const SHARED = new RegExp(`[^\\s'"=]*(?:\\.env\\.(?:example|sample|template|dist)|\\.pub)${END}`, "g");
const SECRET = new RegExp(
  `(?<![A-Za-z0-9_-])(?:\\.env(?:\\.[\\w-]+)*|\\.netrc|\\.pgpass|\\.git-credentials|id_(?:rsa|dsa|ecdsa|ed25519))${END}` +
    `|\\.(?:pem|p12|pfx|keystore)${END}|\\.(?:ssh|aws|gnupg)/|(?:^|/)credentials(?:\\.json)?${END}`,
);

// All texts in the input of an MCP tool that may be a path or an address: any argument can name a file.
function paths(value) {
  if (typeof value === "string") return /^(?:\S+|[/~.].*|\w+:.*)$/.test(value) ? [value] : [];
  return value && typeof value === "object" ? Object.values(value).flatMap(paths) : [];
}

function block(reason) {
  console.error(reason);
  process.exit(2);
}

let named = [];
try {
  const { tool_name: tool, tool_input: input, effects = {} } = JSON.parse(readFileSync(0, "utf8"));
  // Every value that can name a file, including the whole command.
  named = [input.file_path, input.notebook_path, input.path, input.command].map((value) => String(value ?? ""));
  if (String(tool).startsWith("mcp__")) named.push(...paths(input));
  // And the files that the call would touch: a script or a link names them otherwise.
  named.push(...[effects.reads, effects.writes, effects.deletes].flatMap((paths) => paths ?? []));
} catch {
  block("protect-secrets cannot read the event.");
}

for (const text of named) {
  // Files meant to be shared are removed before searching.
  const found = text.replace(SHARED, " ").match(SECRET);
  if (found) block(`This names a file with secrets (${found[0]}). Ask the user for what you need from it.`);
}
