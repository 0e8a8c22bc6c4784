// CoreDNS with the plugins that a cluster's own names need, one for names of the network around it, and no others: its
// full list takes minutes to build.
package main

import (
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
)

func main() { coremain.Run() }
