#!/usr/bin/env node
process.stdin.resume();
process.stdin.on("data", () => {});
process.stdin.on("end", () => console.log(JSON.stringify({ additionalContext: "Answer in metric units." })));
