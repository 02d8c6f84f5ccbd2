// Sqlite-offsets is a plug-in of Barnabas: an offsets store that keeps the offsets and the records of consumer groups in an
// SQLite database, where any tool that speaks SQL can read them.
package main

import "github.com/barnabas-mq/barnabas/plugins/sdk"

func main() { sdk.Serve(sdk.Offsets(NewFactory())) }
