// Package remote hosts plug-ins that run as processes of their own: it appears to the broker as the ordinary implementation
// `remote` of the roles partitioner, compression and offsets, and passes what it is asked to an executable, over gRPC through
// hashicorp/go-plugin (plugins/remote/proto/v1).
//
// A plug-in can fail in every way that a process can, and the broker goes on. Each call has a deadline; answers are bounded
// and checked before anything of them is used; a plug-in that ends, doesn't answer pings, or misses several deadlines in a row
// is killed and started again after a pause that doubles. Meanwhile calls get a retriable error at once, or are answered by an
// implementation in this process, as `on_failure` says. The process and all that it started end with the broker, however
// that ends.
//
// What a role means is not this package's business (core/partitioner, core/compression, core/offsets), nor is the plug-in's own
// end (plugins/sdk).
package remote
