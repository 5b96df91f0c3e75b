#!/usr/bin/env node
// Formats the file that was just edited. A formatter that is missing or fails is ignored: the edit is kept, and the
// next check will report problems. The model is notified when formatting changed the file, or its next edit would look
// for text that no longer exists.
const { spawnSync } = require("node:child_process");
const { readFileSync } = require("node:fs");
const { extname } = require("node:path");

const PRETTIER = [["prettier", "--write"]];
const FORMATTERS = {
  ".py": [["ruff", "format", "--quiet"], ["black", "--quiet"]],
  ".go": [["gofmt", "-w"]],
  ".rs": [["rustfmt"]],
  ".sh": [["shfmt", "-w"]],
};
for (const kind of ["js", "jsx", "ts", "tsx", "css", "html", "json", "md", "yml", "yaml"]) FORMATTERS[`.${kind}`] = PRETTIER;

let file, before;
try {
  file = JSON.parse(readFileSync(0, "utf8")).tool_input.file_path;
  before = readFileSync(file, "utf8");
} catch {
  process.exit(0); // nothing to format
}

for (const [program, ...options] of FORMATTERS[extname(file)] ?? []) {
  // The file name is a separate argument: no shell interprets it. The first formatter installed is used.
  if (!spawnSync(program, [...options, file], { stdio: "ignore" }).error) break;
}
if (readFileSync(file, "utf8") !== before) {
  const additionalContext = `${file} was formatted after the edit: read it again before you edit it.`;
  console.log(JSON.stringify({ hookSpecificOutput: { hookEventName: "PostToolUse", additionalContext } }));
}
