"""The protocol itself, spoken with the official SDK. Imported only in the process that `host_program` runs."""
