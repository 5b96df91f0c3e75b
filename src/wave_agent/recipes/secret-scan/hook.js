#!/usr/bin/env node
// Scans text that is about to be written, and blocks keys, tokens and passwords.
// Only new text is scanned, so removing a secret stays possible. A guard: it blocks what it cannot parse (exit 2).
// The secret itself is not repeated in the reason, which goes into transcripts.
const { readFileSync } = require("node:fs");

const SECRETS = {
  "an AWS key": /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/,
  "a GitHub token": /\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})\b/,
  "a Slack token": /\bxox[abprs]-[A-Za-z0-9-]{10,}/,
  "a key of an API": /\bsk-[A-Za-z0-9_-]{32,}/,
  "a private key": /-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----/,
  // Quoted, eight characters or more, and not a placeholder such as <…>, ${…}, or xxxx.
  "a password": /(?:password|passwd|secret|api_?key|token)["']?\s*[:=]\s*["'](?![<$%{]|x{4}|your)[^\s"']{8,}["']/i,
};

// What \b stands for above. A letter such as é is no part of a key, nor is the n of an escaped newline, the D of %3D, or
// the m that ends an escape for colours.
const START =
  String.raw`(?:(?<![A-Za-z0-9_])|(?<=\\[abefnrtv0])|(?<=\\x[0-9A-Fa-f]{2})|(?<=\\0[0-7]{2})|(?<=\\u[0-9A-Fa-f]{4})` +
  String.raw`|(?<=[%=][0-9A-Fa-f]{2})|(?<=\[[mK])|(?<=\[\dm)|(?<=\[\d\dm)|(?<=\[\d;\d\dm)|(?<=\[\d\d;\d\dm))`;
const END = String.raw`(?![A-Za-z0-9_])`;

function expression(pattern) {
  return new RegExp(pattern.source.replace(/^\\b/, () => START).replace(/\\b$/, () => END), pattern.flags);
}

// All texts in the input of an MCP tool: any argument can be written somewhere.
function strings(value) {
  if (typeof value === "string") return [value];
  return value && typeof value === "object" ? Object.values(value).flatMap(strings) : [];
}

function block(reason) {
  console.error(reason);
  process.exit(2);
}

let texts = [];
try {
  const { tool_name: tool, tool_input: input } = JSON.parse(readFileSync(0, "utf8"));
  texts = [input, ...(input.edits ?? [])].flatMap((edit) => [edit.content, edit.new_string, edit.new_source]);
  if (String(tool).startsWith("mcp__")) texts.push(...strings(input));
} catch {
  block("secret-scan cannot read the event.");
}

for (const [what, pattern] of Object.entries(SECRETS)) {
  if (texts.some((text) => expression(pattern).test(String(text ?? "")))) {
    block(`This would write ${what} into a file, or pass it on. Read it from the environment instead.`);
  }
}
