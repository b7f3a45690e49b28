"""What people use in this tool's place, measured side by side with it."""
