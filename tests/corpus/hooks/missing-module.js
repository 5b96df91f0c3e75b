#!/usr/bin/env node
require("a-module-that-nobody-has");
