// Region is a plug-in of Barnabas: a partitioner that keeps the records of a region in the partitions of that region, so
// that consumers near it need to read no others.
package main

import "github.com/barnabas-mq/barnabas/plugins/sdk"

func main() { sdk.Serve(sdk.Partitioner(NewFactory())) }
