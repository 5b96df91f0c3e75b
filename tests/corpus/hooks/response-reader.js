#!/usr/bin/env node
const fs = require("fs");
const { tool_response: response, tool_input: input } = JSON.parse(fs.readFileSync("/dev/stdin", "utf8"));
if (!response.success || response.filePath !== input.file_path) process.exit(2);
fs.appendFileSync(process.env.CLAUDE_PROJECT_DIR + "/written.txt", response.filePath.split("/").pop() + "\n");
