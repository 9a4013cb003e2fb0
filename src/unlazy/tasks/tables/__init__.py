"""Tables: file readers, prediction problems, UCI tables, and rows as a task."""
