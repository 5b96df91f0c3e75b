#!/usr/bin/env node
// Approves read-only commands. Anything that is not clearly one of them gets no opinion, and the usual question.
// Errs on the side of no opinion: only one simple command, no shell metacharacters, a known program, and no option
// that writes or runs something.
const { readFileSync } = require("node:fs");

const LOOKS = ["ls", "pwd", "cat", "head", "tail", "wc", "grep", "which", "file", "stat", "du", "df", "date"];
const GIT_LOOKS = ["status", "log", "diff", "show", "blame", "shortlog", "rev-parse", "ls-files"];
const WRITES = /^(?:--(?:output|exec|ext-diff|textconv|open-files-in-pager|pre)\b|-[oO])/;

function onlyLooks(command) {
  if (!command || /[;&|<>$`\\(){}!*?~#\n\r]/.test(command)) return false;
  const [program, ...words] = command.trim().split(/\s+/).map((word) => word.replace(/["']/g, ""));
  if (words.some((word) => WRITES.test(word))) return false;
  return LOOKS.includes(program) || (program === "git" && GIT_LOOKS.includes(words[0]));
}

let command = "";
try {
  command = String(JSON.parse(readFileSync(0, "utf8")).tool_input.command ?? "");
} catch {
  command = ""; // no opinion
}

if (onlyLooks(command)) {
  const said = { permissionDecision: "allow", permissionDecisionReason: "it only reads" };
  console.log(JSON.stringify({ hookSpecificOutput: { hookEventName: "PreToolUse", ...said } }));
}
