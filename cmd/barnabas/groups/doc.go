// Package groups looks at consumer groups and works out their lag and where to reset them to, for the commands of the command
// line.
//
// It speaks Kafka's protocol alone, so the cluster may be any that does. Reading ([Read], [Committed], [Target.Bounds]) is
// apart from working out ([Offset.Lag], [Select], [Target.Plan]), which is done without I/O; committing what was worked out is
// the commands' business, and so is printing.
package groups
