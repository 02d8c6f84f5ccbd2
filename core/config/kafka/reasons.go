package kafka

// The reasons for which properties have no effect, as they are told to whoever sets one.
const (
	becauseAcks      = "a commit always waits for all replicas in sync"
	becauseAuth      = "listeners carry plain connections without authentication"
	becauseBacklog   = "the length of the accept queue is the operating system's"
	becauseChunks    = "the log is read in chunks of a fixed size"
	becauseClass     = "Java classes cannot be loaded"
	becauseCluster   = "a broker that stands alone has no other brokers or replicas"
	becauseFormat    = "batches are always kept in message format v2"
	becauseJava      = "it belongs to the Java virtual machine"
	becauseKRaft     = "there is no KRaft mode: coordination is chosen under `election`"
	becauseNewGroups = "groups use the classic protocol only"
	becauseOffsets   = "the offset store chooses this itself"
	becauseQueue     = "requests don't queue between threads; each connection has one in hand"
	becauseQuota     = "quotas are not enforced"
	becauseSecrets   = "no secrets are kept in ZooKeeper"
	becauseShare     = "share groups are not offered"
	becauseTLS       = "listeners carry plain connections without TLS"
	becauseTelemetry = "clients' metrics are not collected"
	becauseThreads   = "work runs in goroutines, which need no pools of threads"
	becauseTiered    = "tiered storage is not supported"
	becauseToken     = "delegation tokens are not supported"
	becauseUnstable  = "there are no unfinished versions to offer"
	becauseWaits     = "a request that is answered leaves its waiting list at once"
	becauseZooKeeper = "ZooKeeper is chosen and configured under `election`"
	becauseListener  = "settings of a single listener are not supported"
)
