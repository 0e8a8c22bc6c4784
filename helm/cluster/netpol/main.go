// Judges the packets in a netfilter queue of the network namespace in which it runs by the NetworkPolicies of one
// node's pods: kube-network-policies of the Kubernetes project, by a kubeconfig instead of a pod's account. That would
// write its own rules by nftables, which it says it cannot where a kernel lacks nft_queue; whoever starts this one
// writes them.
package main

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/kube-network-policies/pkg/networkpolicy"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server (needed)")
	node := flag.String("node", "", "name of this node (needed)")
	queue := flag.Int("queue", 100, "number of the queue")
	flag.Parse()
	if *kubeconfig == "" || *node == "" {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *node, *queue); err != nil {
		klog.Fatal(err)
	}
}

// run enforces until ctx ends. What it cannot judge is dropped.
func run(ctx context.Context, kubeconfig, node string, queue int) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	all := informers.NewSharedInformerFactory(client, 0)
	controller, err := networkpolicy.NewController(client, all.Networking().V1().NetworkPolicies(),
		all.Core().V1().Namespaces(), all.Core().V1().Pods(), nil, nil, nil, nil,
		// NRI stays on, though no runtime here has it: without it this version asks a plugin that is not there about
		// every address that is no pod's.
		networkpolicy.Config{NodeName: node, QueueID: queue})
	if err != nil {
		return err
	}
	all.Start(ctx.Done())
	return controller.Run(ctx)
}
