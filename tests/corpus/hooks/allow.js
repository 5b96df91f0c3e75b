#!/usr/bin/env node
const fs = require("fs");
const event = JSON.parse(fs.readFileSync(0, "utf-8"));
if (event.tool_input.command === "echo safe") {
  console.log(JSON.stringify({
    hookSpecificOutput: {
      hookEventName: "PreToolUse",
      permissionDecision: "allow",
      permissionDecisionReason: "on the list of safe commands",
    },
  }));
}
