package wave

import rego.v1

default decision := {}

decision := {"decision": "block", "reason": "rm -rf is not allowed here"} if {
	input.tool_name == "Bash"
	contains(input.tool_input.command, "rm -rf")
}
