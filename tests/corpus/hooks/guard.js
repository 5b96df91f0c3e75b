#!/usr/bin/env node
let text = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (chunk) => { text += chunk; });
process.stdin.on("end", () => {
  const { tool_input: input } = JSON.parse(text);
  if (/git\s+reset\s+--hard/.test(input.command || "")) {
    console.error("git reset --hard loses work");
    process.exit(2);
  }
  process.exit(0);
});
