// Package pluginv1 is version 1 of the protocol between Barnabas and plug-ins that run as processes of their own: the
// messages and services of plugin.proto, generated, and what both ends share beside them: the handshake, the errors of the
// contracts, and how batches and entries become messages.
//
// Starting and watching processes is the business of plugins/remote, serving that of plugins/sdk; whoever writes a plug-in
// in Go needs the latter only.
package pluginv1

// What the two sides know of each other before they speak (see README.md).
const (
	// CookieKey and CookieValue are the variable of the environment by which a plug-in knows that a host started it.
	CookieKey   = "BARNABAS_PLUGIN"
	CookieValue = "barnabas.plugin.v1"
	// ProtocolVersion is the number of this protocol in the handshake line.
	ProtocolVersion = 1
	// SetName is the name under which go-plugin's two ends know the services.
	SetName = "barnabas"
)

// The roles, as the configuration file names them.
const (
	RolePartitioner = "partitioner"
	RoleCompression = "compression"
	RoleOffsets     = "offsets"
)

// How both of our ends set up gRPC, in bytes; other plug-ins may do otherwise.
const (
	// Window is how much may be on its way.
	Window = 4 << 20
	// Buffer is how much is read and written at once.
	Buffer = 128 << 10
)
