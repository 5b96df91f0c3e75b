#!/usr/bin/env node
const event = JSON.parse(require("fs").readFileSync(0));
if (!event.stop_hook_active && /I think|probably/.test(event.last_assistant_message || "")) {
  console.log(JSON.stringify({ decision: "block", reason: "Be sure: check it, then answer." }));
}
